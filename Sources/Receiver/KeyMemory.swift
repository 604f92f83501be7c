internal import Model

/// The keys of the batches that were taken: the latest so many.
struct KeyMemory {
    /// A key in sixteen bytes: an id as it is, anything else by its hash.
    struct Key: Hashable {
        let id: UUIDv7

        init(_ text: String) {
            func hash(_ seed: Int) -> UInt64 {
                var hasher = Hasher()
                hasher.combine(seed)
                hasher.combine(text)
                return UInt64(bitPattern: Int64(hasher.finalize()))
            }
            id = UUIDv7(text) ?? UUIDv7(high: hash(0), low: hash(1))
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
