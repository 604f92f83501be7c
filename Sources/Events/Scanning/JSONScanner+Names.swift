internal import Glibc
internal import Model

/// Which of the members that the agent reads a name belongs to.
extension JSONScanner {
    /// The place of the member of that name; -1 for any other name.
    @inline(__always)
    mutating func recognise(_ key: Pointer, _ length: Int, _ isEscaped: Bool) -> Int {
        if isEscaped { return recogniseEscaped(key, length) }
        if length == addressLength, isAddress(key, length) { return MemberName.address.rawValue }
        let word = word(key, length)
        let known = known.entry(of: word)
        guard known.pointee.word == word, known.pointee.length == length else { return -1 }
        // Of a longer name the last eight bytes are compared as well.
        guard length <= 8 || KnownNames.word(key + (length &- 8)) == known.pointee.last else { return -1 }
        return known.pointee.place
    }

    @inline(never)
    private mutating func isAddress(_ key: Pointer, _ length: Int) -> Bool {
        addressName.elementsEqual(UnsafeBufferPointer(start: key, count: length))
    }

    /// A name spelled with escapes is the same name; rare enough to be decoded at leisure.
    @inline(never)
    private mutating func recogniseEscaped(_ key: Pointer, _ length: Int) -> Int {
        guard length <= 6 * 64 else { return -1 }
        let name = JSONString.decoded(UnsafeBufferPointer(start: key, count: length))
        if !addressName.isEmpty, name == addressName { return MemberName.address.rawValue }
        guard !name.isEmpty else { return -1 }
        return MemberName.allCases.first { $0.spelling == name }?.rawValue ?? -1
    }

    /// Up to eight bytes as a little-endian number, the rest zero.
    @inline(__always)
    mutating func word(_ p: Pointer, _ length: Int) -> UInt64 {
        guard p <= wordEnd else { return lastWord(p, length) }
        let loaded = UnsafeRawPointer(p).loadUnaligned(as: UInt64.self).littleEndian
        // Without a branch: lengths are what the processor cannot foresee.
        let taken = UInt64(truncatingIfNeeded: min(length, 8))
        return taken == 0 ? 0 : loaded & (UInt64.max &>> (64 &- 8 &* taken))
    }

    /// The same for the last bytes of a block.
    @inline(never)
    private mutating func lastWord(_ p: Pointer, _ length: Int) -> UInt64 {
        var word: UInt64 = 0
        for index in 0..<min(length, 8) { word |= UInt64(p[index]) << (8 * UInt64(index)) }
        return word
    }
}

/// The names of the members that the agent reads, found by their first eight bytes: a table in which each has a place of its
/// own.
struct KnownNames: ~Copyable {
    struct Entry {
        /// The first eight bytes, the lowest byte first; of a shorter name the rest is zero.
        var word: UInt64 = 0
        /// The last eight bytes of a longer name.
        var last: UInt64 = 0
        var length = 0
        /// The raw value of the member; -1 for a place that is free.
        var place = -1
    }

    private static let bits: UInt64 = 5
    private let entries: UnsafeMutablePointer<Entry>
    private let multiplier: UInt64

    init() {
        let names = MemberName.allCases.compactMap { name -> Entry? in
            let text = name.spelling
            // The longest name has eleven bytes; a name of more than sixteen would have bytes that nobody compares.
            precondition(text.count <= 16)
            guard !text.isEmpty else { return nil }
            let first = text.prefix(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            let last = text.suffix(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            return Entry(word: first, last: last, length: text.count, place: name.rawValue)
        }
        // The first of a row of multipliers that keeps the names apart: one in sixteen does, as two fifths of the places are
        // taken. (Knuth's linear congruential generator; multipliers that are near each other would all do the same.)
        var multiplier: UInt64 = 0x9E37_79B9_7F4A_7C15
        while Set(names.map { KnownNames.index($0.word, multiplier) }).count < names.count {
            multiplier = multiplier &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        }
        self.multiplier = multiplier
        entries = .allocate(capacity: 1 << Int(KnownNames.bits))
        entries.initialize(repeating: Entry(), count: 1 << Int(KnownNames.bits))
        for name in names { entries[KnownNames.index(name.word, multiplier)] = name }
    }

    deinit { entries.deallocate() }

    /// The only entry that a name with these first eight bytes can have.
    @inline(__always)
    func entry(of word: UInt64) -> UnsafeMutablePointer<Entry> { entries + KnownNames.index(word, multiplier) }

    @inline(__always)
    private static func index(_ word: UInt64, _ multiplier: UInt64) -> Int {
        Int(truncatingIfNeeded: (word &* multiplier) &>> (64 &- bits))
    }

    /// Eight bytes as a number, the lowest byte first.
    @inline(__always)
    static func word(_ p: UnsafePointer<UInt8>) -> UInt64 {
        UnsafeRawPointer(p).loadUnaligned(as: UInt64.self).littleEndian
    }
}
