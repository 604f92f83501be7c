internal import EventLoops
internal import Glibc
internal import Model
internal import TimeZones

/// Records: objects that were not written for us. All that they have is data; what we know is found in it, or added beside it.
extension EventPass {
    /// The longest name in bytes that a record takes from one of its members; a longer one is no name.
    static let mostNameBytes = 256
    /// What `front` holds at most beside the name: the names of its members, a time, a severity and a country.
    static let frontBytes = 128
    /// 1 January 2000: what is before it is not a time but another number.
    private static let earliest = Timestamp(nanoseconds: 946_684_800_000_000_000)

    /// Judges a record: it is accepted, or expired.
    @inline(never)
    mutating func judgeRecord(_ next: Int) -> Verdict {
        isRecord = true
        otherIDName = nil
        guard let state else { return verdict(.quarantined, next) }
        if state.settings.isJournal, withheld != .none, isWithheldEntry() { return withhold(next) }
        counts.records += 1
        if !scanner.replaced.isEmpty { removeReplacedAddresses() }
        wanted = [.app, .country, .device, .observedAt, .id]
        name = recordName(state)
        let time = recordTime(state)
        let priority = judged(kind == .event && scanner.has(.priority) ? ownPriority(.other) : nil, name)
        if time < oldest {
            return Verdict(kind: .expired, priority: priority, eventTime: time, startsSession: false, next: next)
        }
        if state.addsSeverity, scanner.present & state.severityBit == 0, let severity = severity(state) {
            addFront("severity") { $0 += [.quote] + severity.level.rawValue.utf8 + [.quote] }
        }
        if !pod.isEmpty, !has("kubernetes") {
            if !front.isEmpty { front.append(.comma) }
            front += pod
        }
        if hasAddress {
            findAddress()
            if options.removesAddress, hasAddressProperty { removeAddressProperty() }
        }
        if scanner.present & Additions.ofRecords != 0 { ownMembersOfRecord() }
        if hasAddress { lookUpCountry() }
        return Verdict(kind: .accepted, priority: priority, eventTime: time, startsSession: false, next: next)
    }

    /// Whether the message of a journal's entry is a text that may not leave.
    private mutating func isWithheldEntry() -> Bool {
        let entry = scanner.open..<scanner.close + 1
        func text(_ name: StaticString) -> [UInt8] {
            guard let value = member(Array("\(name)".utf8), of: entry), base[value.lowerBound] == .quote else {
                return []
            }
            return JSONString.decoded(UnsafeBufferPointer(start: base + value.lowerBound + 1, count: value.count - 2))
        }
        let process =
            member(Array("process.pid".utf8), of: entry).map {
                Array(UnsafeBufferPointer(start: base + $0.lowerBound, count: $0.count))
            } ?? []
        // An entry whose message was an object has this member.
        guard member(Array("__REALTIME_TIMESTAMP".utf8), of: entry) == nil else {
            return unfinished.remove(process) != nil && withheld == .members
        }
        let isPiece =
            ["line-max", "rest"].contains(String(decoding: text("_LINE_BREAK"), as: UTF8.self))
            || !text("truncated_member").isEmpty
        return text("message").withUnsafeBufferPointer {
            note($0, endsBeforeValueOf: process)
            return withheld.include($0, isPiece: isPiece)
        }
    }

    /// Members that have our names stay, and ours give way. Only who wrote it is not theirs to say where others write too.
    private mutating func ownMembersOfRecord() {
        for (name, addition) in EventPass.givingWay where scanner.has(name) {
            if isNull(scanner.member(name)) {
                remove(scanner.member(name))
            } else if name == .id {
                otherIDName = has("record_id") ? .spoolshipID : .recordID
            } else {
                wanted.remove(addition)
            }
        }
        guard scanner.has(.app) else { return }
        if isShared || isNull(scanner.member(.app)) { ownApp(scanner.member(.app)) } else { wanted.remove(.app) }
    }

