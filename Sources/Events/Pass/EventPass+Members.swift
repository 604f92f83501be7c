internal import EventLoops
internal import Glibc
internal import Model

/// The types of events that mean something here.
enum EventType {
    case other, crash, startSession, dataLayer
}

/// What the event says of itself: priority, time, and the members that are otherwise added.
extension EventPass {
    /// Whether a member is a string with just this text.
    @inline(__always)
    mutating func isText(_ member: Member, _ text: StaticString) -> Bool {
        member.end - member.value == text.utf8CodeUnitCount + 2 && base[member.value] == .quote
            && memcmp(base + member.value + 1, text.utf8Start, text.utf8CodeUnitCount) == 0
    }

    /// The order of ac26: a rule that forces, the event's own word, a rule, the app's default.
    @inline(__always)
    mutating func priority(_ name: UnsafeBufferPointer<UInt8>, _ type: EventType) -> Priority {
        if scanner.has(.priority) || type == .crash { return judged(ownPriority(type), name) }
        if hasRules, let rule = rule(for: name, own: nil) { return rule }
        return defaultPriority
    }

    /// The priority of an event that says one. What is denied does not go on saying that it is critical: receivers would believe it.
    @inline(never)
    mutating func judged(_ own: Priority?, _ name: UnsafeBufferPointer<UInt8>) -> Priority {
        let priority = (hasRules ? rule(for: name, own: own) : nil) ?? own ?? defaultPriority
        let member = scanner.member(.priority)
        if priority == .normal, !mayBeCritical, kind == .event, scanner.has(.priority), isText(member, "critical") {
            replace(member.text, with: Array("normal".utf8))
        }
        return priority
    }

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
            // It counts as none: a rule says more than a word that nobody knows. Of a record it is data.
            counts[.unknownPriority] += 1
        }
        guard own == .critical, !mayBeCritical else { return own }
        counts[.criticalDenied] += 1
        return nil
    }

    @inline(never)
    mutating func rule(for name: UnsafeBufferPointer<UInt8>, own: Priority?) -> Priority? {
        guard let state else { return nil }
        var first: Priority?
        var severity: Severity??
        for rule in state.rules where (rule.force || (own == nil && first == nil)) && rule.fits(name) {
            if let least = rule.level {
                if severity == nil { severity = .some(self.severity(state)) }
                guard let found = severity ?? nil, found >= least else { continue }
            }
            if rule.force { return rule.priority }
            first = rule.priority
        }
        return first
    }

    /// The event's time; that of its observation where it says none, or one that cannot be read.
    @inline(__always)
    mutating func eventTime() -> Timestamp {
        let member = scanner.member(.timestamp)
        if base[member.value] == .quote {
            let text = UnsafeBufferPointer(start: base + member.value + 1, count: member.end - member.value - 2)
            if let time = times.parse(text) { return time }
        }
        return numericTime(member)
    }

    @inline(never)
    private mutating func numericTime(_ member: Member) -> Timestamp {
        let text = UnsafeBufferPointer(start: base + member.value, count: member.end - member.value)
        if let time = TimestampText.parseNumber(text) { return time }
        if !isNull(member) { counts[.unreadableTime] += 1 }
        return now
    }

    /// Whether a member counts as not there.
    @inline(__always)
    mutating func isNull(_ member: Member) -> Bool { base[member.value] == UInt8(ascii: "n") }

    /// Looks at the members that are otherwise added: those that are right stay, the others are taken out.
    @inline(never)
    mutating func ownMembers() {
        if scanner.has(.id), !keepIf(isIdentifier(scanner.member(.id)), .id, .id) { counts[.unusableID] += 1 }
        if scanner.has(.sessionID), !keepIf(isIdentifier(scanner.member(.sessionID)), .sessionID, .sessionID) {
            counts[.unusableID] += 1
        }
        if scanner.has(.device), !isNull(scanner.member(.device)) {
            wanted.remove(.device)
        } else if scanner.has(.device) {
            remove(scanner.member(.device))
        }
        if scanner.has(.observedAt), !keepIf(isTime(scanner.member(.observedAt)), .observedAt, .observedAt) {
            counts[.unreadableTime] += 1
        }
        if scanner.has(.app) { ownApp(scanner.member(.app)) }
        if scanner.has(.country) { ownCountry(scanner.member(.country)) }
    }

    /// Keeps a member that is right instead of adding it; takes out any other.
    ///
    /// - Returns: false where it had a value that cannot be used. (To name what counts those by its path would make the path
    ///   anew for each event.)
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

    mutating func isIdentifier(_ member: Member) -> Bool {
        switch base[member.value] {
        case .quote: member.end - member.value > 2
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"): true
        default: false
        }
    }

    private mutating func isTime(_ member: Member) -> Bool {
        let value = UnsafeBufferPointer(start: base + member.value, count: member.end - member.value)
        guard base[member.value] == .quote else { return TimestampText.parseNumber(value) != nil }
        return TimestampText.parse(UnsafeBufferPointer(rebasing: value.dropFirst().dropLast())) != nil
    }

    mutating func ownApp(_ member: Member) {
        guard let state else { return }
        let isOwn =
            member.end - member.value == state.quotedName.count
            && memcmp(base + member.value, state.quotedName, state.quotedName.count) == 0
        if isOwn {
            wanted.remove(.app)
        } else {
            if !isNull(member) { counts[.replacedApp] += 1 }
            remove(member)
        }
    }

    private mutating func ownCountry(_ member: Member) {
        let text = base + member.value + 1
        if member.end - member.value == 4, base[member.value] == .quote, let country = CountryCode(text[0], text[1]) {
            wanted.remove(.country)
            if country.first != text[0] || country.second != text[1] {
                replace(member.text, with: [country.first, country.second])
            }
        } else {
            if !isNull(member) { counts[.unknownCountry] += 1 }
            remove(member)
        }
    }

    /// Takes out members that a later one of the same name replaces.
    @inline(never)
    mutating func removeReplaced() {
        for member in scanner.replaced {
            counts[.repeatedMember] += 1
            remove(member)
        }
    }
}
