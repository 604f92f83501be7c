//  Frames: packs and unpacks bytes with gzip and Zstandard, whole frames and streams.
//  Promise: one call makes one frame or member; unpacking is bounded by what its caller allows.
//  It knows nothing of events, files or the network.

/// What can go wrong with a frame.
public struct FrameError: Error, Sendable, Equatable {
    /// Closed, because each code is a metric label.
    public enum Code: String, Sendable, CaseIterable {
        /// The bytes are no frame of their kind, or a damaged one.
        case corrupt
        /// Unpacked, it is larger than its caller allows.
        case tooLarge = "too_large"
        /// The library could not get memory.
        case outOfMemory = "out_of_memory"
    }

    /// The kind of failure.
    public let code: Code

    /// One line for a person. Never content.
    public let message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }
}
