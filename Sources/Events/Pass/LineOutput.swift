internal import EventLoops
internal import Model

/// The line that is being written: its draft, what all lines of the source get, and the maker of ids.
///
/// The judges and the features write to its parts; it joins them.
struct LineOutput: ~Copyable {
    /// The changes with which the line that was read last will be written.
    var draft = LineDraft()
    /// Members that are added to each line of the source.
    var tails = AddedTails()
    /// Maker of ids, of events and of sessions.
    var ids = EventIDs()

    /// Appends the line that was read last, with its line feed.
    @inline(__always)
    mutating func write(_ scanner: inout JSONScanner, into buffer: inout LineBuffer) {
        let length = scanner.close - scanner.open
        buffer.reserve(
            length + draft.added + tails.ofEvents.count + tails.ofRecords.count + Tail.idLength + 64)
        let line = draft.write(scanner, to: buffer.cursor)
        let out = tails.write(draft.wanted, isRecord: draft.isRecord, to: line)
        buffer.wrote(to: writeEnd(out, draft.wanted, draft.otherIDName))
    }

    /// Writes the id, if one is wanted, the closing brace and the line feed.
    @inline(__always)
    private mutating func writeEnd(
        _ start: UnsafeMutablePointer<UInt8>, _ wanted: Additions, _ otherIDName: Tail.OtherIDName?
    ) -> UnsafeMutablePointer<UInt8> {
        var out = start
        if wanted.contains(.id) {
            out = if let otherIDName { Tail.write(otherIDName, to: out) } else { Tail.writeIDName(to: out) }
            ids.write(to: out)
            out += EventIDs.length
            out[0] = .quote
            out += 1
        }
        out[0] = .closeBrace
        out[1] = .lineFeed
        return out + 2
    }

    /// Appends the `start_session` event of the session whose id the tails hold.
    mutating func writeSessionStart(at time: Timestamp, into buffer: inout LineBuffer) {
        let text =
            "{\"type\":\"start_session\",\"name\":\"start_session\",\"timestamp\":\"\(time)\""
        var line = Array(text.utf8)
        line.withUnsafeMutableBytes { buffer.append(UnsafeRawBufferPointer($0)) }
        buffer.reserve(tails.ofEvents.count + Tail.idLength + 16)
        let out = tails.write(.usual, isRecord: false, to: buffer.cursor)
        buffer.wrote(to: writeEnd(out, .usual, nil))
    }
}
