internal import CScan

/// The names that the members of the last lines had, each at its place in the row.
///
/// Most lines have the same names in the same order as one before. Where a name is found again at its place, byte for byte and
/// with its closing quote, it was checked before, its length is known, and so is what it means; and the processor reads on
/// behind it without waiting for the search of its end. Where it is not, it is read as any string and kept instead.
struct NamePlaces: ~Copyable {
    /// How many members of a line are kept.
    static let members = 32
    /// How many properties are kept, and compared with each other.
    static let properties = 32
    /// Events of different names have properties of different names: so many rows are kept of them.
    private static let rows = 8

    struct Member {
        var name = cscan_name.nothing
        /// As `JSONScanner.recognise` said.
        var slot = -1
    }

    struct Property {
        var name = cscan_name.nothing
        /// The first bytes and the bit of the name: equal names have equal ones.
        var word: UInt64 = 0
        var bit: UInt64 = 0
        /// Where the name begins in the block, if it was read in this line and not kept.
        var start = 0
    }

    let members: UnsafeMutablePointer<Member>
    private let properties: UnsafeMutablePointer<Property>

    init() {
        members = .allocate(capacity: NamePlaces.members)
        members.initialize(repeating: Member(), count: NamePlaces.members)
        properties = .allocate(capacity: NamePlaces.rows * NamePlaces.properties)
        properties.initialize(repeating: Property(), count: NamePlaces.rows * NamePlaces.properties)
    }

    deinit {
        members.deallocate()
        properties.deallocate()
    }

    func forgetMembers() { members.update(repeating: Member(), count: NamePlaces.members) }

    /// The row for the properties of an event whose name begins with these bytes. Any row would be right.
    @inline(__always)
    func row(of word: UInt64) -> UnsafeMutablePointer<Property> {
        let mixed = word &* 0x9E37_79B9_7F4A_7C15
        return properties + Int(truncatingIfNeeded: mixed &>> 61) &* NamePlaces.properties
    }
}

extension cscan_name {
    static var nothing: cscan_name {
        cscan_name(text: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), mask: CSCAN_NOTHING, length: 0)
    }
}
