/// What a connection's claim to its place depends on, and the choice of the one that yields.
struct Claim {
    let id: UInt
    /// The user or the address that the connection counts for.
    let owner: String
    /// Whether no byte of a request was received.
    let isIdle: Bool
    /// Whether the connection may be closed without harm. A connection that is being answered may only if its
    /// client already sends the next request without waiting for the answer; a stream may not.
    let isClosable: Bool

    /// The connection that yields its place; nil if all have a stronger claim than the newcomer.
    ///
    /// - Parameters:
    ///   - owner: the newcomer's user or address; nil if only a descriptor is needed.
    ///   - places: the number of places.
    static func weakest(of claims: [Claim], for owner: String?, places: Int) -> Claim? {
        var counts: [String: Int] = [:]
        for claim in claims { counts[claim.owner, default: 0] += 1 }
        func comesBefore(_ left: Claim, _ right: Claim) -> Bool {
            let ofLeft = counts[left.owner] ?? 0
            let ofRight = counts[right.owner] ?? 0
            if ofLeft != ofRight { return ofLeft > ofRight }
            if left.isIdle != right.isIdle { return left.isIdle }
            return left.id < right.id
        }
        if let closable = claims.filter(\.isClosable).min(by: comesBefore) { return closable }
        // Even if all are being answered: one user's long requests must not keep another user out.
        guard let owner, let heaviest = claims.min(by: comesBefore), heaviest.owner != owner,
            (counts[heaviest.owner] ?? 0) * 2 > places
        else { return nil }
        return heaviest
    }
}
