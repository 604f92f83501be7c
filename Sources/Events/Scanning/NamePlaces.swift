internal import CScan

/// Names that the members of the last lines had, each at its place in the row of members.
///
/// Most lines have the same names in the same order as an earlier one. If a name is found again at its place,
/// byte for byte and with its closing quote, it was checked before, and its length and meaning are known; and
/// the processor reads on behind it without waiting for a search of its end. Otherwise it is read like any
/// string and kept for this place. Kept names never change a result, only its cost.
struct NamePlaces: ~Copyable {
    /// Most members of a line whose names are kept.
    static let members = 32
    /// Most properties whose names are kept and compared with each other.
    static let properties = 32
    /// Rows of properties: events with different names have different properties. A power of two, at most 8:
    /// `row(of:)` takes three bits. All rows together take 12 KB.
    static let rows = 8

    /// Name of a member at its place.
    struct Member {
        var name = cscan_name.nothing
        /// The result of `JSONScanner.recognise` for the name.
        var slot = -1
    }

    /// Name of a property at its place.
    struct Property {
        var name = cscan_name.nothing
        /// First eight bytes of the name, and a bit by its hash; equal for equal names. They distinguish most
        /// names without a comparison.
        var word: UInt64 = 0
        var bit: UInt64 = 0
        /// Offset in the block of a name that was read in this line but could not be kept.
        var start = 0
    }

    /// Row of members.
    private(set) var members: UnsafeMutablePointer<Member>
    /// Rows of properties, one after the other.
    private var properties: UnsafeMutablePointer<Property>
    /// Number of rows less one: a mask.
    private let lastRow: Int
    /// Whether the memory was given back. Then nothing may be read before `restore`.
    private(set) var isReleased = true

    init(rows: Int) {
        lastRow = rows - 1
        members = .allocate(capacity: 0)
        properties = .allocate(capacity: 0)
        restore()
    }

    deinit {
        members.deallocate()
        properties.deallocate()
    }

    /// Gives the memory back, and forgets all names.
    mutating func release() {
        guard !isReleased else { return }
        isReleased = true
        members.deallocate()
        properties.deallocate()
        members = .allocate(capacity: 0)
        properties = .allocate(capacity: 0)
    }

    /// Gets memory for the names again.
    mutating func restore() {
        guard isReleased else { return }
        isReleased = false
        members.deallocate()
        properties.deallocate()
        members = .allocate(capacity: NamePlaces.members)
        members.initialize(repeating: Member(), count: NamePlaces.members)
        let count = (lastRow + 1) * NamePlaces.properties
        properties = .allocate(capacity: count)
        properties.initialize(repeating: Property(), count: count)
    }

    /// Forgets the names of members, because the slots of names have changed.
    func forgetMembers() {
        guard !isReleased else { return }
        members.update(repeating: Member(), count: NamePlaces.members)
    }

    /// Row for the properties of an event whose name begins with these bytes. Any row gives the right result;
    /// a row that events with the same name share gives it faster.
    @inline(__always)
    func row(of word: UInt64) -> UnsafeMutablePointer<Property> {
        let mixed = word &* 0x9E37_79B9_7F4A_7C15
        return properties + (Int(truncatingIfNeeded: mixed &>> 61) & lastRow) &* NamePlaces.properties
    }
}

extension cscan_name {
    /// A place without a name: no comparison with it succeeds.
    static var nothing: cscan_name {
        cscan_name(text: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), mask: CSCAN_NOTHING, length: 0)
    }
}
