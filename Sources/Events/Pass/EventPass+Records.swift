internal import EventLoops
internal import Glibc
internal import Model
internal import TextFormats
internal import TimeZones

/// Records: objects that were not written for Spoolship, such as the lines of other loggers. All their
/// members are data and stay. Name, time and severity are searched in the members that the settings list, and
/// added beside the data.
extension EventPass {
    /// Longest value, in bytes with its quotes, that a record takes as its name. Longer texts are messages;
    /// `maxAddition` counts on the bound.
    static let mostNameBytes = 256
    /// Most bytes in `front` beside the name's value and the pod: the members' own names, a time, a severity
    /// and a country.
    static let frontBytes = 128
    /// 1 January 2000. A smaller number in a member such as `time` or `t` is a duration or a counter.
    private static let earliest = Timestamp(nanoseconds: 946_684_800_000_000_000)

    /// Judges a record: accepted, expired, or quarantined because its text is withheld. No record is
    /// quarantined for its time: times beyond `newest` are passed over in the search.
    @inline(never)
    mutating func judgeRecord(_ next: Int) -> Verdict {
        output.draft.isRecord = true
        output.draft.otherIDName = nil
        guard let state = block.state else { return verdict(.quarantined, next) }
        if state.settings.isJournal, lines.withholding.texts != .none, isWithheldEntry() {
            return judge(lines.withheld(next))
        }
        counts.records += 1
        output.draft.wanted = [.app, .country, .device, .observedAt, .id, .filePath]
        if let slot = state.members.filePathSlot, lines.scanner.has(slot: slot) {
            output.draft.wanted.remove(.filePath)
        }
        let name = recordName(state)
        output.draft.name = name
        let time = recordTime(state)
        let priority = judged(
            block.mayBeEvents && lines.scanner.has(.priority) ? ownPriority(.other) : nil, name)
        if time < block.oldest {
            return Verdict(
                kind: .expired, priority: priority, eventTime: time, startsSession: false, next: next)
        }
        if state.members.addsSeverity, lines.scanner.present & state.members.severityBit == 0,
            let severity = severity(state)
        {
            output.draft.addFront("severity") { $0.append(severity.level.quoted) }
        }
        // The pod comes from the file's name. A record that says one itself keeps it.
        if !lines.wrapping.pod.isEmpty, !has("kubernetes") {
            output.draft.addFront(member: lines.wrapping.pod)
        }
        let line = JudgedLine(name: name, type: .other, time: time, isRecord: true)
        if let excess = features.check(line, &lines.scanner, &output, &counts) { return beyond(excess, next) }
        if lines.scanner.present & Additions.ofRecords != 0 {
            checkProvidedMembersOfRecord(line)
        }
        let startsSession = features.complete(line, &lines.scanner, &output, &counts)
        return Verdict(
            kind: .accepted, priority: priority, eventTime: time, startsSession: startsSession, next: next)
    }

    /// Whether the message of a journal's entry is a text that must not leave. Streams are distinguished by
    /// the process: entries of all processes come from one journal.
    private mutating func isWithheldEntry() -> Bool {
        let entry = lines.scanner.open..<lines.scanner.close + 1
        func text(_ name: StaticString) -> [UInt8] {
            guard let value = member(Array("\(name)".utf8), of: entry), base[value.lowerBound] == .quote
            else {
                return []
            }
            return JSONString.decoded(
                UnsafeBufferPointer(start: base + value.lowerBound + 1, count: value.count - 2))
        }
        let process =
            member(Array("process.pid".utf8), of: entry).map {
                Array(UnsafeBufferPointer(start: base + $0.lowerBound, count: $0.count))
            } ?? []
        // An entry whose message was a JSON object has this member. Rules find its members by their names, so
        // it is withheld only if an earlier entry of the process ended before a value.
        guard member(Array("__REALTIME_TIMESTAMP".utf8), of: entry) == nil else {
            return lines.withholding.hidesValue(of: process)
        }
        let isPiece =
            ["line-max", "rest"].contains(String(decoding: text("_LINE_BREAK"), as: UTF8.self))
            || !text("truncated_member").isEmpty
        return text("message").withUnsafeBufferPointer {
            lines.withholding.noteEnd(of: $0, ofStream: process)
            return lines.withholding.texts.include($0, isPiece: isPiece)
        }
    }

