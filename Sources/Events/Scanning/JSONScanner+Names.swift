internal import Glibc
internal import Model

/// Which of the members that the agent reads a name belongs to.
extension JSONScanner {
    /// The slot of the member of a name; -1 for any other name.
    ///
    /// - Parameters:
    ///   - key: the name's first byte.
    ///   - length: the name's length in bytes.
    ///   - isEscaped: whether the name has escapes.
    @inline(__always)
    mutating func recognise(_ key: Pointer, _ length: Int, _ isEscaped: Bool) -> Int {
        if isEscaped { return recogniseEscaped(key, length) }
        if length == addressLength, isAddress(key, length) { return MemberName.address.rawValue }
        let word = word(key, length)
        // For a name of more than eight bytes the last eight count, too.
        let last = length <= 8 ? 0 : KnownNames.word(key + (length &- 8))
        let entry = known.entry(of: word, last, length)
        guard entry.pointee.word == word, entry.pointee.last == last, entry.pointee.length == length else {
            guard !known.late.isEmpty else { return -1 }
            return known.late.slot(of: UnsafeBufferPointer(start: key, count: length), word, last)
        }
        return length <= 16
            ? entry.pointee.slot : known.slot(of: UnsafeBufferPointer(start: key, count: length))
    }

    /// Whether the name is that of the address.
    @inline(never)
    private mutating func isAddress(_ key: Pointer, _ length: Int) -> Bool {
        addressName.elementsEqual(UnsafeBufferPointer(start: key, count: length))
    }

    /// The slot of a name that is spelled with escapes: it means the same name, and must not escape notice by
    /// its spelling. Rare, so it is decoded, unless it is too long to mean any of the names that are looked
    /// for: that bounds the work. A byte of a name is spelled with at most six bytes, `\uXXXX`.
    @inline(never)
    private mutating func recogniseEscaped(_ key: Pointer, _ length: Int) -> Int {
        guard length <= 6 * max(known.longest, addressName.count) else { return -1 }
        let name = JSONString.decoded(UnsafeBufferPointer(start: key, count: length))
        if !addressName.isEmpty, name == addressName { return MemberName.address.rawValue }
        guard !name.isEmpty else { return -1 }
        return name.withUnsafeBufferPointer { known.slot(of: $0) }
    }

    /// Up to eight bytes as a little-endian number; missing bytes are zero.
    @inline(__always)
    mutating func word(_ p: Pointer, _ length: Int) -> UInt64 {
        guard p <= wordEnd else { return lastWord(p, length) }
        let loaded = UnsafeRawPointer(p).loadUnaligned(as: UInt64.self).littleEndian
        // Without a branch on the length, which a processor predicts badly.
        let taken = UInt64(truncatingIfNeeded: min(length, 8))
        return taken == 0 ? 0 : loaded & (UInt64.max &>> (64 &- 8 &* taken))
    }

    /// As above for the last eight bytes of a block, byte by byte.
    @inline(never)
    private mutating func lastWord(_ p: Pointer, _ length: Int) -> UInt64 {
        /// First eight bytes, as a little-endian number; missing bytes are zero.
        var word: UInt64 = 0
        for index in 0..<min(length, 8) { word |= UInt64(p[index]) << (8 * UInt64(index)) }
        return word
    }
}

/// The names that are looked for, found by their first and last eight bytes and their length.
///
/// A perfect hash table: a multiplier is searched that gives each name an entry of its own, so a look-up is
/// one multiplication and one comparison, for known and unknown names.
///
/// Copies share the table: hundreds of apps look for the same names.
struct KnownNames {
    /// A name in the table.
    struct Entry {
        /// The first eight bytes, the lowest byte first; of a shorter name the rest is zero.
        var word: UInt64 = 0
        /// Last eight bytes if the name has more than eight; otherwise 0.
        var last: UInt64 = 0
        var length = 0
        /// Slot of the member; -1 for a free entry.
        var slot = -1

        /// A free entry.
        init() {}

