internal import EventLoops
internal import Model

/// The country of a line: of its source, or by its address, which may be removed afterwards.
///
/// Records have countries and addresses, too; that they are found there is what `line.isRecord` changes here.
struct CountryFinder: EventFeature {
    /// Whether the settings name a member that holds an address.
    private var isWanted = false
    /// Whether the address is removed from the event after the country was looked up.
    private var isRemoved = false
    /// Whether the properties of the last line have a member with the address's name.
    private var isProperty = false
    /// Text of the address as offsets from the line's base; nil if the line has none.
    private var textRange: Range<Int>?
    /// Look-up of a country by address; nil without a country database.
    var lookup: ((String) -> CountryCode?)?

    /// Name of the member that holds the address; empty for none.
    private var name: [UInt8] = []
    /// Country that an operator has set by command. It counts more than the apps' settings.
    private var override: CountryCode?
    /// Whether the settings say the country of the source's lines: then no address is looked up.
    private var isKnown = false

    /// Applies settings, and forgets the last line.
    mutating func configure(_ options: EventOptions, _ scanner: inout JSONScanner) {
        name = Array(options.addressMember.utf8)
        override = options.countryOverride
        isWanted = !name.isEmpty
        isRemoved = options.removesAddress
        textRange = nil
        isProperty = false
        scanner.addressName = name
    }

    func reads(_ name: [UInt8]) -> Bool { self.name == name }

    mutating func begin(_ start: SourceStart, _ scanner: inout JSONScanner, _ added: inout SourceAdditions) {
        let country = override ?? start.state.settings.country
        isKnown = country != nil
        let text = country.map { [$0.first, $0.second] } ?? []
        added.ofEvents.country = text
        added.ofRecords.country = text
    }

    // MARK: A line

    /// Finds the address, and removes it if the settings say so. From an event's properties the limits'
    /// feature removes it, because it rewrites them anyway; a record has no limits, so it is done here.
    @inline(__always)
    mutating func check(
        _ line: JudgedLine, _ scanner: inout JSONScanner, _ output: inout LineOutput,
        _ counts: inout EventCounts
    ) -> Excess? {
        if isWanted {
            find(&scanner, &output.draft, isRecord: line.isRecord)
        }
        return nil
    }

    @inline(never)
    private mutating func find(
        _ scanner: inout JSONScanner, _ draft: inout LineDraft, isRecord: Bool
    ) {
        if isRecord {
            removeReplaced(scanner, &draft)
        }
        if let member = find(&scanner) {
            draft.remove(member, of: scanner.base)
        }
        guard isRemoved, isProperty else { return }
        if isRecord {
            removeProperties(scanner, &draft)
        } else {
            draft.losesAddressProperty = true
        }
    }

    /// Takes out a record's addresses that a later member of the same name replaces: otherwise an address
    /// would leave although the settings remove it. The other repeated members of a record are data and stay.
    private func removeReplaced(_ scanner: borrowing JSONScanner, _ draft: inout LineDraft) {
        guard isRemoved else { return }
        for member in scanner.replaced where member.key >= 0 {
            // The offset of the closing quote of the member's name.
            var end = member.key + 1
            while scanner.base[end] != .quote { end += scanner.base[end] == .backslash ? 2 : 1 }
            if CountryFinder.isAddress(member.key + 1..<end, scanner) {
                draft.remove(member, of: scanner.base)
            }
        }
    }

    /// Takes all properties with the address's name out.
    private func removeProperties(_ scanner: borrowing JSONScanner, _ draft: inout LineDraft) {
        let properties = scanner.member(.properties)
        var walk = RawWalk(scanner.base, from: properties.value, to: properties.end)
        while let found = walk.next() {
            guard CountryFinder.isAddress(found.name, scanner) else { continue }
            let member = Member(
                key: found.name.lowerBound - 1, value: found.value.lowerBound, end: found.value.upperBound)
            draft.remove(member, of: scanner.base)
        }
    }

    /// Finds the line's address: a string member of the line itself, otherwise of its properties; of several
    /// properties the last one. Returns the member to remove if the settings say that the address is not
    /// sent.
    private mutating func find(_ scanner: inout JSONScanner) -> Member? {
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
            guard CountryFinder.isAddress(property.name, scanner) else { continue }
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

    /// An event keeps a country that ISO 3166-1 has, in capitals; any other value is taken out. A record
    /// keeps whatever it has, because it is data, but not `null`.
    mutating func keepOwn(
        _ line: JudgedLine, _ scanner: inout JSONScanner, _ output: inout LineOutput,
        _ counts: inout EventCounts
    ) {
        guard scanner.has(.country) else { return }
        let base = scanner.base
        let member = scanner.member(.country)
        let isNull = member.isNull(in: base)
        let text = base + member.value + 1
        guard !line.isRecord else {
            _ = output.draft.keep(member, as: .country, if: !isNull, base)
            return
        }
        guard member.end - member.value == 4, base[member.value] == .quote,
            let country = CountryCode(text[0], text[1])
        else {
            if !isNull {
                counts[.unknownCountry] += 1
            }
            return output.draft.remove(member, of: base)
        }
        output.draft.wanted.remove(.country)
        if country.first != text[0] || country.second != text[1] {
            output.draft.replace(member.text, with: [country.first, country.second])
        }
    }

    /// Adds the country of the address, if neither the line nor the settings say a country.
    @inline(__always)
    mutating func complete(
        _ line: JudgedLine, _ scanner: inout JSONScanner, _ output: inout LineOutput,
        _ counts: inout EventCounts
    ) -> Bool {
        if isWanted, !isKnown, output.draft.wanted.contains(.country) {
            lookUp(&scanner, &output.draft, &counts)
        }
        return false
    }

    @inline(never)
    private func lookUp(
        _ scanner: inout JSONScanner, _ draft: inout LineDraft, _ counts: inout EventCounts
    ) {
        switch country(&scanner) {
        case nil: return
        case .unknown: counts[.unknownAddress] += 1
        case .known(let country):
            draft.addFront("country") { $0.append([.quote, country.first, country.second, .quote]) }
        }
    }

    /// What the look-up says of the line's address; nil if there is no address or no database. A text of more
    /// than 64 bytes is not looked up: no address is that long.
    private func country(_ scanner: inout JSONScanner) -> AddressCountry? {
        guard let textRange, let lookup else { return nil }
        let text = UnsafeBufferPointer(start: scanner.base + textRange.lowerBound, count: textRange.count)
        guard text.count <= 64, let country = lookup(String(decoding: text, as: UTF8.self)) else {
            return .unknown
        }
        return .known(country)
    }
}

/// The country of an address.
private enum AddressCountry {
    /// The database has no country for it.
    case unknown
    case known(CountryCode)
}
