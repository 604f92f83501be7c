internal import EventLoops
internal import Frames
internal import Glibc
internal import Model

/// The events of a batch for which a template has the same text, to be sent to the place of that name.
struct BatchPart {
    /// The text that the template became for all these events: an object key, a subject or a topic.
    let text: String
    /// Positions of the events in the batch, from 0; empty if the part is the whole batch.
    let events: [Int]
    /// These events alone, under the id of the batch that they belong to.
    let batch: Batch
}

/// Turns stored batches into request bodies: exactly one compressed frame (or gzip member) each.
///
/// A receiver that decompresses only the first frame of a body would lose the events in further frames.
/// Belongs to its output's loop, and keeps the compressors' working memory, so that it is not allocated for
/// each body.
final class BodyBuilder {
    /// The format of the bodies.
    private let encoder: any BatchEncoder
    /// The compression that the destination wants; `.none` also means that encoded bytes are returned as
    /// they are.
    private let compression: Compression
    private let compressor: FrameCompressor
    private let decompressor = FrameDecompressor()
    /// Most bytes of lines that are remembered.
    private static let largestCut = 256 << 10
    /// The frame of the last batch that was a part of a frame. Where a destination refuses events, many such
    /// batches of one frame follow each other.
    private var lastCut: (frame: [UInt8], lines: [UInt8])?

    /// - Throws: `OutputError` with code `library` if there is no memory.
    init(_ encoder: any BatchEncoder, _ compression: Compression) throws(OutputError) {
        self.encoder = encoder
        self.compression = compression
        do {
            compressor = try FrameCompressor(compression)
        } catch {
            throw OutputError(.library, error.message)
        }
    }

    /// The body of a batch, as the bytes that go over the wire.
    ///
    /// A batch that consists of one whole stored frame in the wanted compression needs no work if the
    /// format sends lines as they are stored: the frame is the body. This is the fast path of NDJSON.
    /// - Throws: `OutputError` with code `badBatch` if a frame is damaged or does not hold what the batch
    ///   says.
    func body(of batch: Batch) throws(OutputError) -> [UInt8] {
        if encoder.traits.sendsLinesAsStored, batch.parts.count == 1, let part = batch.parts.first,
            part.isWhole,
            part.compression == compression
        {
            return part.frame
        }
        let encoded = try encoder.encode(try lines(of: batch), of: batch.header)
        guard compression != .none else { return encoded }
        do { return try compressor.compress(encoded) } catch { throw OutputError(.badBatch, error.message) }
    }

    /// The uncompressed lines of a batch in their order, each with its line feed.
    ///
    /// A frame may hold more events than the batch does, for instance after a split; only the batch's own
    /// lines are taken out of the frame. Decompression is limited to the size that the queue noted, so a
    /// damaged frame cannot fill the memory.
    /// - Throws: `OutputError` with code `badBatch` if a frame is damaged or lacks lines.
    func lines(of batch: Batch) throws(OutputError) -> [UInt8] {
        var lines: [UInt8] = []
        if batch.parts.count > 1 {
            lines.reserveCapacity(batch.header.bytes)
        }
        for part in batch.parts {
            let frame = try unpacked(part, of: batch.header)
            guard let bytes = part.isWhole ? 0..<frame.count : BodyBuilder.bytes(of: part.events, in: frame),
                frame.isEmpty || frame.last == UInt8(ascii: "\n")
            else {
                throw OutputError(
                    .badBatch, "a stored frame of batch \(batch.header.id) lacks events that it should hold")
            }
            // A batch of one whole frame is not copied.
            guard batch.parts.count > 1 || bytes.count < frame.count else { return frame }
            lines.append(contentsOf: frame[bytes])
        }
        return lines
    }

    /// The lines of a part's whole frame.
    private func unpacked(_ part: Batch.Part, of header: BatchHeader) throws(OutputError) -> [UInt8] {
        guard part.compression != .none else { return part.frame }
        if !part.isWhole, let lastCut, lastCut.frame == part.frame, lastCut.lines.count <= part.bytes {
            return lastCut.lines
        }
        let lines = try relaying(try decompressor.decompress(part.frame, part.compression, limit: part.bytes))
        {
            (error: FrameError) in
            OutputError(.badBatch, "a stored frame of batch \(header.id): \(error.message)")
        }
        lastCut = part.isWhole || lines.count > BodyBuilder.largestCut ? nil : (part.frame, lines)
        return lines
    }

    /// Divides a batch by the text that a template gives each event; the whole batch if the template has no
    /// placeholders of events, in which case no event is read.
    func parts(of batch: Batch, by templates: EventTemplates) throws(OutputError) -> [BatchPart] {
        guard templates.areOfEvents else {
            let text = try templates.fill(for: batch.header) { [] }[0][0]
            return [BatchPart(text: text, events: [], batch: batch)]
        }
        let lines = try lines(of: batch)
        let events = try EventView.all(lines)
        let groups = try templates.fill(for: batch.header) { events }.groups
        return zip(groups, try pieces(groups.map(\.events), of: batch, lines)).map {
            BatchPart(text: $0.text, events: $0.events, batch: $1)
        }
    }

    /// Makes a batch of each group of events, under the id of the original batch.
    ///
    /// The id stays because a receiver recognises a repeat by it; the caller adds a suffix that distinguishes
    /// the pieces.
    /// - Parameters:
    ///   - groups: positions of events in the batch, from 0; in any order, and in no group, one or several.
    ///   - lines: the lines of the batch, from `lines(of:)`.
    /// - Throws: `OutputError` with code `badBatch` if the lines are not as many as the header says.
    func pieces(_ groups: [[Int]], of batch: Batch, _ lines: [UInt8]) throws(OutputError) -> [Batch] {
        let all = lines.split(separator: UInt8(ascii: "\n"))
        guard all.count == batch.header.events, [0, all.count].contains(batch.header.apps.count),
            groups.joined().allSatisfy({ all.indices.contains($0) })
        else {
            throw OutputError(.badBatch, "batch \(batch.header.id) does not hold the events that it should")
        }
        return groups.map { events in
            let kept = events.flatMap { all[$0] + [UInt8(ascii: "\n")] }
            var header = BatchHeader(
                id: batch.header.id, destination: batch.header.destination, priority: batch.header.priority,
                events: events.count, bytes: kept.count, acceptedAt: batch.header.acceptedAt,
                firstEventTime: batch.header.firstEventTime)
            if !batch.header.apps.isEmpty {
                header.apps = events.map { batch.header.apps[$0] }
            }
            let part = Batch.Part(
                compression: .none, frame: kept, bytes: kept.count, eventsInFrame: events.count,
                events: 0..<events.count)
            return Batch(header: header, parts: [part], mayHaveBeenSent: batch.mayHaveBeenSent)
        }
    }

    /// Byte range of the lines with these numbers; nil if the frame has fewer lines.
    static func bytes(of events: Range<Int>, in frame: [UInt8]) -> Range<Int>? {
        frame.withUnsafeBytes { raw in
            guard let base = raw.baseAddress else { return events.isEmpty ? 0..<0 : nil }
            var line = 0
            var offset = 0
            var start = 0
            while line < events.upperBound {
                if line == events.lowerBound {
                    start = offset
                }
                guard let feed = memchr(base + offset, 0x0A, raw.count - offset) else { return nil }
                offset = UnsafeRawPointer(feed) - base + 1
                line += 1
            }
            return (events.isEmpty ? offset : start)..<offset
        }
    }
}
