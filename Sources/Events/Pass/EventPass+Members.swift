internal import EventLoops
internal import Glibc
internal import Model

/// Values of `type` that change how an event is treated; `other` stands for all others, and for none.
enum EventType {
    case other, crash, startSession, dataLayer
}

/// What an event says of itself: priority, time, and the members that are otherwise added.
extension EventPass {
    /// Whether a member is a string with exactly this text, written without escapes.
    @inline(__always)
    mutating func isText(_ member: Member, _ text: StaticString) -> Bool {
        member.end - member.value == text.utf8CodeUnitCount + 2 && base[member.value] == .quote
            && memcmp(base + member.value + 1, text.utf8Start, text.utf8CodeUnitCount) == 0
    }

    /// The event's priority. The first match wins: a rule that forces, the event's own value, another rule,
    /// the app's default.
    @inline(__always)
    mutating func priority(_ name: UnsafeBufferPointer<UInt8>, _ type: EventType) -> Priority {
        if scanner.has(.priority) || type == .crash { return judged(ownPriority(type), name) }
        if hasRules, let rule = rule(for: name, own: nil) { return rule }
        return defaultPriority
    }

    /// The priority of an event that states one, or of a record. If the app must not send critical events,
    /// `"critical"` is replaced by `"normal"` in the event: receivers would believe it.
    @inline(never)
    mutating func judged(_ own: Priority?, _ name: UnsafeBufferPointer<UInt8>) -> Priority {
        let priority = (hasRules ? rule(for: name, own: own) : nil) ?? own ?? defaultPriority
        let member = scanner.member(.priority)
        if priority == .normal, !mayBeCritical, kind == .event, scanner.has(.priority),
            isText(member, "critical")
        {
            replace(member.text, with: Array("normal".utf8))
        }
        return priority
    }

    /// The priority that the event states; nil if it states none, an unknown one, or one that the app may not
    /// use.
    @inline(never)
    mutating func ownPriority(_ type: EventType) -> Priority? {
        let member = scanner.member(.priority)
        var own: Priority?
        if type == .crash {
            own = .critical
        } else if isText(member, "critical") {
            own = .critical
        } else if isText(member, "normal") {
            own = .normal
        } else if !isRecord, base[member.value] != UInt8(ascii: "n") {
            // An unknown word is ignored, so that a rule can decide. In a record `priority` is data and may
            // be anything.
            counts[.unknownPriority] += 1
        }
        guard own == .critical, !mayBeCritical else { return own }
        counts[.criticalDenied] += 1
        return nil
    }

    /// The priority that the rules give: by the first rule that forces, otherwise, if the event has no
    /// priority of its own, by the first one that fits.
    @inline(never)
    mutating func rule(for name: UnsafeBufferPointer<UInt8>, own: Priority?) -> Priority? {
        guard let state else { return nil }
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
        let member = scanner.member(.timestamp)
        if base[member.value] == .quote {
            let text = UnsafeBufferPointer(
                start: base + member.value + 1, count: member.end - member.value - 2)
            if let time = times.parse(text) { return time }
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
            replace(member.value..<member.end, with: [.quote] + timeWriter.text(of: time) + [.quote])
            return time
        }
        if !isNull(member) {
            counts[.unreadableTime] += 1
        }
        return now
    }

    /// Whether a member is `null`, which counts as missing. In validated JSON no other value begins with `n`.
    @inline(__always)
    mutating func isNull(_ member: Member) -> Bool { base[member.value] == UInt8(ascii: "n") }

    /// Checks members that the agent would otherwise add: usable ones stay and are not added, the others are
    /// taken out.
    @inline(never)
    mutating func ownMembers() {
        if scanner.has(.id), !keepIf(isIdentifier(scanner.member(.id)), .id, .id) {
            counts[.unusableID] += 1
        }
        if scanner.has(.sessionID) {
            ownSession(scanner.member(.sessionID))
        }
        if scanner.has(.device), !isNull(scanner.member(.device)) {
            wanted.remove(.device)
        } else if scanner.has(.device) {
            remove(scanner.member(.device))
        }
        if scanner.has(.observedAt), !keepIf(isTime(scanner.member(.observedAt)), .observedAt, .observedAt) {
            counts[.unreadableTime] += 1
        }
        if scanner.has(.app) {
            ownApp(scanner.member(.app))
        }
        if scanner.has(.country) {
            ownCountry(scanner.member(.country))
        }
    }

    /// Keeps a usable session id. `null` says that the event belongs to no session: the member is taken out,
    /// and no session is added.
    @inline(__always)
    private mutating func ownSession(_ member: Member) {
        if isNull(member) {
            wanted.remove(.sessionID)
            remove(member)
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
            wanted.remove(addition)
            return true
        }
        let member = scanner.member(name)
        let isEmpty = isNull(member)
        remove(member)
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
        guard let state else { return }
        let isOwn =
            member.end - member.value == state.quotedName.count
            && memcmp(base + member.value, state.quotedName, state.quotedName.count) == 0
        if isOwn {
            wanted.remove(.app)
        } else {
            if !isNull(member) {
                counts[.replacedApp] += 1
            }
            remove(member)
        }
    }

    /// Keeps a country that ISO 3166-1 has, in capitals; takes out any other value.
    private mutating func ownCountry(_ member: Member) {
        let text = base + member.value + 1
        if member.end - member.value == 4, base[member.value] == .quote,
            let country = CountryCode(text[0], text[1])
        {
            wanted.remove(.country)
            if country.first != text[0] || country.second != text[1] {
                replace(member.text, with: [country.first, country.second])
            }
        } else {
            if !isNull(member) {
                counts[.unknownCountry] += 1
            }
            remove(member)
        }
    }

    /// Takes out members that a later member of the same name replaces. Otherwise a destination that takes
    /// the first one would read another event than the agent.
    @inline(never)
    mutating func removeReplaced() {
        for member in scanner.replaced {
            counts[.repeatedMember] += 1
            remove(member)
        }
    }
}
