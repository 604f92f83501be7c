internal import Model

/// The keys of the latest accepted batches, up to a limit, to recognise repeats.
struct KeyMemory {
    /// A key in 16 bytes: an id as it is, any other text by two hashes, so that a million keys fit into
    /// about 100 MB.
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

    /// Most keys.
    private let limit: Int
    /// The keys, for look-ups.
    private var known: Set<Key> = []
    /// The keys as a ring, for forgetting the oldest.
    private var order: [Key] = []
    /// Index of the oldest key once the ring is full.
    private var oldest = 0

    init(limit: Int) {
        self.limit = max(1, limit)
    }

    func contains(_ key: Key) -> Bool { known.contains(key) }

    /// Remembers a key, and forgets the oldest if there are too many.
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