        /// The entry of a name whose member has that slot.
        init(_ name: some BidirectionalCollection<UInt8>, slot: Int) {
            word = name.prefix(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            last = name.count <= 8 ? 0 : name.suffix(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            length = name.count
            self.slot = slot
        }
    }

    /// Binary logarithm of the table's size, 512 entries: with 64 names or fewer, a multiplier without
    /// collisions is found after a few dozen tries.
    private static let bits: UInt64 = 9
    /// An entry for each name, and a free one behind them: about 40 entries of 32 bytes.
    private let entries: UnsafeMutablePointer<Entry>
    /// The table: for each hash the index of the entry, or of the free one. Entries in the table itself took
    /// 16 KiB for each of hundreds of apps.
    private let table: UnsafeMutablePointer<UInt8>
    private let multiplier: UInt64
    /// All names in the order of their slots.
    private let names: [[UInt8]]
    /// Length in bytes of the longest name.
    let longest: Int
    /// Number of names, those of `MemberName` included.
    var count: Int { names.count }
    /// Names beyond the first 64, in a table of their own.
    let late: LateNames
    private let memory: Memory
    /// Most names in this table. With more, the search for a multiplier would take long.
    private static let most = 64

    /// - Parameter watched: the names behind those of `MemberName`.
    init(_ watched: [[UInt8]]) {
        names = MemberName.allCases.map(\.spelling) + watched
        longest = names.map(\.count).max() ?? 0
        var entries: [Entry] = []
        late = LateNames(names, from: KnownNames.most)
        for (slot, text) in names.prefix(KnownNames.most).enumerated() where !text.isEmpty {
            let entry = Entry(text, slot: slot)
            // Names that differ only between these bytes share an entry; `slot(of:)` then compares all
            // bytes.
            let isKnown = entries.contains {
                ($0.word, $0.last, $0.length) == (entry.word, entry.last, entry.length)
            }
            if isKnown { continue }
            entries.append(entry)
        }
        // Candidates come from Knuth's linear congruential generator (MMIX): multipliers near each other
        // would all fail for the same names.
        var multiplier: UInt64 = 0x9E37_79B9_7F4A_7C15
        while !KnownNames.isApart(entries, multiplier) {
            multiplier = multiplier &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        }
        self.multiplier = multiplier
        let size = 1 << Int(KnownNames.bits)
        self.entries = .allocate(capacity: entries.count + 1)
        self.entries.initialize(repeating: Entry(), count: entries.count + 1)
        table = .allocate(capacity: size)
        // bounded: at most 64 names.
        table.initialize(repeating: UInt8(entries.count), count: size)
        for (number, entry) in entries.enumerated() {
            self.entries[number] = entry
            table[KnownNames.index(entry.word, entry.last, entry.length, multiplier)] = UInt8(number)
        }
        memory = Memory(self.entries, table, late)
    }

    /// Frees the tables with the last copy. Apart from the pointers, so that a look-up counts no references.
    private final class Memory {
        private let entries: UnsafeMutablePointer<Entry>
        private let table: UnsafeMutablePointer<UInt8>
        private let late: LateNames

        init(_ entries: UnsafeMutablePointer<Entry>, _ table: UnsafeMutablePointer<UInt8>, _ late: LateNames)
        {
            self.entries = entries
            self.table = table
            self.late = late
        }

        deinit {
            entries.deallocate()
            table.deallocate()
            late.deallocate()
        }
    }

    /// Whether a multiplier gives each name an entry of its own.
    private static func isApart(_ entries: [Entry], _ multiplier: UInt64) -> Bool {
        var isTaken = [Bool](repeating: false, count: 1 << Int(bits))
        for entry in entries {
            let hash = index(entry.word, entry.last, entry.length, multiplier)
            if isTaken[hash] { return false }
            isTaken[hash] = true
        }
        return true
    }

    /// The only entry at which a name with these bytes and this length can be.
    @inline(__always)
    func entry(of word: UInt64, _ last: UInt64, _ length: Int) -> UnsafeMutablePointer<Entry> {
        entries + Int(table[KnownNames.index(word, last, length, multiplier)])
    }

    /// The slot of a name of any length, compared byte by byte; -1 for an unknown name.
    func slot(of name: UnsafeBufferPointer<UInt8>) -> Int {
        let early = names.prefix(KnownNames.most).firstIndex {
            $0.count == name.count && !$0.isEmpty && name.elementsEqual($0)
        }
        if let early { return early }
        let entry = Entry(name, slot: 0)
        return late.slot(of: name, entry.word, entry.last)
    }

    /// Index of the entry: the high bits of the product, because the low bits depend on the low bytes only.
    @inline(__always)
    private static func index(_ word: UInt64, _ last: UInt64, _ length: Int, _ multiplier: UInt64) -> Int {
        let mixed = word ^ (last &* 0xD6E8_FEB8_6659_FD93) ^ UInt64(truncatingIfNeeded: length)
        return Int(truncatingIfNeeded: (mixed &* multiplier) &>> (64 &- bits))
    }

    /// Eight bytes as a little-endian number.
    @inline(__always)
    static func word(_ p: UnsafePointer<UInt8>) -> UInt64 {
        UnsafeRawPointer(p).loadUnaligned(as: UInt64.self).littleEndian
    }
}
