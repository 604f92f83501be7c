internal import EventLoops
internal import Glibc
internal import Model
internal import TextFormats

/// What became of a line before it is judged.
enum Reading {
    /// The scanner has read an object.
    case object(next: Int)
    /// The scanner has read an object whose pieces have lines of another stream between them. If it is not
    /// accepted, the line is read again with `readRefused`, and `before` are the counts to begin with;
    /// otherwise `noteReadAhead` notes the pieces.
    indirect case joined(next: Int, ahead: [Int], before: EventCounts)
    /// No object: the line goes to the quarantine.
    case refused(Problem, next: Int)
    /// A line without an event: white space, or a piece of a container's long line that was already joined to
    /// an earlier piece.
    case blank(next: Int)
}

/// From the bytes of a block to the object that is judged: scans a line, and if it is no JSON as it stands,
/// takes it out of its wrapper, parses it, repairs it or makes it the `message` of a record, as the app's
/// settings say.
///
/// It knows the forms of lines, and nothing of events, records, times and priorities. The extensions are for
/// lines of text (`+Text`) and for lines that a container's runtime has wrapped (`+Wrapped`).
struct LineSource: ~Copyable {
    /// Scanner of the line that was read last. Its members are offsets from its `base`: the block, or
    /// `repaired`, or `textRecord`.
    var scanner: JSONScanner
    /// Whether lines are neither wrapped nor parsed: the pass then goes straight to the scanner.
    private(set) var isPlain = true
    /// What tags hide, and the streams that are in the middle of a line.
    var withholding = Withholding()
    /// Time at which the container's runtime received the line, from its wrapper; nil if the wrapper has no
    /// readable time.
    private(set) var outerTime: Timestamp?
    /// App of the lines; nil before the first `begin`.
    private(set) var app: AppState?
    /// Format of lines of text; nil if the app's lines are JSON or are not parsed.
    private(set) var textFormat: TextFormat?
    /// How a container's runtime has wrapped the lines.
    var wrapping = Wrapping()
    /// The object that a line of text became.
    var textRecord = RecordWriter()
    /// Copy of the line that was scanned if the block's bytes could not be: UTF-8 repaired, unwrapped, or
    /// taken out of a string.
    var repaired = LineBuffer(capacity: 64)
    /// Reader of the times in wrappers.
    var times = TimestampReader()

    /// - Parameter nameRows: as `JSONScanner.init`.
    init(nameRows: Int) { scanner = JSONScanner(nameRows: nameRows) }

    /// Prepares for the lines of a file of an app.
    ///
    /// - Parameter readsParsed: whether members are looked for in what the app's format parses.
    mutating func begin(
        _ state: AppState, producer: [UInt8]?, path: String, readsParsed: Bool, at now: Timestamp
    ) {
        app = state
        let settings = state.settings
        wrapping.begin(settings.format, path: path, readsParsed: readsParsed)
        textFormat = settings.textFormat
        isPlain = settings.format == nil && textFormat == nil
        textRecord.zone = state.zone
        textRecord.now = now
        outerTime = nil
        // A file without a producer is a stream of its own.
        withholding.begin(producer ?? [0] + Array(path.utf8))
    }

    /// Reads a line that is wrapped, parsed, or both.
    mutating func read(
        _ block: UnsafePointer<UInt8>, from start: Int, to end: Int, _ counts: inout EventCounts
    ) -> Reading {
        if let format = wrapping.format { return readWrapped(format, block, from: start, to: end, &counts) }
        guard let textFormat else { return readAsIs(block, start, end, &counts) }
        if let member = textFormat.jsonMember {
            return readInner(member, block, from: start, to: end, &counts)
        }
        return readText(textFormat, block, from: start, to: end, &counts)
    }

    /// Reads a line as in an app without a format.
    mutating func readAsIs(
        _ block: UnsafePointer<UInt8>, _ start: Int, _ end: Int, _ counts: inout EventCounts
    ) -> Reading {
        let (next, isObject) = scanner.scanLine(block, from: start, to: end)
        return isObject ? object(next) : repair(block, start, next, end, &counts)
    }

    // MARK: What is no object as it stands

    /// UTF-8 of U+FEFF. Some programs write it whenever they open a file, so it may begin any line. It is not
    /// content and is skipped before lines that need a repair anyway.
    private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