    /// Keeps the record's members that have the names of additions; the additions give way. Only `app` is
    /// replaced if others than the app may have written the record.
    private mutating func checkProvidedMembersOfRecord(_ line: JudgedLine) {
        if lines.scanner.has(.id) {
            if lines.isNull(lines.scanner.member(.id)) {
                takeOut(lines.scanner.member(.id))
            } else {
                output.draft.otherIDName = has("record_id") ? .spoolshipID : .recordID
            }
        }
        if lines.scanner.has(.observedAt) {
            let member = lines.scanner.member(.observedAt)
            _ = output.draft.keep(member, as: .observedAt, if: !lines.isNull(member), base)
        }
        features.keepOwn(line, &lines.scanner, &output, &counts)
        guard lines.scanner.has(.app) else { return }
        if block.isShared || lines.isNull(lines.scanner.member(.app)) {
            ownApp(lines.scanner.member(.app))
        } else {
            output.draft.wanted.remove(.app)
        }
    }

    // MARK: The name

    /// The record's name: from the first usable member that the settings list, otherwise the app's default.
    /// The name is added unless the record has a member `name`, which is data.
    private mutating func recordName(_ state: AppState) -> UnsafeBufferPointer<UInt8> {
        if lines.scanner.present & state.members.names.mask != 0, let name = nameElsewhere(state) {
            return name
        }
        let member = lines.scanner.member(.name)
        if block.mayBeEvents, lines.scanner.has(.name), !lines.isNull(member) {
            counts[.unusableName] += 1
        }
        if !lines.scanner.has(.name) || lines.isNull(member) {
            if lines.scanner.has(.name) {
                takeOut(member)
            }
            output.draft.addFront(member: state.members.defaultName)
        }
        // Without `"name":` and its quotes.
        return state.members.defaultName.withUnsafeBytes {
            output.draft.keptName(UnsafeRawBufferPointer(rebasing: $0[8..<$0.count - 1]))
        }
    }

    /// The name from the listed members; nil if none of them holds a usable one.
    private mutating func nameElsewhere(_ state: AppState) -> UnsafeBufferPointer<UInt8>? {
        for index in state.members.names.paths.indices {
            guard let value = value(at: index, of: state.members.names), base[value.lowerBound] == .quote,
                value.count > 2, value.count <= EventPass.mostNameBytes
            else { continue }
            addName(value)
            let text = UnsafeBufferPointer(start: base + value.lowerBound + 1, count: value.count - 2)
            return text.contains(.backslash) ? output.draft.keptName(JSONString.decoded(text)[...]) : text
        }
        return nil
    }

    /// Adds the name that was found in another member, unless the record has a `name`, which is data.
    private mutating func addName(_ value: Range<Int>) {
        if lines.scanner.has(.name) {
            guard lines.isNull(lines.scanner.member(.name)) else { return }
            takeOut(lines.scanner.member(.name))
        }
        let text = UnsafeRawBufferPointer(start: base + value.lowerBound, count: value.count)
        output.draft.addFront("name") { $0.append(text) }
    }

    // MARK: The time

    /// The record's time: from the listed members, otherwise from the runtime's wrapper, otherwise the time
    /// of observation. It is added as `timestamp` if the record has none, and replaces a `timestamp` that is
    /// not RFC 3339.
    private mutating func recordTime(_ state: AppState) -> Timestamp {
        guard lines.scanner.present & state.members.times.mask != 0,
            let (time, range, isUsual, _) = foundTime(state)
        else {
            if let outerTime = lines.outerTime, outerTime >= EventPass.earliest, outerTime <= block.newest {
                let timestamp = lines.scanner.member(.timestamp)
                if lines.scanner.has(.timestamp), lines.isNull(timestamp) {
                    takeOut(timestamp)
                }
                if !lines.scanner.has(.timestamp) || lines.isNull(timestamp) {
                    addTimestamp(outerTime)
                }
                return outerTime
            }
            counts[.noTime] += 1
            return block.now
        }
        let timestamp = lines.scanner.member(.timestamp)
        if !lines.scanner.has(.timestamp) {
            addTimestamp(time)
        } else if lines.isNull(timestamp) {
            takeOut(timestamp)
            addTimestamp(time)
        } else if !isUsual, range.lowerBound == timestamp.value {
            // The same time in the form that every receiver reads.
            output.draft.replace(range, with: [.quote] + tools.timeWriter.text(of: time) + [.quote])
        }
        return time
    }

