internal import EventLoops
internal import Frames
internal import Glibc
internal import Model

struct BatchPart {
    /// The place: what a template became.
    let text: String
    /// Its events' places in the batch; none where it is all of it.
    let events: [Int]
    /// They alone, under the batch's id.
    let batch: Batch
}

/// Makes bodies of batches: one frame or member each, never several.
///
/// Lives on its output's loop; the compressors' working memory is kept between bodies.
final class BodyBuilder {
    private let encoder: any BatchEncoder
    private let compression: Compression
    private let compressor: FrameCompressor
    private let decompressor: FrameDecompressor

    /// - Throws: `OutputError` with code `library` for want of memory.
    init(_ encoder: any BatchEncoder, _ compression: Compression) throws(OutputError) {
        self.encoder = encoder
        self.compression = compression
        do {
            compressor = try FrameCompressor(compression)
            decompressor = try FrameDecompressor()
        } catch {
            throw OutputError(.library, error.message)
        }
    }

    /// The body of a batch, as it goes over the wire.
    ///
    /// A frame that is stored as the destination wants it, and belongs to the batch whole, is the body as it is.
    /// - Throws: `OutputError` with code `badBatch` when a frame is damaged or is not what the batch says.
    func body(of batch: Batch) throws(OutputError) -> [UInt8] {
        if encoder.traits.sendsLinesAsStored, batch.parts.count == 1, let part = batch.parts.first, part.isWhole,
            part.compression == compression
        {
            return part.frame
        }
        let encoded = try encoder.encode(try lines(of: batch), of: batch.header)
        guard compression != .none else { return encoded }
        do { return try compressor.compress(encoded) } catch { throw OutputError(.badBatch, error.message) }
    }

    /// The lines of a batch, in their order, each with its line feed.
    func lines(of batch: Batch) throws(OutputError) -> [UInt8] {
        var lines: [UInt8] = []
        lines.reserveCapacity(batch.header.bytes)
        for part in batch.parts {
            var frame = part.frame
            if part.compression != .none {
                frame = try relaying(try decompressor.decompress(frame, part.compression, limit: part.bytes)) {
                    (error: FrameError) in
                    OutputError(.badBatch, "a stored frame of batch \(batch.header.id): \(error.message)")
                }
            }
            guard let bytes = part.isWhole ? 0..<frame.count : BodyBuilder.bytes(of: part.events, in: frame),
                frame.isEmpty || frame.last == UInt8(ascii: "\n")
            else {
                throw OutputError(
                    .badBatch, "a stored frame of batch \(batch.header.id) lacks events that it should hold")
            }
            lines.append(contentsOf: frame[bytes])
        }
        return lines
    }

    /// A batch in parts by what its events make of a template; all of it where they do not differ.
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

    /// Events of a batch as separate batches, under the same id.
    func pieces(_ groups: [[Int]], of batch: Batch, _ lines: [UInt8]) throws(OutputError) -> [Batch] {
        let all = lines.split(separator: UInt8(ascii: "\n"))
        guard all.count == batch.header.events, groups.joined().allSatisfy({ all.indices.contains($0) }) else {
            throw OutputError(.badBatch, "batch \(batch.header.id) does not hold the events that it should")
        }
        return groups.map { events in
            let kept = events.flatMap { all[$0] + [UInt8(ascii: "\n")] }
            let header = BatchHeader(
                id: batch.header.id, destination: batch.header.destination, priority: batch.header.priority,
                events: events.count, bytes: kept.count, acceptedAt: batch.header.acceptedAt,
                firstEventTime: batch.header.firstEventTime)
            let part = Batch.Part(
                compression: .none, frame: kept, bytes: kept.count, eventsInFrame: events.count,
                events: 0..<events.count)
            return Batch(header: header, parts: [part], mayHaveBeenSent: batch.mayHaveBeenSent)
        }
    }

    /// Where a run of lines is; nil when there are not as many.
    static func bytes(of events: Range<Int>, in frame: [UInt8]) -> Range<Int>? {
        frame.withUnsafeBytes { raw in
            guard let base = raw.baseAddress else { return events.isEmpty ? 0..<0 : nil }
            var line = 0
            var offset = 0
            var start = 0
            while line < events.upperBound {
                if line == events.lowerBound { start = offset }
                guard let feed = memchr(base + offset, 0x0A, raw.count - offset) else { return nil }
                offset = UnsafeRawPointer(feed) - base + 1
                line += 1
            }
            return (events.isEmpty ? offset : start)..<offset
        }
    }
}
