internal import Containers
internal import Events
internal import EventLoops
internal import Model
package import Spool

/// Events that containers' rules may concern.
extension Intake {
    /// Keeps `resume` until the lines that `take` has left can be offered again. Returns false, and forgets
    /// `resume`, if a commit comes first.
    package func park(_ resume: @escaping () -> Void) -> Bool { gate.park(resume) }

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
        guard gate.mayCall(app) else { return false }
        if case .needs = rules.push(line, app: app, at: now) { return gate.stop(at: .question) }
        gate.calls.add(rules.engine.calls, of: app)
        gate.offer(rules.engine.offers, of: app)
        return true
    }

    /// Takes what a push to the data layer says about consent, and nothing else of it.
    func pushConsent(_ line: UnsafeRawBufferPointer, by rules: IntakeRules, app: String) {
        guard kind == .spool else { return }
        rules.engine.pushConsent(line, app: app)
    }

    /// Applies the containers' rules to an event, and adds it to the chunks that they choose.
    ///
    /// - Parameters:
    ///   - routeIndex: index of the configured route.
    ///   - offset: offset of the line in its file.
    /// - Returns: false if the event must be offered again, with `obstacle` set.
    func applyRules(
        _ verdict: Verdict, by rules: IntakeRules, _ routeIndex: Int, _ source: SpoolSource, _ offset: Int64,
        at now: Timestamp
    ) -> Bool {
        guard gate.mayCall(source.app) else { return false }
        scratch.removeAll(keepingCapacity: 1 << 20)
        pass.write(into: &scratch)
        let fate = rules.apply(
            to: scratch.bytes, app: source.app, file: source.path,
            priority: isBackfill ? .normal : verdict.priority, at: now,
            largest: min(settings.largestEvent, settings.commitBytes), isOld: kind.isOld)
        if case .needs = fate { return gate.stop(at: .question) }
        put(fate, rules, verdict.eventTime, routeIndex, source, offset, at: now)
        return true
    }

    /// Puts what the rules left of an event into its chunk, or counts it as discarded.
    func put(
        _ fate: RuleEngine.Fate, _ rules: IntakeRules, _ eventTime: Timestamp, _ routeIndex: Int,
        _ source: SpoolSource,
        _ offset: Int64, at now: Timestamp, saying statement: ConsentStatement? = nil
    ) {
        if fate == .tooLarge { return keepMadeTooLarge(rules, source, offset) }
        chunks.countRead()
        if rules.engine.hasCalls {
            gate.calls.add(rules.engine.calls, of: source.app)
            gate.offer(rules.engine.offers, of: source.app)
        }
        let priority = isBackfill ? .normal : rules.engine.priority
        var routeIndex = routeIndex
        if let named = rules.engine.destinations {
            if let found = chunks.routeIndex(of: named, else: routeIndex) {
                routeIndex = found
            } else {
                rules.engine.note(.unknownDestination)
            }
        }
        if case .discarded(let reason) = fate {
            let destinations = chunks.routes[routeIndex].destinations
            return chunks.count(.discarded(reason: reason), priority, to: destinations)
        }
        guard !chunks.routes[routeIndex].destinations.isEmpty else {
            return chunks.count(.discarded(reason: "no_destination"), priority, to: [])
        }
        put(rules.engine.line, routeIndex, priority, source, offset, eventTime, at: now, saying: statement)
    }

    /// Index of the route to the destinations that may get an event by consent; nil if none may. The others
    /// are counted as withheld.
    private func consentedRouteIndex(
        _ line: UnsafeRawBufferPointer, _ routeIndex: Int, _ priority: Priority, _ app: String,
        _ statement: ConsentStatement?
    ) -> Int? {
        guard let consent = settings.consent else { return routeIndex }
        let destinations = chunks.routes[routeIndex].destinations
        guard consent.concerns(destinations, of: app) else { return routeIndex }
        let withheld = consent.withheld(
            from: destinations, saying: ConsentStatement(ofLine: line).joined(with: statement),
            layer: gate.rules?.engine.consent(of: app), of: app)
        guard !withheld.isEmpty else { return routeIndex }
        let rest = destinations.filter { !withheld.contains($0) }
        let fate = NotStored.Fate.discarded(reason: consent.reason(of: app))
        chunks.count(fate, priority, to: withheld, isStoredForOthers: !rest.isEmpty)
        guard !rest.isEmpty else { return nil }
        // The configured route is the standard: that of `routeIndex` may have been named by a tag, and its
        // index is given to another one later.
        return chunks.routeIndex(of: rest.map(\.text).sorted(), else: settings.routeIndex(of: app))
    }

    /// Puts a line into its chunk, and shows it to the audience. Destinations to which consent does not let
    /// it go are left out.
    ///
    /// - Parameter statement: what is said about consent beside what the line itself says.
    func put(
        _ line: UnsafeRawBufferPointer, _ routeIndex: Int, _ priority: Priority, _ source: SpoolSource,
        _ offset: Int64, _ eventTime: Timestamp, at now: Timestamp, saying statement: ConsentStatement? = nil
    ) {
        guard let routeIndex = consentedRouteIndex(line, routeIndex, priority, source.app, statement) else {
            return
        }
        chunks.put(
            line, on: routeIndex, priority, from: source, at: offset, eventTime: isBackfill ? now : eventTime,
            acceptedAt: now
        ) { chunk, begin in
            if tap?.isWatched == true {
                show(chunk, from: begin, of: source.app, priority)
            }
        }
    }
}
