internal import EventLoops
internal import Glibc
internal import Model
internal import TextFormats

/// Lines of text in a format that the app's settings name. Each record of the format becomes a JSON object in
/// `textRecord`, and is judged like a line of JSON.
extension LineSource {
    /// Reads one record of text: a line, or several if the format joins lines.
    mutating func readText(
        _ format: TextFormat, _ block: UnsafePointer<UInt8>, from start: Int, to end: Int,
        _ counts: inout EventCounts
    ) -> Reading {
        let next =
            format.joinsLines
            ? LineSource.endOfRecord(format, block, start, end) : LineSource.endOfLine(block, start, end)
        var text = UnsafeBufferPointer(start: block + start, count: next - start)
        text = UnsafeBufferPointer(
            rebasing: text[..<((text.lastIndex { $0 != .lineFeed && $0 != 0x0D } ?? -1) + 1)])
        text = UnsafeBufferPointer(rebasing: text[LineSource.marks(before: text)...])
        // Blank lines, and zeros that a power cut left, are judged as in an app without a format.
        guard let first = text.first, first != 0 else { return readAsIs(block, start, next, &counts) }
        // Programs mix lines of JSON with lines of text, and a record that `first_line` begins may be JSON.
        if first == .openBrace {
            let (after, isObject) = scanner.scanLine(block, from: start, to: next)
            // Empty lines behind the object belong to its record.
            if isObject, after >= text.startAddress(in: block) + text.count { return object(next) }
        }
        if format.parses,
            let reading = parse(
                text, by: format, next, readable: end - text.startAddress(in: block), &counts)
        {
            return reading
        }
        guard let app, app.settings.text != .quarantine || !format.parses else {
            return unmatched(next, counts)
        }
        if format.parses, app.settings.quarantinesUnmatched { return unmatched(next, counts) }
        return readMessage(text, next, readable: end - text.startAddress(in: block), &counts)
    }

    /// Parses a text. Returns nil if the text does not match the format; the caller then decides what becomes
    /// of it.
    ///
    /// - Parameters:
    ///   - readable: number of bytes that may be loaded from the text's first byte on; at least the text's
    ///     length. The parser loads several bytes at a time.
    ///   - stream: the stream that a runtime has noted; nil for a line that is not wrapped.
    mutating func parse(
        _ text: UnsafeBufferPointer<UInt8>, by format: TextFormat, _ next: Int, readable: Int? = nil,
        stream: [UInt8]? = nil, _ counts: inout EventCounts
    ) -> Reading? {
        if format.isHeader(UnsafeRawBufferPointer(text)) { return .blank(next: next) }
        let failure = format.parse(
            UnsafeRawBufferPointer(text), readable: readable ?? text.count,
            keepsLine: withholding.texts != .members, into: &textRecord)
        var isValue = false
        if withholding.texts == .members {
            // A record with a time is no such value. A loose pattern, as `(?P<m>.*)`, matches anything.
            isValue =
                failure == nil && stream == nil && withholding.hidesValue() && textRecord.timestamp.isEmpty
            // The next line may be the value of a member that this text ends with, also if it is a record.
            withholding.noteEnd(of: text, stream: stream)
        }
        guard let failure else {
            // The text may be the value of a hidden member, whose name ended the line before.
            if isValue { return withheld(next) }
            guard !refusesRepair else { return notUTF8(next) }
            counts.parsed += 1
            return readTextRecord(next, isScanned: wrapping.readsParsedMembers, &counts)
        }
        noteUnparsed(failure, &counts)
        // The text may hold the value of a hidden member without the member's name, so no rule would find it.
        return withholding.texts == .members ? withheld(next) : nil
    }

    /// A line that does not match its app's format, and at which column.
    func unmatched(_ next: Int, _ counts: EventCounts) -> Reading {
        let failure = counts.texts[app?.name ?? ""]?.last
        let position = failure.map { ": at column \($0.column) \($0.expected) was expected" } ?? ""
        let problem = Problem(
            reason: .notJSON, limit: nil, detail: "the line does not match the app's format\(position)")
        return .refused(problem, next: next)
    }

    /// The offset after the line feed of the line that begins at `start`.
    static func endOfLine(_ block: UnsafePointer<UInt8>, _ start: Int, _ end: Int) -> Int {
        guard let feed = memchr(block + start, 0x0A, end - start) else { return end }
        return UnsafePointer(feed.assumingMemoryBound(to: UInt8.self)) - block + 1
    }

    /// The end of the record that begins at `start`: before the next line that begins a record or with a zero
    /// byte, or at the bounds of 500 lines and 64 KiB. Without bounds a `first_line` that never matches would
    /// make one record of a whole file.
    private static func endOfRecord(
        _ format: TextFormat, _ block: UnsafePointer<UInt8>, _ start: Int, _ end: Int
    ) -> Int {
        /// A line without its line feed.
        func line(_ start: Int, _ end: Int) -> UnsafeRawBufferPointer {
            UnsafeRawBufferPointer(start: block + start, count: max(end - start - 1, 0))
        }
        var previous = start
        var position = endOfLine(block, start, end)
        var lines = 1
        while position < end, lines < TextFormat.mostRecordLines {
            let after = endOfLine(block, position, end)
            guard after - start <= TextFormat.mostRecordBytes, block[position] != 0,
                !format.begins(line(position, after), after: line(previous, position))
            else { break }
            previous = position
            position = after
            lines += 1
        }
        return position
    }

