internal import Glibc

/// The tags that may fire for an event, by its name: most rules ask for one, and an event of another name then costs one
/// look-up.
///
/// Open addressing over bytes; it never changes, so that it is read without locks and without counting references.
struct NameIndex: ~Copyable, @unchecked Sendable {
    // Nothing is written after init, and the storage is its own.
    /// Tags, by their places, in order; for a name that is in no rule.
    private let others: UnsafeMutableBufferPointer<Int32>
    private let slots: UnsafeMutableBufferPointer<Slot>
    private let text: UnsafeMutableBufferPointer<UInt8>
    private let mask: Int

    private struct Slot {
        var hash: UInt64 = 0
        var start = -1
        var length = 0
        var tags = UnsafeMutableBufferPointer<Int32>(start: nil, count: 0)
    }

    /// - Parameters:
    ///   - tags: for each name that rules ask for, the tags that may fire.
    ///   - others: the tags that may fire for any other name.
    init(_ tags: [[UInt8]: [Int]], others: [Int]) {
        self.others = .copy(of: others.map { Int32(truncatingIfNeeded: $0) })
        var capacity = 4
        while capacity < tags.count * 2 + 2 { capacity *= 2 }
        mask = capacity - 1
        slots = .allocate(capacity: capacity)
        slots.initialize(repeating: Slot())
        text = .allocate(capacity: tags.keys.reduce(1) { $0 + $1.count })
        text.initialize(repeating: 0)
        var used = 0
        for (name, places) in tags {
            let hash = name.withUnsafeBufferPointer { NameIndex.hash($0) }
            var index = Int(truncatingIfNeeded: hash) & mask
            while slots[index].start >= 0 { index = (index + 1) & mask }
            slots[index] = Slot(
                hash: hash, start: used, length: name.count,
                tags: .copy(of: places.map { Int32(truncatingIfNeeded: $0) }))
            for byte in name {
                text[used] = byte
                used += 1
            }
        }
    }

    deinit {
        for slot in slots { slot.tags.deallocate() }
        slots.deallocate()
        text.deallocate()
        others.deallocate()
    }

    /// The tags that may fire for an event of that name; valid as long as this.
    @inline(__always)
    func tags(for name: UnsafeBufferPointer<UInt8>) -> UnsafeMutableBufferPointer<Int32> {
        let hash = NameIndex.hash(name)
        var index = Int(truncatingIfNeeded: hash) & mask
        while slots[index].start >= 0 {
            if slots[index].hash == hash, slots[index].length == name.count, isEqual(slots[index].start, name) {
                return slots[index].tags
            }
            index = (index + 1) & mask
        }
        return others
    }

    @inline(__always)
    private func isEqual(_ start: Int, _ name: UnsafeBufferPointer<UInt8>) -> Bool {
        guard let own = text.baseAddress, let other = name.baseAddress else { return name.isEmpty }
        return memcmp(own + start, other, name.count) == 0
    }

    /// The names are the document's, so nobody gains by collisions: no seed.
    @inline(__always)
    private static func hash(_ name: UnsafeBufferPointer<UInt8>) -> UInt64 {
        var hash = 0x9E37_79B9_7F4A_7C15 ^ UInt64(truncatingIfNeeded: name.count)
        guard var p = name.baseAddress.map({ UnsafeRawPointer($0) }) else { return hash }
        var left = name.count
        while left >= 8 {
            hash = mix(hash ^ p.loadUnaligned(as: UInt64.self))
            p += 8
            left -= 8
        }
        if left > 0 {
            var last: UInt64 = 0
            for index in 0..<left { last = last << 8 | UInt64(p.load(fromByteOffset: index, as: UInt8.self)) }
            hash = mix(hash ^ last)
        }
        return hash
    }

    @inline(__always)
    private static func mix(_ value: UInt64) -> UInt64 {
        let (high, low) = value.multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15)
        return high ^ low
    }
}
