/// `[country]`: the country that events carry.
public struct CountrySettings: SettingsSection {
    package var code: String?
    package var rules: [CountryRule] = []
    package var database: String?
    package var addressMember = "ip_address"
    package var removeAddress = false

    static let entries: [Entry<CountrySettings>] = [
        .setting("code", \.code, optional: .country, "The country of all events of this host.", example: "\"IT\""),
        .setting(
            "database", \.database, optional: .path,
            "A MaxMind database, in which the country is looked up by an event's address.",
            example: "\"/usr/share/GeoIP/GeoLite2-Country.mmdb\""),
        .setting(
            "address_member", \.addressMember, .text(),
            "The member of an event, or of its properties, that holds the address."),
        .setting(
            "remove_address", \.removeAddress, .boolean, "true removes the address from the event after the look-up."),
        .list(
            "rule", \.rules, key: "", .text(), { _ in "" },
            "The country of an app or a host; the first rule that matches decides."),
    ]
}

/// `[[country.rule]]`: the country of an app or a host.
public struct CountryRule: SettingsSection {
    package var app: String?
    package var host: String?
    package var code = ""

    /// Whether the rule is for such events.
    public func fits(app: String, host: String) -> Bool {
        if let wanted = self.app, wanted != app { return false }
        guard let wanted = self.host else { return true }
        return wanted.hasSuffix("*") ? host.hasPrefix(wanted.dropLast()) : host == wanted
    }

    static let entries: [Entry<CountryRule>] = [
        .setting("app", \.app, optional: .text(), "The app; all if not set.", example: "\"shop\""),
        .setting(
            "host", \.host, optional: .text(range: "a name, or its beginning and *"),
            "The host's name; all if not set.", example: "\"web-rome-*\""),
        .setting("code", \.code, .country, "The country.", example: "\"IT\""),
    ]
}
