internal import EventLoops
internal import Model

/// Finds the address in an event or record, and the country of the address.
struct AddressFinder {
    /// Whether the settings name a member that holds an address.
    private(set) var isWanted = false
    /// Whether the address is removed from the event after the country was looked up.
    private(set) var isRemoved = false
    /// Whether the properties of the last line have a member with the address's name.
    private(set) var isProperty = false
    /// Text of the address as offsets from the line's base; nil if the line has none.
    private var textRange: Range<Int>?
    /// Look-up of a country by address; nil without a country database.
    var lookup: ((String) -> CountryCode?)?

    /// Whether properties with the address's name were removed from the last line.
    @inline(__always) var removesProperty: Bool { isRemoved && isProperty }

    /// Applies settings, and forgets the last line.
    mutating func configure(_ options: EventOptions) {
        isWanted = !options.addressMember.isEmpty
        isRemoved = options.removesAddress
        textRange = nil
        isProperty = false
    }

    /// Finds the event's address: a string member of the event itself, otherwise of its properties; of
    /// several properties the last one. Returns the member to remove if the settings say that the address
    /// is not sent; a property is removed by the caller.
    @inline(never)
    mutating func find(_ scanner: borrowing JSONScanner) -> Member? {
        textRange = nil
        isProperty = false
        var removed: Member?
        if scanner.has(.address) {
            let member = scanner.member(.address)
            textRange = scanner.base[member.value] == .quote ? member.text : nil
            guard isRemoved else { return nil }
            removed = member
        }
        guard scanner.has(.properties) else { return removed }
        let member = scanner.member(.properties)
        guard scanner.base[member.value] == .openBrace else { return removed }
        var walk = RawWalk(scanner.base, from: member.value, to: member.end)
        var found: Range<Int>?
        while let property = walk.next() {
            guard AddressFinder.isAddress(property.name, scanner) else { continue }
            isProperty = true
            let value = property.value
            if scanner.base[value.lowerBound] == .quote {
                found = value.lowerBound + 1..<value.upperBound - 1
            }
        }
        textRange = textRange ?? found
        return removed
    }

    /// Whether a property's name is that of the address, with or without escapes.
    static func isAddress(_ name: Range<Int>, _ scanner: borrowing JSONScanner) -> Bool {
        let text = UnsafeBufferPointer(start: scanner.base + name.lowerBound, count: name.count)
        return text.elementsEqual(scanner.addressName)
            || (text.contains(.backslash) && JSONString.decoded(text) == scanner.addressName)
    }

    /// What the look-up says of the line's address; nil if there is no address or no database. A text of more
    /// than 64 bytes is not looked up: no address is that long.
    @inline(never)
    func country(_ scanner: borrowing JSONScanner) -> AddressCountry? {
        guard let textRange, let lookup else { return nil }
        let text = UnsafeBufferPointer(start: scanner.base + textRange.lowerBound, count: textRange.count)
        guard text.count <= 64, let country = lookup(String(decoding: text, as: UTF8.self)) else {
            return .unknown
        }
        return .known(country)
    }
}

/// The country of an address.
enum AddressCountry {
    /// The database has no country for it.
    case unknown
    case known(CountryCode)
}
