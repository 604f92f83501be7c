internal import Model

/// The records of several lines in a container's log, to find where a block may end: no record of either
/// stream may go on behind that place, or a restart there would read its rest as a record of its own.
///
/// Lines are added in the order of the file. The last record of a stream may go on until another begins, and
/// ends once the other stream has written `LineWrapper.mostLinesBetweenPieces` lines since its last one, or a
/// line that is `mostSeconds` younger than its last one or `mostSecondsInAll` younger than its first one:
/// otherwise a program that writes to one stream would have to wait for the other.
struct WrappedRecords {
    /// Seconds after which the record of a stream that writes nothing has ended.
    private static let mostSeconds = 2
    /// Seconds after which a record has ended although its stream adds lines to it.
    private static let mostSecondsInAll = 10
    /// Most bytes of the texts of a record. Docker's have escapes of six bytes for one (`\u003c`), which are
    /// counted here: a block must not end within a record that is below the bound without them.
    private var mostBytes: Int { (format == .docker ? 6 : 2) * RecordStart.mostBytes }

    /// The last record of a stream.
    private struct Record {
        /// Range of the record's lines, with the lines between them.
        var range: Range<Int>
        /// Lines of the program, and the runtime's for them.
        var lines = 1
        var pieces = 1
        /// Bytes of its texts.
        var bytes: Int
        /// Text of the first piece of its last line. If it is too short to show that a record begins there,
        /// the line counts as more of the record before, which then only waits longer.
        var last: Range<Int>
        /// Whether more of its last line is to come.
        var isPiece: Bool
        /// Lines of the other stream since.
        var between = 0
        /// The second of the day of its first line and of its last one; nil if that is not known.
        let began: Int?
        var second: Int?
    }

    private let start: RecordStart
    private let format: LineWrapper
    private let lines: UnsafeRawBufferPointer
    /// The last records of stdout and of stderr; nil if they have ended.
    private var open: [Record?] = [nil, nil]
    /// Ranges of records that have ended, of those with several lines or pieces. Those that overlap are one
    /// range, so they are in order and `end` looks at each once at most.
    private var ended: [Range<Int>] = []

    /// - Parameters:
    ///   - start: how a record begins.
    ///   - lines: whole lines.
    init(_ lines: UnsafeRawBufferPointer, in format: LineWrapper, beginning start: RecordStart) {
        self.start = start
        self.format = format
        self.lines = lines
        format.walk(lines) { line, piece in
            add(line, piece)
            return true
        }
    }

    /// The last position at which no record may go on; 0 if one may go on everywhere.
    var end: Int {
        let starts = open.compactMap { $0?.range.lowerBound }
        let end = starts.min() ?? lines.count
        return ended.last { $0.lowerBound < end && end < $0.upperBound }?.lowerBound ?? end
    }

    private mutating func add(_ line: Range<Int>, _ piece: WrappedPiece?) {
        guard let piece else {
            for stream in open.indices { close(stream) }
            return
        }
        let second = format.second(of: UnsafeRawBufferPointer(rebasing: lines[line]))
        passBy(piece.isError ? 0 : 1, second)
        let stream = piece.isError ? 1 : 0
        let text = (line.lowerBound + piece.text.lowerBound)..<(line.lowerBound + piece.text.upperBound)
        guard var record = open[stream], record.isPiece || isContinued(record, text) else {
            close(stream)
            open[stream] = Record(
                range: line, bytes: text.count, last: text, isPiece: !piece.isLast, began: second,
                second: second)
            return
        }
        if !record.isPiece {
            record.lines += 1
            record.last = text
        }
        record.pieces += 1
        record.range = record.range.lowerBound..<line.upperBound
        record.bytes += text.count
        record.isPiece = !piece.isLast
        record.between = 0
        record.second = second
        open[stream] = record
    }

    /// Whether a line of the same stream belongs to a record whose last line is whole.
    private func isContinued(_ record: Record, _ text: Range<Int>) -> Bool {
        guard record.lines < RecordStart.mostLines, record.bytes < mostBytes else {
            return false
        }
        return withText(text) { line in
            withText(record.last) { previous in !start.begins(line, after: previous) }
        }
    }

    /// Counts a line of the other stream, and ends the record of `stream` if it has waited long enough.
    private mutating func passBy(_ stream: Int, _ second: Int?) {
        guard var record = open[stream] else { return }
        record.between += 1
        open[stream] = record
        /// Whether another line is at least `seconds` older, by the second of the day. A difference of half a
        /// day or more means that the clock was set back.
        func isOlder(_ other: Int?, by seconds: Int) -> Bool {
            guard let second, let other else { return false }
            return (seconds..<43_200).contains((second - other + 86_400) % 86_400)
        }
        let isOld =
            isOlder(record.second, by: WrappedRecords.mostSeconds)
            || isOlder(record.began, by: WrappedRecords.mostSecondsInAll)
        if isOld && !record.isPiece || record.between > LineWrapper.mostLinesBetweenPieces {
            close(stream)
        }
    }

    /// The record of a stream has ended.
    private mutating func close(_ stream: Int) {
        if let record = open[stream], record.pieces > 1 {
            noteEnded(record.range)
        }
        open[stream] = nil
    }

    /// Adds a range to `ended`, in order: the other stream may have ended records behind it while this record
    /// was still open.
    private mutating func noteEnded(_ record: Range<Int>) {
        var range = record
        var behind: [Range<Int>] = []
        while let last = ended.last, last.upperBound > range.lowerBound {
            ended.removeLast()
            if last.lowerBound < range.upperBound {
                range =
                    min(last.lowerBound, range.lowerBound)..<max(last.upperBound, range.upperBound)
            } else {
                behind.append(last)
            }
        }
        ended.append(range)
        ended += behind.reversed()
    }

    /// Calls `body` with what the program wrote.
    private func withText<Result>(_ range: Range<Int>, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        let text = UnsafeRawBufferPointer(rebasing: lines[range])
        guard format == .docker, LineCutter.first(0x5C, in: text) != nil else { return body(text) }
        return JSONString.decoded(text.bindMemory(to: UInt8.self)).withUnsafeBytes(body)
    }
}
