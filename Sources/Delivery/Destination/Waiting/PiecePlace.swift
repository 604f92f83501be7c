/// Order of a piece among the pieces of the batch that was cut, over several cuts.
///
/// Pieces keep the order of their events. Each cut takes seven bits from the top of one number, so that
/// comparing two places, which is done for every start, is one comparison. Beyond 18 cuts, or beyond 126
/// pieces of one cut, places are equal and the ids decide, which the queue assigns in order.
struct PiecePlace: Sendable, Hashable, Comparable {
    private static let bitsPerCut = 7
    private static let mostCuts = 18
    private static let highestNumber = 127

    /// One digit per cut, the first cut in the top bits.
    private var path: UInt128 = 0
    private var cuts = 0

    /// Whether the batch is not a piece.
    var isWhole: Bool { cuts == 0 }

    /// The place of a piece of this batch.
    ///
    /// - Parameter number: number of the piece, from 0.
    func piece(_ number: Int) -> PiecePlace {
        var place = self
        place.cuts += 1
        guard place.cuts <= PiecePlace.mostCuts else { return place }
        // Digits begin with 1, so that the first piece of a piece differs from that piece.
        let digit = UInt128(min(number + 1, PiecePlace.highestNumber))
        place.path |= digit << (UInt128.bitWidth - PiecePlace.bitsPerCut * place.cuts)
        return place
    }

    static func < (left: PiecePlace, right: PiecePlace) -> Bool { left.path < right.path }
}