    /// Reads a line that the scanner refused a second time: without byte-order marks, with its UTF-8
    /// repaired, or as the text of a record.
    ///
    /// - Parameters:
    ///   - next: the offset after the line.
    ///   - end: how far lines of a block of text may be joined to it.
    @inline(never)
    mutating func repair(
        _ block: UnsafePointer<UInt8>, _ start: Int, _ next: Int, _ end: Int, _ counts: inout EventCounts
    ) -> Reading {
        let marks = LineSource.marks(
            before: UnsafeBufferPointer(start: block + start, count: next - start))
        guard marks == 0 else {
            let (next, isObject) = scanner.scanLine(block, from: start + marks, to: end)
            guard isObject else { return repair(block, start + marks, next, end, &counts) }
            return object(next)
        }
        let code = scanner.failureCode
        guard code != .blank, let app else { return unreadable(start, next) }
        let line = UnsafeBufferPointer(start: block + start, count: next - start)
        // Zeros are not text: they were left by a power cut, or will be filled by a writer (`fallocate`).
        let isText = block[start] != 0
        if isText, code == .notUTF8, let reading = readRepaired(line, app, next, &counts) { return reading }
        let isKept = code == .notUTF8 && app.settings.repairsUTF8 == false
        guard isText, !isKept, app.settings.text != .quarantine else {
            // The next line may be the value of a member that this one ends with.
            withholding.noteEnd(of: line)
            // Rescan the original line, so that the error position refers to it and not to the repaired copy.
            _ = scanner.scanLine(block, from: start, to: next)
            return unreadable(start, next)
        }
        let last = app.settings.text == .blocks ? endOfTextBlock(block, start, next, end) : next
        let text = UnsafeBufferPointer(start: block + start, count: last - start)
        let trimmed = text.lastIndex { $0 != .lineFeed && $0 != 0x0D } ?? 0
        return readMessage(
            UnsafeBufferPointer(rebasing: text[...trimmed]), last, readable: end - start, &counts)
    }

    /// Length of the byte-order marks at the beginning of a text, in bytes.
    @inline(__always)
    static func marks(before text: UnsafeBufferPointer<UInt8>) -> Int {
        text.first == 0xEF ? countMarks(before: text) : 0
    }

    @inline(never)
    private static func countMarks(before text: UnsafeBufferPointer<UInt8>) -> Int {
        var count = 0
        while text.dropFirst(count).starts(with: byteOrderMark) { count += byteOrderMark.count }
        return count
    }

    /// The end of the block of text whose first line ends at `next`: before a line that begins an object or
    /// with a zero byte, at most `TextHandling.mostBlockBytes` after `start`.
    private func endOfTextBlock(_ block: UnsafePointer<UInt8>, _ start: Int, _ next: Int, _ end: Int) -> Int {
        var position = next
        while position < end, block[position] != .openBrace, block[position] != 0,
            let feed = memchr(block + position, 0x0A, end - position)
        {
            let after = UnsafePointer(feed.assumingMemoryBound(to: UInt8.self)) - block + 1
            guard after - start <= TextHandling.mostBlockBytes else { break }
            position = after
        }
        return position
    }

    /// Reads the line with invalid UTF-8 replaced by U+FFFD; nil if the result is not an object either.
    /// Records are repaired by default, events only if the settings say so: an event's bytes must not change
    /// unasked.
    mutating func readRepaired(
        _ line: UnsafeBufferPointer<UInt8>, _ app: AppState, _ next: Int, _ counts: inout EventCounts
    ) -> Reading? {
        guard app.settings.repairsUTF8 ?? true else { return nil }
        repaired.removeAll(keepingCapacity: 1 << 16)
        var valid = String(decoding: line, as: UTF8.self)
        if line.last != .lineFeed {
            valid += "\n"
        }
        valid.withUTF8 { repaired.append(UnsafeRawBufferPointer($0)) }
        let isObject = isRepairedObject()
        if isObject || line.first == .openBrace, withholding.hidesValue() { return withheld(next) }
        guard isObject else { return nil }
        guard app.settings.repairsUTF8 == true || app.settings.kind != .event || !isOurs else { return nil }
        counts[.repairedUTF8] += 1
        return .object(next: next)
    }

