internal import EventLoops
internal import Events
internal import Frames
package import Model
internal import Spool

/// Events of one priority for one set of destinations, on their way into the queue; in memory only.
///
/// It belongs to the reader's loop. Exclusive access to its fields is not checked at run time: no code that
/// writes a line can reach the chunk, and the checks cost four a line.
final class OpenChunk {
    /// The lines so far, each with its line feed.
    @exclusivity(unchecked) var lines = LineBuffer(capacity: 64)
    private(set) var events = 0
    private let priority: Priority
    /// Most bytes of memory that the chunk keeps while it is empty.
    private let mostKept: Int
    /// Earliest and latest time of its events. They tell the queue whether all events of a chunk have
    /// expired, some, or none.
    private var firstTime = Timestamp(nanoseconds: .max)
    private var lastTime = Timestamp(nanoseconds: .min)
    /// Time at which its first event was accepted.
    private var acceptedAt = Timestamp(nanoseconds: 0)
    /// Files that the lines come from, with the lines' offsets.
    @exclusivity(unchecked) private var origins: [EventOrigin] = []
    /// File of the lines to come.
    private var source: (app: String, path: String) = ("", "")
    /// Whether no line of that file is in the chunk yet.
    private var isNewSource = true
    /// Offset in `lines` of that file's first line.
    private var sourceBegin = 0

    /// - Parameter isOfOneApp: whether there may be a chunk for each of hundreds of apps: then it keeps less
    ///   memory while it is empty.
    init(priority: Priority, isOfOneApp: Bool = false) {
        self.priority = priority
        mostKept = isOfOneApp ? OpenChunk.keptOfOneApp : .max
    }

    var isEmpty: Bool { events == 0 }

    /// Sets the file of the lines that follow; call it before the first of them is written.
    func beginSource(_ file: SpoolSource) {
        guard source.app != file.app || source.path != file.path else { return }
        endSource()
        source = (file.app, file.path)
    }

    /// Ends the run of lines of one file.
    private func endSource() {
        if !isNewSource {
            origins[origins.count - 1].bytes = lines.count - sourceBegin
        }
        sourceBegin = lines.count
        isNewSource = true
    }

    /// Counts the line that was just written to `lines`.
    ///
    /// - Parameter offset: offset of the line in its file.
    @inline(__always)
    func count(eventTime: Timestamp, acceptedAt now: Timestamp, at offset: Int64) {
        if events == 0 {
            acceptedAt = now
        }
        if isNewSource {
            origins.append(EventOrigin(app: source.app, path: source.path))
            isNewSource = false
        }
        origins[origins.count - 1].offsets.append(offset)
        events += 1
        if eventTime < firstTime {
            firstTime = eventTime
        }
        if eventTime > lastTime {
            lastTime = eventTime
        }
    }

    /// Makes a chunk for the queue, and is empty again.
    ///
    /// If it has enough for a batch, it is compressed here, once, and sent as it is stored. A small one is
    /// stored uncompressed: it will be compressed together with its neighbours when their batch is formed.
    func close(for route: Route, isFull: Bool, with compressors: Compressors) throws(FrameError) -> NewChunk {
        assert(events > 0 && lines.bytes.last == UInt8(ascii: "\n"), "a chunk without whole lines is closed")
        let bytes = lines.count
        let isBatch = isFull || events >= route.batchFrom
        let compression = isBatch || bytes >= route.chunks.packedFrom ? route.compression : .none
        let frame = try compressors.compress(lines.bytes, compression)
        var chunk = NewChunk(
            priority: priority, destinations: route.destinations, events: events, bytes: bytes,
            eventTimes: firstTime...lastTime, acceptedAt: acceptedAt, compression: compression, frame: frame,
            isFull: isBatch, otherBatches: route.otherBatches, deadlines: route.deadlines)
        endSource()
        assert(
            origins.reduce(0) { $0 + $1.offsets.count } == events
                && origins.reduce(0) { $0 + $1.bytes } == bytes,
            "an event of a chunk has no file, or two")
        chunk.origins = origins
        origins = []
        sourceBegin = 0
        // Memory of a large chunk is kept as long as large ones come; of one app's chunk until the commit,
        // after which other apps may need the memory. Otherwise each chunk would grow anew from 8 KiB.
        let kept = max(OpenChunk.keptBytes, 4 * bytes)
        lines.removeAll(keepingCapacity: isFull ? kept : min(mostKept, kept))
        events = 0
        firstTime = Timestamp(nanoseconds: .max)
        lastTime = Timestamp(nanoseconds: .min)
        return chunk
    }
}

