internal import Events
internal import Model

/// The values that `set` tags give to members of an event, gathered so that one walk over the line sets them all.
struct WantedValues {
    private struct Node {
        let name: [UInt8]
        /// What tells the name and the object that it is in from most others.
        let key: UInt64
        /// The text of its value; nil for an object of which some members get values.
        var value: [UInt8]?
        /// The members of the object, in the order in which they were first asked for.
        var members: [Int] = []
        /// Which member of the line it is, by its place among those that were found; nil for a new one.
        var found: Int?
    }

    /// All that a document may change, in their own objects.
    private static let most = DocumentLimits.changes * 2
    /// The event, then its members and theirs.
    private var nodes = [Node(name: [], key: 0)]
    /// The nodes by their keys, by open addressing; 0 for none.
    private var slots = [Int16](repeating: 0, count: most * 2)
    /// By how much they make a line longer at most, in bytes.
    private(set) var size = 0

    var isEmpty: Bool { nodes.count == 1 }

    mutating func removeAll() {
        guard !isEmpty else { return }
        nodes.removeSubrange(1...)
        nodes[0].members.removeAll(keepingCapacity: true)
        for place in slots.indices { slots[place] = 0 }
        size = 0
    }

    /// Asks for a value; false where others must be in the line first: they are too many, or the names lead through one.
    mutating func add(_ names: [[UInt8]], _ value: [UInt8]) -> Bool {
        guard isEmpty || nodes.count + names.count <= WantedValues.most else { return false }
        var node = 0
        for name in names {
            if nodes[node].value != nil { return false }
            node = member(name, of: node)
            // Each byte escaped, two quotes, a colon, two brackets and a comma.
            size += name.count * 6 + 6
        }
        nodes[node].value = value
        nodes[node].members = []
        size += value.count
        return true
    }

    private mutating func member(_ name: [UInt8], of object: Int) -> Int {
        let (key, slot, known) = name.withUnsafeBufferPointer { find($0, in: object) }
        if let known { return known }
        slots[slot] = Int16(nodes.count)
        nodes[object].members.append(nodes.count)
        nodes.append(Node(name: name, key: key))
        return nodes.count - 1
    }

    /// The node of a name in an object, and where it is to be found.
    @inline(__always)
    private func find(_ name: UnsafeBufferPointer<UInt8>, in object: Int) -> (key: UInt64, slot: Int, node: Int?) {
        var key = ComparedValue.head(of: name)
        if name.count > 8 {
            let tail = UnsafeBufferPointer(rebasing: name[(name.count - 8)...])
            key ^= ComparedValue.head(of: tail) &* 0x9E37_79B9_7F4A_7C15
        }
        key = (key ^ UInt64(name.count << 32 | object)) &* 0xC4CE_B9FE_1A85_EC53
        var slot = Int(key >> 32) & (slots.count - 1)
        while slots[slot] != 0 {
            let node = Int(slots[slot])
            if nodes[node].key == key, nodes[node].name.withUnsafeBufferPointer({ name.equals($0) }) {
                return (key, slot, node)
            }
            slot = (slot + 1) & (slots.count - 1)
        }
        return (key, slot, nil)
    }

    /// What sets them in a line.
    mutating func edits(in base: UnsafePointer<UInt8>, to end: Int, most: Int) -> Edits {
        var edits = Edits(most: most)
        if end > 0, base[0] == UInt8(ascii: "{") { visit(0, at: 0, base, end, &edits) }
        return edits
    }

    /// Sets the members of an object that begins at `start`. Of equal ones the last gets the value, the others go.
    private mutating func visit(
        _ object: Int, at start: Int, _ base: UnsafePointer<UInt8>, _ end: Int, _ edits: inout Edits
    ) {
        var walk = RawWalk(base, from: start, to: end)
        var found: [(node: Int, begin: Int, value: Range<Int>, next: Int?)] = []
        var isEmpty = true
        while let member = walk.next() {
            let begin = member.name.lowerBound - 1
            if let last = found.indices.last, found[last].next == nil { found[last].next = begin }
            isEmpty = false
            guard let node = node(of: member, in: object, base) else { continue }
            nodes[node].found = found.count
            found.append((node, begin, member.value, nil))
        }
        for (place, (node, begin, value, next)) in found.enumerated() {
            if nodes[node].found != place {
                edits.replace(begin..<(next ?? value.upperBound), with: [])
            } else if nodes[node].value == nil, base[value.lowerBound] == UInt8(ascii: "{") {
                visit(node, at: value.lowerBound, base, end, &edits)
            } else {
                var text: [UInt8] = []
                write(node, to: &text)
                edits.replace(value, with: text)
            }
        }
        let new = nodes[object].members.filter { nodes[$0].found == nil }
        guard !new.isEmpty else { return }
        let close = walk.objectEnd - 1
        var last = close
        while last > start + 1, base[last - 1] <= 0x20 { last -= 1 }
        var text: [UInt8] = isEmpty ? [] : [UInt8(ascii: ",")]
        write(new, to: &text)
        edits.replace(last..<close, with: text)
    }

    @inline(__always)
    private func node(of member: RawMember, in object: Int, _ base: UnsafePointer<UInt8>) -> Int? {
        if member.isEscaped {
            return RawJSON.decoded(base, member.name).withUnsafeBufferPointer { find($0, in: object).node }
        }
        return find(RawJSON.bytes(base, member.name), in: object).node
    }

    private func write(_ members: [Int], to text: inout [UInt8]) {
        for (place, member) in members.enumerated() {
            if place > 0 { text.append(UInt8(ascii: ",")) }
            nodes[member].name.withUnsafeBufferPointer { JSONString.append($0, to: &text) }
            text.append(UInt8(ascii: ":"))
            write(member, to: &text)
        }
    }

    private func write(_ node: Int, to text: inout [UInt8]) {
        if let value = nodes[node].value {
            text += value
        } else {
            text.append(UInt8(ascii: "{"))
            write(nodes[node].members, to: &text)
            text.append(UInt8(ascii: "}"))
        }
    }
}
