internal import CGzip
internal import CZstd
public import EventLoops
public import Model

/// Decompresses whole frames. It keeps the libraries' working memory between calls. Not thread-safe:
/// one for each loop.
public final class FrameDecompressor {
    private let zstd: OpaquePointer
    private let gzip: OpaquePointer

    /// A decompressor for all kinds of frames.
    ///
    /// - Throws: `FrameError` with code `outOfMemory`.
    public init() throws(FrameError) {
        guard let zstd = ZSTD_createDCtx() else {
            throw FrameError(.outOfMemory, "no memory for a decompressor")
        }
        guard let gzip = cgzip_unpacker_new() else {
            ZSTD_freeDCtx(zstd)
            throw FrameError(.outOfMemory, "no memory for a decompressor")
        }
        self.zstd = zstd
        self.gzip = gzip
    }

    deinit {
        ZSTD_freeDCtx(zstd)
        cgzip_unpacker_free(gzip)
    }

    /// The content of one frame.
    ///
    /// - Parameters:
    ///   - frame: one frame or member, with nothing behind it.
    ///   - compression: how the frame was compressed.
    ///   - limit: most bytes of the content. Memory for that many is allocated during the call.
    /// - Throws: `FrameError` with code `corrupt` or `tooLarge`.
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
