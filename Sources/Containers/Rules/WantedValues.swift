internal import Events
internal import Model

/// The values that `set` tags give to members of an event, gathered so that one walk over the line sets them
/// all.
struct WantedValues {
    /// A member, as a node of a tree.
    private struct Node {
        /// Name.
        let name: [UInt8]
        /// Hash of the name and of its object; distinguishes nearly all members.
        let key: UInt64
        /// JSON text of the value; nil for an object of which only members get values.
        var value: [UInt8]?
        /// Members of the object, in the order in which they were first set.
        var members: [Int] = []
        /// Index of the member among those found in the line; nil if the line does not have it.
        var found: Int?
    }

    /// Upper bound for the nodes: all changes of a document, each in an object of its own.
    private static let most = DocumentLimits.changes * 2
    /// The event, then its members, then theirs.
    private var nodes = [Node(name: [], key: 0)]
    /// The nodes by their hashes, by open addressing; 0 for an empty slot.
    private var slots = [Int16](repeating: 0, count: most * 2)
    /// Most bytes by which the values make a line longer.
    private(set) var size = 0

    /// Whether no value waits.
    var isEmpty: Bool { nodes.count == 1 }

    /// Forgets all values.
    mutating func removeAll() {
        guard !isEmpty else { return }
        nodes.removeSubrange(1...)
        nodes[0].members.removeAll(keepingCapacity: true)
        for index in slots.indices { slots[index] = 0 }
        size = 0
    }

    /// Adds a value. Returns false if others must be written first: there are too many, or the path leads
    /// through one of them.
    mutating func add(_ names: [[UInt8]], _ value: [UInt8]) -> Bool {
        guard isEmpty || nodes.count + names.count <= WantedValues.most else { return false }
        var node = 0
        for name in names {
            if nodes[node].value != nil { return false }
            node = member(name, of: node)
            // Each byte of a name takes six bytes if escaped (`\u0000`). Six more are for two quotes, a
            // colon, two braces and a comma.
            size += name.count * 6 + 6
        }
        nodes[node].value = value
        nodes[node].members = []
        size += value.count
        return true
    }

    /// The node of a name in an object, made if it is new.
    private mutating func member(_ name: [UInt8], of object: Int) -> Int {
        let (key, slot, known) = name.withUnsafeBufferPointer { find($0, in: object) }
        if let known { return known }
        slots[slot] = Int16(nodes.count)
        nodes[object].members.append(nodes.count)
        nodes.append(Node(name: name, key: key))
        return nodes.count - 1
    }

    /// The node of a name in an object, with its hash and its slot.
    @inline(__always)
    private func find(_ name: UnsafeBufferPointer<UInt8>, in object: Int) -> (
        key: UInt64, slot: Int, node: Int?
    ) {
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

    /// The edits that set the values in a line.
    mutating func edits(in base: UnsafePointer<UInt8>, to end: Int, most: Int) -> Edits {
        var edits = Edits(most: most)
        if end > 0, base[0] == UInt8(ascii: "{") {
            visit(0, at: 0, base, end, &edits)
        }
        return edits
    }

    /// Sets the members of an object that begins at `start`. Of equal names the last one gets the value, the
    /// others are removed.
    private mutating func visit(
        _ object: Int, at start: Int, _ base: UnsafePointer<UInt8>, _ end: Int, _ edits: inout Edits
    ) {
        var walk = RawWalk(base, from: start, to: end)
        var found: [(node: Int, begin: Int, value: Range<Int>, next: Int?)] = []
        var isEmpty = true
        while let member = walk.next() {
            let begin = member.name.lowerBound - 1
            if let last = found.indices.last, found[last].next == nil {
                found[last].next = begin
            }
            isEmpty = false
            guard let node = node(of: member, in: object, base) else { continue }
            nodes[node].found = found.count
            found.append((node, begin, member.value, nil))
        }
        for (index, (node, begin, value, next)) in found.enumerated() {
            if nodes[node].found != index {
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

    /// The node of a member of the line; nil if it gets no value.
    @inline(__always)
    private func node(of member: RawMember, in object: Int, _ base: UnsafePointer<UInt8>) -> Int? {
        if member.isEscaped {
            return RawJSON.decoded(base, member.name).withUnsafeBufferPointer { find($0, in: object).node }
        }
        return find(RawJSON.bytes(base, member.name), in: object).node
    }

    /// Writes members as JSON.
    private func write(_ members: [Int], to text: inout [UInt8]) {
        for (index, member) in members.enumerated() {
            if index > 0 {
                text.append(UInt8(ascii: ","))
            }
            nodes[member].name.withUnsafeBufferPointer { JSONString.append($0, to: &text) }
            text.append(UInt8(ascii: ":"))
            write(member, to: &text)
        }
    }

    /// Writes the value of a node as JSON.
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
