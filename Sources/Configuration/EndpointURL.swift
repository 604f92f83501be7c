internal import Model

/// The parts of a URL that the configuration has to judge.
///
/// Its description hides what may be secret in it: a password, the values of the query.
public struct EndpointURL: Sendable, Hashable, CustomStringConvertible {
    /// The whole text, as it was written: for the library that connects.
    public let text: String
    /// The scheme, in small letters.
    public let scheme: String
    /// The host's name or address, without brackets.
    public let host: String
    /// The port, where one is written.
    public let port: Int?
    /// Whether a user or a password is written in it.
    public let hasCredentials: Bool

    /// The URL of that text; nil when it has no scheme or host, or holds spaces or control characters.
    ///
    /// Source: RFC 3986, section 3; only the authority is taken apart.
    public init?(_ text: String) {
        guard text.utf8.count <= 2048, text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F && $0 < 0x80 }),
            let colon = text.firstIndex(of: ":"), text[colon...].hasPrefix("://")
        else { return nil }
        let scheme = text[..<colon].lowercased()
        guard let first = scheme.first, first.isLetter,
            scheme.allSatisfy({ $0.isLetter || $0.isNumber || "+-.".contains($0) })
        else { return nil }
        var authority = text[text.index(colon, offsetBy: 3)...].prefix { !"/?#".contains($0) }
        hasCredentials = authority.contains("@")
        if let at = authority.lastIndex(of: "@") { authority = authority[authority.index(after: at)...] }
        let host: Substring
        var rest: Substring
        if authority.first == "[" {
            guard let end = authority.firstIndex(of: "]") else { return nil }
            host = authority[authority.index(after: authority.startIndex)..<end]
            rest = authority[authority.index(after: end)...]
        } else {
            host = authority.prefix { $0 != ":" }
            rest = authority[host.endIndex...]
        }
        guard !host.isEmpty else { return nil }
        if rest.isEmpty {
            port = nil
        } else {
            rest.removeFirst()
            guard let number = Int(rest), (1...65_535).contains(number) else { return nil }
            port = number
        }
        self.text = text
        self.scheme = scheme
        self.host = host.lowercased()
    }

    /// Whether it leads to this machine: what is sent there crosses no wire.
    public var isLoopback: Bool { host.isLoopbackHost }

    /// The path, without query and fragment; empty for none.
    public var path: Substring {
        guard let start = text.range(ofASCII: "://")?.upperBound else { return "" }
        let rest = text[start...].prefix { $0 != "?" && $0 != "#" }
        return rest.drop { $0 != "/" }
    }

    /// The text, without what may be secret.
    public var description: String {
        var shown = text
        if hasCredentials, let start = shown.range(ofASCII: "://")?.upperBound,
            let at = shown[start...].prefix(while: { !"/?#".contains($0) }).lastIndex(of: "@")
        {
            shown.replaceSubrange(start..<at, with: "****")
        }
        guard let mark = shown.firstIndex(of: "?") else { return shown }
        let pairs = shown[shown.index(after: mark)...].split(separator: "&", omittingEmptySubsequences: false).map {
            pair -> Substring in
            guard let equals = pair.firstIndex(of: "=") else { return pair }
            return pair[...equals] + Substring(Secret(String(pair[pair.index(after: equals)...])).masked)
        }
        return shown[...mark] + pairs.joined(separator: "&")
    }
}

extension String {
    /// Where an ASCII text begins and ends in this one.
    ///
    /// Our own, because the library's `contains` of a text in a text brings the regular expressions' 1.5 MB along.
    func range(ofASCII text: String) -> Range<String.Index>? {
        var start = startIndex
        while start < endIndex {
            if self[start...].hasPrefix(text) { return start..<index(start, offsetBy: text.count) }
            start = index(after: start)
        }
        return nil
    }
}

extension ValueType where Value == EndpointURL {
    /// A URL with one of the schemes.
    static func url(_ schemes: String..., credentials: Bool = false) -> ValueType {
        let shown = schemes.map { $0 + "://" }.joined(separator: ", ")
        return ValueType("URL", range: shown) { node throws(ValueMistake) in
            guard case .string(let text) = node.value else { throw .wrongType("a string", node) }
            guard let url = EndpointURL(text) else {
                throw ValueMistake(.outOfRange, "is no URL; write one as \"\(schemes[0])://host/path\"")
            }
            guard schemes.contains(url.scheme) else {
                throw ValueMistake(.outOfRange, "begins with \(url.scheme)://; must begin with \(shown)")
            }
            guard credentials || !url.hasCredentials else {
                throw ValueMistake(.outOfRange, "holds a user or password; use user and password_file instead")
            }
            return url
        } print: { url in
            // As it was written when nothing in it may be secret.
            url.description == url.text ? .string(url.text) : .url(url)
        }
    }
}

/// An address to listen on.
public struct ListenAddress: Sendable, Hashable, CustomStringConvertible {
    /// An IPv4 or IPv6 address, without brackets.
    public let host: String
    /// The port; 0 lets the kernel choose one.
    public let port: UInt16

    package init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// The address of a text such as `127.0.0.1:9464` or `[::1]:9464`; nil for anything else.
    public init?(_ text: String) {
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else {
            return nil
        }
        var host = text[..<colon]
        if host.first == "[" && host.last == "]" {
            host = host.dropFirst().dropLast()
            guard host.contains(":"), host.allSatisfy({ $0.isHexDigit || $0 == ":" || $0 == "." }) else { return nil }
        } else {
            let parts = host.split(separator: ".", omittingEmptySubsequences: false)
            guard parts.count == 4, parts.allSatisfy({ UInt8($0) != nil }) else { return nil }
        }
        self.host = String(host)
        self.port = port
    }

    /// As it is written.
    public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
