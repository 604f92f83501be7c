internal import CGzip
internal import CZstd
public import EventLoops
public import Model

/// Compresses bytes, each call into one frame or member.
///
/// It keeps the library's working memory between calls, because allocating it each time costs a third more for small
/// frames. Not thread-safe: one for each loop.
public final class FrameCompressor {
    package let compression: Compression

    private let zstd: OpaquePointer?
    private let gzip: OpaquePointer?
    private var tunedFor = 0

    /// A compressor at the level that costs least for each byte saved: 1, with either library.
    ///
    /// Higher levels were measured: zstd 3 takes twice the CPU and saves nothing on event data, ISA-L's 3 four times; ISA-L's 0
    /// costs a quarter less and makes a third more.
    /// - Throws: `FrameError` with code `outOfMemory`.
    public init(_ compression: Compression) throws(FrameError) {
        self.compression = compression
        switch compression {
        case .none: (zstd, gzip) = (nil, nil)
        case .gzip: (zstd, gzip) = (nil, cgzip_packer_new())
        case .zstd: (zstd, gzip) = (ZSTD_createCCtx(), nil)
        }
        guard compression == .none || zstd != nil || gzip != nil else {
            throw FrameError(.outOfMemory, "no memory for a \(compression.name) compressor")
        }
    }

    deinit {
        if let zstd { ZSTD_freeCCtx(zstd) }
        if let gzip { cgzip_packer_free(gzip) }
    }

    /// One frame that holds the bytes; the bytes themselves when it packs by `none`.
    ///
    /// - Throws: `FrameError` with code `outOfMemory`.
    public func compress(_ bytes: UnsafeRawBufferPointer) throws(FrameError) -> [UInt8] {
        if let zstd {
            tune(zstd, for: bytes.count)
            return try pack(bound: ZSTD_compressBound(bytes.count)) { output in
                let size = ZSTD_compress2(zstd, output.baseAddress, output.count, bytes.baseAddress, bytes.count)
                return ZSTD_isError(size) == 0 ? size : 0
            }
        }
        if let gzip {
            return try pack(bound: cgzip_bound(bytes.count)) { output in
                cgzip_pack(
                    gzip, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count,
                    output.baseAddress?.assumingMemoryBound(to: UInt8.self), output.count)
            }
        }
        return Array(bytes)
    }

    /// One frame that holds the bytes.
    public func compress(_ bytes: [UInt8]) throws(FrameError) -> [UInt8] {
        try bytes.withUnsafeBytes { raw in Result { () throws(FrameError) in try compress(raw) } }.get()
    }

    /// Sets the parameters for frames of about this size.
    ///
    /// Measured on event lines of 300 to 450 bytes: matches shorter than seven bytes are not worth looking for, and a
    /// table that fits the first-level cache beats a larger one for large frames. A quarter less CPU, the same ratio.
    private func tune(_ context: OpaquePointer, for size: Int) {
        let hashLog: Int32 = size < 65_536 ? 15 : 12
        guard hashLog != tunedFor else { return }
        tunedFor = Int(hashLog)
        ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, 1)
        ZSTD_CCtx_setParameter(context, ZSTD_c_hashLog, hashLog)
        ZSTD_CCtx_setParameter(context, ZSTD_c_minMatch, 7)
    }

    private func pack(
        bound: Int, _ body: (UnsafeMutableRawBufferPointer) -> Int
    ) throws(FrameError) -> [UInt8] {
        let frame = [UInt8](unsafeUninitializedCapacity: bound) { buffer, count in
            count = body(UnsafeMutableRawBufferPointer(start: buffer.baseAddress, count: bound))
        }
        // With room for the bound, want of memory is the only failure that the libraries know.
        guard !frame.isEmpty else { throw FrameError(.outOfMemory, "no memory to make a \(compression.name) frame") }
        return frame
    }
}
