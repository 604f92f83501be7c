internal import EventLoops
internal import Glibc
internal import Model

/// Values of `type` that change how an event is treated; `other` stands for all others, and for none.
enum EventType {
    case other, crash, startSession, dataLayer
}

/// The verdict on a line that was scanned: event or record, name, priority, time.
///
/// The order of the steps matters. Pushes to the data layer leave first: they are not events. Then come name,
/// priority and time, because an expired event counts by its priority. Then the features are asked, in the
/// order that `EventFeature` lists.
extension EventPass {
    /// Judges the object that the scanner has just read.
    ///
    /// - Parameter next: the offset after the line, for the verdict.
    @inline(__always)
    mutating func judge(_ next: Int) -> Verdict {
        output.draft.reset()
        guard block.mayBeEvents else { return judgeRecord(next) }

        let type = lines.type
        if type == .dataLayer { return verdict(.dataLayer, next) }
        // An object without a usable name was not written for us.
        guard lines.hasUsableName || type == .startSession || type == .crash else {
            return judgeRecord(next)
        }
        output.draft.isRecord = false
        output.draft.otherIDName = nil
        if !lines.scanner.replaced.isEmpty {
            removeReplaced()
        }

        let name: UnsafeBufferPointer<UInt8>
        switch eventName(type) {
        case .name(let found): name = found
        case .beyond(let excess): return beyond(excess, next)
        }
        output.draft.name = name
        let priority = priority(name, type)
        let time = lines.scanner.has(.timestamp) ? eventTime() : timeElsewhere()
        if time < block.oldest {
            return Verdict(
                kind: .expired, priority: priority, eventTime: time, startsSession: false, next: next)
        }
        if time > block.newest {
            problem = Problem(
                reason: .timeAhead, limit: nil,
                detail: "the event's time is further ahead than max_time_ahead")
            return verdict(.quarantined, next)
        }
        let line = JudgedLine(name: name, type: type, time: time, isRecord: false)
        if let excess = features.check(line, &lines.scanner, &output, &counts) { return beyond(excess, next) }

        output.draft.wanted = .usual
        if lines.scanner.present & Additions.members != 0 {
            checkProvidedMembers(line)
        }
        let startsSession = features.complete(line, &lines.scanner, &output, &counts)
        return Verdict(
            kind: .accepted, priority: priority, eventTime: time, startsSession: startsSession, next: next)
    }

    /// An event's name, or why it has none.
    private enum FoundName {
        case name(UnsafeBufferPointer<UInt8>)
        case beyond(Excess)
    }

    /// The verdict on a line that passes a limit which does not let it through.
    @inline(never)
    mutating func beyond(_ excess: Excess, _ next: Int) -> Verdict {
        problem = excess.problem
        return verdict(excess.isRefused ? .refused : .quarantined, next)
    }

    /// The event's name as UTF-8 text, valid until the next line; or the limit that does not let it
    /// through.
    @inline(__always)
    private mutating func eventName(_ type: EventType) -> FoundName {
        if lines.scanner.has(.name) {
            let member = lines.scanner.member(.name)
            if base[member.value] == .quote, member.end - member.value > 2 {
                let raw = UnsafeBufferPointer(
                    start: base + member.value + 1, count: member.end - member.value - 2)
                switch features.fit(name: raw, of: member, &output.draft, &counts) {
                case .kept(let count):
                    let text = UnsafeBufferPointer(start: raw.baseAddress, count: count)
                    return .name(member.isEscaped ? decodedName(text) : text)
                case .beyond(let excess): return .beyond(excess)
                }
            }
        }
        return .name(missingName(type))
    }

    /// The text of a name with escapes.
    @inline(never)
    private mutating func decodedName(_ text: UnsafeBufferPointer<UInt8>) -> UnsafeBufferPointer<UInt8> {
        output.draft.keptName(JSONString.decoded(text)[...])
    }

    /// The name of an event without a usable one, whose type gives the name: `start_session` or `crash`. The
    /// name is added to the event.
    @inline(never)
    private mutating func missingName(_ type: EventType) -> UnsafeBufferPointer<UInt8> {
        let name = Array((type == .startSession ? "start_session" : "crash").utf8)
        if lines.scanner.has(.name) {
            takeOut(lines.scanner.member(.name))
        }
        output.draft.addFront("name") { $0.append([.quote] + name + [.quote]) }
        return output.draft.keptName(name[...])
    }

    // MARK: What an event says of itself

    /// The event's priority. The first match wins: a rule that forces, the event's own value, another rule,
    /// the app's default.
    @inline(__always)
    private mutating func priority(_ name: UnsafeBufferPointer<UInt8>, _ type: EventType) -> Priority {
        if lines.scanner.has(.priority) || type == .crash { return judged(ownPriority(type), name) }
        if block.hasRules, let rule = rule(for: name, own: nil) { return rule }
        return block.defaultPriority
    }

