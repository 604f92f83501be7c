package import Model

/// `[[container]]`: a remotely managed container.
public struct ContainerSettings: SettingsSection {
    /// What must be in force before events are read.
    package enum Requirement: String, Sendable, CaseIterable {
        /// `document` is any document that is not a draft; `redaction` is one that redacts or hashes.
        case document, redaction
    }

    /// Id of the container, as in its document.
    package var id = ""
    /// Path of the default file; nil for none.
    package var defaultFile: String?
    /// Address to fetch from; nil if only the default file is used.
    package var url: EndpointURL?
    /// Keys that may sign the document; several while one is replaced.
    package var publicKeys: [String] = []
    /// The document that opening waits for.
    package var open = ContainerOpening.preferNonDefault
    /// Most time that opening takes. The spool is not read before.
    package var timeout = Duration.seconds(2)
    /// Age up to which a confirmed copy is fresh.
    package var freshFor = Duration.seconds(12 * 3600)
    /// Time between fetches.
    package var refreshInterval = Duration.seconds(12 * 3600)
    /// Paths of settings that values may change.
    package var maySet: [String] = []
    /// Names of functions that may be called.
    package var mayCall: [String] = []
    /// What must be in force before events are read.
    package var required: [Requirement] = []
    /// Apps that the container concerns; empty for all.
    package var apps: [String] = []
    /// Path of the key for `hash` tags; nil if there is no key, or it is a credential.
    package var hashKeyFile: String?
    /// Name of the credential with that key.
    package var hashKeyCredential: String?
    /// Certificates to trust in place of the system's.
    package var caFile: String?

    /// Place of the key; nil without a key.
    private var hashKey: SecretFile? {
        get { hashKeyFile.map { .file($0) } ?? hashKeyCredential.map { .credential($0) } }
        set {
            switch newValue {
            case .file(let path): hashKeyFile = path
            case .credential(let name): hashKeyCredential = name
            case nil: (hashKeyFile, hashKeyCredential) = (nil, nil)
            }
        }
    }

    /// Path of the key for `hash` tags; nil if there is no key. `directory` is that of systemd's credentials,
    /// if there is one.
    public func hashKeyPath(credentials directory: String?) -> String? {
        // Outside the service the directory is not known: reading fails, and the message names the variable.
        hashKeyFile ?? hashKeyCredential.map { "\(directory ?? "$CREDENTIALS_DIRECTORY")/\($0)" }
    }

    private static let timeoutType = ValueType<Duration>.duration(.milliseconds(10) ... .seconds(60))

