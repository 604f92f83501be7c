// The spelling of names in settings and requests. Checked when settings are read, and again where the names
// are used.

extension StringProtocol {
    /// Whether the text consists of ASCII letters, digits and the bytes of `others`.
    public func hasOnlyLettersDigits(and others: String) -> Bool {
        utf8.allSatisfy { byte in
            (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte | 0x20) || others.utf8.contains(byte)
        }
    }

    /// Whether the text can be the name of a header: a token of RFC 9110, section 5.6.2.
    public var isHeaderName: Bool { !isEmpty && hasOnlyLettersDigits(and: "!#$%&'*+-.^_`|~") }

    /// Whether the text is a numeric address: IPv4, or IPv6 with or without brackets.
    public var isHostNumber: Bool { utf8.contains(UInt8(ascii: ":")) || numbers != nil }

    /// Whether the text names this machine as a host, by name or address: nothing sent there leaves the
    /// machine.
    public var isLoopbackHost: Bool {
        self == "localhost" || hasSuffix(".localhost") || self == "::1" || self == "[::1]"
            || numbers?.first == 127
    }

    /// The four parts of an IPv4 address; nil for any other text.
    private var numbers: [UInt8]? {
        let parts = split(separator: ".", omittingEmptySubsequences: false)
        let numbers = parts.compactMap { UInt8($0) }
        return parts.count == 4 && numbers.count == 4 ? numbers : nil
    }

    /// Whether the text is a header that the agent sets itself; a setting must not replace it.
    public var isOwnHeader: Bool {
        [
            "connection", "content-encoding", "content-length", "expect", "host", "idempotency-key",
            "transfer-encoding", "x-spoolship-events",
        ].contains(lowercased())
    }

    /// Whether the text can be a name of the tz database. The name becomes part of a path below the zone
    /// directory, so `..` and an absolute path must not pass.
    public var isTimeZoneName: Bool {
        utf8.count <= 64
            && split(separator: "/", omittingEmptySubsequences: false).allSatisfy { part in
                !part.isEmpty && !part.hasPrefix(".") && part.hasOnlyLettersDigits(and: "_-+")
            }
    }

    /// Whether the text is the Base64 of 32 bytes, such as a key or a SHA-256.
    public var isBase64OfHash: Bool {
        utf8.count == 44 && hasSuffix("=") && dropLast().hasOnlyLettersDigits(and: "+/")
    }

    /// Whether the text is the hash of a public key in curl's notation (CURLOPT_PINNEDPUBLICKEY).
    public var isPinnedKey: Bool { hasPrefix("sha256//") && dropFirst("sha256//".count).isBase64OfHash }

    /// Whether the text is the name of a Kafka topic. Source: Apache Kafka, `Topic.validate`.
    public var isKafkaTopic: Bool {
        (1...249).contains(utf8.count) && self != "." && self != ".." && hasOnlyLettersDigits(and: "._-")
    }

    /// Whether messages can be published to it as a subject: words separated by dots, without the
    /// wildcards `*` and `>`. Source: https://docs.nats.io/nats-concepts/subjects
    public var isNATSSubject: Bool {
        (1...255).contains(utf8.count)
            && split(separator: ".", omittingEmptySubsequences: false).allSatisfy { word in
                !word.isEmpty && word.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F && $0 != 0x2A && $0 != 0x3E }
            }
    }

    /// Whether the text is the name of a NATS stream. The name is sent as a header, so it must be ASCII
    /// without blanks.
    public var isNATSStream: Bool {
        (1...255).contains(utf8.count)
            && utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !".*>/\\".utf8.contains($0) }
    }
}

extension String {
    /// The text as part of a path or as a query value; all but RFC 3986's unreserved characters
    /// (section 2.3) are encoded.
    public var percentEncoded: String {
        utf8.map { byte in
            let text = String(Unicode.Scalar(byte))
            return text.hasOnlyLettersDigits(and: "-._~") ? text : "%" + Hexadecimal.text([byte]).uppercased()
        }.joined()
    }
}
