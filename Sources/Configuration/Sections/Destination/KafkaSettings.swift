internal import Model

/// `[destination.kafka]`: the topic, the brokers and the records. The struct is in `Model`, because `Outputs`
/// uses it.
extension KafkaSettings: SettingsSection {
    static let entries: [Entry<KafkaSettings>] = [
        .setting(
            "brokers", \.brokers,
            .list(
                of: .checked("broker", mustBe: "a broker, such as \"kafka-1.example.com:9092\"") { text in
                    // A broker is a host and a port. A comma would separate two brokers in one value; the
                    // other characters belong to URLs.
                    !text.contains { "/?#@,".contains($0) } && EndpointURL("kafka://\(text)") != nil
                }, count: 0...64, unique: true),
            "Brokers to begin with; they announce the others.",
            example: "[\"kafka-1.example.com:9093\", \"kafka-2.example.com:9093\"]"),
        .setting(
            "topic", \.topic, .template(.topic).standingForNothing(""),
            "The topic; it must exist. Events may fill it in: events-{app}.", example: "\"events\""),
        .setting(
            "key", \.key, .text(),
            "The member of an event that is its record's key: a name, or a path with dots "
                + "(properties.user_id); none: no key. Events of one key stay in their order, in one "
                + "partition."),
        .setting(
            "tls", \.tls, .boolean,
            "false: plain text, to brokers on this machine, or with allow_plain_http anywhere."),
        .setting(
            "mechanism", \.mechanism, .choice, "How user and password authenticate (SASL), if user is set."),
        .setting(
            "options", \.options, KafkaSettings.propertiesType,
            "More properties of librdkafka, as its CONFIGURATION.md names them; values are texts.",
            example: "{ \"linger.ms\" = \"50\", partitioner = \"murmur2_random\" }"),
    ]
}

/// Whether a text may be the name of a property of librdkafka. Which properties exist, and which the agent
/// sets itself, is judged by `Outputs` (`KafkaOptions`).
private func isKafkaProperty(_ name: String) -> Bool {
    !name.isEmpty && name.utf8.count <= 100
        && name.allSatisfy { $0.isASCII && ($0.isLowercase || $0.isNumber || $0 == "." || $0 == "_") }
}

/// Whether a property is a key or a password. These are refused, because they have settings of their own; but
/// until then they must stay secret.
private func isKafkaSecret(_ name: String) -> Bool {
    name.hasPrefix("sasl.") || name.hasPrefix("ssl.key")
        || ["password", "secret", "pem"].contains { name.hasSuffix($0) }
}

extension KafkaSettings {
    /// Properties of librdkafka by their names.
    static var propertiesType: ValueType<[String: String]> {
        let properties = ValueType<[String: String]>.map(
            of: .text(), names: "properties of librdkafka", accepts: isKafkaProperty)
        return ValueType(properties.name, range: properties.range, parse: properties.parse) { values in
            .table(
                // Sorted, because a reload compares printed values: in another order they would count as
                // changed.
                values.sorted { $0.key < $1.key }.map { name, value in
                    SettingValue.Member(
                        name: name, value: isKafkaSecret(name) ? .secret(Secret(value)) : .string(value))
                })
        }
    }
}

extension DestinationSettings {
    /// Checks what contradicts in a destination of type `kafka`.
    func check(_ kafka: KafkaSettings, path: String, _ context: inout ReadContext) {
        // All brokers are checked: one on another machine is enough to send events in the clear.
        for address in kafka.addresses where !kafka.tls && !address.isLoopback && !allowPlainHTTP {
            context.complain(
                of: "\(path).kafka.tls",
                "is false and \(address.host) is another machine: every event would be readable on the "
                    + "network; use TLS, or set allow_plain_http = true if you mean it")
        }
        // Without a user librdkafka does not use SASL, and the mechanism would be ignored.
        // A default that is written out, as `check --print` does, is no mistake: here and below.
        if kafka.mechanism != KafkaSettings().mechanism, user == nil {
            context.complain(of: path, "has a kafka.mechanism but no user", .missing, at: "kafka.mechanism")
        }
        // Refused instead of ignored: a pinned key that is not checked would give false safety.
        let standard = TLSOptions()
        let unknown = [
            ("pinned_keys", tls.pinnedKeys != standard.pinnedKeys),
            ("minimum_version", tls.minimumVersion != standard.minimumVersion),
            ("allow_common_name", tls.allowsCommonName != standard.allowsCommonName),
        ]
        for (key, isSet) in unknown where isSet {
            context.complain(of: "\(path).tls.\(key)", "is not for type kafka: librdkafka has no equivalent")
        }
        for key in ["ca_file", "certificate"] where context.isSet("\(path).tls.\(key)") && !kafka.tls {
            context.complain(of: "\(path).tls.\(key)", "has no effect with kafka.tls = false")
        }
    }
}
