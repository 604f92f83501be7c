internal import Model

/// The keys of the batches that were taken: the latest so many.
struct KeyMemory {
    /// A key in sixteen bytes: an id as it is, anything else by its hash.
    struct Key: Hashable {
        let high: UInt64
        let low: UInt64

        init(_ text: String) {
            if let id = UUIDv7(text) {
                (high, low) = (id.high, id.low)
            } else {
                var first = Hasher()
                var second = Hasher()
                first.combine(text)
                second.combine(1)
                second.combine(text)
                high = UInt64(bitPattern: Int64(first.finalize()))
                low = UInt64(bitPattern: Int64(second.finalize()))
            }
        }
    }

    private let limit: Int
    private var known: Set<Key> = []
    private var order: [Key] = []
    private var oldest = 0

    init(limit: Int) {
        self.limit = max(1, limit)
    }

    func contains(_ key: Key) -> Bool { known.contains(key) }

    /// Remembers a key, and forgets the oldest when there are too many.
    mutating func insert(_ key: Key) {
        guard known.insert(key).inserted else { return }
        if order.count < limit {
            order.append(key)
        } else {
            known.remove(order[oldest])
            order[oldest] = key
            oldest = (oldest + 1) % limit
        }
    }
}
