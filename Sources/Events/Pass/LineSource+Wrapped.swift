internal import EventLoops
internal import Glibc
internal import Model
internal import TextFormats

/// Lines that a container's runtime has wrapped: their pieces are joined, and what the program wrote is read
/// as if it stood alone.
extension LineSource {
    /// Reads what a container's runtime has wrapped, as one record. First its pieces and lines are joined
    /// across lines of the other stream; if that does not give an accepted record, only neighbouring lines
    /// are joined.
    @inline(never)
    mutating func readWrapped(
        _ format: LineWrapper, _ block: UnsafePointer<UInt8>, from start: Int, to end: Int,
        _ counts: inout EventCounts
    ) -> Reading {
        if wrapping.passesOver(start) { return .blank(next: LineSource.endOfLine(block, start, end)) }
        note(outerTime: nil)
        if withholding.texts == .none, wrapping.joinsAcross(start) {
            let record = record(format, block, from: start, to: end, acrossStreams: true)
            if let stream = record.stream {
                // All its lines are neighbours, and there are no more of them.
                if record.ahead.isEmpty, !record.isCutShort { return content(of: record, stream, &counts) }
                if !record.ahead.isEmpty, !record.isPiece {
                    let before = counts
                    if case .object(let next) = content(of: record, stream, &counts) {
                        return .joined(next: next, ahead: record.ahead, before: before)
                    }
                    return readRefused(
                        format, block, from: start, to: end, ahead: record.ahead, countingFrom: before,
                        &counts)
                }
            }
        }
        return readNeighbours(format, block, from: start, to: end, &counts)
    }

    /// Reads again the first line of a record that was joined across lines of the other stream and not
    /// accepted.
    ///
    /// The quarantine keeps a run of neighbouring bytes of the file, which pieces with other lines between
    /// them are not. So a bad record is quarantined piece by piece.
    ///
    /// - Parameters:
    ///   - ahead: offsets of the record's other lines that do not follow the first one.
    ///   - before: the counts before the record was read.
    mutating func readRefused(
        _ format: LineWrapper, _ block: UnsafePointer<UInt8>, from start: Int, to end: Int, ahead: [Int],
        countingFrom before: EventCounts, _ counts: inout EventCounts
    ) -> Reading {
        counts = before
        wrapping.noteRefused(ahead)
        return readNeighbours(format, block, from: start, to: end, &counts)
    }

    /// Reads the wrapped line that begins at `start`, joined with the neighbouring lines that continue it.
    private mutating func readNeighbours(
        _ format: LineWrapper, _ block: UnsafePointer<UInt8>, from start: Int, to end: Int,
        _ counts: inout EventCounts
    ) -> Reading {
        let record = record(format, block, from: start, to: end, acrossStreams: false)
        guard let stream = record.stream else {
            // The line is not wrapped: read it as it is.
            let (next, isObject) = scanner.scanLine(block, from: start, to: end)
            return isObject ? object(next) : repair(block, start, next, next, &counts)
        }
        return content(of: record, stream, &counts)
    }

    /// The record of a program that begins at `start`, as far as the block has it: a line, with those of its
    /// stream that the app's format joins to it.
    ///
    /// - Parameter acrossStreams: whether lines of the other stream may stand between its pieces and lines.
    private mutating func record(
        _ format: LineWrapper, _ block: UnsafePointer<UInt8>, from start: Int, to end: Int,
        acrossStreams: Bool
    ) -> WrappedRecord {
        var record = WrappedRecord(at: start)
        var position = start
        addLine(to: &record, format, block, from: start, &position, to: end, acrossStreams)
        guard let textFormat, textFormat.joinsLines, record.stream != nil, !record.isPiece else {
            return record
        }
        while position < end, record.lines < TextFormat.mostRecordLines {
            let length = record.length
            record.beginLine()
            addLine(to: &record, format, block, from: start, &position, to: end, acrossStreams)
            guard record.isContinued(after: length, by: textFormat) else {
                record.cut(to: length)
                break
            }
        }
        return record
    }

    /// Adds the pieces of a line to the record that begins at `start`, and moves `position` behind the last
    /// one that the block has.
    private mutating func addLine(
        to record: inout WrappedRecord, _ format: LineWrapper, _ block: UnsafePointer<UInt8>, from start: Int,
        _ position: inout Int, to end: Int, _ acrossStreams: Bool
    ) {
        var between = 0
        while position < end, record.isPiece {
            // A line that was read before its turn is of the other stream.
            let isHeld = acrossStreams && wrapping.holds(position)
            let line = isHeld ? nil : wrappedLine(format, block, from: position, to: end)
            guard isHeld || line != nil else { break }
            if let line, record.stream == nil || record.stream == line.stream {
                guard record.stream == nil || !acrossStreams || wrapping.mayHold(upTo: line.next, of: start)
                else {
                    record.isCutShort = true
                    break
                }
                record.add(line, at: position)
                between = 0
            } else {
                between += 1
                guard acrossStreams, between <= LineWrapper.mostLinesBetweenPieces else { break }
            }
            position = line?.next ?? LineSource.endOfLine(block, position, end)
        }
    }

    /// Reads a program's record: text by the app's format, an object inside a string, JSON, repaired JSON, or
    /// plain text; the first that fits.
    private mutating func content(
        of record: WrappedRecord, _ stream: [UInt8], _ counts: inout EventCounts
    ) -> Reading {
        let next = record.next
        var content = record.content
        note(outerTime: record.time.withUnsafeBufferPointer { times.parse($0) })
        while record.lines > 1, content.last == .lineFeed || content.last == 0x0D { content.removeLast() }
        if content.last == 0x0D {
            content.removeLast()
        }
        return content.withUnsafeBufferPointer { content in
            let content = UnsafeBufferPointer(rebasing: content.dropFirst(LineSource.marks(before: content)))
            let isPiece = withholding.notePiece(content, of: stream, goesOn: record.isPiece)
            if isPiece, withholding.texts != .none {
                if Withholding.isBlank(content) { return .blank(next: next) }
                return readMessage(content, next, stream: stream, isPiece: true, &counts)
            }
            // An empty line behind a line of JSON is a record without content, as in a file.
            if textFormat?.joinsLines == true, content.isEmpty { return .blank(next: next) }
            if let textFormat, textFormat.parses, textFormat.jsonMember == nil {
                // Programs mix lines of JSON with lines of text.
                if content.first == .openBrace, scanCopy(of: content) { return .object(next: next) }
                if let reading = parse(content, by: textFormat, next, stream: stream, &counts) {
                    return reading
                }
                if app?.settings.quarantinesUnmatched == true { return unmatched(next, counts) }
            }
            if let member = textFormat?.jsonMember, scanCopy(of: content) {
                if takeInner(member, stream: stream, &counts) { return .object(next: next) }
                if withholding.texts == .members { return withheld(next) }
            }
            if scanCopy(of: content) { return .object(next: next) }
            guard let app, app.settings.text != .quarantine else {
                // The next line of the stream may be the value of a member that this one ends with.
                withholding.noteEnd(of: content, stream: stream)
                return unreadable(0, next)
            }
            if scanner.failureCode == .notUTF8, let reading = readRepaired(content, app, next, &counts) {
                return reading
            }
            return readMessage(content, next, stream: stream, &counts)
        }
    }

    /// One wrapped line; nil if the line is not of the runtime's format.
    private mutating func wrappedLine(
        _ format: LineWrapper, _ block: UnsafePointer<UInt8>, from start: Int, to end: Int
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
}
