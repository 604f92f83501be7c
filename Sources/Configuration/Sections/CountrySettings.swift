/// `[country]`: the country that events carry.
public struct CountrySettings: Sendable, Equatable {
    /// The country of this host; nil for none.
    public var code: String?
    /// Overrides by app or host name; the first that fits decides.
    public var rules: [CountryRule] = []
    /// A MaxMind database to look addresses up in.
    public var database: String?
    /// The event's member that holds an address.
    public var addressMember = "ip_address"
    /// Whether the address is removed from the event after the look-up.
    public var removeAddress = false
}

/// `[[country.rule]]`: the country of an app or a host.
public struct CountryRule: Sendable, Equatable {
    /// The app; nil for every one.
    public var app: String?
    /// The host's name, or its beginning and a `*`; nil for every one.
    public var host: String?
    /// The country.
    public var code = ""

    /// Whether the rule is for such events.
    public func fits(app: String, host: String) -> Bool {
        if let wanted = self.app, wanted != app { return false }
        guard let wanted = self.host else { return true }
        return wanted.hasSuffix("*") ? host.hasPrefix(wanted.dropLast()) : host == wanted
    }
}

extension CountrySettings: SettingsSection {
    static let entries: [Entry<CountrySettings>] = [
        .setting("code", \.code, optional: .country, "The country of all events of this host.", example: "\"IT\""),
        .setting(
            "database", \.database, optional: .path,
            "A MaxMind database: the country is looked up by an event's address.",
            example: "\"/usr/share/GeoIP/GeoLite2-Country.mmdb\""),
        .setting(
            "address_member", \.addressMember, .text(),
            "The member of an event, or of its properties, that holds the address."),
        .setting(
            "remove_address", \.removeAddress, .boolean, "true removes the address from the event after the look-up."),
        .list(
            "rule", \.rules, key: "", .text(), { _ in "" },
            "The country of an app or a host; the first rule that fits decides."),
    ]
}

extension CountryRule: SettingsSection {
    static let entries: [Entry<CountryRule>] = [
        .setting("app", \.app, optional: .text(), "The app; every one when not set.", example: "\"shop\""),
        .setting(
            "host", \.host, optional: .text(range: "a name, or its beginning and *"),
            "The host's name; every one when not set.", example: "\"web-rome-*\""),
        .setting("code", \.code, .country, "The country.", example: "\"IT\""),
    ]
}
