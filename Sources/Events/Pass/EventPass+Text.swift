internal import EventLoops
internal import Glibc
internal import Model
internal import TextFormats

/// Lines of text in a format that the app's settings name. Each record of the format becomes a JSON object in
/// `textRecord`, and is judged like a line of JSON.
extension EventPass {
    /// Reads a line that is wrapped, parsed, or both.
    @inline(never)
    mutating func readOther(from start: Int, to end: Int) -> Verdict {
        if let format = wrapping.format { return readWrapped(format, from: start, to: end) }
        guard let textFormat else { return unreadable(start, end) }
        if let member = textFormat.jsonMember { return readInner(member, from: start, to: end) }
        return readText(textFormat, from: start, to: end)
    }

    /// Reads one record of text: a line, or several if the format joins lines.
    private mutating func readText(_ format: TextFormat, from start: Int, to end: Int) -> Verdict {
        let block = base
        let next = format.joinsLines ? endOfRecord(format, start, end) : endOfLine(start, end)
        var text = UnsafeBufferPointer(start: block + start, count: next - start)
        text = UnsafeBufferPointer(
            rebasing: text[..<((text.lastIndex { $0 != .lineFeed && $0 != 0x0D } ?? -1) + 1)])
        text = UnsafeBufferPointer(rebasing: text[EventPass.marks(before: text)...])
        // Blank lines, and zeros that a power cut left, are judged as in an app without a format.
        guard let first = text.first, first != 0 else { return readAsIs(start, next) }
        // Programs mix lines of JSON with lines of text, and a record that `first_line` begins may be JSON.
        if first == .openBrace {
            let (after, isObject) = scanner.scanLine(block, from: start, to: next)
            if isObject, after == next { return isHiddenValue() ? withhold(next) : judge(next) }
        }
        if format.parses,
            let verdict = parse(text, by: format, next, readable: end - (text.startAddress(in: block)))
        {
            return verdict
        }
        guard let state, state.settings.text != .quarantine || !format.parses else { return unmatched(next) }
        if format.parses, state.settings.quarantinesUnmatched { return unmatched(next) }
        return judgeText(text, next)
    }

    /// Parses a text and judges the record. Returns nil if the text does not match the format; the caller
    /// then decides what becomes of it.
    ///
    /// - Parameter readable: number of bytes that may be loaded from the text's first byte on; at least the
    ///   text's length. The parser loads several bytes at a time.
    mutating func parse(
        _ text: UnsafeBufferPointer<UInt8>, by format: TextFormat, _ next: Int, readable: Int? = nil
    ) -> Verdict? {
        let failure = format.parse(
            UnsafeRawBufferPointer(text), readable: readable ?? text.count, keepsLine: withheld != .members,
            into: &textRecord)
        guard let failure else {
            noteParsed()
            return judgeTextRecord(next, isRead: wrapping.readsParsedMembers) ?? unreadable(0, next)
        }
        noteUnparsed(failure)
        // The text may hold the value of a hidden member without the member's name, so no rule would find it.
        if withheld == .members {
            // The next line may be the value of a member that this text ends with.
            note(text, endsBeforeValueOf: producer)
            return withhold(next)
        }
        return nil
    }

    /// Quarantines a line that does not match its app's format, and says at which column.
    mutating func unmatched(_ next: Int) -> Verdict {
        let failure = counts.texts[state?.name ?? ""]?.last
        let place = failure.map { ": at column \($0.column) \($0.expected) was expected" } ?? ""
        problem = Problem(
            reason: .notJSON, limit: nil, detail: "a line that is not of the app's format\(place)")
        return verdict(.quarantined, next)
    }

    /// Reads a line as in an app without a format.
    private mutating func readAsIs(_ start: Int, _ end: Int) -> Verdict {
        let (next, isObject) = scanner.scanLine(base, from: start, to: end)
        return isObject ? judge(next) : repair(start, next, end)
    }

    /// The offset after the line feed of the line that begins at `start`.
    func endOfLine(_ start: Int, _ end: Int) -> Int {
        guard let feed = memchr(base + start, 0x0A, end - start) else { return end }
        return UnsafePointer(feed.assumingMemoryBound(to: UInt8.self)) - base + 1
    }

