// Frames: compresses and decompresses bytes with gzip and Zstandard: whole frames, and streams of
// files.
//
// It promises:
// - One call makes one frame (zstd) or member (gzip), which any standard tool can read.
// - Decompression is bounded: by the limit that the caller gives, and for streams by the output buffer
//   and the largest window. A compression bomb costs no more memory than that.
// - Damaged, truncated or hostile input ends in an error, never in memory that was not allowed.
//
// Its parts:
// - FrameCompressor.swift: one frame in one call. Used for chunks of the queue and bodies of requests.
// - FrameDecompressor.swift: one frame in one call, with a limit. Used when a chunk must be taken
//   apart.
// - StreamDecompressor.swift: files of the spool, piece by piece.
// - Checksum.swift: CRC-32 for stored frames and gzip files, CRC-32C for contents of the spool's files.
//
// Its rules:
// - Compressors and decompressors keep the working memory of the C libraries, so each belongs to one
//   loop.
// - Three libraries do the work: ISA-L for whole gzip members, zlib for gzip streams, libzstd.
//   DESIGN.md has the measurements behind that choice.
// - It knows nothing about events, files or the network.
//
// Begin with `FrameCompressor.compress` and `FrameDecompressor.decompress`.

public import EventLoops

/// A failure to compress or decompress.
public typealias FrameError = CodedError<FrameErrorCode>

/// The kinds of `FrameError`.
public enum FrameErrorCode: String, Sendable, CaseIterable {
    /// The bytes are not a frame of the expected kind, or are damaged.
    case corrupt
    /// The content is larger than the caller allows.
    case tooLarge = "too_large"
    /// The library could not allocate memory.
    case outOfMemory = "out_of_memory"
}
