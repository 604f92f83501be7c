internal import CScan
internal import Events
internal import Model

/// The members of an object as places in its bytes, found in one walk. The memory is used again for the next
/// object, so that nothing is allocated for an event.
struct MemberList: ~Copyable {
    struct Member {
        let name: TextBytes
        let value: JSONBytes
        /// The name, if formats know it.
        let known: EventName?
        /// Hash of the name with its escapes resolved: equal names have equal hashes.
        let hash: UInt32
    }

    private(set) var members: UnsafeMutablePointer<Member>
    private(set) var count = 0
    private var capacity = 32
    /// The known names that the object has.
    private(set) var present: EventNames = []
    /// Index of the last member of each known name; meaningless for names that are not present.
    private let last: UnsafeMutablePointer<Int>
    /// Members that the fast walk has found and that are not in `members` yet.
    private let found: UnsafeMutablePointer<cscan_member>
    /// Most members of one call of the fast walk.
    private static let mostFound = 32
    /// Whether a name has escapes in it.
    private(set) var hasEscapedNames = false
    private let table = NameTable.known

    init() {
        members = .allocate(capacity: capacity)
        last = .allocate(capacity: EventName.allCases.count)
        last.initialize(repeating: 0, count: EventName.allCases.count)
        found = .allocate(capacity: MemberList.mostFound)
    }

    deinit {
        members.deallocate()
        last.deallocate()
        found.deallocate()
    }

    @inline(__always)
    subscript(index: Int) -> Member { members[index] }

    /// The last member of a name, which counts where a name occurs several times; nil without one.
    @inline(__always)
    subscript(name: EventName) -> JSONBytes? {
        present.contains(name) ? members[last[Int(name.rawValue)]].value : nil
    }

    /// The value of the last member of any name; nil without one.
    func value(of name: [UInt8]) -> JSONBytes? {
        for index in (0..<count).reversed() where members[index].name.equals(name) {
            return members[index].value
        }
        return nil
    }

    /// Forgets all members.
    mutating func removeAll() {
        count = 0
        present = []
        hasEscapedNames = false
    }

    /// Finds the members of the object whose opening bracket stands at `start`.
    ///
    /// - Returns: false if the object does not end before `end`, or a member has no value.
    mutating func read(_ start: UnsafePointer<UInt8>, _ end: Int) -> Bool {
        removeAll()
        var walk = RawWalk(start, from: 0, to: end)
        walk.goOn(at: readCompact(start, end))
        while let found = walk.nextName() {
            let offset = found.value.lowerBound
            guard offset < end else { return false }
            var isEscaped = false
            if start[offset] == UInt8(ascii: "\"") {
                walk.goOn(at: RawWalk.stringEnd(start, offset + 1, end, &isEscaped))
            } else {
                walk.skipValue()
            }
            guard walk.offset > offset else { return false }
            add(
                TextBytes(
                    start + found.name.lowerBound, found.name.count, found.isEscaped ? .escaped : .plain),
                JSONBytes(start + offset, walk.offset - offset, isEscaped: isEscaped))
        }
        return walk.offset < end && start[walk.offset] == UInt8(ascii: "}")
    }

    /// Adds the members up to the first that has blanks around its name, or is not whole. Most programs write
    /// no blanks, and this walk is the largest part of what a format costs.
    ///
    /// - Returns: the offset after the last value.
    private mutating func readCompact(_ start: UnsafePointer<UInt8>, _ end: Int) -> Int {
        var offset = 1
        guard end > offset, end < Int(UInt32.max) else { return offset }
        var count = 0
        repeat {
            count = cscan_members(start, &offset, end, found, MemberList.mostFound)
            for index in 0..<count {
                let member = found[index]
                add(
                    TextBytes(
                        start + Int(member.name), Int(member.name_length),
                        member.is_name_escaped ? .escaped : .plain),
                    JSONBytes(
                        start + Int(member.value), Int(member.value_length),
                        isEscaped: member.is_value_escaped))
            }
        } while count == MemberList.mostFound
        return offset
    }

    @inline(__always)
    private mutating func add(_ name: TextBytes, _ value: JSONBytes) {
        if count == capacity {
            grow()
        }
        let identity = identify(name)
        (members + count).initialize(
            to: Member(name: name, value: value, known: identity.known, hash: identity.hash))
        if let known = identity.known {
            present.insert(known)
            last[Int(known.rawValue)] = count
        }
        count &+= 1
    }

    @inline(__always)
    private mutating func identify(_ name: TextBytes) -> (known: EventName?, hash: UInt32) {
        guard name.isEscaped else { return identify(name.start, name.count) }
        hasEscapedNames = true
        let decoded = name.decoded
        return decoded.withUnsafeBufferPointer { bytes in
            bytes.baseAddress.map { identify($0, bytes.count) } ?? (nil, 0)
        }
    }

    @inline(__always)
    private func identify(_ start: UnsafePointer<UInt8>, _ count: Int) -> (known: EventName?, hash: UInt32) {
        let key = NameTable.Key(start, count)
        let hash = key.hash(table.factor)
        return (table.name(start, key, hash), UInt32(truncatingIfNeeded: hash &>> 32))
    }

    @inline(never)
    private mutating func grow() {
        let moved = UnsafeMutablePointer<Member>.allocate(capacity: capacity * 2)
        moved.moveInitialize(from: members, count: count)
        members.deallocate()
        members = moved
        capacity *= 2
    }
}
