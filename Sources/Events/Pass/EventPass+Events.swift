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
/// priority and time, because an expired event counts by its priority. Limits come before sessions and
/// additions, so that a refused event starts no session.
extension EventPass {
    /// Judges the object that the scanner has just read.
    ///
    /// - Parameter next: the offset after the line, for the verdict.
    @inline(__always)
    mutating func judge(_ next: Int) -> Verdict {
        draft.reset()
        guard block.mayBeEvents else { return judgeRecord(next) }

        let type = lines.type
        if type == .dataLayer { return verdict(.dataLayer, next) }
        // An object without a usable name was not written for us.
        guard lines.hasUsableName || type == .startSession || type == .crash else {
            return judgeRecord(next)
        }
        draft.isRecord = false
        draft.otherIDName = nil
        if !lines.scanner.replaced.isEmpty {
            removeReplaced()
        }

        let name: UnsafeBufferPointer<UInt8>
        switch eventName(type) {
        case .name(let found): name = found
        case .beyond(let excess): return beyond(excess, next)
        }
        draft.name = name
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
        if address.isWanted {
            findAddress()
        }
        if limiter.mayChange(lines.scanner) || address.removesProperty, let excess = fitProperties() {
            return beyond(excess, next)
        }
        if let excess = limiter.admit(name, type, &counts) { return beyond(excess, next) }

        draft.wanted = .usual
        if lines.scanner.present & Additions.members != 0 {
            ownMembers()
        }
        if address.isWanted {
            lookUpCountry()
        }
        if !tails.fits(time) {
            tails.updateDevice(of: block.state, at: time)
        }
        var startsSession = false
        if sessions.isOn, draft.wanted.contains(.sessionID) || type == .startSession,
            !sessions.goesOn(time, type, lines.scanner)
        {
            startsSession = resolveSession(time, type)
        }
        return Verdict(
            kind: .accepted, priority: priority, eventTime: time, startsSession: startsSession, next: next)
    }
    /// An event's name, or why it has none.
    private enum FoundName {
        case name(UnsafeBufferPointer<UInt8>)
        case beyond(Excess)
    }

    /// The verdict on an event that passes a limit which does not let it through.
    @inline(never)
    private mutating func beyond(_ excess: Excess, _ next: Int) -> Verdict {
        problem = excess.problem
        return verdict(excess.isRefused ? .refused : .quarantined, next)
    }

    /// Applies the limits of properties, and takes the address out of them.
    @inline(never)
    private mutating func fitProperties() -> Excess? {
        let mayLog = lines.withholding.texts == .none
        switch limiter.fit(
            lines.scanner, removesAddress: address.isRemoved, mayLog: mayLog, &counts)
        {
        case .unchanged: break
        case .changed(let object):
            let member = lines.scanner.member(.properties)
            draft.replace(member.value..<member.end, with: object)
        case .beyond(let excess): return excess
        }
        return nil
    }