    /// Makes a text the `message` of a record, unless it is withheld.
    ///
    /// - Parameters:
    ///   - stream: the stream that a runtime has noted, which becomes a member; nil for a line that is not
    ///     wrapped.
    ///   - isPiece: whether the text is only a piece of a line.
    ///   - readable: number of bytes that may be loaded from the text's first byte on; nil for its length.
    mutating func readMessage(
        _ content: UnsafeBufferPointer<UInt8>, _ next: Int, stream: [UInt8]? = nil, isPiece: Bool = false,
        readable: Int? = nil, _ counts: inout EventCounts
    ) -> Reading {
        guard !withholding.withholds(content, stream: stream, isPiece: isPiece) else { return withheld(next) }
        let more = stream.map { Array("\"stream\":\"".utf8) + $0 + [.quote, .comma] } ?? []
        TextFormat.wrap(
            UnsafeRawBufferPointer(content), readable: readable ?? content.count, more: more,
            into: &textRecord)
        guard !refusesRepair else { return notUTF8(next) }
        counts[.wrappedText] += 1
        if textFormat == nil, content.first == .openBrace {
            noteBrokenJSON(&counts)
        }
        return readTextRecord(next, isScanned: wrapping.readsTextMembers, &counts)
    }

    /// Whether the text in `textRecord` had bytes that are not UTF-8, and its app wants such lines in the
    /// quarantine (`not_utf8 = "quarantine"`).
    var refusesRepair: Bool { textRecord.isRepaired && app?.settings.repairsUTF8 == false }

    /// A text whose bytes are not UTF-8, and must not be replaced.
    func notUTF8(_ next: Int) -> Reading {
        .refused(Problem(reason: .notUTF8, limit: nil, detail: "not UTF-8"), next: next)
    }

    /// Notes the time at which the container's runtime received the line.
    mutating func note(outerTime time: Timestamp?) { outerTime = time }

    // MARK: Results

    /// The object that was scanned, unless it is the value of a hidden member.
    ///
    /// A push to the data layer is read all the same: it is not sent itself, and a refusal of consent in it
    /// must not be lost.
    mutating func object(_ next: Int) -> Reading {
        guard withholding.hidesValue() else { return .object(next: next) }
        return app?.settings.kind == .event && type == .dataLayer ? .object(next: next) : withheld(next)
    }

    /// A text that must not leave, because tags could not find in it what they hide.
    func withheld(_ next: Int) -> Reading { .refused(.withheld, next: next) }

    /// What the scanner could not read, with its failure as the problem. A blank line is not a problem.
    ///
    /// - Parameter start: where the line begins: the message counts bytes from there.
    @inline(never)
    mutating func unreadable(_ start: Int, _ next: Int) -> Reading {
        let failure = ScanFailure(code: scanner.failureCode, byte: scanner.failureOffset - start)
        if failure.code == .blank { return .blank(next: next) }
        let reason: QuarantineRecord.Reason =
            switch failure.code {
            case .notUTF8: .notUTF8
            case .notAnObject: .notAnObject
            case .tooDeep: .tooDeep
            case .cutShort: .cutShort
            default: .notJSON
            }
        return .refused(Problem(reason: reason, limit: nil, detail: failure.message), next: next)
    }

    // MARK: The object that was scanned

    /// Whether the object was written for the agent: an event, or a push to the data layer.
    var isOurs: Bool { mutating get { hasUsableName || type != .other } }

    /// Whether `name` is a string that is not empty.
    @inline(__always)
    var hasUsableName: Bool {
        mutating get {
            guard scanner.has(.name) else { return false }
            let member = scanner.member(.name)
            return scanner.base[member.value] == .quote && member.end - member.value > 2
        }
    }

    /// The `type`, if it has a meaning here.
    @inline(__always)
    var type: EventType { mutating get { scanner.has(.type) ? meaningOfType() : .other } }

    @inline(never)
    private mutating func meaningOfType() -> EventType {
        let member = scanner.member(.type)
        if isText(member, "crash") { return .crash }
        if isText(member, "start_session") { return .startSession }
        return isText(member, "data_layer") ? .dataLayer : .other
    }

    /// Whether a member is a string with exactly this text, written without escapes.
    @inline(__always)
    mutating func isText(_ member: Member, _ text: StaticString) -> Bool {
        member.end - member.value == text.utf8CodeUnitCount + 2 && scanner.base[member.value] == .quote
            && memcmp(scanner.base + member.value + 1, text.utf8Start, text.utf8CodeUnitCount) == 0
    }

    /// Whether a member is `null`, which counts as missing.
    @inline(__always)
    mutating func isNull(_ member: Member) -> Bool { member.isNull(in: scanner.base) }
}
