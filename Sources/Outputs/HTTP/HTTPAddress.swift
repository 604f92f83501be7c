internal import CCurl
internal import Model

/// The parts of an address as libcurl's parser understands them. Another parser could find another host in
/// a crafted address than the one that libcurl then connects to.
struct HTTPAddress: Equatable {
    let scheme: String
    /// Name or IP address; an IPv6 address has its brackets.
    let host: String
    /// Whether the address contains a user or a password.
    let hasCredentials: Bool
    /// The text after `?`; nil without one.
    let query: String?

    /// - Returns: nil if libcurl does not accept the text as an address.
    init?(_ text: String) {
        guard let url = curl_url() else { return nil }
        defer { curl_url_cleanup(url) }
        guard curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK else { return nil }
        func part(_ part: CURLUPart) -> String? {
            var found: UnsafeMutablePointer<CChar>?
            guard curl_url_get(url, part, &found, 0) == CURLUE_OK, let found else { return nil }
            defer { curl_free(found) }
            return String(cString: found)
        }
        guard let scheme = part(CURLUPART_SCHEME), let host = part(CURLUPART_HOST) else { return nil }
        self.scheme = scheme
        self.host = host
        hasCredentials = part(CURLUPART_USER) != nil || part(CURLUPART_PASSWORD) != nil
        query = part(CURLUPART_QUERY)
    }

    /// Appends arguments to an address, whether or not it has some; a fragment is dropped, as it is never
    /// sent.
    static func adding(_ arguments: [String], to url: String) -> String {
        let arguments = arguments.filter { !$0.isEmpty }
        guard !arguments.isEmpty else { return url }
        let parts = url.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
        let base = String(parts[0])
        let sign = !base.contains("?") ? "?" : base.hasSuffix("?") || base.hasSuffix("&") ? "" : "&"
        return base + sign + arguments.joined(separator: "&")
    }

    /// Decodes a percent-encoded text; empty if there is no memory.
    static func decoded(_ text: String) -> String {
        guard let decoded = curl_easy_unescape(nil, text, 0, nil) else { return "" }
        defer { curl_free(decoded) }
        return String(cString: decoded)
    }

    /// Whether the host is this machine, by name or by number, so that nothing leaves it.
    var isLoopback: Bool { host.isLoopbackHost }
}
