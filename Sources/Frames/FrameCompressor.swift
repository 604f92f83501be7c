internal import CGzip
internal import CZstd
public import EventLoops
public import Model

/// Compresses bytes; each call makes one frame or member.
///
/// It keeps the library's working memory between calls, because allocating it for each call makes small
/// frames a third more expensive. Not thread-safe: one for each loop.
public final class FrameCompressor {
    package let compression: Compression

    /// The library's context; nil for the other compressions.
    private let zstd: OpaquePointer?
    /// ISA-L's state and level buffer; nil for the other compressions.
    private let gzip: OpaquePointer?
    /// Size of the hash table that the zstd context is set to; 0 before the first frame.
    private var tunedFor = 0

    /// A compressor at level 1, which in both libraries costs least for each byte saved.
    ///
    /// Other levels were measured: zstd 3 takes twice the CPU and saves nothing on events; ISA-L 3
    /// takes four times the CPU, ISA-L 0 a quarter less and makes a third more bytes.
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
        if let zstd {
            ZSTD_freeCCtx(zstd)
        }
        if let gzip {
            cgzip_packer_free(gzip)
        }
    }

    /// One frame with the bytes; the bytes themselves for `none`.
    ///
    /// - Throws: `FrameError` with code `outOfMemory`.
    public func compress(_ bytes: UnsafeRawBufferPointer) throws(FrameError) -> [UInt8] {
        if let zstd {
            tune(zstd, for: bytes.count)
            return try pack(bound: ZSTD_compressBound(bytes.count)) { output in
                let size = ZSTD_compress2(
                    zstd, output.baseAddress, output.count, bytes.baseAddress, bytes.count)
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

    /// One frame with the bytes.
    public func compress(_ bytes: [UInt8]) throws(FrameError) -> [UInt8] {
        try bytes.withUnsafeBytes { raw in Result { () throws(FrameError) in try compress(raw) } }.get()
    }

    /// Sets the parameters for frames of about this size.
    ///
    /// Measured on event lines of 300 to 450 bytes: searching for matches shorter than seven bytes is
    /// not worth it, and for large frames a hash table that fits in the first-level cache beats a
    /// larger one. That takes a quarter less CPU at the same ratio.
    private func tune(_ context: OpaquePointer, for size: Int) {
        let hashLog: Int32 = size < 65_536 ? 15 : 12
        guard hashLog != tunedFor else { return }
        tunedFor = Int(hashLog)
        ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, 1)
        ZSTD_CCtx_setParameter(context, ZSTD_c_hashLog, hashLog)
        ZSTD_CCtx_setParameter(context, ZSTD_c_minMatch, 7)
    }

    /// Calls `body` with memory for the largest possible frame.
    private func pack(
        bound: Int, _ body: (UnsafeMutableRawBufferPointer) -> Int
    ) throws(FrameError) -> [UInt8] {
        let frame = [UInt8](unsafeUninitializedCapacity: bound) { buffer, count in
            count = body(UnsafeMutableRawBufferPointer(start: buffer.baseAddress, count: bound))
        }
        // With room for the largest frame, the libraries can fail only for lack of memory.
        guard !frame.isEmpty else {
            throw FrameError(.outOfMemory, "no memory to make a \(compression.name) frame")
        }
        return frame
    }
}
