/// How many bytes of an old file are offered at once.
///
/// Where many lines go to the quarantine, a piece of the size that the agent wants does not fit into one
/// transaction. Each refusal costs reading the file again from its beginning, so after each one it takes
/// twice as long until a larger size is tried.
struct PieceSize {
    /// The size that the agent wants.
    private let most: Int
    /// The size of the next piece.
    private(set) var bytes: Int
    /// Pieces that were taken since the size was last changed.
    private var taken = 0
    /// Number of pieces after which a larger size is tried.
    private var patience = 8

    init(most: Int) { (self.most, bytes) = (most, most) }

    mutating func wasTaken() {
        taken += 1
        guard bytes < most, taken >= patience else { return }
        bytes = min(most, bytes * 2)
        taken = 0
    }

    /// A piece was refused as too large. Returns false if it cannot be made smaller.
    mutating func wasRefused(_ refused: Int) -> Bool {
        let half = min(bytes, refused) / 2
        guard half > 0 else { return false }
        bytes = half
        taken = 0
        patience *= 2
        return true
    }
}