    private static let givingWay: [(MemberName, Additions)] = [
        (.id, .id), (.country, .country), (.hostName, .device), (.observedAt, .observedAt),
    ]

    // MARK: The name

    private mutating func recordName(_ state: AppState) -> UnsafeBufferPointer<UInt8> {
        for index in state.nameCandidates.paths.indices {
            guard let value = value(at: index, of: state.nameCandidates), base[value.lowerBound] == .quote,
                value.count > 2, value.count <= EventPass.mostNameBytes
            else { continue }
            addName(value)
            let text = UnsafeBufferPointer(start: base + value.lowerBound + 1, count: value.count - 2)
            return text.contains(.backslash) ? keptName(JSONString.decoded(text)[...]) : text
        }
        let member = scanner.member(.name)
        if kind == .event, scanner.has(.name), !isNull(member) { counts[.unusableName] += 1 }
        if !scanner.has(.name) || isNull(member) {
            if scanner.has(.name) { remove(member) }
            front += state.defaultNameMember
        }
        // Without `"name":` and its quotes.
        return keptName(state.defaultNameMember[8..<state.defaultNameMember.count - 1])
    }

    /// Adds the name found elsewhere, unless the record has one, which is data.
    private mutating func addName(_ value: Range<Int>) {
        if scanner.has(.name) {
            guard isNull(scanner.member(.name)) else { return }
            remove(scanner.member(.name))
        }
        let text = UnsafeBufferPointer(start: base + value.lowerBound, count: value.count)
        addFront("name") { $0 += text }
    }

    // MARK: The time

    /// The time of a record, which is added where `timestamp` does not say it as RFC 3339 does.
    private mutating func recordTime(_ state: AppState) -> Timestamp {
        guard scanner.present & state.timeCandidates.mask != 0, let (time, place, isUsual, _) = foundTime(state) else {
            if let outerTime {
                let timestamp = scanner.member(.timestamp)
                if scanner.has(.timestamp), isNull(timestamp) { remove(timestamp) }
                if !scanner.has(.timestamp) || isNull(timestamp) { addTimestamp(outerTime) }
                return outerTime
            }
            counts[.noTime] += 1
            return now
        }
        let timestamp = scanner.member(.timestamp)
        if !scanner.has(.timestamp) {
            addTimestamp(time)
        } else if isNull(timestamp) {
            remove(timestamp)
            addTimestamp(time)
        } else if !isUsual, place.lowerBound == timestamp.value {
            // The same instant, as every receiver reads it.
            replace(place, with: [.quote] + timeWriter.text(of: time) + [.quote])
        }
        return time
    }

    /// The time of an event that has no `timestamp`: by the same members, else that of its observation.
    @inline(__always)
    mutating func timeElsewhere() -> Timestamp {
        guard let state, scanner.present & state.timeCandidates.mask != 0 else { return now }
        return addedTime(state)
    }

    @inline(never)
    private mutating func addedTime(_ state: AppState) -> Timestamp {
        guard let found = foundTime(state) else { return now }
        addTimestamp(found.time)
        return found.time
    }

    /// The first usable time, where it is, whether every receiver reads it there, and which of the candidates it is.
    private mutating func foundTime(
        _ state: AppState
    ) -> (time: Timestamp, place: Range<Int>, isUsual: Bool, candidate: Int)? {
        let candidates = state.timeCandidates
        for index in candidates.paths.indices {
            guard let value = value(at: index, of: candidates), let (time, isUsual) = time(at: value, state),
                time >= EventPass.earliest, time <= newest
            else { continue }
            return (time, value, isUsual, index)
        }
        return nil
    }

