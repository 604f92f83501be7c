internal import EventLoops
internal import Model

/// The members that are the same for many events: device, country, time of observation.
extension EventPass {
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
        recordTail.set(ofRecord)
    }

    /// Renders the device for events of another time, whose time zone offset differs.
    @inline(never)
    mutating func updateDevice(_ time: Timestamp) {
        renderDevice(time)
        tail.set(added)
    }

    private mutating func renderDevice(_ time: Timestamp) {
        guard let rendered = state?.device(at: time) else { return }
        added.device = rendered.text
        added.deviceFrom = rendered.from
        added.deviceUntil = rendered.until
    }

    /// Looks countries up by address from now on, as in a MaxMind database: the address is of either version, in its usual text,
    /// or no address at all; the answer nil where it is not known. Nil ends it.
    public mutating func useCountries(_ lookup: ((_ address: String) -> CountryCode?)?) { self.lookup = lookup }

    /// Finds the event's address: a member of the event itself, or else of its properties.
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
            if base[value.lowerBound] == .quote { found = value.lowerBound + 1..<value.upperBound - 1 }
        }
        address = address ?? found
    }

    /// Whether a property's name is that of the address.
    mutating func isAddress(_ key: Range<Int>) -> Bool {
        let text = UnsafeBufferPointer(start: base + key.lowerBound, count: key.count)
        return text.elementsEqual(scanner.addressName)
            || (text.contains(.backslash) && JSONString.decoded(text) == scanner.addressName)
    }

    /// Looks up the country of the event's address, if that is all we have.
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
