internal import Events
internal import Glibc

/// The members of an event that are read, as a tree of names: one walk over the event finds all of them.
///
/// Nodes are numbered so that those below a node follow it; number 0 is the event. It never changes, so that
/// it is read without locks and without counting references.
struct WantedMembers: ~Copyable, @unchecked Sendable {
    // Unchecked: nothing is written after `init`, and the storage is its own.
    private let nodes: UnsafeMutableBufferPointer<Node>
    /// The hash tables of all nodes.
    private let slots: UnsafeMutableBufferPointer<Slot>
    /// The names, one after the other.
    private let text: UnsafeMutableBufferPointer<UInt8>

    /// Range of a value in a line, in bytes from its beginning; `start` is negative if the member is missing.
    struct ValueRange {
        var start = -1
        var end = -1

        /// The range; nil if the member is missing.
        @inline(__always) var range: Range<Int>? { start < 0 ? nil : start..<end }
    }

    /// A member that is wanted, or has wanted members.
    private struct Node {
        /// Index of its hash table in `slots`.
        var firstSlot = 0
        /// Size of the table minus 1; negative for a node without wanted members below it.
        var mask = -1
        /// The number after its last node below.
        var end = 0
    }

    /// An entry of a hash table with open addressing.
    private struct Slot {
        /// Node of the name; negative for an empty slot.
        var node = -1
        /// Length of the name.
        var length = 0
        /// The first eight bytes of the name.
        var key: UInt64 = 0
        /// Offset of the name in `text`.
        var start = 0
    }

