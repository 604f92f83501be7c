/// Whose the places of a bounded table are: no app takes another's room.
///
/// An app may have them all while nobody else wants one. Then whoever has most gives up first.
package struct Holdings: Sendable {
    private var counts: [String: Int] = [:]
    private var total = 0

    /// What becomes of the wish for another place.
    package enum Room: Equatable {
        case free
        /// The holder has to give up one of its places for it.
        case givenUp(by: String)
        case none
    }

    package init() {}

    /// Whose room an app takes. Owners without a name beyond the first 65,536 share one, so many at a time, as they share the
    /// reader's time: a user may have as many subordinate ids.
    package static func holder(of app: String) -> String {
        guard app.hasPrefix("uid-"), let owner = UInt32(app.dropFirst(4)), owner > UInt16.max else { return app }
        return "uids-\(owner >> 16)"
    }

    package func count(of holder: String) -> Int { counts[holder, default: 0] }

    /// Takes one of so many places; where all are taken, the holder of most gives up one, if `holder` has fewer with it.
    package mutating func take(for holder: String, of most: Int) -> Room {
        var room = Room.free
        if total >= most {
            guard let (giver, count) = counts.max(by: { $0.value < $1.value }), count > self.count(of: holder) + 1
            else {
                return .none
            }
            release(giver)
            room = .givenUp(by: giver)
        }
        add(holder)
        return room
    }

    /// Whether a holder may have one more of so many places that nobody gives up: it may have half of what the others leave.
    package func hasFairRoom(for holder: String, of most: Int) -> Bool {
        let own = count(of: holder)
        return total < most && own < max(1, (most - (total - own)) / 2)
    }

    package mutating func takeFair(for holder: String, of most: Int) -> Bool {
        guard hasFairRoom(for: holder, of: most) else { return false }
        add(holder)
        return true
    }

    package mutating func add(_ holder: String) {
        counts[holder, default: 0] += 1
        total += 1
    }

    package mutating func release(_ holder: String) {
        guard let count = counts[holder] else { return }
        counts[holder] = count > 1 ? count - 1 : nil
        total -= 1
    }
}
