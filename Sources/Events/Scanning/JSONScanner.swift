internal import CScan
internal import Glibc

/// One pass over one JSON object: checks it strictly and finds the members that the agent reads.
///
/// Strict means RFC 8259 and nothing beyond it: UTF-8 without overlong forms and surrogates, escaped
/// surrogates in pairs, numbers by the grammar, no byte-order mark, no text after the object. Members with
/// equal names are allowed; of those that the agent reads the last one counts.
///
/// It works on unsafe pointers, sixteen bytes at a time: with bounds checks the pass takes a third longer,
/// and every event goes through it. Two rules make that safe. The text ends with a line feed at `end - 1`,
/// which the grammar does not accept inside a string, a number or a literal, so no step goes beyond it. And
/// several bytes are loaded at once only if all of them are before `end` (`wordEnd`, `runEnd`). A text
/// without repeated members causes no allocation.
///
/// Methods that run for each event are `mutating` even if they change nothing. Swift copies the whole value
/// before it calls a non-mutating method that is not inlined, because the method might see a change made
/// during the call.
struct JSONScanner: ~Copyable {
    typealias Pointer = UnsafePointer<UInt8>

    /// Most properties that are compared with each other while scanning. With more, `mayRepeat` is set, and
    /// the exact walk compares them.
    static let comparedProperties = NamePlaces.properties

    // MARK: Settings

    /// The deepest nesting that is read; the object itself is level 1.
    static let maxDepth = 64
    /// Longest name of a property, in bytes, that does not set `hasLongText`.
    var keyThreshold = Int.max
    /// Longest string value of a property, in bytes, that does not set `hasLongText`.
    var valueThreshold = Int.max
    /// Name of the member that holds an address; empty for none.
    var addressName: [UInt8] = [] {
        didSet {
            addressLength = addressName.isEmpty ? -1 : addressName.count
            places.forgetMembers()
        }
    }
    /// Length of that name; -1 for none, which no name has. Comparing lengths first keeps other names cheap.
    private(set) var addressLength = -1

    // MARK: What was found

    /// Members that were found, by slot. An entry belongs to this line only if `has(slot:)` is true.
    private(set) var members: UnsafeMutablePointer<Member>
    /// A bit for each of the first 63 slots, and one bit for all slots behind them.
    var present: UInt64 = 0
    /// Slots beyond the first 63 whose members were found. Of an earlier line if `present` does not have
    /// their common bit.
    var late: [Int] = []
    /// Members that a later one of the same name replaces.
    var replaced: [Member] = []
    /// Offsets of the object's opening and closing braces.
    var open = 0
    var close = 0
    /// Whether line feeds or carriage returns stand between tokens: the output must not have them.
    var hasLineBreaks = false
    /// Number of properties; equal names count each.
    var propertyCount = 0
    /// Whether a property's name or string value is longer than its threshold.
    var hasLongText = false
    /// Whether two properties may have the same name; false is certain.
    var mayRepeat = false
    /// The error in the last text that could not be read.
    private(set) var failureCode = ScanFailure.Code.blank
    /// Offset in the block of the byte at which it was noticed.
    private(set) var failureOffset = 0

    // MARK: The scan's own

    /// Beginning of the block.
    var base: Pointer
    /// End of the block; the byte before it is a line feed.
    private(set) var end: Pointer
    /// Last address from which eight bytes may be loaded.
    @inline(__always) var wordEnd: Pointer { end - 8 }
    /// Last address from which sixteen bytes may be loaded.
    private(set) var runEnd: Pointer
    /// Whether line feeds are white space (a text of several lines) or end the object (a line).
    private(set) var breaksAreSpace = false
    /// Slot of the member whose name `name` has read, and the number of kept places that it has skipped,
    /// because the line lacks their members.
    var found = (slot: -1, passedPlaces: 0)
    /// Table of the names that are looked for.
    private(set) var known = WatchedNames.none.known
    /// Names of the last lines at their places.
    private(set) var places: NamePlaces

    /// First slot without a bit of its own.
    static let firstLate = 63

    /// - Parameter nameRows: number of rows of properties whose names are kept (`NamePlaces`); a power of
    ///   two, at most 8.
    init(nameRows: Int = NamePlaces.rows) {
        places = NamePlaces(rows: nameRows)
        members = JSONScanner.room(for: JSONScanner.fewestMembers)
        base = UnsafePointer(bitPattern: 8).unsafelyUnwrapped
        end = base
        runEnd = base
    }

    deinit { members.deallocate() }

    /// Memory for the members of all slots.
    private static func room(for count: Int) -> UnsafeMutablePointer<Member> {
        let members = UnsafeMutablePointer<Member>.allocate(capacity: count)
        members.initialize(repeating: Member(), count: count)
        return members
    }

    /// The bit of a slot; the slots beyond the first 63 share one.
    @inline(__always)
    static func bit(of slot: Int) -> UInt64 { 1 &<< UInt64(truncatingIfNeeded: min(slot, firstLate)) }