    /// The priority of an event that states one, or of a record. If the app must not send critical events,
    /// `"critical"` is replaced by `"normal"` in the event: receivers would believe it.
    @inline(never)
    mutating func judged(_ own: Priority?, _ name: UnsafeBufferPointer<UInt8>) -> Priority {
        let priority = (block.hasRules ? rule(for: name, own: own) : nil) ?? own ?? block.defaultPriority
        let member = lines.scanner.member(.priority)
        if priority == .normal, !block.mayBeCritical, block.mayBeEvents, lines.scanner.has(.priority),
            lines.isText(member, "critical")
        {
            output.draft.replace(member.text, with: Array("normal".utf8))
        }
        return priority
    }

    /// The priority that the event states; nil if it states none, an unknown one, or one that the app may not
    /// use.
    @inline(never)
    mutating func ownPriority(_ type: EventType) -> Priority? {
        let member = lines.scanner.member(.priority)
        var own: Priority?
        if type == .crash {
            own = .critical
        } else if lines.isText(member, "critical") {
            own = .critical
        } else if lines.isText(member, "normal") {
            own = .normal
        } else if !output.draft.isRecord, base[member.value] != UInt8(ascii: "n") {
            // An unknown word is ignored, so that a rule can decide. In a record `priority` is data and may
            // be anything.
            counts[.unknownPriority] += 1
        }
        guard own == .critical, !block.mayBeCritical else { return own }
        counts[.criticalDenied] += 1
        return nil
    }

    /// The priority that the rules give: by the first rule that forces, otherwise, if the event has no
    /// priority of its own, by the first one that fits.
    @inline(never)
    mutating func rule(for name: UnsafeBufferPointer<UInt8>, own: Priority?) -> Priority? {
        guard let state = block.state else { return nil }
        var first: Priority?
        var severity: Severity??
        for rule in state.rules where (rule.force || (own == nil && first == nil)) && rule.fits(name) {
            if let least = rule.level {
                // Looked up once, for the first rule that asks for it.
                if severity == nil {
                    severity = .some(self.severity(state))
                }
                guard let found = severity ?? nil, found >= least else { continue }
            }
            if rule.force { return rule.priority }
            first = rule.priority
        }
        return first
    }

    /// The event's time by its `timestamp`; the time of observation if it cannot be read.
    @inline(__always)
    mutating func eventTime() -> Timestamp {
        let member = lines.scanner.member(.timestamp)
        if base[member.value] == .quote {
            let text = UnsafeBufferPointer(
                start: base + member.value + 1, count: member.end - member.value - 2)
            if let time = tools.times.parse(text) { return time }
        }
        return numericTime(member)
    }

    /// The time of a `timestamp` that is not an RFC 3339 text. A number becomes RFC 3339 in the event.
    @inline(never)
    private mutating func numericTime(_ member: Member) -> Timestamp {
        let text = UnsafeBufferPointer(start: base + member.value, count: member.end - member.value)
        if let time = TimestampText.parseNumber(text) {
            // A receiver has to guess a number's unit, and guesses wrong: ClickHouse reads milliseconds as
            // the year 9999.
            output.draft.replace(
                member.value..<member.end, with: [.quote] + tools.timeWriter.text(of: time) + [.quote])
            return time
        }
        if !lines.isNull(member) {
            counts[.unreadableTime] += 1
        }
        return block.now
    }

    /// Checks members that the agent would otherwise add: usable ones stay and are not added, the others are
    /// taken out.
    @inline(never)
    mutating func checkProvidedMembers(_ line: JudgedLine) {
        if lines.scanner.has(.id) {
            let member = lines.scanner.member(.id)
            if !output.draft.keep(member, as: .id, if: member.isIdentifier(in: base), base) {
                counts[.unusableID] += 1
            }
        }
        if lines.scanner.has(.observedAt) {
            let member = lines.scanner.member(.observedAt)
            if !output.draft.keep(member, as: .observedAt, if: isTime(member), base) {
                counts[.unreadableTime] += 1
            }
        }
        if lines.scanner.has(.app) {
            ownApp(lines.scanner.member(.app))
        }
        features.keepOwn(line, &lines.scanner, &output, &counts)
    }

    /// Whether a value is a time: RFC 3339, or a number of a known unit.
    private mutating func isTime(_ member: Member) -> Bool {
        let value = UnsafeBufferPointer(start: base + member.value, count: member.end - member.value)
        guard base[member.value] == .quote else { return TimestampText.parseNumber(value) != nil }
        return TimestampText.parse(UnsafeBufferPointer(rebasing: value.dropFirst().dropLast())) != nil
    }

    /// Replaces an `app` member that names another app. The directory's permissions decide who writes as
    /// which app, and an event must not contradict them.
    mutating func ownApp(_ member: Member) {
        guard let state = block.state else { return }
        let isOwn =
            member.end - member.value == state.quotedName.count
            && memcmp(base + member.value, state.quotedName, state.quotedName.count) == 0
        if isOwn {
            output.draft.wanted.remove(.app)
        } else {
            if !lines.isNull(member) {
                counts[.replacedApp] += 1
            }
            takeOut(member)
        }
    }

    /// Takes out members that a later member of the same name replaces. Otherwise a destination that takes
    /// the first one would read another event than the agent.
    @inline(never)
    mutating func removeReplaced() {
        for member in lines.scanner.replaced {
            counts[.repeatedMember] += 1
            takeOut(member)
        }
    }

    /// Takes a member out of the line.
    mutating func takeOut(_ member: Member) { output.draft.remove(member, of: base) }
}
