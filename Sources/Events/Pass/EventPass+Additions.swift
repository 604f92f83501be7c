internal import EventLoops
internal import Model

/// Additions that are the same for many events: device, country, time of observation. They are rendered once
/// a block, and again only for an event at whose time the zone's offset differs.
extension EventPass {
    /// Renders the additions for a source: into `tail` for events, into `recordTail` for records. The country
    /// override counts more than the app's country.
    mutating func beginAdditions(_ state: AppState) {
        added.app = state.quotedName
        let country = options.countryOverride ?? state.settings.country
        added.country = country.map { [$0.first, $0.second] } ?? []
        added.observedAt = Array(now.description.utf8)
        added.sessionID = []
        block.serial = 0
        renderDevice(now)
        tail.set(added)
        var ofRecord = added
        ofRecord.device = options.hostName.map { JSONText.quoted($0) } ?? []
        ofRecord.filePath = state.filePathSlot == nil || file.isEmpty ? [] : JSONText.quoted(file)
        recordTail.set(ofRecord)
    }

    /// Renders the device again, for events of a time at which the zone's offset differs.
    @inline(never)
    mutating func updateDevice(_ time: Timestamp) {
        renderDevice(time)
        tail.set(added)
    }

    /// Sets the device in `added`, with the times between which it is right.
    private mutating func renderDevice(_ time: Timestamp) {
        guard let rendered = state?.device(at: time) else { return }
        added.device = rendered.text
        added.deviceFrom = rendered.from
        added.deviceUntil = rendered.until
    }

    /// Sets the look-up of countries by address; nil ends it.
    ///
    /// - Parameter lookup: gets the text of an address of either IP version, or any other text of at most 64
    ///   bytes that an app has written in its place. Returns nil for an address that is not known.
    public mutating func useCountries(_ lookup: ((_ address: String) -> CountryCode?)?) {
        self.lookup = lookup
    }

    /// Finds the event's address: a string member of the event itself, otherwise of its properties; of
    /// several properties the last one. If the settings say that the address does not travel, the member is
    /// taken out here, and a property by the caller.
    @inline(never)
    mutating func findAddress() {
        address = nil
        hasAddressProperty = false
        if scanner.has(.address) {
            let member = scanner.member(.address)
            address = base[member.value] == .quote ? member.text : nil
            guard options.removesAddress else { return }
            remove(member)
        }
        guard scanner.has(.properties) else { return }
        let member = scanner.member(.properties)
        guard base[member.value] == .openBrace else { return }
        var walk = RawWalk(base, from: member.value, to: member.end)
        var found: Range<Int>?
        while let property = walk.next() {
            guard isAddress(property.name) else { continue }
            hasAddressProperty = true
            let value = property.value
            if base[value.lowerBound] == .quote {
                found = value.lowerBound + 1..<value.upperBound - 1
            }
        }
        address = address ?? found
    }

    /// Whether a property's name is that of the address, with or without escapes.
    mutating func isAddress(_ key: Range<Int>) -> Bool {
        let text = UnsafeBufferPointer(start: base + key.lowerBound, count: key.count)
        return text.elementsEqual(scanner.addressName)
            || (text.contains(.backslash) && JSONString.decoded(text) == scanner.addressName)
    }

    /// Adds the country of the event's address, if neither the event nor the settings say a country. A text
    /// of more than 64 bytes is not looked up: no address is that long.
    @inline(never)
    mutating func lookUpCountry() {
        guard let address, let lookup, wanted.contains(.country), added.country.isEmpty else { return }
        let text = UnsafeBufferPointer(start: base + address.lowerBound, count: address.count)
        guard text.count <= 64, let country = lookup(String(decoding: text, as: UTF8.self)) else {
            return counts[.unknownAddress] += 1
        }
        addFront("country") { $0 += [.quote, country.first, country.second, .quote] }
    }
}