    static let entries: [Entry<ContainerSettings>] = [
        .setting(
            "id", \.id, ContainerSettings.idType.standingForNothing(""), "Its id, as in the document.",
            example: "\"GTM-1234\""),
        .setting(
            "default_file", \.defaultFile, optional: .path,
            "Used until the first fetch; named by the id: GTM-1234 (complete), GTM-1234.json or .plist "
                + "(values only).",
            example: "\"/etc/spoolship/containers/GTM-1234\""),
        .pair(
            "url", .init("address", \.url, optional: EndpointURL.settingType("https", "http")),
            .init("ca_file", \.caFile, optional: .path),
            "The address to fetch it from; without it only the default file is used. ca_file has the"
                + " certificates to trust there instead of the system's (PEM).",
            example: "\"https://config.example.com/GTM-1234\""),
        .setting("ca_file", \.caFile, optional: .path, "Now url.ca_file.").renamed(to: "url.ca_file"),
        .setting(
            "public_key", \.publicKeys, oneOrMore(of: publicKeyType),
            "Ed25519 public key (`spoolship container keygen`), or a list of them while one is replaced. "
                + "Required with url.",
            example: "\"GAP7GZsSF0sDoNw8xKTtOTTyfwhCrPcsPHkHQrIwl2E=\""),
        .pair(
            "open", .init("document", \.open, .choice), .init("timeout", \.timeout, timeoutType),
            "The document that opening waits for, and how long at most; the spool is not read before."
                + " prefer_fresh if old values do harm; immediate if reading must not wait for the network."),
        .setting("timeout", \.timeout, timeoutType, "Now open.timeout.").renamed(to: "open.timeout"),
        .setting(
            "refresh_interval", \.refreshInterval, .duration(.seconds(60) ... .seconds(30 * 86_400)),
            "How often it is fetched; shorter publishes sooner and costs requests."),
        .setting(
            "fresh_for", \.freshFor, .duration(.seconds(60) ... .seconds(3650 * 86_400)),
            "A copy older than this is fetched again."
        ).retired("a copy is fresh for 12h, and refresh_interval says how often it is fetched"),
        .setting(
            "required", \.required, requirementsType,
            "Events of its apps are read only while such a document (no draft) is in force; true is "
                + "[\"redaction\"]."
        ),
        .setting(
            "apps", \.apps, .list(of: .text("app"), unique: true),
            "The apps that it applies to; by default all.", example: "[\"shop\"]"),
        .setting(
            "may_set", \.maySet, .list(of: .text("setting"), unique: true),
            "The settings that its values may change.", example: "[\"dispatch.interval\"]"),
        .setting(
            "may_call", \.mayCall, .list(of: .text("function"), unique: true),
            "The functions that it may call; see [functions.NAME].", example: "[\"lookup\"]"),
        .setting(
            "hash_key", \.hashKey, optional: SecretFile.valueType,
            "The key for the digests of hash tags: 32 bytes or more that others cannot read (openssl rand "
                + "-hex 32).",
            example: "\"file:/etc/spoolship/hash.key\""),
        .setting("hash_key_file", \.hashKeyFile, optional: .path, "Now hash_key.").renamed(to: "hash_key"),
        .setting(
            "hash_key_credential", \.hashKeyCredential, optional: SecretSource.credentialNameType,
            "Now hash_key."
        )
        .renamed(to: "hash_key"),
    ]
}

extension ContainerSettings {
    /// The id of a container. It becomes the name of a file, so it has neither dots nor slashes.
    static var idType: ValueType<String> {
        .checked(
            "id", range: "A-Z, a-z, 0-9, - and _, at most 64", mustBe: "1 to 64 of A-Z, a-z, 0-9, - and _"
        ) { id in
            (1...64).contains(id.utf8.count) && id.hasOnlyLettersDigits(and: "-_")
        }
    }

    /// An Ed25519 public key in Base64. All zeros (`AAAA…=`) is refused, because anybody can sign for it.
    static var publicKeyType: ValueType<String> {
        .checked(
            "public key", range: "base64 of 32 bytes",
            mustBe: "an Ed25519 public key: 44 characters of base64"
        ) {
            key in
            key.isBase64OfHash && key.dropLast().contains { $0 != "A" }
        }
    }

    /// A list of requirements; `true` is redaction alone.
    static var requirementsType: ValueType<[Requirement]> {
        let list = ValueType<[Requirement]>.list(of: .choice, unique: true)
        return ValueType("boolean or list of choice", range: list.range) { node throws(Problem) in
            // `required = true` means what most want: nothing may pass unredacted.
            if case .boolean(let isRequired) = node.value { return isRequired ? [.redaction] : [] }
            return try list.parse(node)
        } print: { value in
            value.isEmpty ? .boolean(false) : list.print(value)
        }
    }

    /// One value, or a list of up to 16.
    private static func oneOrMore(of element: ValueType<String>) -> ValueType<[String]> {
        let list = ValueType<[String]>.list(of: element, count: 1...16, unique: true)
        return ValueType("\(element.name) or list of them", range: element.range) { node throws(Problem) in
            // One key is written without brackets, as most configurations have one.
            if case .string = node.value { return [try element.parse(node)] }
            return try list.parse(node)
        } print: { values in
            switch values.count {
            case 0: nil
            case 1: .string(values[0])
            default: .array(values.map { .string($0) })
            }
        }
    }
}
