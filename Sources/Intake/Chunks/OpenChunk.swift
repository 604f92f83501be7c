internal import EventLoops
internal import Events
internal import Frames
package import Model
internal import Spool

/// Events of one priority for one set of destinations that are on their way into the queue, in memory only.
///
/// It belongs to the reader's loop. Nothing that writes a line knows the chunk, so nobody else can reach what is written to:
/// that is not checked at run time, which took four checks an event.
final class OpenChunk {
    /// The lines so far, each with its line feed.
    @exclusivity(unchecked) var lines = LineBuffer(capacity: 4096)
    private(set) var events = 0
    private let priority: Priority
    private var firstTime = Timestamp(nanoseconds: .max)
    private var lastTime = Timestamp(nanoseconds: .min)
    private var acceptedAt = Timestamp(nanoseconds: 0)
    @exclusivity(unchecked) private var origins: [EventOrigin] = []
    private var source: (app: String, path: String) = ("", "")
    private var isNewSource = true
    private var sourceBegin = 0

    init(priority: Priority) { self.priority = priority }

    var isEmpty: Bool { events == 0 }

    /// Says where the lines come from that follow; before the first of them is written.
    func turn(to file: SpoolSource) {
        guard source.app != file.app || source.path != file.path else { return }
        endSource()
        source = (file.app, file.path)
    }

    private func endSource() {
        if !isNewSource { origins[origins.count - 1].bytes = lines.count - sourceBegin }
        sourceBegin = lines.count
        isNewSource = true
    }

    /// Counts the line that was just written to `lines`, which began at `offset` in its file.
    @inline(__always)
    func count(eventTime: Timestamp, acceptedAt now: Timestamp, at offset: Int64) {
        if events == 0 { acceptedAt = now }
        if isNewSource {
            origins.append(EventOrigin(app: source.app, path: source.path))
            isNewSource = false
        }
        origins[origins.count - 1].offsets.append(offset)
        events += 1
        if eventTime < firstTime { firstTime = eventTime }
        if eventTime > lastTime { lastTime = eventTime }
    }

    /// Makes a chunk of what it holds, and is empty again.
    ///
    /// Enough for a separate batch is packed now, once: it is sent as it is stored. Less is stored as it is when it is
    /// small, because it will be packed with its neighbours when their batch is formed.
    func close(for route: Route, isFull: Bool, with compressors: inout Compressors) throws(FrameError) -> NewChunk {
        let bytes = lines.count
        let isBatch = isFull || events >= route.batchFrom
        let compression = isBatch || bytes >= route.chunks.packedFrom ? route.compression : .none
        let frame = try compressors.compress(lines.bytes, compression)
        var chunk = NewChunk(
            priority: priority, destinations: route.destinations, events: events, bytes: bytes,
            eventTimes: firstTime...lastTime, acceptedAt: acceptedAt, compression: compression, frame: frame,
            isFull: isBatch, otherBatches: route.otherBatches, deadlines: route.deadlines)
        endSource()
        chunk.origins = origins
        origins = []
        sourceBegin = 0
        // Memory for a large chunk is kept while large ones come.
        lines.removeAll(keepingCapacity: max(OpenChunk.keptBytes, 4 * bytes))
        events = 0
        firstTime = Timestamp(nanoseconds: .max)
        lastTime = Timestamp(nanoseconds: .min)
        return chunk
    }
}

extension OpenChunk {
    /// Memory that any chunk may keep.
    private static let keptBytes = 64 << 10

    /// Nothing came since the last commit: there may be many such chunks.
    func rest() { lines.removeAll(keepingCapacity: OpenChunk.keptBytes) }
}

package struct ChunkLimits: Sendable, Equatable {
    /// At most so many events: as many as in the largest batch.
    package let events: Int
    /// At most so many bytes of lines, one event excepted.
    package let bytes: Int

    /// A chunk that is no batch by itself is packed if it has so many bytes: joining it with others would save little then.
    var packedFrom: Int { min(16_384, bytes / 2) }

    /// The limits that a configuration asks for.
    ///
    /// - Parameter cap: the queue's: a chunk takes at most a thirty-second of it, so that eviction stays fine-grained.
    package init(batchEvents: Int, batchBytes: Int, cap: Int) {
        events = max(1, batchEvents)
        bytes = max(1024, min(batchBytes, cap / ChunkLimits.mostInCap))
    }

    /// So many chunks of the largest size fit in the cap, even if their lines cannot be packed.
    package static let mostInCap = 32

    /// The limits of chunks that several destinations share; nil without one.
    ///
    /// Those of the smallest batches, so that a full chunk is a batch where it can be: larger batches are joined of chunks.
    /// But no less than the least that is worth its own row: smaller batches are cut from chunks.
    init?(shared batches: [ChunkLimits]) {
        guard let first = batches.first else { return nil }
        let least = batches.reduce(first) { ChunkLimits(min($0.events, $1.events), min($0.bytes, $1.bytes)) }
        let most = batches.reduce(first) { ChunkLimits(max($0.events, $1.events), max($0.bytes, $1.bytes)) }
        self.init(
            max(least.events, min(ChunkLimits.leastShared.events, most.events)),
            max(least.bytes, min(ChunkLimits.leastShared.bytes, most.bytes)))
    }

    /// Smaller chunks would cost more in rows than cutting these costs a destination with smaller batches.
    private static let leastShared = ChunkLimits(50, 16_384)

    private init(_ events: Int, _ bytes: Int) {
        self.events = events
        self.bytes = bytes
    }
}

/// The destinations of an app's events, and how chunks for them are compressed.
package struct Route: Sendable, Equatable {
    /// In the order of the configuration; empty: nobody.
    package let destinations: [DestinationName]
    /// As they take it; zstd where they differ, because it costs a third.
    package let compression: Compression
    package let chunks: ChunkLimits
    /// So many events are a batch when a chunk of them is closed: for one of these destinations they are due at once.
    package var batchFrom: Int
    /// Those whose batches have another size than these chunks: for them none is a batch by itself.
    package var otherBatches: [DestinationName] = []
    /// The deadlines that concern the app because they name it; nil for none.
    package var deadlines: DeadlineNames?

    package init(
        destinations: [DestinationName], compression: Compression, chunks: ChunkLimits, batchFrom: Int? = nil,
        otherBatches: [DestinationName] = [], deadlines: DeadlineNames? = nil
    ) {
        self.destinations = destinations
        self.compression = compression
        self.chunks = chunks
        self.batchFrom = batchFrom ?? chunks.events
        self.otherBatches = otherBatches
        self.deadlines = deadlines
    }
}

/// One compressor of each kind, made when it is first needed.
struct Compressors {
    private var made: [Compression: FrameCompressor] = [:]

    mutating func compress(_ bytes: UnsafeRawBufferPointer, _ compression: Compression) throws(FrameError) -> [UInt8] {
        if let known = made[compression] { return try known.compress(bytes) }
        let compressor = try FrameCompressor(compression)
        made[compression] = compressor
        return try compressor.compress(bytes)
    }
}
