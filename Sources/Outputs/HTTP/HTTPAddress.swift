internal import CCurl
internal import Model

/// The parts of a destination's address, as the library that will connect understands them.
struct HTTPAddress: Equatable {
    let scheme: String
    let host: String
    let hasCredentials: Bool
    let query: String?

    /// - Returns: nil when it is no address.
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

    /// The address with arguments added to its query.
    static func adding(_ arguments: [String], to url: String) -> String {
        let arguments = arguments.filter { !$0.isEmpty }
        guard !arguments.isEmpty else { return url }
        let parts = url.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
        let base = String(parts[0])
        let sign = !base.contains("?") ? "?" : base.hasSuffix("?") || base.hasSuffix("&") ? "" : "&"
        return base + sign + arguments.joined(separator: "&")
    }

    /// A text as an argument's value. Source: RFC 3986, section 2.3.
    static func escape(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF".unicodeScalars)
        var escaped = ""
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                escaped.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                escaped.unicodeScalars.append("%")
                escaped.unicodeScalars.append(digits[Int(byte >> 4)])
                escaped.unicodeScalars.append(digits[Int(byte & 15)])
            }
        }
        return escaped
    }

    /// Whether the host is a number: IPv6 in brackets, or four parts of IPv4.
    var isNumber: Bool { host.isHostNumber }

    /// Whether the host is this machine, by name or by number: nothing leaves it.
    var isLoopback: Bool { host.isLoopbackHost }
}
