public import Model

/// The full path by which a reader finds its own checkpoints after a restart.
///
/// The queue stores `shownPath`, which is shortened. A shortened path would match no place and no stream, and
/// the file would be sent again. So for longer paths the state, which the queue does not interpret, begins
/// with the full path.
extension Checkpoint {
    /// First byte of a state with a path. States of `FileTrace` and `ObjectSplitter.Place` begin with 1, 2 or
    /// 3.
    private static let version: UInt8 = 4
    /// Length of the version byte and the path's length, which has two bytes in little-endian order.
    private static let head = 3

    /// The checkpoint in the form that is given to the queue.
    var keepingPath: Checkpoint {
        let bytes = Array(path.utf8)
        // Two bytes suffice: the kernel accepts no path of more than 4096 bytes (PATH_MAX), relative or
        // absolute.
        guard path != shownPath, let length = UInt16(exactly: bytes.count) else { return self }
        var kept = self
        kept.state =
            [Checkpoint.version, UInt8(truncatingIfNeeded: length), UInt8(length >> 8)] + bytes + state
        return kept
    }

    /// A stored checkpoint with its full path.
    public var restoringPath: Checkpoint {
        guard state.count >= Checkpoint.head, state[0] == Checkpoint.version else { return self }
        let end = Checkpoint.head + Int(state[1]) + Int(state[2]) << 8
        guard end <= state.count else { return self }
        var whole = self
        whole.path = String(decoding: state[Checkpoint.head..<end], as: UTF8.self)
        whole.state = Array(state[end...])
        return whole
    }
}
