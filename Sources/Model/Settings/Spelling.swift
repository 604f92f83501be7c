// How names must be spelled that settings hold and requests carry: asked where settings are read, and again where they are used.

extension StringProtocol {
    /// Whether there are only ASCII letters and digits in it, and some other bytes.
    public func hasOnlyLettersDigits(and others: String) -> Bool {
        utf8.allSatisfy { byte in
            (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte | 0x20) || others.utf8.contains(byte)
        }
    }

    /// Whether it can be a header's name. Source: RFC 9110, section 5.6.2 (token).
    public var isHeaderName: Bool { !isEmpty && hasOnlyLettersDigits(and: "!#$%&'*+-.^_`|~") }

    /// Whether it is a host's number: four parts of IPv4, or IPv6 with or without its brackets.
    public var isHostNumber: Bool { utf8.contains(UInt8(ascii: ":")) || numbers != nil }

    /// Whether, as a host's name or number, it is this machine: nothing that is sent there leaves it.
    public var isLoopbackHost: Bool {
        self == "localhost" || hasSuffix(".localhost") || self == "::1" || self == "[::1]" || numbers?.first == 127
    }

    /// The parts of IPv4.
    private var numbers: [UInt8]? {
        let parts = split(separator: ".", omittingEmptySubsequences: false)
        let numbers = parts.compactMap { UInt8($0) }
        return parts.count == 4 && numbers.count == 4 ? numbers : nil
    }

    /// Whether it is a header that the agent makes itself.
    public var isOwnHeader: Bool {
        [
            "connection", "content-encoding", "content-length", "expect", "host", "idempotency-key",
            "transfer-encoding", "x-spoolship-events",
        ].contains(lowercased())
    }

    /// Whether it can be a zone's name of the tz database.
    public var isTimeZoneName: Bool {
        utf8.count <= 64
            && split(separator: "/", omittingEmptySubsequences: false).allSatisfy { part in
                !part.isEmpty && !part.hasPrefix(".") && part.hasOnlyLettersDigits(and: "_-+")
            }
    }

    /// Whether it is the Base64 of 32 bytes: of a key, or of a SHA-256.
    public var isBase64OfHash: Bool {
        utf8.count == 44 && hasSuffix("=") && dropLast().hasOnlyLettersDigits(and: "+/")
    }

    /// Whether it is a public key's hash as curl writes it.
    public var isPinnedKey: Bool { hasPrefix("sha256//") && dropFirst("sha256//".count).isBase64OfHash }

    /// Whether it is a topic's name. Source: Apache Kafka, `Topic.validate`.
    public var isKafkaTopic: Bool {
        (1...249).contains(utf8.count) && self != "." && self != ".." && hasOnlyLettersDigits(and: "._-")
    }

    /// Whether it is a subject that can be published to. Source: NATS documentation, "Subject-Based Messaging".
    public var isNATSSubject: Bool {
        (1...255).contains(utf8.count)
            && split(separator: ".", omittingEmptySubsequences: false).allSatisfy { word in
                !word.isEmpty && word.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F && $0 != 0x2A && $0 != 0x3E }
            }
    }

    /// Whether it is a stream's name, which becomes a header.
    public var isNATSStream: Bool {
        (1...255).contains(utf8.count)
            && utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !".*>/\\".utf8.contains($0) }
    }
}

extension String {
    /// The text as a part of a path or as an argument's value. Source: RFC 3986, section 2.3.
    public var percentEncoded: String {
        utf8.map { byte in
            let text = String(Unicode.Scalar(byte))
            return text.hasOnlyLettersDigits(and: "-._~") ? text : "%" + Hexadecimal.text([byte]).uppercased()
        }.joined()
    }
}
