/// Who holds the entries of a bounded table, so that no app takes the room of another.
///
/// An app may hold all entries while no other app wants one. Then the app with the most entries gives
/// up first.
package struct Holdings: Sendable {
    /// Entries by holder; a holder without entries is removed.
    private var counts: [String: Int] = [:]
    /// Entries of all holders.
    private var total = 0

    /// The answer to a request for an entry.
    package enum Room: Equatable {
        /// The entry is free.
        case free
        /// The named holder must give up one of its entries.
        case givenUp(by: String)
        /// No entry: the table is full, and the requester would hold as many as anybody else.
        case none
    }

    package init() {}

    /// The holder that an app counts as. Users without a name above id 65,535 are grouped by 65,536
    /// ids, as they are for the reader's time: one user may own that many subordinate ids (subuid(5))
    /// and could appear as many apps.
    package static func holder(of app: String) -> String {
        guard app.hasPrefix("uid-"), let owner = UInt32(app.dropFirst(4)), owner > UInt16.max else {
            return app
        }
        return "uids-\(owner >> 16)"
    }

    package func count(of holder: String) -> Int { counts[holder, default: 0] }

    /// Takes one of `most` entries. If all are in use, the holder with the most loses one, provided
    /// that `holder` still has fewer afterwards.
    package mutating func reserve(for holder: String, of most: Int) -> Room {
        var room = Room.free
        if total >= most {
            guard let (giver, count) = counts.max(by: { $0.value < $1.value }),
                count > self.count(of: holder) + 1
            else {
                return .none
            }
            release(giver)
            room = .givenUp(by: giver)
        }
        add(holder)
        return room
    }

    /// Whether a holder may take another of `most` entries in a table where nobody gives up any: it may
    /// hold half of what the others leave.
    package func hasFairRoom(for holder: String, of most: Int) -> Bool {
        let own = count(of: holder)
        return total < most && own < max(1, (most - (total - own)) / 2)
    }

    /// Takes an entry if `hasFairRoom` allows it.
    package mutating func takeFair(for holder: String, of most: Int) -> Bool {
        guard hasFairRoom(for: holder, of: most) else { return false }
        add(holder)
        return true
    }

    /// Counts an entry without asking for room.
    package mutating func add(_ holder: String) {
        counts[holder, default: 0] += 1
        total += 1
    }

    /// Gives an entry back.
    package mutating func release(_ holder: String) {
        guard let count = counts[holder] else { return }
        counts[holder] = count > 1 ? count - 1 : nil
        total -= 1
    }
}