    /// Takes the object in `textRecord`. It is unreadable if it is not valid JSON, which the writer of
    /// records does not produce.
    ///
    /// - Parameter isScanned: whether members are looked for in the object. If not, it is not scanned: the
    ///   position of its time is known from the format, and it is correct by construction. It is not scanned
    ///   either if the positions of all members are known.
    mutating func readTextRecord(_ next: Int, isScanned: Bool, _ counts: inout EventCounts) -> Reading {
        let bytes = textRecord.bytes
        guard let start = bytes.baseAddress else { return unreadable(0, next) }
        if textRecord.isRepaired {
            counts[.repairedUTF8] += 1
        }
        if !isScanned {
            scanner.accept(start, bytes.count, timestamp: textRecord.timestamp)
            return .object(next: next)
        }
        if let members = textRecord.members {
            scanner.accept(start, bytes.count, RecordWriter.padding, members)
            return .object(next: next)
        }
        let (end, isObject) = scanner.scanLine(start, from: 0, to: bytes.count + RecordWriter.padding)
        return isObject && end == bytes.count ? .object(next: next) : unreadable(0, next)
    }

    // MARK: JSON inside a string

    /// Reads a line whose member `member` is a string that holds the object proper (`json_in`). A line
    /// without such an object is read as it is.
    mutating func readInner(
        _ member: [UInt8], _ block: UnsafePointer<UInt8>, from start: Int, to end: Int,
        _ counts: inout EventCounts
    ) -> Reading {
        note(outerTime: nil)
        let (next, isObject) = scanner.scanLine(block, from: start, to: end)
        guard isObject else { return repair(block, start, next, end, &counts) }
        if takeInner(member, &counts) { return object(next) }
        if withholding.texts == .members { return withheld(next) }
        return readAsIs(block, start, end, &counts)
    }

    /// Scans the object in the string member `member` of the object that was scanned last. The outer object's
    /// `time` serves as the runtime's time. Returns false if there is no object.
    ///
    /// - Parameter stream: the stream that a runtime has noted; nil for a line that is not wrapped.
    mutating func takeInner(_ member: [UInt8], stream: [UInt8]? = nil, _ counts: inout EventCounts) -> Bool {
        let block = scanner.base
        let from = scanner.open
        let to = scanner.close + 1
        guard let value = RawWalk.find(member, in: block, from: from, to: to)?.value,
            block[value.lowerBound] == .quote
        else {
            noteUnparsed(
                TextFailure(column: 1, expected: "a text in the member that json_in names"), &counts)
            withholding.noteEnd(
                of: UnsafeBufferPointer(start: block + from, count: to - from), stream: stream)
            return false
        }
        let text = JSONString.decoded(
            UnsafeBufferPointer(start: block + value.lowerBound + 1, count: value.count - 2))
        let before = outerTime
        if let time = RawWalk.find(Array("time".utf8), in: block, from: from, to: to)?.value,
            block[time.lowerBound] == .quote
        {
            let text = UnsafeBufferPointer(start: block + time.lowerBound + 1, count: time.count - 2)
            note(outerTime: times.parse(text) ?? before)
        }
        repaired.removeAll(keepingCapacity: 1 << 16)
        repaired.append(text[...].drop { $0 == .blank })
        while let last = repaired.bytes.last, last == .lineFeed || last == 0x0D { repaired.removeLast() }
        withUnsafeBytes(of: UInt8.lineFeed) { repaired.append($0) }
        if isRepairedObject() {
            counts.parsed += 1
            return true
        }
        note(outerTime: before)
        // The text in the next line may be the value of a member that this one ends with.
        withholding.noteEnd(of: repaired.bytes.bindMemory(to: UInt8.self), stream: stream)
        noteUnparsed(TextFailure(column: 1, expected: "an object in the member that json_in names"), &counts)
        return false
    }

    // MARK: Copies

    /// Copies a text to `repaired`, with a line feed after it, and scans it there; true if it is an object.
    /// The scanner needs the line feed, which the text in the block does not have.
    mutating func scanCopy(of content: UnsafeBufferPointer<UInt8>) -> Bool {
        repaired.removeAll(keepingCapacity: 1 << 16)
        repaired.append(UnsafeRawBufferPointer(content))
        withUnsafeBytes(of: UInt8.lineFeed) { repaired.append($0) }
        return isRepairedObject()
    }

    /// Whether `repaired` holds exactly one object on one line.
    mutating func isRepairedObject() -> Bool {
        let (end, isObject) = scanner.scanLine(UnsafePointer(repaired.start), from: 0, to: repaired.count)
        return isObject && end == repaired.count
    }

    // MARK: Counts

    /// Counts a line that does not match the app's format.
    private func noteUnparsed(_ failure: TextFailure, _ counts: inout EventCounts) {
        counts.texts[app?.name ?? "", default: TextCounts()].notParsed += 1
        counts.texts[app?.name ?? "", default: TextCounts()].last = failure
    }

    /// Counts a line that begins with `{` and is not JSON, in an app whose lines are JSON: the program writes
    /// broken JSON.
    func noteBrokenJSON(_ counts: inout EventCounts) {
        counts.texts[app?.name ?? "", default: TextCounts()].brokenJSON += 1
    }
}

extension UnsafeBufferPointer<UInt8> {
    /// Offset of the text in the block that it is a part of.
    fileprivate func startAddress(in block: UnsafePointer<UInt8>) -> Int {
        baseAddress.map { $0 - block } ?? 0
    }
}
