internal import EventLoops
internal import Glibc
internal import Model
internal import TextFormats

/// Lines that a container's runtime has wrapped: their pieces are joined, and what the program wrote is read
/// as if it stood alone.
extension LineSource {
    /// Reads what a container's runtime has wrapped, as one record. First the pieces of the line are joined
    /// across lines of the other stream; if that does not give an accepted record, only neighbouring lines
    /// are joined.
    @inline(never)
    mutating func readWrapped(
        _ format: LineWrapper, _ block: UnsafePointer<UInt8>, from start: Int, to end: Int,
        _ counts: inout EventCounts
    ) -> Reading {
        if wrapping.passesOver(start) { return .blank(next: LineSource.endOfLine(block, start, end)) }
        note(outerTime: nil)
        if withholding.texts == .none, wrapping.mostAhead > 0 {
            let record = record(format, block, from: start, to: end, acrossStreams: true)
            if let stream = record.stream, !record.ahead.isEmpty, !record.isPiece,
                case .object(let next) = content(of: record, stream, &counts)
            {
                return .joined(next: next, ahead: record.ahead)
            }
        }
        return readNeighbours(format, block, from: start, to: end, &counts)
    }

    /// Reads the wrapped line that begins at `start`, joined with the neighbouring lines that continue it.
    ///
    /// The quarantine keeps a run of neighbouring bytes of the file, which pieces with other lines between
    /// them are not. So a bad line is quarantined piece by piece.
    mutating func readNeighbours(
        _ format: LineWrapper, _ block: UnsafePointer<UInt8>, from start: Int, to end: Int,
        _ counts: inout EventCounts
    ) -> Reading {
        let record = record(format, block, from: start, to: end, acrossStreams: false)
        guard let stream = record.stream else {
            // The line is not wrapped: read it as it is.
            let (next, isObject) = scanner.scanLine(block, from: start, to: end)
            return isObject ? .object(next: next) : repair(block, start, next, next, &counts)
        }
        return content(of: record, stream, &counts)
    }

    /// The line of a program that begins at `start`, as far as the block has it.
    ///
    /// - Parameter acrossStreams: whether lines of the other stream may stand between its pieces.
    private mutating func record(
        _ format: LineWrapper, _ block: UnsafePointer<UInt8>, from start: Int, to end: Int,
        acrossStreams: Bool
    ) -> WrappedRecord {
        var record = WrappedRecord(at: start)
        var position = start
        var between = 0
        while position < end, record.isPiece {
            if acrossStreams, wrapping.holds(position) {
                position = LineSource.endOfLine(block, position, end)
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

    /// Reads a program's line: text by the app's format, an object inside a string, JSON, repaired JSON, or
    /// plain text; the first that fits.
    private mutating func content(
        of record: WrappedRecord, _ stream: [UInt8], _ counts: inout EventCounts
    ) -> Reading {
        let next = record.next
        var content = record.content
        note(outerTime: record.time.withUnsafeBufferPointer { times.parse($0) })
        if content.last == 0x0D {
            content.removeLast()
        }
        let isPiece = withholding.notePiece(of: stream, goesOn: record.isPiece)
        return content.withUnsafeBufferPointer { content in
            let content = UnsafeBufferPointer(rebasing: content.dropFirst(LineSource.marks(before: content)))
            if isPiece, withholding.texts != .none {
                return readMessage(content, next, stream: stream, isPiece: true, &counts)
            }
            if let textFormat, textFormat.parses, textFormat.jsonMember == nil {
                if let reading = parse(content, by: textFormat, next, &counts) { return reading }
                if app?.settings.quarantinesUnmatched == true { return unmatched(next, counts) }
            }
            if let member = textFormat?.jsonMember, scanCopy(of: content) {
                if takeInner(member, &counts) { return .object(next: next) }
                if withholding.texts == .members { return withheld(next) }
            }
            if scanCopy(of: content) { return .object(next: next) }
            guard let app, app.settings.text != .quarantine else { return unreadable(0, next) }
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
