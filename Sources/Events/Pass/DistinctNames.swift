internal import Glibc

/// The distinct event names of one app in one UTC day, exact, for the limit `event_names`.
///
/// A hash table with open addressing that is at most half full; the names' bytes are in one buffer. It is not
/// a `Set` because each event asks it, and it must not allocate for a name that is known. Without a limit it
/// is not asked and stays empty; with one it is bounded by the limit.
struct DistinctNames: ~Copyable {
    /// UTC day of the names, counted from 1970. `beginDay` forgets the names of another day.
    private(set) var day: Int64 = .min
    /// Number of names of the day.
    private(set) var count = 0
    /// Whether names were added or forgotten since they were last stored.
    var isChanged = false

    /// Table of hashes with the range of each name in `text`; `start` is -1 in a free slot.
    private var slots: UnsafeMutablePointer<(hash: UInt64, start: Int, length: Int)>
    /// Number of slots, a power of two: the index is the hash's low bits.
    private var capacity: Int
    /// Number of slots of an empty table: few, because most apps have no limit, and so no names.
    private static let least = 4
    /// Bytes of all names, one after the other.
    private var text = LineBuffer(capacity: 64)
    /// Start value of the hash.
    private let seed: UInt64

    /// - Parameter seed: a random number. With a known seed an app could choose names whose hashes collide,
    ///   and each event would search the whole table.
    init(seed: UInt64) {
        self.seed = seed
        capacity = DistinctNames.least
        slots = .allocate(capacity: capacity)
        slots.initialize(repeating: (0, -1, 0), count: capacity)
    }

    deinit { slots.deallocate() }

    /// Whether the name is one of the first `limit` names of the day. A new name is added if there is room.
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

    /// Forgets the names if the day is another one.
    mutating func beginDay(_ day: Int64) {
        guard day != self.day else { return }
        self.day = day
        guard count > 0 else { return }
        count = 0
        text.removeAll(keepingCapacity: 1 << 16)
        slots.update(repeating: (0, -1, 0), count: capacity)
        isChanged = true
    }

    /// The day and its names as bytes for the next start; nil if there are no names. Format: the day in eight
    /// bytes, then for each name its length in four bytes and its text; numbers are little-endian.
    func saved() -> [UInt8]? {
        guard count > 0 else { return nil }
        var bytes: [UInt8] = []
        withUnsafeBytes(of: day.littleEndian) { bytes.append(contentsOf: $0) }
        for index in 0..<capacity where slots[index].start >= 0 {
            withUnsafeBytes(of: UInt32(clamping: slots[index].length).littleEndian) {
                bytes.append(contentsOf: $0)
            }
            bytes.append(
                contentsOf: UnsafeBufferPointer(
                    start: text.start + slots[index].start, count: slots[index].length))
        }
        return bytes
    }

    /// Takes over names that `saved` wrote. Bytes that cannot be read end the list. The limit is not applied:
    /// it may have been lowered since, and then no new name is admitted.
    mutating func restore(_ bytes: [UInt8]) {
        guard bytes.count >= 8 else { return }
        beginDay(Int64(bitPattern: bytes[0..<8].reversed().reduce(0) { $0 << 8 | UInt64($1) }))
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

    /// Hash of a name, eight bytes at a time. If the length is not a multiple of eight, the last eight bytes
    /// overlap those before, so that no load goes beyond the name.
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

    /// The bytes of a name of less than eight as a number; from four bytes on some of them count twice.
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

    /// Mixes all bits of a value: multiplies it with 2⁶⁴ divided by the golden ratio and folds the two halves
    /// of the product.
    @inline(__always)
    private static func mix(_ value: UInt64) -> UInt64 {
        let (high, low) = value.multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15)
        return high ^ low
    }

    /// Whether the name in a slot has these bytes. Equal hashes alone prove nothing.
    @inline(__always)
    private func isEqual(_ index: Int, _ name: UnsafeBufferPointer<UInt8>) -> Bool {
        let length = slots[index].length
        guard length == name.count else { return false }
        guard let start = name.baseAddress else { return true }
        let known = UnsafeRawPointer(text.start + slots[index].start)
        let name = UnsafeRawPointer(start)
        // Most names have eight to sixteen bytes: two overlapping loads of eight compare them without a call.
        guard length >= 8, length <= 16 else { return memcmp(known, name, length) == 0 }
        let last = length &- 8
        return known.loadUnaligned(as: UInt64.self) == name.loadUnaligned(as: UInt64.self)
            && known.loadUnaligned(fromByteOffset: last, as: UInt64.self)
                == name.loadUnaligned(fromByteOffset: last, as: UInt64.self)
    }

    /// Adds a name that is not in the table; false if the day already has `limit` names.
    @inline(never)
    private mutating func insert(_ name: UnsafeBufferPointer<UInt8>, _ hash: UInt64, _ limit: Int) -> Bool {
        guard count < limit else { return false }
        if (count + 1) * 2 > capacity {
            grow()
        }
        put((hash, text.count, name.count))
        text.append(UnsafeRawBufferPointer(name))
        count += 1
        isChanged = true
        return true
    }

    /// Doubles the table, so that it stays at most half full and probes stay short.
    private mutating func grow() {
        let old = slots
        let oldCapacity = capacity
        capacity *= 2
        slots = .allocate(capacity: capacity)
        slots.initialize(repeating: (0, -1, 0), count: capacity)
        for index in 0..<oldCapacity where old[index].start >= 0 { put(old[index]) }
        old.deallocate()
    }

    /// Puts an entry into the first free slot from its hash on.
    private func put(_ slot: (hash: UInt64, start: Int, length: Int)) {
        assert((count + 1) * 2 <= capacity, "a table that is more than half full makes long searches")
        var index = Int(truncatingIfNeeded: slot.hash) & (capacity - 1)
        while slots[index].start >= 0 { index = (index + 1) & (capacity - 1) }
        slots[index] = slot
    }
}
