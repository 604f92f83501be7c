internal import Digests
internal import EventLoops
internal import Model

extension HTTPOptions {
    /// Headers that the agent makes itself.
    private static let reserved: Set<String> = [
        "connection", "content-encoding", "content-length", "expect", "host", "idempotency-key", "transfer-encoding",
        "x-spoolship-events",
    ]

    /// Refuses settings without meaning.
    ///
    /// - Throws: `OutputError` with code `invalidSetting`.
    func check() throws(OutputError) {
        guard let address = HTTPAddress(url), address.scheme == "https" || address.scheme == "http" else {
            throw OutputError(.invalidSetting, "the url is no address of the form https://host/path")
        }
        guard !address.hasCredentials else {
            throw OutputError(.invalidSetting, "the url holds a user or password; give them as authentication")
        }
        guard address.scheme == "https" || address.isLoopback || allowPlainHTTP else {
            throw OutputError(
                .invalidSetting,
                "plain http to \(address.host) shows every event on the way; use https, or allow it by name")
        }
        if address.scheme == "http", !allowPlainHTTP, case .address(let proxy) = proxy,
            HTTPAddress(proxy.text)?.isLoopback != true
        {
            throw OutputError(
                .invalidSetting,
                "plain http through a proxy shows every event and credential on the way; use https, or allow it by name"
            )
        }
        for header in headers {
            guard !header.name.isEmpty, header.name.utf8.allSatisfy(HTTPOptions.isTokenByte) else {
                throw OutputError(.invalidSetting, "\"\(header.name)\" is no header name")
            }
            guard header.value.text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
                throw OutputError(.invalidSetting, "the value of header \(header.name) holds a control character")
            }
            guard !HTTPOptions.reserved.contains(header.name.lowercased()) else {
                throw OutputError(.invalidSetting, "header \(header.name) is made by the agent; take it out")
            }
        }
        for pin in tls.pinnedKeys {
            let base64 = pin.dropFirst("sha256//".count)
            guard pin.hasPrefix("sha256//"), base64.utf8.count == 44, base64.hasSuffix("="),
                base64.dropLast().utf8.allSatisfy(HTTPOptions.isBase64Byte)
            else {
                throw OutputError(
                    .invalidSetting, "pinned key \"\(pin)\": give sha256// and the 44 characters of its hash in Base64")
            }
        }
        for (word, wait) in [
            ("connect_timeout", connectTimeout), ("request_timeout", requestTimeout), ("connection age", connectionAge),
        ] where wait <= .zero || wait > .seconds(86_400) {
            throw OutputError(.invalidSetting, "\(word) must lie between nothing and a day")
        }
        if let batchIDParameter, !batchIDParameter.utf8.allSatisfy(HTTPOptions.isTokenByte) {
            throw OutputError(.invalidSetting, "\"\(batchIDParameter)\" is no name of a query parameter")
        }
    }

    /// Whether a request may go where the environment says (`http_proxy` and the like).
    ///
    /// What is for this machine stays on it. Plain HTTP that carries a credential goes to a proxy only when a person has
    /// configured that by name: the environment is often set for something else.
    var mayUseProxyOfEnvironment: Bool {
        guard let address = HTTPAddress(url), !address.isLoopback else { return false }
        return address.scheme == "https" || authorization == .none && headers.isEmpty
    }

    /// Where the secret of `authorization` is.
    var secretSource: SecretSource? {
        switch authorization {
        case .none: nil
        case .token(let source, _): source
        case .basic(_, let source): source
        }
    }

    /// What shows that the agent may write: a header, or an argument of the address.
    ///
    /// - Throws: `OutputError` with code `badFile` when the secret holds what no header may hold.
    func credential(_ secret: Secret?, in place: TokenPlace) throws(OutputError) -> Credential? {
        guard let secret else { return nil }
        guard secret.text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw OutputError(.badFile, "the secret for \(HTTPAddress(url)?.host ?? "") holds a control character")
        }
        switch (authorization, place) {
        case (.none, _): return nil
        case (.basic(let user, _), _):
            return .header("Authorization: Basic \(Base64.encode(Array("\(user):\(secret.text)".utf8)))")
        case (.token(_, let scheme), .authorization(let usual)):
            let word = scheme ?? usual
            return .header("Authorization: \(word.isEmpty ? "" : "\(word) ")\(secret.text)")
        case (.token, .header(let name)):
            return .header("\(name): \(secret.text)")
        case (.token, .argument(let name)):
            return .argument("\(name)=\(HTTPAddress.escape(secret.text))")
        }
    }

    /// The headers that are the same for every request.
    func staticHeaders(_ format: any BatchEncoder) -> [String] {
        var own = [Header("Content-Type", contentType ?? format.contentType)] + format.headers
        own.removeAll { header in headers.contains { $0.name.lowercased() == header.name.lowercased() } }
        var lines = ["Expect:"]
        for header in own + headers {
            // The library takes a header without a value only with a semicolon.
            let value = header.value.text
            lines.append(value.isEmpty ? "\(header.name);" : "\(header.name): \(value)")
        }
        if compression != .none { lines.append("Content-Encoding: \(compression.name)") }
        return lines
    }

    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }

    private static func isBase64Byte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "/"):
            true
        default: false
        }
    }
}
