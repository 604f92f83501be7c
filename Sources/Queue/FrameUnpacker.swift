internal import EventLoops
internal import Frames
internal import Glibc
internal import Model

/// Unpacks stored frames into lines.
///
/// Only the calls that must look at single events use it: splitting, expiry, dead letters, erasing,
/// listing. The hot path sends frames as they are stored.
final class FrameUnpacker {
    /// Most chunks whose lines are remembered, and the most bytes of such a chunk.
    private static let mostRecent = 4
    private static let largestRecent = 256 << 10

    /// Kept because a decompression context is expensive to create.
    private let decompressor = FrameDecompressor()
    /// The chunks unpacked last, newest first. A destination that refuses events has the same chunk unpacked
    /// once for each refused event.
    private var recent: [(frame: [UInt8], lines: Lines)] = []

    /// The lines of a chunk, each with its line feed; nil if the frame does not hold the events and
    /// bytes that the row states.
    func lines(of chunk: StoredChunk) -> Lines? {
        if let known = recent.firstIndex(where: { $0.frame.hasBytes(of: chunk.frame) }) {
            let lines = recent[known].lines
            return lines.bytes.count == chunk.bytes && lines.count == chunk.events ? lines : nil
        }
        let lines = lines(chunk.frame, chunk.compression, bytes: chunk.bytes, events: chunk.events)
        if let lines, chunk.bytes <= FrameUnpacker.largestRecent {
            recent = [(chunk.frame, lines)] + recent.prefix(FrameUnpacker.mostRecent - 1)
        }
        return lines
    }

    /// The lines of a frame whose size and event count are known; nil if the content differs from
    /// these.
    func lines(_ frame: [UInt8], _ compression: Compression, bytes: Int, events: Int) -> Lines? {
        guard let lines = lines(frame, compression, atMost: bytes) else { return nil }
        return lines.bytes.count == bytes && lines.count == events ? lines : nil
    }

    /// The lines of a frame of unknown size; nil if it is damaged or unpacks to more than `limit`
    /// bytes.
    func lines(_ frame: [UInt8], _ compression: Compression, atMost limit: Int) -> Lines? {
        do {
            return Lines(
                compression == .none ? frame : try decompressor.decompress(frame, compression, limit: limit))
        } catch {
            // The caller treats the chunk as damaged, and counts it as lost.
            return nil
        }
    }
}

extension [UInt8] {
    /// Whether another array has the same bytes: as `==`, at the speed of `memcmp`.
    fileprivate func hasBytes(of other: [UInt8]) -> Bool {
        guard count == other.count else { return false }
        return withUnsafeBytes { mine in
            other.withUnsafeBytes { theirs in
                guard let left = mine.baseAddress, let right = theirs.baseAddress else { return true }
                return memcmp(left, right, mine.count) == 0
            }
        }
    }
}

/// Uncompressed lines with an index of where each one ends, so that a run of lines can be sliced
/// without another scan.
struct Lines {
    /// All lines, in order, line feeds included.
    let bytes: [UInt8]
    /// Offset behind each line's line feed; the last line may lack one.
    private let ends: [Int]

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
        var ends: [Int] = []
        for (index, byte) in bytes.enumerated() where byte == UInt8(ascii: "\n") { ends.append(index + 1) }
        if let last = bytes.indices.last, bytes[last] != UInt8(ascii: "\n") {
            ends.append(bytes.count)
        }
        self.ends = ends
    }

    var count: Int { ends.count }

    /// Size in bytes of a run of lines, line feeds included.
    func size(_ range: Range<Int>) -> Int {
        guard !range.isEmpty else { return 0 }
        return ends[range.upperBound - 1] - start(range.lowerBound)
    }

    /// The bytes of a run of lines, line feeds included.
    func slice(_ range: Range<Int>) -> ArraySlice<UInt8> {
        guard !range.isEmpty else { return [] }
        return bytes[start(range.lowerBound)..<ends[range.upperBound - 1]]
    }

    /// Offset of a line's first byte.
    private func start(_ line: Int) -> Int { line == 0 ? 0 : ends[line - 1] }
}
