internal import CGzip
internal import CZstd
public import EventLoops
public import Model

/// Decompresses whole frames. It keeps the libraries' working memory between calls. Not thread-safe:
/// one for each loop.
public final class FrameDecompressor {
    /// zstd's context; nil before the first frame. Most agents decompress nothing, and a context takes 96 KB.
    private var zstd: OpaquePointer?
    /// ISA-L's state; nil before the first member.
    private var gzip: OpaquePointer?

    /// A decompressor for all kinds of frames.
    public init() {}

    deinit {
        if let zstd {
            ZSTD_freeDCtx(zstd)
        }
        if let gzip {
            cgzip_unpacker_free(gzip)
        }
    }

    /// A library's working memory, allocated at its first use.
    private static func ready(
        _ state: inout OpaquePointer?, _ allocate: () -> OpaquePointer?
    ) throws(FrameError) -> OpaquePointer {
        if state == nil {
            state = allocate()
        }
        guard let state else { throw FrameError(.outOfMemory, "no memory for a decompressor") }
        return state
    }

    /// The content of one frame.
    ///
    /// - Parameters:
    ///   - frame: one frame or member, with nothing behind it.
    ///   - compression: how the frame was compressed.
    ///   - limit: most bytes of the content. Memory for that many is allocated during the call.
    /// - Throws: `FrameError` with code `corrupt`, `tooLarge` or `outOfMemory`.
    public func decompress(
        _ frame: UnsafeRawBufferPointer, _ compression: Compression, limit: Int
    ) throws(FrameError) -> [UInt8] {
        switch compression {
        case .none:
            guard frame.count <= limit else { throw FrameDecompressor.tooLarge(limit) }
            return Array(frame)
        case .gzip:
            return try gunzip(frame, limit: limit)
        case .zstd:
            return try unzstd(frame, limit: limit)
        }
    }

    /// The content of one frame.
    public func decompress(_ frame: [UInt8], _ compression: Compression, limit: Int) throws(FrameError)
        -> [UInt8]
    {
        try frame.withUnsafeBytes { raw in
            Result { () throws(FrameError) in try decompress(raw, compression, limit: limit) }
        }.get()
    }

    /// The content of one zstd frame.
    private func unzstd(_ frame: UnsafeRawBufferPointer, limit: Int) throws(FrameError) -> [UInt8] {
        // The library would continue with a second frame, and accept empty input.
        guard ZSTD_findFrameCompressedSize(frame.baseAddress, frame.count) == frame.count, !frame.isEmpty
        else {
            throw FrameError(.corrupt, "not one complete zstd frame")
        }
        let zstd = try FrameDecompressor.ready(&self.zstd) { ZSTD_createDCtx() }
        var failure: FrameError?
        let bytes = [UInt8](unsafeUninitializedCapacity: max(limit, 1)) { buffer, count in
            let size = ZSTD_decompressDCtx(zstd, buffer.baseAddress, limit, frame.baseAddress, frame.count)
            if ZSTD_isError(size) != 0 {
                failure =
                    ZSTD_getErrorCode(size) == ZSTD_error_dstSize_tooSmall
                    ? FrameDecompressor.tooLarge(limit)
                    : FrameError(
                        .corrupt, "a damaged zstd frame: \(String(cString: ZSTD_getErrorName(size)))")
            } else {
                count = size
            }
        }
        if let failure { throw failure }
        return bytes
    }

    /// The content of one gzip member.
    private func gunzip(_ frame: UnsafeRawBufferPointer, limit: Int) throws(FrameError) -> [UInt8] {
        let gzip = try FrameDecompressor.ready(&self.gzip) { cgzip_unpacker_new() }
        var result: Int32 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: max(limit, 1)) { buffer, count in
            result = cgzip_unpack(
                gzip, frame.baseAddress?.assumingMemoryBound(to: UInt8.self), frame.count, buffer.baseAddress,
                limit,
                &count)
        }
        switch Int(result) {
        case CGZIP_WHOLE: return bytes
        case CGZIP_TOO_LARGE: throw FrameDecompressor.tooLarge(limit)
        default: throw FrameError(.corrupt, "not one complete gzip member")
        }
    }

    private static func tooLarge(_ limit: Int) -> FrameError {
        FrameError(.tooLarge, "unpacks to more than \(limit) bytes")
    }
}