extension OpenChunk {
    /// Memory in bytes that a chunk keeps at a commit without lines for it.
    private static let keptBytes = 64 << 10
    private static let keptOfOneApp = 8 << 10

    /// Gives memory back after a commit without lines for this chunk: there may be many of them.
    func releaseMemory(keeping bytes: Int = keptBytes) {
        assert(isEmpty, "lines that are not stored are dropped")
        lines.removeAll(keepingCapacity: min(mostKept, bytes))
    }
}

/// Largest size of a chunk.
package struct ChunkLimits: Sendable, Equatable {
    /// Most events: as many as in the largest batch.
    package let events: Int
    /// Most bytes of lines; a single event may be larger.
    package let bytes: Int

    /// Size in bytes from which a chunk that is not a batch is compressed. Compressing a larger one together
    /// with others would save little.
    var packedFrom: Int { min(16_384, bytes / 2) }

    /// The limits that a configuration asks for.
    ///
    /// - Parameter cap: the queue's. A chunk takes at most a thirty-second of it, so that eviction stays
    ///   fine-grained.
    package init(batchEvents: Int, batchBytes: Int, cap: Int) {
        events = max(1, batchEvents)
        bytes = max(1024, min(batchBytes, cap / ChunkLimits.mostInCap))
    }

    /// Number of chunks of the largest size that fit into the cap, even if their lines cannot be compressed.
    package static let mostInCap = 32

    /// Limits of chunks that several destinations share; nil without a destination.
    ///
    /// They are those of the smallest batches, so that a full chunk can be sent as a batch; larger batches
    /// join chunks. But they are at least what is worth a row of its own; smaller batches are cut from
    /// chunks.
    init?(shared batches: [ChunkLimits]) {
        guard let first = batches.first else { return nil }
        let least = batches.reduce(first) { ChunkLimits(min($0.events, $1.events), min($0.bytes, $1.bytes)) }
        let most = batches.reduce(first) { ChunkLimits(max($0.events, $1.events), max($0.bytes, $1.bytes)) }
        self.init(
            max(least.events, min(ChunkLimits.leastShared.events, most.events)),
            max(least.bytes, min(ChunkLimits.leastShared.bytes, most.bytes)))
    }

    /// Least limits of shared chunks: smaller ones would cost more in rows than cutting these costs a
    /// destination with smaller batches.
    private static let leastShared = ChunkLimits(50, 16_384)

    private init(_ events: Int, _ bytes: Int) {
        self.events = events
        self.bytes = bytes
    }
}

/// Destinations of an app's events, and how chunks for them are compressed.
package struct Route: Sendable, Equatable {
    /// Destinations in the order of the configuration; empty for none.
    package let destinations: [DestinationName]
    /// Compression that the destinations accept. If they differ, zstd, which costs a third of gzip.
    package let compression: Compression
    package let chunks: ChunkLimits
    /// Number of events from which a closed chunk is a batch: for one of the destinations they are due at
    /// once.
    package var batchFrom: Int
    /// Destinations whose batches have another size than these chunks: for them no chunk is a batch by
    /// itself.
    package var otherBatches: [DestinationName] = []
    /// Deadlines that name the app; nil for none.
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

/// One compressor of each kind, made when it is first needed. All intakes of a loop share them: a compressor
/// holds 165 KB, and its work ends within one call.
package final class Compressors {
    private var made: [Compression: FrameCompressor] = [:]

    package init() {}

    /// Compresses bytes to one frame.
    func compress(_ bytes: UnsafeRawBufferPointer, _ compression: Compression) throws(FrameError) -> [UInt8] {
        if let known = made[compression] { return try known.compress(bytes) }
        let compressor = try FrameCompressor(compression)
        made[compression] = compressor
        return try compressor.compress(bytes)
    }
}
