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
        // Of a longer name the last eight bytes are compared too.
        let last = length <= 8 ? 0 : KnownNames.word(key + (length &- 8))
        let entry = known.entry(of: word, last, length)
        guard entry.pointee.word == word, entry.pointee.last == last, entry.pointee.length == length else { return -1 }
        return length <= 16 ? entry.pointee.place : known.place(of: UnsafeBufferPointer(start: key, count: length))
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
        return name.withUnsafeBufferPointer { known.place(of: $0) }
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

/// The names of the members that are looked for, found by their first and last eight bytes and their length: a table in which each
/// has its own place.
struct KnownNames: ~Copyable {
    struct Entry {
        /// The first eight bytes, the lowest byte first; of a shorter name the rest is zero.
        var word: UInt64 = 0
        /// The last eight bytes of a longer name.
        var last: UInt64 = 0
        var length = 0
        /// The member's place; -1 for an entry that is free.
        var place = -1
    }

    private static let bits: UInt64 = 9
    private let entries: UnsafeMutablePointer<Entry>
    private let multiplier: UInt64
    private let names: [[UInt8]]

    /// - Parameter watched: the names behind those of `MemberName`.
    init(_ watched: [[UInt8]]) {
        names = MemberName.allCases.map(\.spelling) + watched
        var entries: [Entry] = []
        for (place, text) in names.enumerated() where !text.isEmpty {
            let first = text.prefix(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            let last = text.count <= 8 ? 0 : text.suffix(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            // Of names that differ only between these bytes one entry speaks for all.
            guard !entries.contains(where: { ($0.word, $0.last, $0.length) == (first, last, text.count) }) else {
                continue
            }
            entries.append(Entry(word: first, last: last, length: text.count, place: place))
        }
        // The first of a row of multipliers that keeps the names apart. (Knuth's linear congruential generator; multipliers that
        // are near each other would all do the same.)
        var multiplier: UInt64 = 0x9E37_79B9_7F4A_7C15
        while Set(entries.map { KnownNames.index($0.word, $0.last, $0.length, multiplier) }).count < entries.count {
            multiplier = multiplier &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        }
        self.multiplier = multiplier
        self.entries = .allocate(capacity: 1 << Int(KnownNames.bits))
        self.entries.initialize(repeating: Entry(), count: 1 << Int(KnownNames.bits))
        for entry in entries {
            self.entries[KnownNames.index(entry.word, entry.last, entry.length, multiplier)] = entry
        }
    }

    deinit { entries.deallocate() }

    /// The only entry that a name with these first and last bytes can have.
    @inline(__always)
    func entry(of word: UInt64, _ last: UInt64, _ length: Int) -> UnsafeMutablePointer<Entry> {
        entries + KnownNames.index(word, last, length, multiplier)
    }

    /// The place of a name, whatever its length; -1 where it is none of these.
    func place(of name: UnsafeBufferPointer<UInt8>) -> Int {
        names.firstIndex { $0.count == name.count && !$0.isEmpty && name.elementsEqual($0) } ?? -1
    }

    @inline(__always)
    private static func index(_ word: UInt64, _ last: UInt64, _ length: Int, _ multiplier: UInt64) -> Int {
        let mixed = word ^ (last &* 0xD6E8_FEB8_6659_FD93) ^ UInt64(truncatingIfNeeded: length)
        return Int(truncatingIfNeeded: (mixed &* multiplier) &>> (64 &- bits))
    }

    /// Eight bytes as a number, the lowest byte first.
    @inline(__always)
    static func word(_ p: UnsafePointer<UInt8>) -> UInt64 {
        UnsafeRawPointer(p).loadUnaligned(as: UInt64.self).littleEndian
    }
}
