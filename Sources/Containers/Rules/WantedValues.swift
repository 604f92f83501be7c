internal import Model

/// The values that `set` tags give to members of an event, gathered so that one walk over the line sets them all.
struct WantedValues {
    private struct Node {
        let name: [UInt8]
        /// What tells it and the object that it is in from most others.
        let key: UInt64
        /// The text of its value; nil for an object of which some members get values.
        var value: [UInt8]?
        /// The members of the object, in the order in which they were first asked for: the first, the last, and after each
        /// the next one; 0 for none.
        var first = 0
        var last = 0
        var next = 0
        /// Which member of the line it is, by its place among those that were found; nil for a new one.
        var found: Int?

        init(_ name: [UInt8], _ key: UInt64) {
            self.name = name
            self.key = key
        }
    }

    /// The event, then its members and theirs.
    private var nodes = [Node([], 0)]
    /// The nodes by their keys, by open addressing; 0 for none.
    private var slots = [Int](repeating: 0, count: 256)
    /// By how much they make a line longer at most, in bytes.
    private(set) var size = 0

    var isEmpty: Bool { nodes.count == 1 }

    mutating func removeAll() {
        guard !isEmpty else { return }
        nodes.removeSubrange(1...)
        for place in slots.indices { slots[place] = 0 }
        nodes[0].first = 0
        nodes[0].last = 0
        size = 0
    }

    /// Asks for a value.
    ///
    /// - Returns: false where the names lead through a value that was asked for, which has to be in the line first.
    mutating func add(_ names: [[UInt8]], _ value: [UInt8]) -> Bool {
        var node = 0
        for name in names {
            if nodes[node].value != nil { return false }
            node = member(name, of: node)
            // Each byte escaped, two quotes, a colon, two brackets and a comma.
            size += name.count * 6 + 6
        }
        nodes[node].value = value
        nodes[node].first = 0
        nodes[node].last = 0
        size += value.count
        return true
    }

    private mutating func member(_ name: [UInt8], of object: Int) -> Int {
        let (key, slot, known) = name.withUnsafeBufferPointer { find($0, in: object) }
        if let known { return known }
        let number = nodes.count
        nodes.append(Node(name, key))
        slots[slot] = number
        if number * 2 > slots.count { grow() }
        if nodes[object].first == 0 { nodes[object].first = number } else { nodes[nodes[object].last].next = number }
        nodes[object].last = number
        return number
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
            let node = slots[slot]
            if nodes[node].key == key, nodes[node].name.withUnsafeBufferPointer({ name.equals($0) }) {
                return (key, slot, node)
            }
            slot = (slot + 1) & (slots.count - 1)
        }
        return (key, slot, nil)
    }

    private mutating func grow() {
        slots = [Int](repeating: 0, count: slots.count * 2)
        for node in nodes.indices.dropFirst() {
            var slot = Int(nodes[node].key >> 32) & (slots.count - 1)
            while slots[slot] != 0 { slot = (slot + 1) & (slots.count - 1) }
            slots[slot] = node
        }
    }

    // MARK: Setting

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
            guard let node = self.node(of: member, in: object, base) else { continue }
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
        insert(object, isEmpty, from: start, to: walk.objectEnd - 1, base, &edits)
    }

    /// The node of a member's name.
    @inline(__always)
    private func node(of member: RawMember, in object: Int, _ base: UnsafePointer<UInt8>) -> Int? {
        if member.isEscaped {
            return RawJSON.decoded(base, member.name).withUnsafeBufferPointer { find($0, in: object).node }
        }
        let start = base + member.name.lowerBound
        return find(UnsafeBufferPointer(start: start, count: member.name.count), in: object).node
    }

    /// Adds those that the object does not have in front of its closing bracket.
    private func insert(
        _ object: Int, _ isEmpty: Bool, from start: Int, to close: Int, _ base: UnsafePointer<UInt8>,
        _ edits: inout Edits
    ) {
        var text: [UInt8] = []
        var node = nodes[object].first
        while node != 0 {
            if nodes[node].found == nil {
                if !isEmpty || !text.isEmpty { text.append(UInt8(ascii: ",")) }
                writeMember(node, to: &text)
            }
            node = nodes[node].next
        }
        guard !text.isEmpty else { return }
        var place = close
        while place > start + 1, base[place - 1] <= 0x20 { place -= 1 }
        edits.replace(place..<close, with: text)
    }

    private func writeMember(_ node: Int, to text: inout [UInt8]) {
        nodes[node].name.withUnsafeBufferPointer { JSONString.append($0, to: &text) }
        text.append(UInt8(ascii: ":"))
        write(node, to: &text)
    }

    private func write(_ node: Int, to text: inout [UInt8]) {
        if let value = nodes[node].value {
            text += value
            return
        }
        text.append(UInt8(ascii: "{"))
        var member = nodes[node].first
        while member != 0 {
            writeMember(member, to: &text)
            member = nodes[member].next
            if member != 0 { text.append(UInt8(ascii: ",")) }
        }
        text.append(UInt8(ascii: "}"))
    }
}