    /// Adds `timestamp` with a time that was found in another member or in a wrapper.
    private mutating func addTimestamp(_ time: Timestamp) {
        output.draft.addFront("timestamp") {
            $0.append(.quote)
            tools.timeWriter.append(time, to: &$0)
            $0.append(.quote)
        }
    }

    /// The time of an event that has no `timestamp`: from the members that may hold a record's time,
    /// otherwise the time of observation.
    @inline(__always)
    mutating func timeElsewhere() -> Timestamp {
        guard let state = block.state, lines.scanner.present & state.members.times.mask != 0 else {
            return block.now
        }
        return addedTime(state)
    }

    /// The time of an event from another member than `timestamp`; the event gets it as `timestamp`.
    @inline(never)
    private mutating func addedTime(_ state: AppState) -> Timestamp {
        guard let found = foundTime(state) else { return block.now }
        addTimestamp(found.time)
        return found.time
    }

    /// The first usable time among the candidates: its range, whether it is RFC 3339 as every receiver reads
    /// it, and the index of the candidate. Times before the year 2000 or further ahead than the settings
    /// allow are passed over.
    private mutating func foundTime(
        _ state: AppState
    ) -> (time: Timestamp, range: Range<Int>, isUsual: Bool, candidate: Int)? {
        // By index: a copy of a candidate would count references for each record.
        for index in state.members.times.paths.indices {
            guard let value = value(at: index, of: state.members.times), let found = time(at: value, state),
                found.time >= EventPass.earliest, found.time <= block.newest
            else { continue }
            return (found.time, value, found.isUsual, index)
        }
        return nil
    }

    /// The time that a value says: RFC 3339, a number, a text in an everyday format, or an object of a known
    /// form. Nil for any other value.
    private mutating func time(at value: Range<Int>, _ state: AppState) -> (time: Timestamp, isUsual: Bool)? {
        let text = UnsafeBufferPointer(start: base + value.lowerBound, count: value.count)
        switch text[0] {
        case .quote:
            let inner = UnsafeBufferPointer(rebasing: text[1..<text.count - 1])
            if let time = tools.times.parse(inner) { return (time, true) }
            if let time = TimestampText.parseNumber(inner) ?? TimestampText.parseLoosely(
                inner, in: state.zone)
                ?? TextTime.parse(inner, zone: state.zone, now: block.now)
            {
                return (time, false)
            }
        case .openBrace:
            // MongoDB's extended JSON: `{"$date": "…"}` or `{"$date": {"$numberLong": "…"}}`.
            for name in ["$date", "$numberLong"] {
                if let below = member([UInt8](name.utf8), of: value) {
                    return time(at: below, state).map { ($0.0, false) }
                }
            }
            return secondsAndRest(of: value).map { ($0, false) }
        default:
            // A receiver has to guess a number's unit, and guesses wrong: ClickHouse reads milliseconds as
            // the year 9999.
            if let time = TimestampText.parseNumber(text) { return (time, false) }
        }
        return nil
    }

    /// Names of the seconds and of the nanoseconds in objects that are times: log4j2's `instant`, Protobuf's
    /// `Timestamp`, and a form with short names.
    private static let secondsAndRest = [
        ("epochSecond", "nanoOfSecond"), ("seconds", "nanos"), ("sec", "nsec"),
    ]

    /// The time of an object with seconds and nanoseconds; nil for another object. Seconds from 10¹¹ on (the
    /// year 5138) are not a time.
    private mutating func secondsAndRest(of object: Range<Int>) -> Timestamp? {
        for (whole, rest) in EventPass.secondsAndRest {
            guard let seconds = integer(whole, of: object), seconds < 100_000_000_000 else { continue }
            let nanoseconds = integer(rest, of: object) ?? 0
            guard nanoseconds < 1_000_000_000 else { return nil }
            return Timestamp(seconds: seconds, nanoseconds: nanoseconds)
        }
        return nil
    }

