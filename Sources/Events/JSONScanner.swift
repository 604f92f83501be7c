internal import CScan
internal import Glibc

/// One pass over one JSON object: checks it strictly and finds the members that the agent reads.
///
/// Strict means RFC 8259 and nothing beside it: UTF-8 without overlong forms and surrogates, escaped surrogates in
/// pairs, numbers by the grammar, no byte-order mark, no text after the object. Members with equal names are allowed;
/// of those that the agent reads the last one counts.
///
/// It works on unsafe pointers, sixteen bytes at a time: with bounds checks the pass takes a third longer, and every event
/// goes through it. What makes that safe: the text ends with a line feed at `end - 1`, which no rule of the grammar
/// accepts inside a string, a number or a literal, so nothing steps over it; runs of bytes are loaded only where all of them lie before `end`.
/// It allocates nothing for a text without repeated members.
///
/// Methods that run for each event are `mutating` even where they change nothing. A method that is not, and that is not
/// inlined, makes Swift copy the whole value first, because it is called while this one may change it.
struct JSONScanner: ~Copyable {
    typealias Pointer = UnsafePointer<UInt8>

    /// How many properties are compared with each other while scanning; beyond it `mayRepeat` is set.
    static let comparedProperties = NamePlaces.properties

    // MARK: Settings

    /// The deepest nesting that is read, at most 64; the object itself is level 1.
    let maxDepth: Int
    /// Strings of properties longer than this set `hasLongText`.
    var keyThreshold = Int.max
    /// Strings of properties longer than this set `hasLongText`.
    var valueThreshold = Int.max
    /// The name of the member that holds an address; empty means none.
    var addressName: [UInt8] = [] {
        didSet {
            addressLength = addressName.isEmpty ? -1 : addressName.count
            places.forgetMembers()
        }
    }
    /// How long that name is; -1 for none.
    private(set) var addressLength = -1

    // MARK: What was found

    /// The members found, by the raw value of their names; valid where `present` has their bit.
    let members: UnsafeMutablePointer<Member>
    /// Which members were found.
    private(set) var present: UInt32 = 0
    /// Members that a later one of the same name replaces.
    private(set) var replaced: [Member] = []
    /// The opening bracket.
    private(set) var open = 0
    /// The closing bracket.
    private(set) var close = 0
    /// Whether line breaks stand between tokens (or carriage returns).
    var hasLineBreaks = false
    /// How many properties there are, equal names counted each.
    private(set) var propertyCount = 0
    /// Whether a property's name or string value passes its threshold.
    private(set) var hasLongText = false
    /// Whether two properties may have the same name.
    private(set) var mayRepeat = false
    /// What went wrong last.
    private(set) var failureCode = ScanFailure.Code.blank
    /// Where, as an offset in the block.
    private(set) var failureOffset = 0

    // MARK: The scan's own

    private(set) var base: Pointer
    private(set) var end: Pointer
    private(set) var wordEnd: Pointer
    private(set) var runEnd: Pointer
    private(set) var breaksAreSpace = false
    /// The member whose name was read last.
    private var found = -1
    let known = KnownNames()
    private let places = NamePlaces()

    /// - Parameter maxDepth: clamped to 1…64.
    init(maxDepth: Int = 64) {
        self.maxDepth = min(max(maxDepth, 1), 64)
        members = .allocate(capacity: MemberName.allCases.count)
        members.initialize(repeating: Member(), count: MemberName.allCases.count)
        base = UnsafePointer(bitPattern: 8).unsafelyUnwrapped
        end = base
        wordEnd = base
        runEnd = base
    }

    deinit { members.deallocate() }

    @inline(__always) func has(_ name: MemberName) -> Bool { present & name.bit != 0 }
    @inline(__always) func member(_ name: MemberName) -> Member { members[name.rawValue] }

    // MARK: Entrances

