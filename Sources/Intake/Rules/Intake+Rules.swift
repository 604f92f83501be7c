internal import Containers
internal import Events
internal import EventLoops
internal import Model
package import Spool

/// Events that containers' rules may concern.
extension Intake {
    /// What an event waits for that the rules did not let through.
    enum Obstacle {
        /// The answer of a function, or a free place to ask it.
        case question
        /// Calls of functions that tags asked for: too many of the app wait.
        case fullCalls
        /// A document of a container that must rule events of this app: without it, nothing says what to
        /// hide.
        case document
    }

    /// Calls `resume` once the lines that the last `take` did not accept can be offered again. Returns false,
    /// without keeping `resume`, if a commit must come first.
    package func park(_ resume: @escaping () -> Void) -> Bool {
        switch obstacle {
        case .question?: rules?.whenAnswered(resume)
        // Calls are made only once a commit holds them. With new ones pending, room comes after that commit
        // only.
        case .fullCalls? where !calls.hasNew: calls.whenRoom(resume)
        case .document? where !kind.isOld: rules?.whenPublished(resume)
        // The owners of old files and of quarantined lines report a missing document themselves, and try
        // again.
        case .document?, .fullCalls?, nil: return false
        }
        return true
    }

    /// Notes the obstacle. Always returns false, so that callers can return the result.
    private func stop(at found: Obstacle) -> Bool {
        obstacle = found
        return false
    }

    /// Takes whole lines, and waits for the rules meanwhile. Returns the number of bytes taken; it is less
    /// than all if a commit comes first.
    package func takeAside(_ lines: ArraySlice<UInt8>, from source: SpoolSource, at offset: Int64) async
        -> Int
    {
        var taken = 0
        while taken < lines.count {
            let count = lines.dropFirst(taken).withUnsafeBytes {
                take($0, from: source, at: offset + Int64(taken))
            }
            taken += count
            guard count == 0 else { continue }
            let isOffered = await withCheckedContinuation { continuation in
                if !park({ continuation.resume(returning: true) }) {
                    continuation.resume(returning: false)
                }
            }
            if !isOffered { break }
        }
        return taken
    }

    /// Takes a push to the data layer; false if it must be offered again. Pushes in old files, in places and
    /// in quarantined lines are passed over: the layer describes the present.
    func push(_ line: UnsafeRawBufferPointer, by rules: IntakeRules, app: String, at now: Timestamp) -> Bool {
        guard kind == .spool else { return true }
        guard !calls.isFull(for: app) else { return stop(at: .fullCalls) }
        if case .needs = rules.push(line, app: app, at: now) { return stop(at: .question) }
        calls.add(rules.engine.calls, of: app)
        return true
    }

    /// Applies the containers' rules to an event, and adds it to the chunks that they choose.
    ///
    /// - Parameters:
    ///   - place: index of the configured route.
    ///   - offset: offset of the line in its file.
    /// - Returns: false if the event must be offered again, with `obstacle` set.
    func take(
        _ verdict: Verdict, by rules: IntakeRules, _ place: Int, _ source: SpoolSource, _ offset: Int64,
        at now: Timestamp
    ) -> Bool {
        guard !calls.isFull(for: source.app) else { return stop(at: .fullCalls) }
        scratch.removeAll(keepingCapacity: 1 << 20)
        pass.write(into: &scratch)
        let fate = rules.apply(
            to: scratch.bytes, app: source.app, file: source.path,
            priority: isBackfill ? .normal : verdict.priority, at: now,
            largest: min(settings.largestEvent, settings.commitBytes), isOld: kind.isOld)
        if case .needs = fate { return stop(at: .question) }
        put(fate, rules, verdict.eventTime, place, source, offset, at: now)
        return true
    }

    /// Puts what the rules left of an event into its chunk, or counts it as discarded.
    func put(
        _ fate: RuleEngine.Fate, _ rules: IntakeRules, _ eventTime: Timestamp, _ place: Int,
        _ source: SpoolSource,
        _ offset: Int64, at now: Timestamp
    ) {
        if fate == .tooLarge { return keepMadeTooLarge(rules, source, offset) }
        pending.read += 1
        calls.add(rules.engine.calls, of: source.app)
        let priority = isBackfill ? .normal : rules.engine.priority
        let place = rules.engine.destinations.map { self.place(of: $0, else: place) } ?? place
        let route = routes[place]
        if case .discarded(let reason) = fate {
            return countNotStored(.discarded(reason: reason), priority, to: route.destinations)
        }
        guard !route.destinations.isEmpty else {
            return countNotStored(.discarded(reason: "no_destination"), priority, to: route.destinations)
        }
        put(rules.engine.line, place, priority, source, offset, eventTime, at: now)
    }

    /// Puts a line into its chunk. The chunk is closed before if it has no room for the line, and afterwards
    /// if it is full.
    func put(
        _ line: UnsafeRawBufferPointer, _ place: Int, _ priority: Priority, _ source: SpoolSource,
        _ offset: Int64,
        _ eventTime: Timestamp, at now: Timestamp
    ) {
        let route = routes[place]
        let chunk = open[place][priority == .critical ? 1 : 0]
        if chunk.lines.count + line.count > route.chunks.bytes, !chunk.isEmpty {
            close(chunk, route, isFull: true)
        }
        chunk.turn(to: source)
        let begin = chunk.lines.count
        chunk.lines.append(line)
        if tap?.isWatched == true {
            show(chunk, from: begin, of: source.app, priority)
        }
        chunk.count(eventTime: isBackfill ? now : eventTime, acceptedAt: now, at: offset)
        if chunk.events == route.chunks.events || chunk.lines.count >= route.chunks.bytes {
            close(chunk, route, isFull: true)
        }
    }

    /// Index of the route to the destinations that a tag has named; the configured route if none of them is
    /// configured.
    private func place(of names: [String], else standard: Int) -> Int {
        let way = ShippedWay(names: names, standard: standard)
        let known = shipped[way] ?? findPlace(of: way)
        if known < 0 {
            rules?.engine.note(.unknownDestination)
        }
        return known < 0 ? standard : known
    }

    /// Finds or adds the route; -1 if none of its destinations is configured.
    private func findPlace(of way: ShippedWay) -> Int {
        var route = settings.table.route(to: way.names)
        route.deadlines = routes[way.standard].deadlines
        var place = routes.firstIndex(of: route) ?? routes.count
        if route.destinations.isEmpty {
            place = -1
        } else if place == routes.count {
            // Documents name the sets of destinations. Without a bound, the open chunks of these routes would
            // fill the memory.
            if routes.count >= settings.routes.count + Intake.mostShipped {
                closeAll()
                routes = settings.routes
                shipped = [:]
                open.removeSubrange(routes.count...)
                place = routes.count
            }
            routes.append(route)
            open.append(openChunks())
        }
        shipped[way] = place
        return place
    }

    /// Most routes that tags add; with more, all of them are closed and found again.
    private static let mostShipped = 64
}
