internal import EventLoops
internal import Model

/// The entries of a request while they are written, in the order of the events.
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

    init(_ batch: BatchHeader, _ metadata: StructuredMetadata, capacity: Int) {
        self.batch = batch
        hasMetadata = metadata != .none
        self.metadata = LokiMetadata(metadata.members)
        out = BodyBuffer(capacity: capacity)
    }

    /// Adds an entry: time in nanoseconds, line, structured metadata.
    mutating func add(_ event: borrowing EventScan, at index: Int, to stream: Int) {
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

    /// The request: the entries of each stream, behind the stream's labels.
    func body(_ labels: [[UInt8]]) -> [UInt8] {
        var body: [UInt8] = []
        body.reserveCapacity(out.count + labels.reduce(64) { $0 + $1.count + 32 })
        body += #"{"streams":["#.utf8
        var ofStream = [[Range<Int>]](repeating: [], count: labels.count)
        for run in runs { ofStream[run.stream].append(run.bytes) }
        for (labels, runs) in zip(labels, ofStream) {
            body += #"{"stream":"#.utf8
            body += labels
            body += #","values":["#.utf8
            for run in runs { body += UnsafeBufferPointer(rebasing: out.bytes[run]) }
            body.removeLast()
            body += "]},".utf8
        }
        if !labels.isEmpty {
            body.removeLast()
        }
        body += "]}".utf8
        return body
    }
}
