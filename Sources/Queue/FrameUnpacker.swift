internal import EventLoops
internal import Frames
internal import Model

/// Unpacks stored frames into lines, for the few calls that must look inside: splitting, dead letters, showing.
final class FrameUnpacker {
    private let decompressor: FrameDecompressor

    init() throws(QueueError) {
        decompressor = try relaying(try FrameDecompressor()) { (error: FrameError) in
            QueueError(.io, error.message)
        }
    }

    /// A chunk's lines, each with its line feed; nil if its frame does not hold what its row says.
    func lines(of chunk: StoredChunk) -> Lines? {
        lines(chunk.frame, chunk.compression, bytes: chunk.bytes, events: chunk.events)
    }

    /// The lines of a frame of known figures; nil if it does not hold them.
    func lines(_ frame: [UInt8], _ compression: Compression, bytes: Int, events: Int) -> Lines? {
        guard let lines = lines(frame, compression, atMost: bytes) else { return nil }
        return lines.bytes.count == bytes && lines.count == events ? lines : nil
    }

    /// The lines of a frame of unknown figures; nil if it cannot be unpacked within a limit.
    func lines(_ frame: [UInt8], _ compression: Compression, atMost limit: Int) -> Lines? {
        do {
            return Lines(compression == .none ? frame : try decompressor.decompress(frame, compression, limit: limit))
        } catch {
            // The caller treats the chunk as damaged, and counts it as lost.
            return nil
        }
    }
}

/// Uncompressed lines and where each begins.
struct Lines {
    let bytes: [UInt8]
    private let ends: [Int]

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
        var ends: [Int] = []
        for (index, byte) in bytes.enumerated() where byte == UInt8(ascii: "\n") { ends.append(index + 1) }
        if let last = bytes.indices.last, bytes[last] != UInt8(ascii: "\n") { ends.append(bytes.count) }
        self.ends = ends
    }

    var count: Int { ends.count }

    /// The bytes of a run of lines, line feeds included.
    func size(_ range: Range<Int>) -> Int {
        guard !range.isEmpty else { return 0 }
        return ends[range.upperBound - 1] - start(range.lowerBound)
    }

    /// A run of lines, line feeds included.
    func slice(_ range: Range<Int>) -> ArraySlice<UInt8> {
        guard !range.isEmpty else { return [] }
        return bytes[start(range.lowerBound)..<ends[range.upperBound - 1]]
    }

    private func start(_ line: Int) -> Int { line == 0 ? 0 : ends[line - 1] }
}
