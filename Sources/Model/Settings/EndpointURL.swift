/// A URL, with the parts that the configuration checks.
///
/// Its description hides what may be secret: user and password, and the values of the query.
public struct EndpointURL: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
    /// The complete text as it was written, for the library that connects.
    public let text: String
    /// The scheme, in lower case.
    public let scheme: String
    /// The host's name or address, in lower case, without brackets.
    public let host: String
    /// The port; nil if the text has none.
    public let port: Int?
    /// Whether the text contains a user or a password.
    public let hasCredentials: Bool

    /// Parses a URL. Nil if it has no scheme or host, is longer than 2,048 bytes, or contains blanks,
    /// control characters or bytes beyond ASCII.
    ///
    /// Source: RFC 3986, section 3; only the authority is parsed further.
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
        if let at = authority.lastIndex(of: "@") {
            authority = authority[authority.index(after: at)...]
        }
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

    /// Whether the URL leads to this machine, so that requests cross no network.
    public var isLoopback: Bool { host.isLoopbackHost }

    /// Scheme, host and port: the part that is safe to show.
    public var place: String {
        let shown = host.contains(":") ? "[\(host)]" : host
        return port.map { "\(scheme)://\(shown):\($0)" } ?? "\(scheme)://\(shown)"
    }

    /// The path, without query and fragment; empty if there is no path.
    public var path: Substring {
        text.dropFirst(scheme.count + "://".count).prefix { $0 != "?" && $0 != "#" }.drop { $0 != "/" }
    }

    /// Hides the members from `dump`.
    public var customMirror: Mirror { Mirror(self, children: []) }

    /// The text, with user, password and values of the query masked.
    public var description: String {
        var shown = text
        let authority = shown.dropFirst(scheme.count + "://".count).prefix { !"/?#".contains($0) }
        if let at = authority.lastIndex(of: "@") {
            shown.replaceSubrange(authority.startIndex..<at, with: Secret.mask)
        }
        guard let mark = shown.firstIndex(of: "?") else { return shown }
        let pairs = shown[shown.index(after: mark)...].split(separator: "&", omittingEmptySubsequences: false)
            .map {
                pair -> Substring in
                guard let equals = pair.firstIndex(of: "=") else { return pair }
                return pair[...equals] + Secret.mask
            }
        return shown[...mark] + pairs.joined(separator: "&")
    }
}
