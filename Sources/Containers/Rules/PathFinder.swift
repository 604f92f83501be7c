internal import Events
internal import Model

/// Finds what a path leads to in one walk over a line, and collects the edits: for each of equal names, and
/// in each element of lists.
struct PathFinder {
    /// The change to the values that the path leads to.
    enum Change {
        /// Removes the member with its comma.
        case cut
        /// Replaces the value; nil leaves it.
        case value((_ line: UnsafePointer<UInt8>, _ value: Range<Int>) -> [UInt8]?)
        /// Renames the member, and removes other members of that name.
        case rename(to: [UInt8])
        /// Replaces what patterns find in texts, at any depth in the member.
        case texts(Scrubber)
    }

    /// The line.
    private let base: UnsafePointer<UInt8>
    /// Length of the line.
    private let end: Int
    /// The path.
    private let path: PathSteps
    /// The change to make where the path ends.
    private let change: Change
    /// Whether the event's name may be changed or removed.
    private let takesName: Bool
    /// Longest line that is allowed.
    private let most: Int
    /// The edits.
    private(set) var edits: Edits

    /// Walks over a line. `takesName` says whether the event's name may be changed. The walk ends when the
    /// line would be longer than `most`.
    init(
        _ base: UnsafePointer<UInt8>, to end: Int, _ path: PathSteps, _ change: Change, takesName: Bool,
        most: Int
    ) {
        edits = Edits(most: most)
        self.base = base
        self.end = end
        self.path = path
        self.change = change
        self.takesName = takesName
        self.most = most
        guard end > 0, base[0] == UInt8(ascii: "{") else { return }
        _ = visit(object: 0, path.start, isInside: false, isTop: true)
    }

    /// Walks over an object; returns the offset after it.
    ///
    /// - Parameters:
    ///   - states: how far the path has been followed, as in `PathSteps`.
    ///   - isInside: whether the object is in a member that the path leads to.
    ///   - isTop: whether it is the event itself.
    private mutating func visit(object: Int, _ states: UInt64, isInside: Bool, isTop: Bool) -> Int {
        var walk = RawWalk(base, from: object, to: end)
        var last: Int?
        var hasKept = false
        var open: Int?
        let renaming = renaming(in: object, states)
        while !edits.isOver, let member = walk.nextName() {
            let start = member.name.lowerBound - 1
            if let open {
                edits.extend(open, to: start)
            }
            open = nil
            let isID = isTop && !isNested(member.value.lowerBound) && member.isNamed(PathFinder.id, in: base)
            let isKept =
                isID && !isSearching || isTop && !takesName && member.isNamed(PathFinder.name, in: base)
            let next = isInside || isKept ? states : self.next(states, member)
            var isCut = false
            if let renaming, member.isNamed(renaming.name, in: base) {
                walk.skipValue()
                isCut = true
            } else if !isKept, isInside || path.isAtEnd(next) {
                isCut = meet(member, next, isID: isID, renaming?.member, &walk)
            } else if !isKept, next != 0, isNested(member.value.lowerBound) {
                walk.goOn(at: visit(nested: member.value.lowerBound, next, isInside: false))
            } else {
                walk.skipValue()
            }
            if isCut {
                if !hasKept {
                    open = edits.replacements.count
                }
                edits.replace(((hasKept ? last : nil) ?? start)..<walk.offset, with: [])
            }
            hasKept = hasKept || !isCut
            last = walk.offset
        }
        return walk.objectEnd
    }

    /// Changes a member that the path leads to, and walks over it; returns whether the member is removed.
    private mutating func meet(
        _ member: RawMember, _ states: UInt64, isID: Bool, _ renamed: RawMember?, _ walk: inout RawWalk
    ) -> Bool {
        switch change {
        case .cut:
            walk.skipValue()
            return true
        case .value(let make):
            walk.skipValue()
            let value = member.value.lowerBound..<walk.offset
            if let bytes = make(base, value) {
                edits.replace(value, with: bytes)
            }
        case .rename(let name):
            walk.skipValue()
            // The last of equal names counts.
            guard member.name == renamed?.name else { return true }
            var quoted: [UInt8] = []
            name.withUnsafeBufferPointer { JSONString.append($0, to: &quoted) }
            edits.replace(member.name.lowerBound - 1..<member.name.upperBound + 1, with: quoted)
        case .texts(let scrubber):
            guard isID || scrubber.clean(RawJSON.decoded(base, member.name)) == nil else {
                walk.skipValue()
                return true
            }
            if isNested(member.value.lowerBound) {
                walk.goOn(at: visit(nested: member.value.lowerBound, states, isInside: true))
            } else {
                walk.skipValue()
                scrub(member.value.lowerBound..<walk.offset, scrubber, isID: isID)
            }
        }
        return false
    }

    /// How far the path leads with a member's name.
    private func next(_ states: UInt64, _ member: RawMember) -> UInt64 {
        member.isEscaped
            ? path.next(states, RawJSON.decoded(base, member.name))
            : path.next(states, RawJSON.bytes(base, member.name))
    }

    /// The member of an object that the change renames, and its new name.
    private func renaming(in object: Int, _ states: UInt64) -> (member: RawMember, name: [UInt8])? {
        guard case .rename(let name) = change, let last = path.names.last,
            states >> UInt64(path.names.count - 1) & 1 == 1
        else { return nil }
        return RawWalk.find(last, in: base, from: object, to: end).map { ($0, name) }
    }

    /// Walks over an object or a list at any depth, which the events' pass has bounded; returns the offset
    /// after it.
    private mutating func visit(nested start: Int, _ states: UInt64, isInside: Bool) -> Int {
        guard base[start] == UInt8(ascii: "[") else {
            return visit(object: start, states, isInside: isInside, isTop: false)
        }
        var position = start + 1
        while position < end, !edits.isOver {
            switch base[position] {
            case UInt8(ascii: "]"): return position + 1
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                position = visit(nested: position, states, isInside: isInside)
            case UInt8(ascii: ","), ...0x20: position += 1
            default:
                let value = position..<max(RawWalk.valueEnd(base, position, end), position + 1)
                if isInside, case .texts(let scrubber) = change {
                    scrub(value, scrubber)
                }
                position = value.upperBound
            }
        }
        return end
    }

    /// Replaces what patterns find in a text or number.
    private mutating func scrub(_ value: Range<Int>, _ scrubber: Scrubber, isID: Bool = false) {
        // Truth values and null have no text.
        guard let first = value.first, base[first] == UInt8(ascii: "\"") || base[first] <= UInt8(ascii: "9"),
            let text = MacroValue(base, value).text(base), let clean = scrubber.clean(text, most: most)
        else { return }
        let other = JSONValue.string(String(decoding: clean, as: UTF8.self)).description.bytes
        edits.replace(value, with: isID ? scrubber.hashing.identifier(base, value) ?? other : other)
    }

    /// Whether a value is an object or a list.
    private func isNested(_ offset: Int) -> Bool {
        offset < end && (base[offset] == UInt8(ascii: "{") || base[offset] == UInt8(ascii: "["))
    }

    /// Whether patterns search texts. Only then may an event's id be changed, if they find something in it.
    private var isSearching: Bool { if case .texts = change { true } else { false } }

    /// Name of the member for the event's id.
    private static let id = "id".bytes
    /// Name of the member for the event's name.
    private static let name = "name".bytes
}
