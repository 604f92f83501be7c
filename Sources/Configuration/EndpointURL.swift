internal import Model

extension EndpointURL {
    /// A URL with one of some schemes; a user or password in it is refused unless `credentials`, because URLs
    /// are printed.
    static func settingType(_ schemes: String..., credentials: Bool = false) -> ValueType<EndpointURL> {
        let shown = schemes.map { $0 + "://" }.joined(separator: ", ")
        return ValueType("URL", range: shown) { node throws(Problem) in
            guard case .string(let text) = node.value else { throw .wrongType("a string", node) }
            guard let url = EndpointURL(text) else {
                throw Problem(.outOfRange, "is not a URL; write one such as \"\(schemes[0])://host/path\"")
            }
            guard schemes.contains(url.scheme) else {
                throw Problem(.outOfRange, "begins with \(url.scheme)://; must begin with \(shown)")
            }
            guard credentials || !url.hasCredentials else {
                throw Problem(.outOfRange, "contains a user or password; use the settings user and password")
            }
            return url
        } print: { url in
            // As it was written, if nothing in it may be secret.
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

    /// The address as it is written.
    public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}

extension ListenAddress {
    /// The address of a text such as `127.0.0.1:9464` or `[::1]:9464`; nil for other texts, also for names,
    /// which could resolve to several addresses.
    public init?(_ text: String) {
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else {
            return nil
        }
        var host = text[..<colon]
        if host.first == "[" && host.last == "]" {
            host = host.dropFirst().dropLast()
            guard host.contains(":"), host.allSatisfy({ $0.isHexDigit || $0 == ":" || $0 == "." }) else {
                return nil
            }
        } else {
            let parts = host.split(separator: ".", omittingEmptySubsequences: false)
            guard parts.count == 4, parts.allSatisfy({ UInt8($0) != nil }) else { return nil }
        }
        self.init(host: String(host), port: port)
    }
}
