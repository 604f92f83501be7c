internal import EventLoops
internal import Frames
internal import Model

/// Unpacks a drop file block by block, in bounded memory, and keeps the lines that were not taken yet.
final class PackedLines {
    /// How unpacking ended.
    enum End: Equatable {
        /// With the last byte of the file.
        case whole
        /// The file ends in the middle of a frame.
        case cutShort
        /// The bytes are no such archive, or a damaged one.
        case broken(String)
    }

    private static let inputSize = 64 << 10

    private let decompressor: StreamDecompressor
    private let storage: UnsafeMutableRawBufferPointer
    private var input: [UInt8] = []
    private var inputStart = 0
    private var position: Int64 = 0
    private var isAtBoundary = false
    private var start = 0
    private var count = 0

    /// Where the first byte of `lines` lies in the unpacked file.
    private(set) var offset: Int64 = 0
    /// Set once nothing more comes.
    private(set) var end: End?

    /// - Parameter longest: the longest line, its LF not counted.
    init(_ compression: Compression, longest: Int) throws(FrameError) {
        decompressor = try StreamDecompressor(compression)
        storage = .allocate(byteCount: max(256 << 10, longest + 2), alignment: 16)
    }

    deinit { storage.deallocate() }

    /// What was unpacked and not taken.
    var lines: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: storage[start..<(start + count)]) }

    /// How many bytes of the file were unpacked.
    var inputPosition: Int64 { position - Int64(input.count - inputStart) }

    /// Takes bytes from the front.
    func take(_ taken: Int) {
        start += taken
        count -= taken
        offset += Int64(taken)
    }

    /// Puts an LF after the last line.
    func seal() {
        if start + count == storage.count { moveToFront() }
        guard count < storage.count else { return }
        storage[start + count] = 0x0A
        count += 1
    }

    /// Unpacks until the buffer is full, the file ends, or so many bytes of the file were unpacked: there are archives of
    /// any length that hold nothing.
    func fill(from descriptor: Int32, atMost limit: Int64 = .max / 2) throws(SystemError) {
        moveToFront()
        let last = inputPosition + limit
        // One byte stays free, for the LF that the last line may lack.
        while end == nil, count < storage.count - 1, inputPosition < last {
            if inputStart == input.count { try readInput(descriptor) }
            let output = UnsafeMutableRawBufferPointer(rebasing: storage[count..<(storage.count - 1)])
            do throws(FrameError) {
                let step = try input.withUnsafeBufferPointer { bytes throws(FrameError) in
                    try decompressor.step(
                        UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: bytes[inputStart...])), into: output)
                }
                inputStart += step.consumed
                count += step.produced
                isAtBoundary = step.isAtBoundary
                // With nothing to unpack and nothing left inside, the file has ended.
                if input.isEmpty, step.produced == 0 { end = isAtBoundary ? .whole : .cutShort }
                if !input.isEmpty, step.consumed == 0, step.produced == 0, inputStart < input.count {
                    end = .broken("unpacking does not go on")
                }
            } catch {
                end = .broken(error.message)
            }
        }
    }

    private func readInput(_ descriptor: Int32) throws(SystemError) {
        let offset = position
        var failure: SystemError?
        input = [UInt8](unsafeUninitializedCapacity: PackedLines.inputSize) { buffer, count in
            do throws(SystemError) {
                count = try FileSystem.read(descriptor, into: UnsafeMutableRawBufferPointer(buffer), at: offset)
            } catch {
                failure = error
                count = 0
            }
        }
        if let failure { throw failure }
        inputStart = 0
        position += Int64(input.count)
    }

    private func moveToFront() {
        guard start > 0 else { return }
        storage.copyMemory(from: lines)
        start = 0
    }
}