    /// The end of the record that begins at `start`: before the next line that begins a record or with a zero
    /// byte, or at the bounds of 500 lines and 64 KiB. Without bounds a `first_line` that never matches would
    /// make one record of a whole file.
    private func endOfRecord(_ format: TextFormat, _ start: Int, _ end: Int) -> Int {
        var previous = start
        var position = endOfLine(start, end)
        var lines = 1
        while position < end, lines < TextFormat.mostRecordLines {
            let after = endOfLine(position, end)
            guard after - start <= TextFormat.mostRecordBytes, base[position] != 0,
                !format.begins(line(position, after), after: line(previous, position))
            else { break }
            previous = position
            position = after
            lines += 1
        }
        return position
    }

    /// A line without its line feed.
    private func line(_ start: Int, _ end: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: base + start, count: max(end - start - 1, 0))
    }

    /// Judges the object in `textRecord`. Returns nil if it is not valid JSON, which the writer of records
    /// does not produce.
    ///
    /// - Parameter isRead: whether members are looked for in the object. If not, it is not scanned: the
    ///   position of its time is known from the format, and it is correct by construction.
    mutating func judgeTextRecord(_ next: Int, isRead: Bool) -> Verdict? {
        let bytes = textRecord.bytes
        guard let start = bytes.baseAddress else { return nil }
        if textRecord.isRepaired {
            counts[.repairedUTF8] += 1
        }
        base = start
        if !isRead {
            scanner.accept(start, bytes.count, timestamp: textRecord.timestamp)
            return judge(next)
        }
        let (end, isObject) = scanner.scanLine(start, from: 0, to: bytes.count + RecordWriter.padding)
        guard isObject, end == bytes.count else { return nil }
        return judge(next)
    }

    // MARK: JSON inside a string

    /// Reads a line whose member `member` is a string that holds the object proper (`json_in`). A line
    /// without such an object is read as it is.
    private mutating func readInner(_ member: [UInt8], from start: Int, to end: Int) -> Verdict {
        let block = base
        outerTime = nil
        let (next, isObject) = scanner.scanLine(block, from: start, to: end)
        guard isObject else { return repair(start, next, end) }
        if let verdict = judgeInner(member, next) { return verdict }
        base = block
        if withheld == .members { return withhold(next) }
        return readAsIs(start, end)
    }

    /// Judges the object in the string member `member` of the object that was scanned last. The outer
    /// object's `time` serves as the runtime's time. Returns nil if there is no object.
    mutating func judgeInner(_ member: [UInt8], _ next: Int) -> Verdict? {
        let block = base
        let from = scanner.open
        let to = scanner.close + 1
        guard let place = RawWalk.find(member, in: block, from: from, to: to)?.value,
            block[place.lowerBound] == .quote
        else {
            noteUnparsed(TextFailure(column: 1, expected: "a text in the member that json_in names"))
            return nil
        }
        let text = JSONString.decoded(
            UnsafeBufferPointer(start: block + place.lowerBound + 1, count: place.count - 2))
        let before = outerTime
        if let time = RawWalk.find(Array("time".utf8), in: block, from: from, to: to)?.value,
            block[time.lowerBound] == .quote
        {
            outerTime =
                times.parse(UnsafeBufferPointer(start: block + time.lowerBound + 1, count: time.count - 2))
                ?? before
        }
        repaired.removeAll(keepingCapacity: 1 << 16)
        repaired.append(text[...].drop { $0 == .blank })
        while let last = repaired.bytes.last, last == .lineFeed || last == 0x0D { repaired.removeLast() }
        withUnsafeBytes(of: UInt8.lineFeed) { repaired.append($0) }
        if let verdict = judgeRepaired(next) {
            noteParsed()
            return verdict
        }
        outerTime = before
        noteUnparsed(TextFailure(column: 1, expected: "an object in the member that json_in names"))
        return nil
    }

    // MARK: Counts

    /// Counts a line that was parsed.
    private mutating func noteParsed() { counts.parsed += 1 }

    /// Counts a line that does not match the app's format.
    private mutating func noteUnparsed(_ failure: TextFailure) {
        counts.texts[state?.name ?? "", default: TextCounts()].notParsed += 1
        counts.texts[state?.name ?? "", default: TextCounts()].last = failure
    }

    /// Counts a line that begins with `{` and is not JSON, in an app whose lines are JSON: the program writes
    /// broken JSON.
    mutating func noteBrokenJSON() {
        counts.texts[state?.name ?? "", default: TextCounts()].brokenJSON += 1
    }
}

extension UnsafeBufferPointer<UInt8> {
    /// Offset of the text in the block that it is a part of.
    fileprivate func startAddress(in block: UnsafePointer<UInt8>) -> Int {
        baseAddress.map { $0 - block } ?? 0
    }
}