    /// A member that is a whole number without a sign, as a number or as a text of one.
    private mutating func integer(_ name: String, of object: Range<Int>) -> Int? {
        guard let value = member(Array(name.utf8), of: object), value.count <= 20 else { return nil }
        let text = UnsafeBufferPointer(start: base + value.lowerBound, count: value.count)
        return Int(String(decoding: text.filter { $0 != .quote }, as: UTF8.self)).flatMap {
            $0 >= 0 ? $0 : nil
        }
    }

    // MARK: The severity

    /// The severity of the line; nil if no listed member holds one that is known.
    mutating func severity(_ state: AppState) -> Severity? { foundSeverity(state)?.severity }

    /// The first known severity among the candidates, and the candidate's index. Values of more than 34 bytes
    /// are not severities.
    private mutating func foundSeverity(_ state: AppState) -> (severity: Severity, candidate: Int)? {
        guard lines.scanner.present & state.members.levels.mask != 0 else { return nil }
        for index in state.members.levels.paths.indices {
            guard let value = value(at: index, of: state.members.levels), value.count <= 34 else { continue }
            let text = UnsafeBufferPointer(start: base + value.lowerBound, count: value.count)
            let scale = state.settings.levelScale
            let usual = state.members.levels.paths[index].reading
            let reading = scale == .auto || usual == .words || usual == .capitalWords ? usual : .scale(scale)
            let inner = text[0] == .quote ? UnsafeBufferPointer(rebasing: text[1..<text.count - 1]) : text
            let found =
                SeverityMemo.lengths.contains(inner.count)
                ? tools.severities.severity(of: inner, as: reading)
                : Severity(
                    text: String(decoding: inner, as: UTF8.self), as: reading, isGELF: isGELF(state))
            if let found { return (found, index) }
        }
        return nil
    }

    /// Whether the record is in Graylog's extended log format, by its member `version`: there the numbers in
    /// `level` are syslog's.
    private func isGELF(_ state: AppState) -> Bool {
        guard let slot = state.members.versionSlot, lines.scanner.has(slot: slot) else { return false }
        let found = lines.scanner.members[slot]
        let length = found.end - found.value
        guard length == 5, base[found.value] == .quote else { return false }
        let text = UnsafeBufferPointer(start: base + found.value + 1, count: length - 2)
        return Severity.isGELF(version: String(decoding: text, as: UTF8.self))
    }

    /// What was found in the line that was accepted last, and in which members: for `check`, which explains
    /// it to a person.
    public mutating func findings() -> LineFindings {
        guard let state = block.state else { return LineFindings() }
        let severity = foundSeverity(state)
        return LineFindings(
            timeMember: foundTime(state).map { state.members.times.paths[$0.candidate].name }
                ?? (lines.outerTime == nil ? nil : "the container's runtime"),
            level: severity?.severity.level,
            levelMember: severity.map { state.members.levels.paths[$0.candidate].name })
    }

    // MARK: Paths

    /// The value that a candidate leads to; nil if the line does not have it. The parameter is an index,
    /// because a path that is passed on is copied and counts references to its texts.
    @inline(__always)
    private mutating func value(at index: Int, of candidates: Candidates) -> Range<Int>? {
        let slot = candidates.paths[index].slot
        guard lines.scanner.has(slot: slot) else { return nil }
        let found = lines.scanner.members[slot]
        var value = found.value..<found.end
        guard !candidates.paths[index].below.isEmpty else { return value }
        for name in candidates.paths[index].below {
            guard let below = member(name, of: value) else { return nil }
            value = below
        }
        return value
    }

    /// Whether the record has a member that the scanner does not look for; walks over all members.
    private mutating func has(_ name: String) -> Bool {
        member(Array(name.utf8), of: lines.scanner.open..<lines.scanner.close + 1) != nil
    }

    /// The value of a member of the object at these offsets.
    private mutating func member(_ name: [UInt8], of object: Range<Int>) -> Range<Int>? {
        RawWalk.find(name, in: base, from: object.lowerBound, to: object.upperBound)?.value
    }
}
