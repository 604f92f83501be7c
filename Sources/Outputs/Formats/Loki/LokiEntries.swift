internal import EventLoops
internal import Model

/// The entries of a request while they are written, in the order of the events, behind the labels of the
/// first event's stream: most batches have one stream, and then that is the request.
struct LokiEntries: ~Copyable {
    /// Entries that follow each other in one stream, as a range of bytes. Each entry ends with a comma.
    private struct Run {
        let stream: Int
        var bytes: Range<Int>
    }

    private let batch: BatchHeader
    private let hasMetadata: Bool
    private var metadata: LokiMetadata
    private var out: BodyBuffer
    private var runs: [Run] = []

    init(_ batch: BatchHeader, _ metadata: StructuredMetadata, to out: consuming BodyBuffer) {
        self.batch = batch
        hasMetadata = metadata != .none
        self.metadata = LokiMetadata(metadata.members)
        self.out = out
    }

    /// Adds an entry: time in nanoseconds, line, structured metadata.
    ///
    /// - Parameter labels: the labels of the stream as an object, asked for with the first entry.
    mutating func add(
        _ event: borrowing EventScan, at index: Int, to stream: Int, labels: () -> [UInt8]
    ) {
        if runs.isEmpty {
            begin(labels())
        }
        let start = out.count
        out.append("[\"" as StaticString)
        out.number((event.time ?? batch.acceptedAt).nanoseconds)
        out.append("\"," as StaticString)
        out.quoted(event.line)
        if hasMetadata {
            out.byte(UInt8(ascii: ","))
            metadata.write(event, in: batch.id, at: index, to: &out)
        }
        out.append("]," as StaticString)
        if let last = runs.indices.last, runs[last].stream == stream {
            runs[last].bytes = runs[last].bytes.lowerBound..<out.count
        } else {
            runs.append(Run(stream: stream, bytes: start..<out.count))
        }
    }

    /// Writes what stands before the entries of the first stream.
    private mutating func begin(_ labels: [UInt8]) {
        out.append(#"{"streams":[{"stream":"# as StaticString)
        labels.withUnsafeBufferPointer { out.append($0) }
        out.append(#","values":["# as StaticString)
    }

    /// The request: the entries of each stream, behind the stream's labels.
    ///
    /// - Parameter labels: the labels of all streams; the first entry's stream is the first.
    consuming func request(_ labels: [[UInt8]]) -> BodyBuffer {
        guard labels.count == 1 else { return divided(labels) }
        out.cut(to: out.count - 1)
        out.append("]}]}" as StaticString)
        return out
    }

    /// The request of several streams, or none.
    private func divided(_ labels: [[UInt8]]) -> BodyBuffer {
        var body = BodyBuffer(capacity: out.count + labels.reduce(64) { $0 + $1.count + 32 })
        body.append(#"{"streams":["# as StaticString)
        var ofStream = [[Range<Int>]](repeating: [], count: labels.count)
        for run in runs { ofStream[run.stream].append(run.bytes) }
        for (labels, runs) in zip(labels, ofStream) {
            body.append(#"{"stream":"# as StaticString)
            labels.withUnsafeBufferPointer { body.append($0) }
            body.append(#","values":["# as StaticString)
            for run in runs { body.append(UnsafeBufferPointer(rebasing: out.bytes[run])) }
            body.cut(to: body.count - 1)
            body.append("]}," as StaticString)
        }
        if !labels.isEmpty {
            body.cut(to: body.count - 1)
        }
        body.append("]}" as StaticString)
        return body
    }
}
