internal import Glibc

/// The distinct event names of one app in one UTC day: exact, and bounded by the limit.
struct DistinctNames: ~Copyable {
    /// The day, counted from 1970; names of another day are forgotten.
    private(set) var day: Int64 = .min
    /// How many names the day has had.
    private(set) var count = 0
    var isChanged = false

    private var slots: UnsafeMutablePointer<(hash: UInt64, start: Int, length: Int)>
    private var capacity: Int
    private var text = LineBuffer(capacity: 1024)
    private let seed: UInt64

    /// - Parameter seed: makes collisions unforeseeable for whoever chooses the names.
    init(seed: UInt64) {
        self.seed = seed
        capacity = 64
        slots = .allocate(capacity: capacity)
        slots.initialize(repeating: (0, -1, 0), count: capacity)
    }

    deinit { slots.deallocate() }

    /// Whether the name is one of the day's first `limit` ones; a new one is taken in if there is room.
    @inline(__always)
    mutating func admit(_ name: UnsafeBufferPointer<UInt8>, limit: Int) -> Bool {
        let hash = hash(name)
        var index = Int(truncatingIfNeeded: hash) & (capacity - 1)
        while slots[index].start >= 0 {
            if slots[index].hash == hash, isEqual(index, name) { return true }
            index = (index + 1) & (capacity - 1)
        }
        return insert(name, hash, limit)
    }

    /// Forgets the names of another day.
    mutating func turn(to day: Int64) {
        guard day != self.day else { return }
        self.day = day
        guard count > 0 else { return }
        count = 0
        text.removeAll(keepingCapacity: 1 << 16)
        slots.update(repeating: (0, -1, 0), count: capacity)
        isChanged = true
    }

    /// The day and its names, for the next start; nil when there are none.
    func saved() -> [UInt8]? {
        guard count > 0 else { return nil }
        var bytes: [UInt8] = []
        withUnsafeBytes(of: day.littleEndian) { bytes.append(contentsOf: $0) }
        for index in 0..<capacity where slots[index].start >= 0 {
            withUnsafeBytes(of: UInt32(clamping: slots[index].length).littleEndian) { bytes.append(contentsOf: $0) }
            bytes.append(
                contentsOf: UnsafeBufferPointer(start: text.start + slots[index].start, count: slots[index].length))
        }
        return bytes
    }

    /// Takes up what was saved; what cannot be read is left out.
    mutating func restore(_ bytes: [UInt8]) {
        guard bytes.count >= 8 else { return }
        turn(to: Int64(bitPattern: bytes[0..<8].reversed().reduce(0) { $0 << 8 | UInt64($1) }))
        var index = 8
        while index + 4 <= bytes.count {
            let length = bytes[index..<index + 4].reversed().reduce(0) { $0 << 8 | Int($1) }
            index += 4
            guard length <= bytes.count - index else { break }
            bytes[index..<index + length].withUnsafeBufferPointer { _ = admit($0, limit: .max) }
            index += length
        }
        isChanged = false
    }

    /// Eight bytes at a time, the last ones again with those before them where the length is no multiple of eight.
    @inline(__always)
    private func hash(_ name: UnsafeBufferPointer<UInt8>) -> UInt64 {
        var hash = seed ^ UInt64(truncatingIfNeeded: name.count)
        guard let start = name.baseAddress else { return hash }
        let p = UnsafeRawPointer(start)
        guard name.count >= 8 else { return DistinctNames.mix(hash ^ DistinctNames.short(p, name.count)) }
        let last = name.count &- 8
        var index = 0
        while index < last {
            hash = DistinctNames.mix(hash ^ p.loadUnaligned(fromByteOffset: index, as: UInt64.self))
            index &+= 8
        }
        return DistinctNames.mix(hash ^ p.loadUnaligned(fromByteOffset: last, as: UInt64.self))
    }

    /// All bytes of a text of less than eight, some of them twice.
    @inline(__always)
    private static func short(_ p: UnsafeRawPointer, _ count: Int) -> UInt64 {
        if count >= 4 {
            let first = p.loadUnaligned(as: UInt32.self)
            let last = p.loadUnaligned(fromByteOffset: count &- 4, as: UInt32.self)
            return UInt64(first) &<< 32 | UInt64(last)
        }
        var word: UInt64 = 0
        for index in 0..<count { word = word &<< 8 | UInt64(p.load(fromByteOffset: index, as: UInt8.self)) }
        return word
    }

    @inline(__always)
    private static func mix(_ value: UInt64) -> UInt64 {
        let (high, low) = value.multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15)
        return high ^ low
    }

    @inline(__always)
    private func isEqual(_ index: Int, _ name: UnsafeBufferPointer<UInt8>) -> Bool {
        let length = slots[index].length
        guard length == name.count else { return false }
        guard let start = name.baseAddress else { return true }
        let known = UnsafeRawPointer(text.start + slots[index].start)
        let name = UnsafeRawPointer(start)
        // Names of eight to sixteen bytes, as most are: without a call.
        guard length >= 8, length <= 16 else { return memcmp(known, name, length) == 0 }
        let last = length &- 8
        return known.loadUnaligned(as: UInt64.self) == name.loadUnaligned(as: UInt64.self)
            && known.loadUnaligned(fromByteOffset: last, as: UInt64.self)
                == name.loadUnaligned(fromByteOffset: last, as: UInt64.self)
    }

    @inline(never)
    private mutating func insert(_ name: UnsafeBufferPointer<UInt8>, _ hash: UInt64, _ limit: Int) -> Bool {
        guard count < limit else { return false }
        if (count + 1) * 2 > capacity { grow() }
        place((hash, text.count, name.count))
        text.append(UnsafeRawBufferPointer(name))
        count += 1
        isChanged = true
        return true
    }

    private mutating func grow() {
        let old = slots
        let oldCapacity = capacity
        capacity *= 2
        slots = .allocate(capacity: capacity)
        slots.initialize(repeating: (0, -1, 0), count: capacity)
        for index in 0..<oldCapacity where old[index].start >= 0 { place(old[index]) }
        old.deallocate()
    }

    private func place(_ slot: (hash: UInt64, start: Int, length: Int)) {
        var index = Int(truncatingIfNeeded: slot.hash) & (capacity - 1)
        while slots[index].start >= 0 { index = (index + 1) & (capacity - 1) }
        slots[index] = slot
    }
}
