/// `[country]`: the country that events carry. An event that says its country keeps it. Otherwise the app's
/// setting, a rule or `code` decides. If none of them applies, the event's address is looked up.
public struct CountrySettings: SettingsSection {
    /// Country of all events; nil for none.
    package var code: String?
    /// Rules, of which the first that matches decides.
    package var rules: [CountryRule] = []
    /// Path of a MaxMind database; nil does not look addresses up.
    package var database: String?
    /// The member with the address.
    package var addressMember = "ip_address"
    /// Whether the address is removed from the event after the look-up.
    package var removeAddress = false

    static let entries: [Entry<CountrySettings>] = [
        .setting(
            "code", \.code, optional: .country, "The country of all events of this host.", example: "\"IT\""),
        .setting(
            "database", \.database, optional: .path,
            "A MaxMind database, in which the country is looked up by an event's address.",
            example: "\"/usr/share/GeoIP/GeoLite2-Country.mmdb\""),
        .pair(
            "address", .init("member", \.addressMember, .text()), .init("remove", \.removeAddress, .boolean),
            "The member of an event, or of its properties, that holds the address; remove = true removes it"
                + " after the look-up."),
        .setting("address_member", \.addressMember, .text(), "Now address.member.")
            .renamed(to: "address.member"),
        .setting("remove_address", \.removeAddress, .boolean, "Now address.remove.")
            .renamed(to: "address.remove"),
        .list(
            "rule", \.rules, key: "", .text(), { _ in "" },
            "The country of an app or a host; the first rule that matches decides."
        ).retired(
            "country in [apps.NAME] is for an app; country.code is this host's, and may be \"${COUNTRY}\""),
    ]
}

/// `[[country.rule]]`: the country of an app or a host.
public struct CountryRule: SettingsSection {
    /// The app; nil for all.
    package var app: String?
    /// The host name, or its beginning and `*`; nil for all.
    package var host: String?
    /// The country.
    package var code = ""

    /// Whether the rule is for events of an app on a host. `*` at the end of the host matches any ending.
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
