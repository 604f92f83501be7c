internal import Events
internal import Model

/// Finds what a path leads to, in one pass over a line: of equal names each, and in each element of lists on the way.
struct PathFinder {
    enum Change {
        /// It goes, with its comma.
        case cut
        /// Its value becomes another; nil leaves it.
        case value((_ line: UnsafePointer<UInt8>, _ value: Range<Int>) -> [UInt8]?)
        /// It gets another name, and members go that had it.
        case rename(to: [UInt8])
        /// Its texts lose what patterns find, however deep they are in it.
        case texts(Scrubber)
    }

    private let base: UnsafePointer<UInt8>
    private let end: Int
    private let path: PathSteps
    private let change: Change
    private let takesName: Bool
    private let most: Int
    private(set) var edits: Edits

    /// `takesName`: whether it may lose its name. In a line longer than `most` nothing more is looked for.
    init(
        _ base: UnsafePointer<UInt8>, to end: Int, _ path: PathSteps, _ change: Change, takesName: Bool,
        most: Int
    ) {
        edits = Edits(most: most)
        (self.base, self.end, self.path) = (base, end, path)
        (self.change, self.takesName, self.most) = (change, takesName, most)
        guard end > 0, base[0] == UInt8(ascii: "{") else { return }
        _ = take(object: 0, path.start, isInside: false, isTop: true)
    }

    /// Goes through an object; gives the offset after it.
    private mutating func take(object: Int, _ states: UInt64, isInside: Bool, isTop: Bool) -> Int {
        var walk = RawWalk(base, from: object, to: end)
        var last: Int?
        var hasKept = false
        var open: Int?
        let renaming = renaming(in: object, states)
        while !edits.isOver, let member = walk.nextName() {
            let start = member.name.lowerBound - 1
            if let place = open { edits.extend(place, to: start) }
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
                walk.goOn(at: take(nested: member.value.lowerBound, next, isInside: false))
            } else {
                walk.skipValue()
            }
            if isCut {
                if !hasKept { open = edits.places.count }
                edits.replace(((hasKept ? last : nil) ?? start)..<walk.offset, with: [])
            }
            hasKept = hasKept || !isCut
            last = walk.offset
        }
        return walk.objectEnd
    }

    /// Does what is to be done with a member that the path leads to, and goes over it; gives whether it goes.
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
            if let bytes = make(base, value) { edits.replace(value, with: bytes) }
        case .rename(let name):
            walk.skipValue()
            // Of equal ones the last counts.
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
                walk.goOn(at: take(nested: member.value.lowerBound, states, isInside: true))
            } else {
                walk.skipValue()
                scrub(member.value.lowerBound..<walk.offset, scrubber, isID: isID)
            }
        }
        return false
    }

    private func next(_ states: UInt64, _ member: RawMember) -> UInt64 {
        member.isEscaped
            ? path.next(states, RawJSON.decoded(base, member.name))
            : path.next(states, RawJSON.bytes(base, member.name))
    }

    /// The member of an object that is to get another name, and that name.
    private func renaming(in object: Int, _ states: UInt64) -> (member: RawMember, name: [UInt8])? {
        guard case .rename(let name) = change, let last = path.names.last,
            states >> UInt64(path.names.count - 1) & 1 == 1
        else { return nil }
        return RawWalk.find(last, in: base, from: object, to: end).map { ($0, name) }
    }

    /// Goes through an object or a list, however nested (the events' pass bounds that); gives the offset after it.
    private mutating func take(nested start: Int, _ states: UInt64, isInside: Bool) -> Int {
        guard base[start] == UInt8(ascii: "[") else {
            return take(object: start, states, isInside: isInside, isTop: false)
        }
        var position = start + 1
        while position < end, !edits.isOver {
            switch base[position] {
            case UInt8(ascii: "]"): return position + 1
            case UInt8(ascii: "{"), UInt8(ascii: "["): position = take(nested: position, states, isInside: isInside)
            case UInt8(ascii: ","), ...0x20: position += 1
            default:
                let value = position..<max(RawWalk.valueEnd(base, position, end), position + 1)
                if isInside, case .texts(let scrubber) = change { scrub(value, scrubber) }
                position = value.upperBound
            }
        }
        return end
    }

    private mutating func scrub(_ value: Range<Int>, _ scrubber: Scrubber, isID: Bool = false) {
        // Neither true, false nor null.
        guard let first = value.first, base[first] == UInt8(ascii: "\"") || base[first] <= UInt8(ascii: "9"),
            let text = MacroValue(base, value).text(base), let clean = scrubber.clean(text, most: most)
        else { return }
        let other = JSONValue.string(String(decoding: clean, as: UTF8.self)).description.bytes
        edits.replace(value, with: isID ? scrubber.hashing.identifier(base, value) ?? other : other)
    }

    private func isNested(_ place: Int) -> Bool {
        place < end && (base[place] == UInt8(ascii: "{") || base[place] == UInt8(ascii: "["))
    }

    /// Whether patterns look for parts of texts; an event keeps its id, but for one in which they find something.
    private var isSearching: Bool { if case .texts = change { true } else { false } }

    private static let id = "id".bytes
    private static let name = "name".bytes
}