    /// Whether the line has the member of a slot.
    @inline(__always)
    func has(slot: Int) -> Bool {
        present & JSONScanner.bit(of: slot) != 0 && (slot < JSONScanner.firstLate || late.contains(slot))
    }

    @inline(__always) func has(_ name: MemberName) -> Bool { present & name.bit != 0 }
    @inline(__always) func member(_ name: MemberName) -> Member { members[name.rawValue] }

    /// Looks for these members, too. Their slots are those behind `MemberName`'s. Kept names are forgotten,
    /// because their slots may have changed.
    mutating func watch(_ names: WatchedNames) {
        known = names.known
        late = []
        renewMembers()
        places.restore()
        places.forgetMembers()
    }

    /// Gets memory for the members of all slots, and of at least 64.
    private mutating func renewMembers() {
        members.deallocate()
        members = JSONScanner.room(for: max(JSONScanner.fewestMembers, known.count))
    }

    private static let fewestMembers = 64

    /// Gives memory back, because no line is read for a while. `prepare` must be called before the next one.
    mutating func release() {
        guard !places.isReleased else { return }
        places.release()
        members.deallocate()
        members = JSONScanner.room(for: 0)
    }

    /// Gets the memory again that `release` has given back.
    @inline(__always)
    mutating func prepare() {
        if places.isReleased {
            restore()
        }
    }

    @inline(never)
    private mutating func restore() {
        places.restore()
        renewMembers()
    }

    // MARK: Entrances

    /// Scans one line: an object with white space around it, then a line feed. A carriage return before the
    /// line feed counts as white space.
    ///
    /// - Parameter end: the end of the block; the byte before it is a line feed.
    /// - Returns: the offset after the line's line feed, also if the line could not be read; and whether it
    ///   is an object. If not, `failureCode` and `failureOffset` say why.
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
            // The carriage return before the line feed is outside the object: it is not copied and needs no
            // edit.
            hasLineBreaks = breaks
        }
        return (p - base + 1, true)
    }

    /// Takes an object followed by a line feed as read, without scanning it: `RecordWriter` has made it.
    ///
    /// - Parameter timestamp: range of the value of `timestamp`, the only member that is looked for; empty if
    ///   the object does not have it.
    mutating func accept(_ base: Pointer, _ count: Int, timestamp: Range<Int>) {
        begin(base, count, breaksAreSpace: false)
        open = 0
        close = count - 2
        if !timestamp.isEmpty {
            present = MemberName.timestamp.bit
            let key = timestamp.lowerBound - "\"timestamp\":".utf8.count
            members[MemberName.timestamp.rawValue] = Member(
                key: key, value: timestamp.lowerBound, end: timestamp.upperBound)
        }
        assert(base[open] == .openBrace && base[close] == .closeBrace)
    }

    /// Scans one object in a text in which line breaks are white space.
    ///
    /// - Parameter end: the end of the text; the byte before it is a line feed.
    /// - Returns: the offset after the closing brace; nil if the object cannot be read.
    mutating func scanObject(_ base: Pointer, from start: Int, to end: Int) -> Int? {
        begin(base, end, breaksAreSpace: true)
        return object(base + start).map { $0 - base }
    }

    /// Sets the bounds and forgets what was found before. `members` and `late` are left as they are:
    /// `present` says what is valid.
    @inline(__always)
    mutating func begin(_ base: Pointer, _ end: Int, breaksAreSpace: Bool) {
        self.base = base
        self.end = base + end
        runEnd = self.end - 16
        self.breaksAreSpace = breaksAreSpace
        present = 0
        hasLineBreaks = false
        propertyCount = 0
        hasLongText = false
        mayRepeat = false
        if !replaced.isEmpty {
            replaced.removeAll(keepingCapacity: true)
        }
    }

    /// The offset after the next line feed from the failure on.
    @inline(never)
    private mutating func lineEnd() -> Int {
        let left = end - base - failureOffset
        guard let found = memchr(base + failureOffset, Int32(UInt8.lineFeed), left) else { return end - base }
        return UnsafeRawPointer(found) - UnsafeRawPointer(base) + 1
    }

    // MARK: Failures

    /// Notes what is wrong and where. A failure at the very end is noted as `cutShort` if more text could
    /// have made it right. Always returns false, so that callers can return the result.
    @inline(never)
    mutating func fail(_ code: ScanFailure.Code, _ p: Pointer) -> Bool {
        let isEnd = p.pointee == .lineFeed && (!breaksAreSpace || p + 1 >= end)
        failureCode = isEnd && code.mayBeTheEnd ? .cutShort : code
        failureOffset = p - base
        return false
    }

    /// As `fail`, for functions that return an address. Always returns nil.
    @inline(__always)
    mutating func failure(_ code: ScanFailure.Code, _ p: Pointer) -> Pointer? {
        _ = fail(code, p)
        return nil
    }

    /// Notes why a text that does not begin with a brace is not an object: it is blank, begins with a
    /// byte-order mark, is another JSON value, or is wrong JSON. Always returns nil.
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