    /// Finds the event's session and puts its id into the tail. Returns true if the session's start must be
    /// written first.
    @inline(never)
    private mutating func resolveSession(_ time: Timestamp, _ type: EventType) -> Bool {
        // `null` normally means "outside of any session", which the start of a session cannot be: there it
        // counts as missing.
        if type == .startSession, lines.scanner.has(.sessionID),
            lines.isNull(lines.scanner.member(.sessionID))
        {
            draft.wanted.insert(.sessionID)
        }
        return sessions.resolve(
            time, type, lines.scanner, hasOwnID: !draft.wanted.contains(.sessionID), &tools.ids, &counts,
            &tails)
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
                if !member.isEscaped, limiter.fits(raw) { return .name(raw) }
                return unusualName(raw, member)
            }
        }
        return .name(missingName(type))
    }

    /// A name with escapes, or one that may be too long: its length in bytes passes the limit, which counts
    /// UTF-16 code units.
    @inline(never)
    private mutating func unusualName(_ raw: UnsafeBufferPointer<UInt8>, _ member: Member) -> FoundName {
        var text = raw
        if let kept = limiter.cutLength(ofName: raw) {
            let limit = limiter.limits.nameLength
            if let excess = LimitKeeper.pass(.nameLength, limit, &counts) { return .beyond(excess) }
            if limit.consequence == .cut {
                limiter.noteCut(.nameLength, nil, mayLog: false, &counts)
                draft.cut(member.value + 1 + kept..<member.end - 1)
                text = UnsafeBufferPointer(rebasing: raw[0..<kept])
            }
        }
        return .name(member.isEscaped ? draft.keptName(JSONString.decoded(text)[...]) : text)
    }

    /// The name of an event without a usable one, whose type gives the name: `start_session` or `crash`. The
    /// name is added to the event.
    @inline(never)
    private mutating func missingName(_ type: EventType) -> UnsafeBufferPointer<UInt8> {
        let name = Array((type == .startSession ? "start_session" : "crash").utf8)
        if lines.scanner.has(.name) {
            takeOut(lines.scanner.member(.name))
        }
        draft.addFront("name") { $0 += [.quote] + name + [.quote] }
        return draft.keptName(name[...])
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
            draft.replace(member.text, with: Array("normal".utf8))
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
        } else if !draft.isRecord, base[member.value] != UInt8(ascii: "n") {
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
            draft.replace(
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
    mutating func ownMembers() {
        if lines.scanner.has(.id), !keepIf(isIdentifier(lines.scanner.member(.id)), .id, .id) {
            counts[.unusableID] += 1
        }
        if lines.scanner.has(.sessionID) {
            ownSession(lines.scanner.member(.sessionID))
        }
        if lines.scanner.has(.device), !lines.isNull(lines.scanner.member(.device)) {
            draft.wanted.remove(.device)
        } else if lines.scanner.has(.device) {
            takeOut(lines.scanner.member(.device))
        }
        if lines.scanner.has(.observedAt),
            !keepIf(isTime(lines.scanner.member(.observedAt)), .observedAt, .observedAt)
        {
            counts[.unreadableTime] += 1
        }
        if lines.scanner.has(.app) {
            ownApp(lines.scanner.member(.app))
        }
        if lines.scanner.has(.country) {
            ownCountry(lines.scanner.member(.country))
        }
    }

    /// Keeps a usable session id. `null` says that the event belongs to no session: the member is removed,
    /// and no session is added.
    @inline(__always)
    private mutating func ownSession(_ member: Member) {
        if lines.isNull(member) {
            draft.wanted.remove(.sessionID)
            takeOut(member)
        } else if !keepIf(isIdentifier(member), .sessionID, .sessionID) {
            counts[.unusableID] += 1
        }
    }

    /// Keeps a usable member instead of adding it; takes out any other.
    ///
    /// - Returns: false if the member had an unusable value, so that the caller counts it. (A key path to the
    ///   counter as a parameter would be built for each event.)
    @inline(__always)
    private mutating func keepIf(_ isRight: Bool, _ name: MemberName, _ addition: Additions) -> Bool {
        if isRight {
            draft.wanted.remove(addition)
            return true
        }
        let member = lines.scanner.member(name)
        let isEmpty = lines.isNull(member)
        takeOut(member)
        return isEmpty
    }

    /// Whether a value can be an id: a number, or a text that is not empty.
    mutating func isIdentifier(_ member: Member) -> Bool {
        switch base[member.value] {
        case .quote: member.end - member.value > 2
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"): true
        default: false
        }
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
            draft.wanted.remove(.app)
        } else {
            if !lines.isNull(member) {
                counts[.replacedApp] += 1
            }
            takeOut(member)
        }
    }

    /// Keeps a country that ISO 3166-1 has, in capitals; takes out any other value.
    private mutating func ownCountry(_ member: Member) {
        let text = base + member.value + 1
        if member.end - member.value == 4, base[member.value] == .quote,
            let country = CountryCode(text[0], text[1])
        {
            draft.wanted.remove(.country)
            if country.first != text[0] || country.second != text[1] {
                draft.replace(member.text, with: [country.first, country.second])
            }
        } else {
            if !lines.isNull(member) {
                counts[.unknownCountry] += 1
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
    mutating func takeOut(_ member: Member) { draft.remove(member, of: base) }
}
