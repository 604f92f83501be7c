internal import CZlib
internal import CZstd
public import EventLoops
public import Model

/// Decompresses a file piece by piece in bounded memory: `.gz`, also with several members (RFC 1952,
/// section 2.2), and `.zst`, also with several frames (RFC 8878, section 3).
public final class StreamDecompressor {
    /// The result of one step.
    public struct Step: Sendable, Equatable {
        /// Bytes of the input that were used.
        public let consumed: Int
        /// Bytes that were written to the output.
        public let produced: Int
        /// Whether the input used so far ends with a complete member or frame. A file that ends
        /// elsewhere is truncated.
        public let isAtBoundary: Bool
    }

    /// The library's state for the chosen compression.
    private enum Engine {
        case none
        case gzip(UnsafeMutablePointer<z_stream>)
        case zstd(OpaquePointer)
    }

    /// Largest window that a zstd frame may request: 8 MiB, which `zstd -19` uses. `zstd --long`
    /// requests more; without a bound, a file's owner could make the agent allocate gigabytes.
    public static let largestZstdWindowLog: Int32 = 23

    private let engine: Engine
    /// Whether the input so far ends with a complete member or frame.
    private var atBoundary = false

    /// A decompressor at the beginning of a file.
    ///
    /// - Throws: `FrameError` with code `outOfMemory`.
    public init(_ compression: Compression) throws(FrameError) {
        switch compression {
        case .none:
            engine = .none
        case .gzip:
            let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
            stream.initialize(to: z_stream())
            // 31: a window of 15 bits, plus 16 to require a gzip header (zlib.h, inflateInit2).
            guard inflateInit2_(stream, 31, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
                stream.deallocate()
                throw FrameError(.outOfMemory, "no memory for a gzip decompressor")
            }
            engine = .gzip(stream)
        case .zstd:
            guard let context = ZSTD_createDCtx() else {
                throw FrameError(.outOfMemory, "no memory for a zstd decompressor")
            }
            ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, StreamDecompressor.largestZstdWindowLog)
            engine = .zstd(context)
        }
    }

    deinit {
        switch engine {
        case .none: break
        case .gzip(let stream):
            inflateEnd(stream)
            stream.deinitialize(count: 1)
            stream.deallocate()
        case .zstd(let context): ZSTD_freeDCtx(context)
        }
    }

    /// Decompresses as much as fits in the output.
    ///
    /// Call it again with the remaining input as long as the output was filled or input is left. A step
    /// that neither consumes nor produces anything needs more input.
    /// - Throws: `FrameError` with code `corrupt`.
    public func step(
        _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
    ) throws(FrameError) -> Step {
        switch engine {
        case .none:
            let count = min(input.count, output.count)
            if count > 0 {
                output.copyMemory(from: UnsafeRawBufferPointer(rebasing: input[..<count]))
            }
            return Step(consumed: count, produced: count, isAtBoundary: true)
        case .gzip(let stream):
            return try inflate(stream, input, output)
        case .zstd(let context):
            return try decompress(context, input, output)
        }
    }

    /// One step of zlib's `inflate`.
    private func inflate(
        _ stream: UnsafeMutablePointer<z_stream>, _ input: UnsafeRawBufferPointer,
        _ output: UnsafeMutableRawBufferPointer
    ) throws(FrameError) -> Step {
        if atBoundary && !input.isEmpty {
            // Another member follows.
            guard inflateReset(stream) == Z_OK else {
                throw FrameError(.corrupt, "the gzip decompressor cannot begin the next member")
            }
            atBoundary = false
        }
        // zlib does not write through `next_in`, although its type is not const.
        stream.pointee.next_in = UnsafeMutablePointer(
            mutating: input.baseAddress?.assumingMemoryBound(to: UInt8.self))
        stream.pointee.avail_in = UInt32(clamping: input.count)
        stream.pointee.next_out = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
        stream.pointee.avail_out = UInt32(clamping: output.count)
        let offeredIn = stream.pointee.avail_in
        let offeredOut = stream.pointee.avail_out
        let result = CZlib.inflate(stream, Z_NO_FLUSH)
        guard result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR else {
            throw FrameError(.corrupt, "not gzip data, or damaged")
        }
        if result == Z_STREAM_END {
            atBoundary = true
        }
        return Step(
            consumed: Int(offeredIn - stream.pointee.avail_in),
            produced: Int(offeredOut - stream.pointee.avail_out),
            isAtBoundary: atBoundary)
    }

    /// One step of libzstd's streaming decompression.
    private func decompress(
        _ context: OpaquePointer, _ input: UnsafeRawBufferPointer, _ output: UnsafeMutableRawBufferPointer
    ) throws(FrameError) -> Step {
        var source = ZSTD_inBuffer(src: input.baseAddress, size: input.count, pos: 0)
        var target = ZSTD_outBuffer(dst: output.baseAddress, size: output.count, pos: 0)
        let hint = ZSTD_decompressStream(context, &target, &source)
        guard ZSTD_isError(hint) == 0 else {
            throw FrameError(
                .corrupt, "not zstd data, or damaged: \(String(cString: ZSTD_getErrorName(hint)))")
        }
        // A hint of 0 means that a frame is complete. Without progress it says nothing new.
        if source.pos > 0 || target.pos > 0 {
            atBoundary = hint == 0
        }
        return Step(consumed: source.pos, produced: target.pos, isAtBoundary: atBoundary)
    }
}
