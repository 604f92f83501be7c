internal import Glibc
internal import Model
internal import TextFormats

/// Lines that are not JSON objects as they stand: invalid UTF-8, text, lines that a container's runtime has
/// wrapped. If the app's settings allow it, an object is made of them; otherwise they are quarantined.
extension EventPass {
    /// UTF-8 of U+FEFF. Some programs write it whenever they open a file, so it may begin any line. It is not
    /// content and is skipped before lines that need a repair anyway.
    private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

    /// Reads a line that the scanner refused a second time: without byte-order marks, with its UTF-8
    /// repaired, or as the text of a record. Otherwise returns the verdict of the refusal.
    ///
    /// - Parameters:
    ///   - next: the offset after the line.
    ///   - end: how far lines of a block of text may be joined to it.
    @inline(never)
    mutating func repair(_ start: Int, _ next: Int, _ end: Int) -> Verdict {
        let marks = EventPass.marks(before: UnsafeBufferPointer(start: base + start, count: next - start))
        guard marks == 0 else {
            let (next, isObject) = scanner.scanLine(base, from: start + marks, to: end)
            guard isObject else { return repair(start + marks, next, end) }
            return isHiddenValue() ? withhold(next) : judge(next)
        }
        let code = scanner.failureCode
        // Zeros are not text: they were left by a power cut, or will be filled by a writer (`fallocate`).
        guard code != .blank, let state, base[start] != 0 else { return unreadable(start, next) }
        let line = UnsafeBufferPointer(start: base + start, count: next - start)
        if code == .notUTF8, let verdict = readRepaired(line, state, next) { return verdict }
        guard state.settings.text != .quarantine else {
            // Rescan the original line, so that the error position refers to it and not to the repaired copy.
            _ = scanner.scanLine(base, from: start, to: next)
            return unreadable(start, next)
        }
        let last = state.settings.text == .blocks ? endOfBlock(start, next, end) : next
        let text = UnsafeBufferPointer(start: base + start, count: last - start)
        let trimmed = text.lastIndex { $0 != .lineFeed && $0 != 0x0D } ?? 0
        return judgeText(UnsafeBufferPointer(rebasing: text[...trimmed]), last)
    }

