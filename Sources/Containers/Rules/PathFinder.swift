internal import Events
internal import Model

/// The steps of a path: names, any name (`*`), any number of levels (`**`). How far a path has been followed is a bit for
/// each place in it.
enum PathSteps {
    /// Any one name. No byte of UTF-8.
    static let anyName: [UInt8] = [0xFE]
    /// Any names, also none.
    static let anyDepth: [UInt8] = [0xFD]

    static func start(_ names: [[UInt8]]) -> UInt64 { open(1, names) }

    private static func open(_ states: UInt64, _ names: [[UInt8]]) -> UInt64 {
        var states = states
        for place in names.indices where states >> UInt64(place) & 1 == 1 && names[place] == anyDepth {
            states |= 1 << UInt64(place + 1)
        }
        return states
    }

    /// Where the path stands after one more name.
    ///
    /// - Parameter hasDots: whether the name itself has dots: then it may be several of the path's, as loggers write `user.email`.
    static func next(_ states: UInt64, _ names: [[UInt8]], hasDots: Bool, _ isName: ([UInt8]) -> Bool) -> UInt64 {
        var next: UInt64 = 0
        for place in names.indices where states >> UInt64(place) & 1 == 1 {
            if names[place] == anyDepth {
                next |= 1 << UInt64(place)
            } else if isName(names[place]) {
                next |= 1 << UInt64(place + 1)
            }
            for end in names.indices where hasDots && end > place {
                let name = Array(names[place...end].joined(separator: ".".utf8))
                if isName(name) { next |= 1 << UInt64(end + 1) }
            }
        }
        return open(next, names)
    }

    /// As above, for a name that is at hand.
    static func next(_ states: UInt64, _ names: [[UInt8]], after name: [UInt8]) -> UInt64 {
        next(states, names, hasDots: name.contains(UInt8(ascii: "."))) { RawJSON.isName(name, $0) }
    }

    static func isAtEnd(_ states: UInt64, _ names: [[UInt8]]) -> Bool { states >> UInt64(names.count) & 1 == 1 }

    /// The rests of a path after these names, however it leads through them.
    static func rests(of names: [[UInt8]], after prefix: [[UInt8]]) -> [[[UInt8]]] {
        let states = prefix.reduce(start(names)) { next($0, names, after: $1) }
        return (0...names.count).filter { states >> UInt64($0) & 1 == 1 }.map { Array(names[$0...]) }
    }

    /// Whether a name of a path may be that of a property of an event.
    static func mayBeProperty(_ place: Int, of names: [[UInt8]]) -> Bool {
        guard place > 0, (names[place].last ?? 0) < 0xFD else { return false }
        return place == 1 && RawJSON.isName("properties".utf8, names[0]) || names[..<place].contains(anyDepth)
    }

    /// Whether a path leads to these names, above them or below them.
    static func meets(_ names: [[UInt8]], _ other: [[UInt8]]) -> Bool {
        var states = start(names)
        for name in other {
            if isAtEnd(states, names) { return true }
            states = next(states, names, after: name)
        }
        return states != 0
    }
}

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
    private let names: [[UInt8]]
    private let change: Change
    private let takesName: Bool
    private let most: Int
    private(set) var edits: Edits

    /// - Parameters:
    ///   - takesName: whether it may lose its name.
    ///   - most: how long the line may become; beyond it nothing more is looked for.
    init(
        _ base: UnsafePointer<UInt8>, to end: Int, _ names: [[UInt8]], _ change: Change, takesName: Bool,
        most: Int
    ) {
        edits = Edits(most: most)
        self.base = base
        self.end = end
        self.names = names
        self.change = change
        self.takesName = takesName
        self.most = most
        guard end > 0, base[0] == UInt8(ascii: "{") else { return }
        _ = take(object: 0, PathSteps.start(names), isInside: false, isTop: true)
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
            let isID = isTop && !isNested(member.value.lowerBound) && RawJSON.hasName(member, PathFinder.id, in: base)
            let isKept =
                isID && !isSearching || isTop && !takesName && RawJSON.hasName(member, PathFinder.name, in: base)
            let next = isInside || isKept ? states : self.next(states, member)
            var isCut = false
            if let renaming, RawJSON.hasName(member, renaming.name, in: base) {
                walk.skipValue()
                isCut = true
            } else if !isKept, isInside || PathSteps.isAtEnd(next, names) {
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

    /// Where the path stands after a member's name. A member is renamed by exactly its name.
    private func next(_ states: UInt64, _ member: RawMember) -> UInt64 {
        let isExact = if case .rename = change { true } else { names.count < 2 || states == 0 }
        let hasDots =
            !isExact && (member.isEscaped || RawJSON.bytes(base, member.name).contains(UInt8(ascii: ".")))
        return PathSteps.next(states, names, hasDots: hasDots) { RawJSON.hasName(member, $0, in: base) }
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

    /// The member of an object that is to get another name, and that name.
    private func renaming(in object: Int, _ states: UInt64) -> (member: RawMember, name: [UInt8])? {
        guard case .rename(let name) = change, let last = names.last, states >> UInt64(names.count - 1) & 1 == 1 else {
            return nil
        }
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