    /// Scans one line: an object, white space around it allowed, then a line feed (a carriage return before it counts as
    /// white space).
    ///
    /// - Parameters:
    ///   - base: the block.
    ///   - start: where the line begins.
    ///   - end: where the block ends; the byte before it is a line feed.
    /// - Returns: the offset after the line's line feed, whether it was read or not.
    @inline(__always)
    mutating func scanLine(_ base: Pointer, from start: Int, to end: Int) -> (next: Int, isObject: Bool) {
        begin(base, end, breaksAreSpace: false)
        guard var p = object(base + start) else { return (lineEnd(), false) }
        if p.pointee != .lineFeed {
            let breaks = hasLineBreaks
            guard space(&p) == .lineFeed else {
                _ = fail(.trailingText, p)
                return (lineEnd(), false)
            }
            hasLineBreaks = breaks
        }
        return (p - base + 1, true)
    }

    /// Scans one object of a text in which line breaks are white space.
    ///
    /// - Parameters:
    ///   - base: the block.
    ///   - start: where the object, or white space before it, begins.
    ///   - end: where the text ends; the byte before it is a line feed (which ends the text).
    /// - Returns: the offset after the closing bracket; nil when it cannot be read.
    mutating func scanObject(_ base: Pointer, from start: Int, to end: Int) -> Int? {
        begin(base, end, breaksAreSpace: true)
        return object(base + start).map { $0 - base }
    }

    /// The first byte from `start` on that is not white space, in a text in which line breaks are white space.
    mutating func skipSpace(_ base: Pointer, from start: Int, to end: Int) -> Int {
        begin(base, end, breaksAreSpace: true)
        var p = base + start
        _ = space(&p)
        return p - base
    }

    @inline(__always)
    private mutating func begin(_ base: Pointer, _ end: Int, breaksAreSpace: Bool) {
        self.base = base
        self.end = base + end
        wordEnd = self.end - 8
        runEnd = self.end - 16
        self.breaksAreSpace = breaksAreSpace
        present = 0
        hasLineBreaks = false
        propertyCount = 0
        hasLongText = false
        mayRepeat = false
        if !replaced.isEmpty { replaced.removeAll(keepingCapacity: true) }
    }

    /// The offset after the line feed that follows the place of the failure.
    @inline(never)
    private mutating func lineEnd() -> Int {
        let left = end - base - failureOffset
        guard let found = memchr(base + failureOffset, Int32(UInt8.lineFeed), left) else { return end - base }
        return UnsafeRawPointer(found) - UnsafeRawPointer(base) + 1
    }

    // MARK: The object

    /// Reads the object; returns where it ends, nil (and the failure is noted) where it is none.
    ///
    /// Here and below `p` never has its address taken by a function that is not inlined: so it lives in a register, and each
    /// step costs the processor a few cycles less than a store and a load.
    @inline(__always)
    private mutating func object(_ start: Pointer) -> Pointer? {
        var p = start
        var c = space(&p)
        guard c == .openBrace else { return notAnObject(p) }
        open = p - base
        p += 1
        c = space(&p)
        if c == .closeBrace {
            close = p - base
            return p + 1
        }
        var present: UInt32 = 0
        var place = places.members
        let lastPlace = place + (NamePlaces.members - 1)
        while true {
            guard c == .quote else { return failure(.expectedName, p) }
            let key = p
            let slot: Int
            if key < runEnd, cscan_is(key + 1, &place.pointee.name) {
                slot = place.pointee.slot
                p += Int(place.pointee.name.length) &+ 2
            } else {
                guard let end = name(key, place) else { return nil }
                slot = found
                p = end
            }
            if place < lastPlace { place += 1 }
            guard colon(&p) else { return nil }
            c = space(&p)
            let value = p
            var isEscaped = false
            if c == .quote {
                p += 1
                guard string(&p, &isEscaped) else { return nil }
            } else if c == .openBrace, slot == MemberName.properties.rawValue {
                guard let end = properties(p, places.row(of: nameStart(present))) else { return nil }
                p = end
            } else {
                guard let end = other(p, c, depth: 2) else { return nil }
                p = end
            }
            if slot >= 0 {
                let bit = UInt32(1) &<< UInt32(truncatingIfNeeded: slot)
                if present & bit != 0 { replace(slot) }
                present |= bit
                members[slot] = Member(key: key - base, value: value - base, end: p - base, isEscaped: isEscaped)
            }
            c = space(&p)
            p += 1
            if c == .comma {
                c = space(&p)
            } else if c == .closeBrace {
                close = (p - base) &- 1
                self.present = present
                return p
            } else {
                return failure(.expectedCommaOrEnd, p - 1)
            }
        }
    }