    /// Whether an object is the value of a hidden member whose name ended the line before it. It has no name
    /// of its own then by which it could be hidden, so that the whole line has to stay.
    mutating func isHiddenValue() -> Bool {
        !unfinished.isEmpty && unfinished.remove(producer) != nil && withheld == .members
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
    private func endOfBlock(_ start: Int, _ next: Int, _ end: Int) -> Int {
        var position = next
        while position < end, base[position] != .openBrace, base[position] != 0,
            let feed = memchr(base + position, 0x0A, end - position)
        {
            let after = UnsafePointer(feed.assumingMemoryBound(to: UInt8.self)) - base + 1
            guard after - start <= TextHandling.mostBlockBytes else { break }
            position = after
        }
        return position
    }

    /// Makes a text the `message` of a record, unless it is withheld.
    ///
    /// - Parameters:
    ///   - stream: the stream that a runtime has noted, which becomes a member; nil for a line that is not
    ///     wrapped.
    ///   - isPiece: whether the text is only a piece of a line.
    mutating func judgeText(
        _ content: UnsafeBufferPointer<UInt8>, _ next: Int, stream: [UInt8]? = nil, isPiece: Bool = false
    ) -> Verdict {
        if withheld != .none || !unfinished.isEmpty {
            note(content, endsBeforeValueOf: producer + (stream ?? []), forgets: stream == nil)
        }
        guard !withheld.include(content, isPiece: isPiece) else { return withhold(next) }
        let more = stream.map { Array("\"stream\":\"".utf8) + $0 + [.quote, .comma] } ?? []
        TextFormat.wrap(
            UnsafeRawBufferPointer(content), readable: content.count, more: more, into: &textRecord)
        counts[.wrappedText] += 1
        if textFormat == nil, content.first == .openBrace {
            noteBrokenJSON()
        }
        return judgeTextRecord(next, isRead: wrapping.readsTextMembers) ?? unreadable(0, next)
    }

    /// Reads what a container's runtime has wrapped, as one record. First the pieces of the line are joined
    /// across lines of the other stream; if that does not give an accepted record, only neighbouring lines
    /// are joined.
    @inline(never)
    mutating func readWrapped(_ format: LineFormat, from start: Int, to end: Int) -> Verdict {
        let block = base
        if wrapping.passesOver(start) { return verdict(.blank, endOfLine(start, end)) }
        outerTime = nil
        if withheld == .none, wrapping.mostAhead > 0 {
            let record = record(format, block, from: start, to: end, acrossStreams: true)
            if let stream = record.stream, !record.ahead.isEmpty, !record.isPiece {
                let verdict = judge(record, stream)
                // The quarantine keeps a run of neighbouring bytes of the file, which pieces with other lines
                // between them are not. So a bad line is quarantined piece by piece.
                if verdict.kind == .accepted || verdict.kind == .expired {
                    wrapping.hold(record.ahead, of: start)
                    return verdict
                }
                base = block
            }
        }
        let record = record(format, block, from: start, to: end, acrossStreams: false)
        guard let stream = record.stream else {
            // The line is not wrapped: read it as it is.
            base = block
            let (next, isObject) = scanner.scanLine(base, from: start, to: end)
            return isObject ? judge(next) : repair(start, next, next)
        }
        return judge(record, stream)
    }

    /// The line of a program that begins at `start`, as far as the block has it.
    ///
    /// - Parameter acrossStreams: whether lines of the other stream may stand between its pieces.
    private mutating func record(
        _ format: LineFormat, _ block: UnsafePointer<UInt8>, from start: Int, to end: Int, acrossStreams: Bool
    ) -> WrappedRecord {
        var record = WrappedRecord(at: start)
        var position = start
        var between = 0
        while position < end, record.isPiece {
            if acrossStreams, wrapping.holds(position) {
                position = endOfLine(position, end)
                continue
            }
            guard let line = wrappedLine(format, block, from: position, to: end) else { break }
            if record.stream == nil || record.stream == line.stream {
                guard record.stream == nil || !acrossStreams || wrapping.mayHold(upTo: line.next, of: start)
                else {
                    break
                }
                record.add(line, at: position)
                between = 0
            } else {
                between += 1
                guard acrossStreams, between <= Wrapping.mostBetween else { break }
            }
            position = line.next
        }
        return record
    }

    /// Judges a program's line: text by the app's format, an object inside a string, JSON, repaired JSON, or
    /// plain text; the first that fits.
    private mutating func judge(_ record: WrappedRecord, _ stream: [UInt8]) -> Verdict {
        let next = record.next
        var content = record.content
        outerTime = record.time.withUnsafeBufferPointer { times.parse($0) }
        if content.last == 0x0D {
            content.removeLast()
        }
        let isPiece = notePiece(of: stream, goesOn: record.isPiece)
        return content.withUnsafeBufferPointer { content in
            let content = UnsafeBufferPointer(rebasing: content.dropFirst(EventPass.marks(before: content)))
            if isPiece, withheld != .none { return judgeText(content, next, stream: stream, isPiece: true) }
            if let textFormat, textFormat.parses, textFormat.jsonMember == nil {
                if let verdict = parse(content, by: textFormat, next) { return verdict }
                if state?.settings.quarantinesUnmatched == true { return unmatched(next) }
            }
            if let member = textFormat?.jsonMember, scanRepaired(content) {
                if let verdict = judgeInner(member, next) { return verdict }
                if withheld == .members { return withhold(next) }
            }
            if scanRepaired(content) { return judge(next) }
            guard let state, state.settings.text != .quarantine else { return unreadable(0, next) }
            if scanner.failureCode == .notUTF8, let verdict = readRepaired(content, state, next) {
                return verdict
            }
            return judgeText(content, next, stream: stream)
        }
    }

    /// Notes whether more of a stream's line is to come. Returns whether what was read now is a piece: the
    /// beginning, the middle or the end of a longer line.
    private mutating func notePiece(of stream: [UInt8], goesOn: Bool) -> Bool {
        guard goesOn || !unfinished.isEmpty else { return false }
        guard goesOn else { return unfinished.remove(producer + stream) != nil }
        note(unfinished: producer + stream)
        return true
    }

    /// Notes whether a text ends before the value of a member, which the next line of the stream may then be.
    ///
    /// - Parameter forgets: whether a text that does not end so clears an earlier note.
    mutating func note(
        _ text: UnsafeBufferPointer<UInt8>, endsBeforeValueOf stream: [UInt8], forgets: Bool = true
    ) {
        if withheld.endsBeforeValue(text) {
            note(unfinished: stream)
        } else if forgets {
            unfinished.remove(stream)
        }
    }

    /// Adds a stream to `unfinished`.
    private mutating func note(unfinished key: [UInt8]) {
        // Entries of files that were deleted in the middle of a line would stay for ever: with 4,096 entries,
        // any one makes room.
        if unfinished.count >= 4096 {
            unfinished.removeFirst()
        }
        unfinished.insert(key)
    }

    /// One wrapped line; nil if the line is not of the runtime's format.
    private mutating func wrappedLine(
        _ format: LineFormat, _ block: UnsafePointer<UInt8>, from start: Int, to end: Int
    ) -> WrappedLine? {
        guard format == .docker else {
            let feed = memchr(block + start, 0x0A, end - start).map {
                UnsafePointer($0.assumingMemoryBound(to: UInt8.self)) - block
            }
            return feed.flatMap {
                WrappedLine(cri: UnsafeBufferPointer(start: block + start, count: $0 - start), next: $0 + 1)
            }
        }
        let (next, isObject) = scanner.scanLine(block, from: start, to: end)
        return isObject ? WrappedLine(docker: block, scanner.open..<scanner.close + 1, next: next) : nil
    }

    /// Judges the line with invalid UTF-8 replaced by U+FFFD; nil if the result is not an object either.
    /// Records are repaired by default, events only if the settings say so: an event's bytes must not change
    /// unasked.
    private mutating func readRepaired(
        _ line: UnsafeBufferPointer<UInt8>, _ state: AppState, _ next: Int
    ) -> Verdict? {
        guard state.settings.repairsUTF8 ?? true else { return nil }
        repaired.removeAll(keepingCapacity: 1 << 16)
        var valid = String(decoding: line, as: UTF8.self)
        if line.last != .lineFeed {
            valid += "\n"
        }
        valid.withUTF8 { repaired.append(UnsafeRawBufferPointer($0)) }
        let before = base
        if line.first == .openBrace, isHiddenValue() { return withhold(next) }
        if let verdict = judgeRepaired(next), isRecord || state.settings.repairsUTF8 == true {
            counts[.repairedUTF8] += 1
            return verdict
        }
        base = before
        return nil
    }

    /// Copies a text to `repaired`, with a line feed after it, and scans it there; true if it is an object.
    /// The scanner needs the line feed, which the text in the block does not have.
    private mutating func scanRepaired(_ content: UnsafeBufferPointer<UInt8>) -> Bool {
        repaired.removeAll(keepingCapacity: 1 << 16)
        repaired.append(UnsafeRawBufferPointer(content))
        withUnsafeBytes(of: UInt8.lineFeed) { repaired.append($0) }
        return isRepairedObject()
    }

    /// Whether `repaired` holds exactly one object on one line.
    private mutating func isRepairedObject() -> Bool {
        base = UnsafePointer(repaired.start)
        let (end, isObject) = scanner.scanLine(base, from: 0, to: repaired.count)
        return isObject && end == repaired.count
    }

    /// Judges what `repaired` holds; nil if it is not an object.
    mutating func judgeRepaired(_ next: Int) -> Verdict? { isRepairedObject() ? judge(next) : nil }
}
