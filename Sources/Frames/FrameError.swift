//  Frames: packs and unpacks bytes with gzip and Zstandard, whole frames and streams.
//  Promise: one call makes one frame or member; unpacking is bounded by what its caller allows.
//  It knows nothing of events, files or the network.

public import EventLoops

/// What can go wrong with a frame.
public typealias FrameError = CodedError<FrameErrorCode>

/// The kinds of `FrameError`.
public enum FrameErrorCode: String, Sendable, CaseIterable {
    /// The bytes are no frame of their kind, or a damaged one.
    case corrupt
    /// Unpacked, it is larger than its caller allows.
    case tooLarge = "too_large"
    /// The library could not get memory.
    case outOfMemory = "out_of_memory"
}