    /// Reads the name of a member that is not the one kept for its place, and keeps it; says in `found` which it is.
    @inline(never)
    private mutating func name(_ key: Pointer, _ place: UnsafeMutablePointer<NamePlaces.Member>) -> Pointer? {
        var p = key + 1
        var isEscaped = false
        guard string(&p, &isEscaped) else { return nil }
        let length = (p - key) &- 2
        found = recognise(key + 1, length, isEscaped)
        if !isEscaped, key < runEnd {
            cscan_keep(&place.pointee.name, key + 1, UInt32(clamping: length))
            place.pointee.slot = found
        }
        return p
    }

    /// How the event's name begins, if it has been read.
    @inline(__always)
    private mutating func nameStart(_ present: UInt32) -> UInt64 {
        let value = base + members[MemberName.name.rawValue].value
        guard present & MemberName.name.bit != 0, value <= wordEnd else { return 0 }
        return KnownNames.word(value)
    }

    @inline(never)
    private mutating func replace(_ slot: Int) {
        replaced.append(members[slot])
        // The figures of properties are those of both objects now: let the exact path look.
        if slot == MemberName.properties.rawValue { mayRepeat = true }
    }

    /// Reads the properties, whose opening bracket is at `start`; returns where they end, nil where something is wrong.
    @inline(never)
    private mutating func properties(_ start: Pointer, _ row: UnsafeMutablePointer<NamePlaces.Property>) -> Pointer? {
        guard maxDepth >= 2 else { return failure(.tooDeep, start) }
        var p = start + 1
        var c = space(&p)
        if c == .closeBrace { return p + 1 }
        var count = 0
        var seen: UInt64 = 0
        while true {
            guard c == .quote else { return failure(.expectedName, p) }
            let key = p + 1
            let place = row + min(count, JSONScanner.comparedProperties - 1)
            if key <= runEnd, count < JSONScanner.comparedProperties, cscan_is(key, &place.pointee.name) {
                let length = Int(place.pointee.name.length)
                p = key + length + 1
                if length > keyThreshold { hasLongText = true }
            } else {
                guard let end = propertyName(key, place, isCompared: count < JSONScanner.comparedProperties) else {
                    return nil
                }
                p = end
            }
            // Names with equal bits need not be equal. A place beyond the last one that is compared does no harm: then they
            // may repeat anyway.
            let bit = place.pointee.bit
            if seen & bit != 0, !mayRepeat, isKnown(row, count) { mayRepeat = true }
            seen |= bit
            count &+= 1
            guard colon(&p) else { return nil }
            c = space(&p)
            if c == .quote {
                let value = p
                var isEscaped = false
                p += 1
                guard string(&p, &isEscaped) else { return nil }
                if (p - value) &- 2 > valueThreshold { hasLongText = true }
            } else {
                guard let end = other(p, c, depth: 3) else { return nil }
                p = end
            }
            c = space(&p)
            p += 1
            if c == .comma {
                c = space(&p)
            } else if c == .closeBrace {
                propertyCount = count
                return p
            } else {
                return failure(.expectedCommaOrEnd, p - 1)
            }
        }
    }

