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
/// accepts inside a string, a number or a literal, so nothing steps over it; runs of bytes are loaded only where all of them are before `end`.
/// It allocates nothing for a text without repeated members.
///
/// Methods that run for each event are `mutating` even where they change nothing. A method that is not, and that is not
/// inlined, makes Swift copy the whole value first, because it is called while this one may change it.
struct JSONScanner: ~Copyable {
    typealias Pointer = UnsafePointer<UInt8>

    /// How many properties are compared with each other while scanning; beyond it `mayRepeat` is set.
    static let comparedProperties = NamePlaces.properties

    // MARK: Settings

    /// The deepest nesting that is read; the object itself is level 1.
    static let maxDepth = 64
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
    var present: UInt64 = 0
    /// Members that a later one of the same name replaces.
    var replaced: [Member] = []
    var open = 0
    var close = 0
    /// Whether line breaks are between tokens (or carriage returns).
    var hasLineBreaks = false
    /// How many properties there are, equal names counted each.
    var propertyCount = 0
    /// Whether a property's name or string value passes its threshold.
    var hasLongText = false
    /// Whether two properties may have the same name.
    var mayRepeat = false
    private(set) var failureCode = ScanFailure.Code.blank
    /// Where, as an offset in the block.
    private(set) var failureOffset = 0

    // MARK: The scan's own

    var base: Pointer
    private(set) var end: Pointer
    private(set) var wordEnd: Pointer
    private(set) var runEnd: Pointer
    private(set) var breaksAreSpace = false
    /// The member whose name was read last.
    var found = -1
    private(set) var known = KnownNames([])
    let places = NamePlaces()

    init() {
        members = .allocate(capacity: 64)
        members.initialize(repeating: Member(), count: 64)
        base = UnsafePointer(bitPattern: 8).unsafelyUnwrapped
        end = base
        wordEnd = base
        runEnd = base
    }

    deinit { members.deallocate() }

    @inline(__always) func has(_ name: MemberName) -> Bool { present & name.bit != 0 }
    @inline(__always) func member(_ name: MemberName) -> Member { members[name.rawValue] }

    /// Finds these members too: their places are those behind `MemberName`'s.
    mutating func watch(_ names: WatchedNames) {
        known = KnownNames(names.names)
        places.forgetMembers()
    }

    // MARK: Entrances

    /// Scans one line: an object, white space around it allowed, then a line feed (a carriage return before it counts as
    /// white space).
    ///
    /// - Parameter end: where the block ends; the byte before it is a line feed.
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
    /// - Parameter end: where the text ends; the byte before it is a line feed (which ends the text).
    /// - Returns: the offset after the closing bracket; nil when it cannot be read.
    mutating func scanObject(_ base: Pointer, from start: Int, to end: Int) -> Int? {
        begin(base, end, breaksAreSpace: true)
        return object(base + start).map { $0 - base }
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

    // MARK: Failures

    /// Notes what is wrong and where. Always false.
    @inline(never)
    mutating func fail(_ code: ScanFailure.Code, _ p: Pointer) -> Bool {
        let isEnd = p.pointee == .lineFeed && (!breaksAreSpace || p + 1 >= end)
        failureCode = isEnd && code.mayBeTheEnd ? .cutShort : code
        failureOffset = p - base
        return false
    }

    /// As `fail`, for functions that return their place. Always nil.
    @inline(__always)
    mutating func failure(_ code: ScanFailure.Code, _ p: Pointer) -> Pointer? {
        _ = fail(code, p)
        return nil
    }

    /// The text does not begin with a brace: tells blank lines, other JSON values and plain errors apart. Always nil.
    @inline(never)
    mutating func notAnObject(_ start: Pointer) -> Pointer? {
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
