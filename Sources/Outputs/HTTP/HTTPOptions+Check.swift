internal import Digests
internal import EventLoops
internal import Model

extension HTTPOptions {
    /// Refuses settings without meaning.
    ///
    /// - Throws: `OutputError` with code `invalidSetting`.
    func check() throws(OutputError) {
        guard let address = HTTPAddress(url), address.scheme == "https" || address.scheme == "http" else {
            throw OutputError(.invalidSetting, "the url is no address of the form https://host/path")
        }
        try require(!address.hasCredentials, "the url holds a user or password; give them as authentication")
        try require(
            address.scheme == "https" || address.isLoopback || allowPlainHTTP,
            "plain http to \(address.host) shows every event on the way; use https, or allow it by name")
        if address.scheme == "http", !allowPlainHTTP, case .address(let proxy) = proxy {
            try require(
                HTTPAddress(proxy.revealed)?.isLoopback == true,
                "plain http through a proxy shows every event and credential on the way; use https, or allow it by name"
            )
        }
        for header in headers {
            try require(header.name.isHeaderName, "\"\(header.name)\" is no header name")
            try require(
                header.value.revealed.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 },
                "the value of header \(header.name) holds a control character")
            try require(!header.name.isOwnHeader, "header \(header.name) is made by the agent; take it out")
        }
        for pin in tls.pinnedKeys {
            try require(
                pin.isPinnedKey, "pinned key \"\(pin)\": give sha256// and the 44 characters of its hash in Base64")
        }
        for (word, wait) in [
            ("connect_timeout", connectTimeout), ("request_timeout", requestTimeout), ("connection age", connectionAge),
        ] {
            try require(wait > .zero && wait <= .seconds(86_400), "\(word) must lie between nothing and a day")
        }
        if let name = batchIDParameter { try require(name.isHeaderName, "\"\(name)\" is no name of a query parameter") }
    }

    /// Whether a request may go where the environment says (`http_proxy` and the like).
    ///
    /// What is for this machine stays on it. Plain HTTP that carries a credential goes to a proxy only when a person has
    /// configured that by name: the environment is often set for something else.
    var mayUseProxyOfEnvironment: Bool {
        guard let address = HTTPAddress(url), !address.isLoopback else { return false }
        return address.scheme == "https" || authorization == .none && headers.isEmpty
    }

    /// Takes over how another server is reached: the proxy, and whether plain HTTP may leave the machine.
    mutating func takeWay(of other: HTTPOptions) {
        proxy = other.proxy
        allowPlainHTTP = other.allowPlainHTTP
        userAgent = other.userAgent
    }

    /// Where the secret of `authorization` is.
    var secretSource: SecretSource? {
        switch authorization {
        case .none: nil
        case .token(let source, _): source
        case .basic(_, let source): source
        case .oauth2(let oauth2): oauth2.clientSecret
        case .aws(let aws): aws.source.secret
        }
    }

    /// What adds to each request a proof that has to be fetched or computed; nil where a header that stays the same is enough.
    ///
    /// - Throws: `OutputError`: an address that is none.
    func authorizer(installID: String, on loop: EventLoop) throws(OutputError) -> (any RequestAuthorizer)? {
        switch authorization {
        case .none, .token, .basic: nil
        case .oauth2(let oauth2): try OAuth2Client(oauth2, self, on: loop)
        case .aws(let aws): try AWSSigner(aws, session: "spoolship-\(installID)", self, on: loop)
        }
    }

    /// What shows that the agent may write: a header, or an argument of the address.
    ///
    /// - Throws: `OutputError` with code `badFile` when the secret holds what no header may hold.
    func credential(_ secret: Secret?, in place: TokenPlace) throws(OutputError) -> Credential? {
        guard let secret else { return nil }
        guard secret.revealed.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw OutputError(.badFile, "the secret for \(HTTPAddress(url)?.host ?? "") holds a control character")
        }
        switch (authorization, place) {
        case (.none, _), (.oauth2, _), (.aws, _): return nil
        case (.basic(let user, _), _):
            return .header("Authorization: Basic \(Base64.encode(Array("\(user):\(secret.revealed)".utf8)))")
        case (.token(_, let scheme), .authorization(let usual)):
            let word = scheme ?? usual
            return .header("Authorization: \(word.isEmpty ? "" : "\(word) ")\(secret.revealed)")
        case (.token, .header(let name)):
            return .header("\(name): \(secret.revealed)")
        case (.token, .argument(let name)):
            return .argument("\(name)=\(HTTPAddress.escape(secret.revealed))")
        }
    }

    /// The headers that are the same for every request.
    func staticHeaders(_ format: any BatchEncoder) -> [String] {
        var own = [Header("Content-Type", contentType ?? format.traits.contentType)] + format.traits.headers
        own.removeAll { header in headers.contains { $0.name.lowercased() == header.name.lowercased() } }
        // The library signs a header that takes its own away, and does not send it.
        var lines = if case .aws = authorization { [String]() } else { ["Expect:"] }
        for header in own + headers {
            // The library takes a header without a value only with a semicolon.
            let value = header.value.revealed
            lines.append(value.isEmpty ? "\(header.name);" : "\(header.name): \(value)")
        }
        if compression != .none { lines.append("Content-Encoding: \(compression.name)") }
        return lines
    }
}