    /// Steps over a colon and the white space before it.
    @inline(__always)
    private mutating func colon(_ p: inout Pointer) -> Bool {
        guard space(&p) == .colon else { return fail(.expectedColon, p) }
        p += 1
        return true
    }

    /// Reads the name of a property that is not the one kept for its place, and keeps it.
    @inline(never)
    private mutating func propertyName(
        _ key: Pointer, _ place: UnsafeMutablePointer<NamePlaces.Property>, isCompared: Bool
    ) -> Pointer? {
        var p = key
        var isEscaped = false
        guard string(&p, &isEscaped) else { return nil }
        let length = (p - key) &- 1
        if length > keyThreshold { hasLongText = true }
        if isEscaped || !isCompared {
            mayRepeat = true
            return p
        }
        let word = word(key, length)
        let mixed = (word ^ UInt64(truncatingIfNeeded: length)) &* 0x9E37_79B9_7F4A_7C15
        place.pointee.word = word
        place.pointee.bit = UInt64(1) &<< (mixed &>> 58)
        place.pointee.start = key - base
        if key <= runEnd {
            cscan_keep(&place.pointee.name, key, UInt32(clamping: length))
        } else {
            place.pointee.name = .nothing
            place.pointee.name.length = UInt32(clamping: length)
        }
        return p
    }

    /// Whether one of the properties before has the name of that at `count`. All of them stand in the row: those that were
    /// found again, and those that were read and kept.
    @inline(never)
    private mutating func isKnown(_ row: UnsafeMutablePointer<NamePlaces.Property>, _ count: Int) -> Bool {
        let name = row + count
        let length = Int(name.pointee.name.length)
        for other in row..<name where other.pointee.word == name.pointee.word {
            guard other.pointee.name.length == name.pointee.name.length else { continue }
            if length <= 8 || memcmp(text(of: other), text(of: name), length) == 0 { return true }
        }
        return false
    }

    /// The text of a property's name: the one kept, or, where it was too long or stood too near the end, that of this line.
    private mutating func text(of place: UnsafeMutablePointer<NamePlaces.Property>) -> UnsafeRawPointer {
        place.pointee.name.mask == CSCAN_NOTHING
            ? UnsafeRawPointer(base + place.pointee.start) : UnsafeRawPointer(place)
    }

    // MARK: Failures

    /// Notes what is wrong and where. Always false.
    @inline(never)
    mutating func fail(_ code: ScanFailure.Code, _ p: Pointer) -> Bool {
        let isEnd = p.pointee == .lineFeed && (!breaksAreSpace || p + 1 >= end)
        let atEnd: Set<ScanFailure.Code> = [
            .expectedValue, .expectedName, .expectedColon, .expectedCommaOrEnd, .controlCharacter, .badNumber,
            .badEscape,
        ]
        failureCode = isEnd && atEnd.contains(code) ? .cutShort : code
        failureOffset = p - base
        return false
    }

    /// As `fail`, for those who return where they are. Always nil.
    @inline(__always)
    mutating func failure(_ code: ScanFailure.Code, _ p: Pointer) -> Pointer? {
        _ = fail(code, p)
        return nil
    }

    /// The text does not begin with a brace: tells blank lines, other JSON values and plain errors apart. Always nil.
    @inline(never)
    private mutating func notAnObject(_ start: Pointer) -> Pointer? {
        var p = start
        let c = p.pointee
        if c == .lineFeed { return failure(.blank, p) }
        if c == 0xEF, p[1] == 0xBB, p[2] == 0xBF { return failure(.byteOrderMark, p) }
        var isEscaped = false
        if c == .quote {
            p += 1
            guard string(&p, &isEscaped) else { return nil }
        } else {
            guard let end = other(p, c, depth: 1) else { return nil }
            p = end
        }
        if !breaksAreSpace, space(&p) != .lineFeed { return failure(.trailingText, p) }
        return failure(.notAnObject, start)
    }
}