    private mutating func time(at value: Range<Int>, _ state: AppState) -> (Timestamp, isUsual: Bool)? {
        let text = UnsafeBufferPointer(start: base + value.lowerBound, count: value.count)
        switch text[0] {
        case .quote:
            let inner = UnsafeBufferPointer(rebasing: text[1..<text.count - 1])
            if let time = times.parse(inner) { return (time, true) }
            if let time = TimestampText.parseNumber(inner) ?? TimestampText.parseLoosely(inner, in: state.zone) {
                return (time, false)
            }
        case .openBrace:
            // MongoDB's extended JSON.
            for name in ["$date", "$numberLong"] {
                if let below = member([UInt8](name.utf8), of: value) {
                    return time(at: below, state).map { ($0.0, false) }
                }
            }
        default:
            if let time = TimestampText.parseNumber(text) { return (time, true) }
        }
        return nil
    }

    // MARK: The severity

    /// How serious the line is; nil where it does not say, or nothing that is known.
    mutating func severity(_ state: AppState) -> Severity? { foundSeverity(state)?.severity }

    private mutating func foundSeverity(_ state: AppState) -> (severity: Severity, candidate: Int)? {
        for index in state.levelCandidates.paths.indices {
            guard let value = value(at: index, of: state.levelCandidates), value.count <= 34 else { continue }
            let text = UnsafeBufferPointer(start: base + value.lowerBound, count: value.count)
            let scale =
                state.settings.levelScale == .auto
                ? state.levelCandidates.paths[index].scale : state.settings.levelScale
            let inner = text[0] == .quote ? UnsafeBufferPointer(rebasing: text[1..<text.count - 1]) : text
            if let found = Severity(text: String(decoding: inner, as: UTF8.self), in: scale) {
                return (found, index)
            }
        }
        return nil
    }

    /// What was found in the line that was accepted last, and where.
    public mutating func findings() -> LineFindings {
        guard let state else { return LineFindings() }
        let severity = foundSeverity(state)
        return LineFindings(
            timeMember: foundTime(state).map { state.timeCandidates.paths[$0.candidate].name }
                ?? (outerTime == nil ? nil : "the container's runtime"),
            level: severity?.severity.level,
            levelMember: severity.map { state.levelCandidates.paths[$0.candidate].name })
    }

    // MARK: Paths

    /// Where the value is that a path leads to. By its index: a path that is handed on is copied, and its texts are counted.
    @inline(__always)
    private mutating func value(at index: Int, of candidates: Candidates) -> Range<Int>? {
        let slot = candidates.paths[index].slot
        guard scanner.present & (1 << UInt64(slot)) != 0 else { return nil }
        let found = scanner.members[slot]
        var value = found.value..<found.end
        guard !candidates.paths[index].below.isEmpty else { return value }
        for name in candidates.paths[index].below {
            guard let below = member(name, of: value) else { return nil }
            value = below
        }
        return value
    }

    /// Whether the record has a member that the scanner does not look for.
    private mutating func has(_ name: String) -> Bool {
        member(Array(name.utf8), of: scanner.open..<scanner.close + 1) != nil
    }

    private mutating func member(_ name: [UInt8], of object: Range<Int>) -> Range<Int>? {
        RawWalk.find(name, in: base, from: object.lowerBound, to: object.upperBound)?.value
    }

    // MARK: The address

    private mutating func removeReplacedAddresses() {
        guard options.removesAddress else { return }
        for member in scanner.replaced where member.key >= 0 && isAddress(member.key + 1..<keyEnd(member)) {
            remove(member)
        }
    }

    private func keyEnd(_ member: Member) -> Int {
        var end = member.key + 1
        while base[end] != .quote { end += base[end] == .backslash ? 2 : 1 }
        return end
    }

    /// Takes the address out of the properties, every one of that name.
    private mutating func removeAddressProperty() {
        let properties = scanner.member(.properties)
        var walk = RawWalk(base, from: properties.value, to: properties.end)
        while let found = walk.next() {
            guard isAddress(found.name) else { continue }
            remove(Member(key: found.name.lowerBound - 1, value: found.value.lowerBound, end: found.value.upperBound))
        }
    }
}