    /// A tree of paths.
    ///
    /// - Parameter paths: paths from the event inwards, each of at least one name.
    init(_ paths: [[[UInt8]]]) {
        var made: [Node] = []
        var table: [Slot] = []
        var bytes: [UInt8] = []
        func add(_ paths: [ArraySlice<[UInt8]>]) {
            let number = made.count
            made.append(Node())
            let below = Dictionary(grouping: paths.filter { !$0.isEmpty }) { $0[$0.startIndex] }
            if !below.isEmpty {
                var capacity = 2
                while capacity < below.count * 2 { capacity *= 2 }
                let first = table.count
                table.append(contentsOf: repeatElement(Slot(), count: capacity))
                made[number].firstSlot = first
                made[number].mask = capacity - 1
                for (name, rest) in below.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
                    let key = name.withUnsafeBufferPointer { WantedMembers.key($0, 0, $0.count, $0.count) }
                    var slot = WantedMembers.hash(key, name.count) & (capacity - 1)
                    while table[first + slot].node >= 0 { slot = (slot + 1) & (capacity - 1) }
                    table[first + slot] = Slot(
                        node: made.count, length: name.count, key: key, start: bytes.count)
                    bytes.append(contentsOf: name)
                    add(rest.map { $0.dropFirst() })
                }
            }
            made[number].end = made.count
        }
        add(paths.map { $0[...] })
        nodes = .copy(of: made)
        slots = .copy(of: table)
        text = .copy(of: bytes)
    }

    deinit {
        nodes.deallocate()
        slots.deallocate()
        text.deallocate()
    }

    /// Number of ranges that `find` writes.
    var count: Int { nodes.count }

    /// The node of a path; nil if it is not wanted.
    func node(at path: [[UInt8]]) -> Int? {
        var node = 0
        for name in path {
            let next = name.withUnsafeBufferPointer { child(of: node, $0, 0, $0.count, $0.count) }
            guard next >= 0 else { return nil }
            node = next
        }
        return node
    }

    /// The node of a name at the top; negative if it is not wanted.
    @inline(__always)
    func node(ofName name: UnsafeBufferPointer<UInt8>) -> Int {
        child(of: 0, name, 0, name.count, name.count)
    }

    /// Finds the members in an accepted line; of equal names the last counts. `ranges` must have room for
    /// `count` ranges.
    func find(in base: UnsafePointer<UInt8>, to end: Int, into ranges: UnsafeMutablePointer<ValueRange>) {
        ranges.update(repeating: ValueRange(), count: nodes.count)
        guard end > 0, base[0] == UInt8(ascii: "{") else { return }
        _ = find(0, base, 0, end, ranges)
    }

    /// Finds the members below a node in an object; returns the offset after it.
    private func find(
        _ node: Int, _ base: UnsafePointer<UInt8>, _ start: Int, _ end: Int,
        _ ranges: UnsafeMutablePointer<ValueRange>
    ) -> Int {
        let bytes = UnsafeBufferPointer(start: base, count: end)
        var walk = RawWalk(base, from: start, to: end)
        while let member = walk.nextName() {
            let found =
                member.isEscaped
                ? decodedChild(of: node, base, member.name)
                : child(of: node, bytes, member.name.lowerBound, member.name.count, end)
            guard found >= 0 else {
                walk.skipValue()
                continue
            }
            let value = member.value.lowerBound
            if nodes[found].mask >= 0 {
                if ranges[found].start >= 0 {
                    forget(below: found, ranges)
                }
                if value < end, base[value] == UInt8(ascii: "{") {
                    walk.goOn(at: find(found, base, value, end, ranges))
                } else {
                    walk.skipValue()
                }
            } else {
                walk.skipValue()
            }
            ranges[found] = ValueRange(start: value, end: max(value, walk.offset))
        }
        return walk.objectEnd
    }

    /// Forgets the members below a node: a later member of the same name counts instead, with everything in
    /// it.
    private func forget(below node: Int, _ ranges: UnsafeMutablePointer<ValueRange>) {
        for lower in node + 1..<nodes[node].end { ranges[lower] = ValueRange() }
    }

    /// The node of a name with escapes.
    @inline(never)
    private func decodedChild(of node: Int, _ base: UnsafePointer<UInt8>, _ name: Range<Int>) -> Int {
        RawJSON.decoded(base, name).withUnsafeBufferPointer { child(of: node, $0, 0, $0.count, $0.count) }
    }

    /// The node of a name below a node; negative if it is not wanted.
    @inline(__always)
    private func child(
        of node: Int, _ bytes: UnsafeBufferPointer<UInt8>, _ start: Int, _ length: Int, _ end: Int
    ) -> Int {
        let mask = nodes[node].mask
        guard mask >= 0 else { return -1 }
        let key = WantedMembers.key(bytes, start, length, end)
        let first = nodes[node].firstSlot
        var slot = WantedMembers.hash(key, length) & mask
        while slots[first + slot].node >= 0 {
            let candidate = first + slot
            if slots[candidate].key == key, slots[candidate].length == length,
                length <= 8 || isEqual(slots[candidate].start, bytes, start, length)
            {
                return slots[candidate].node
            }
            slot = (slot + 1) & mask
        }
        return -1
    }

    /// Whether two names of equal length are equal.
    @inline(__always)
    private func isEqual(_ own: Int, _ bytes: UnsafeBufferPointer<UInt8>, _ start: Int, _ length: Int) -> Bool
    {
        guard let ours = text.baseAddress, let others = bytes.baseAddress else { return false }
        return memcmp(ours + own, others + start, length) == 0
    }

    /// The first eight bytes of a name as a number, filled with zeros.
    @inline(__always)
    private static func key(_ bytes: UnsafeBufferPointer<UInt8>, _ start: Int, _ length: Int, _ end: Int)
        -> UInt64
    {
        guard let base = bytes.baseAddress, length > 0 else { return 0 }
        guard start + 8 <= end else {
            var key: UInt64 = 0
            for index in 0..<length { key |= UInt64(base[start + index]) << UInt64(index * 8) }
            return key
        }
        let key = UInt64(littleEndian: UnsafeRawPointer(base + start).loadUnaligned(as: UInt64.self))
        return length >= 8 ? key : key & ((1 << UInt64(length * 8)) - 1)
    }

    /// Hash of a name. The names are the document's, and its author would gain nothing by collisions: no seed
    /// is needed.
    @inline(__always)
    private static func hash(_ key: UInt64, _ length: Int) -> Int {
        Int(truncatingIfNeeded: ((key ^ UInt64(truncatingIfNeeded: length)) &* 0x9E37_79B9_7F4A_7C15) >> 40)
    }
}
