internal import Digests
internal import EventLoops
internal import Model

extension HTTPOptions {
    /// Refuses an address to which nothing may be sent. The configuration was checked before, but the
    /// addresses of some services come from the environment.
    ///
    /// - Throws: `OutputError` with code `invalidSetting`.
    func check() throws(OutputError) {
        guard let address = HTTPAddress(url), address.scheme == "https" || address.scheme == "http" else {
            throw OutputError(.invalidSetting, "the url must have the form https://host/path")
        }
        try require(
            !address.hasCredentials, "the url contains a user or password; use the settings user and password"
        )
        try require(
            address.scheme == "https" || address.isLoopback || settings.allowPlainHTTP,
            "plain http to \(address.host) shows every event on the network; use https, or allow it")
        if address.scheme == "http", !settings.allowPlainHTTP, let proxy = settings.proxy {
            try require(
                proxy.isLoopback,
                "plain http through a proxy shows every event and credential on the network; use https, or allow it"
            )
        }
    }

    /// Whether a request may use the proxy that the environment names (`http_proxy` and the like).
    ///
    /// Requests to this machine stay on it. Plain HTTP with a credential goes through a proxy only if the
    /// settings name it: the environment is often set for another purpose, and the proxy could read the
    /// credential.
    var mayUseProxyOfEnvironment: Bool {
        guard heedsEnvironment, let address = HTTPAddress(url), !address.isLoopback else { return false }
        return address.scheme == "https" || settings.login == nil && settings.headers.isEmpty
    }

    /// The proxy through which a server is reached, for messages: `the proxy http://proxy.example.com:3128
    /// (https_proxy of the environment)`; nil for a direct connection. Repeats libcurl's rules for the
    /// variables, because libcurl has no function that tells the proxy of a failed connection.
    func proxy(to server: HTTPAddress) -> String? {
        let variable = AWSSigner.variable
        let exempt = (variable("no_proxy") ?? variable("NO_PROXY") ?? "").lowercased().split {
            ", ".contains($0)
        }
        let isExempt = exempt.contains { entry in
            let name = entry.drop { $0 == "." }
            // An entry such as `10.0.0.0/8` may contain any address. Only libcurl decides whether it
            // contains this one.
            return name == "*" || server.host == name || server.host.hasSuffix(".\(name)")
                || server.host.isHostNumber && entry.contains("/")
        }
        guard !isExempt else { return nil }
        if let proxy = settings.proxy { return "the proxy \(proxy.place)" }
        let names =
            (server.scheme == "https" ? ["https_proxy", "HTTPS_PROXY"] : ["http_proxy"]) + [
                "all_proxy", "ALL_PROXY",
            ]
        guard mayUseProxyOfEnvironment, let name = names.first(where: { variable($0) != nil }) else {
            return nil
        }
        let text = variable(name) ?? ""
        let place = (EndpointURL(text) ?? EndpointURL("http://\(text)"))?.place
        return "the proxy\(place.map { " \($0)" } ?? "") (\(name) of the environment)"
    }

    /// Options for another server that is reached through the same proxy, such as a token endpoint. The
    /// destination's credentials and pinned keys are left out; without `caFile` the system's authorities
    /// are trusted.
    func beside(_ url: EndpointURL?, caFile: String?) -> HTTPOptions {
        var other = HTTPOptions(DestinationSettings(), userAgent: userAgent)
        other.settings.url = url
        other.settings.proxy = settings.proxy
        other.settings.connectTimeout = settings.connectTimeout
        other.settings.requestTimeout = settings.requestTimeout
        other.settings.allowPlainHTTP = settings.allowPlainHTTP
        other.settings.tls.caFile = caFile
        // Requests to this server carry a secret that `mayUseProxyOfEnvironment` cannot see in the options.
        other.heedsEnvironment = heedsEnvironment && url?.scheme == "https"
        return other
    }

    /// Adds a proof that must be fetched or computed for each request; nil if a constant header is enough.
    ///
    /// - Throws: `OutputError` if an address is not valid, or the environment lacks what the settings
    ///   expect there.
    func authorizer(installID: String?, on loop: EventLoop) throws(OutputError) -> (any RequestAuthorizer)? {
        switch settings.login {
        case nil, .password, .token: nil
        case .oauth2: try OAuth2Client(settings.oauth2, self, on: loop)
        case .aws:
            try AWSSigner(http.aws, service: http.aws.service, installID: installID, self, on: loop)
        }
    }

    /// The secret in the form in which requests carry it; nil if an authorizer does that.
    ///
    /// - Throws: `OutputError` with code `badFile` if the secret contains a character that a header must
    ///   not contain.
    func credential(_ secret: Secret?, in place: TokenPlace) throws(OutputError) -> Credential? {
        // A key in PEM has lines, and is in no header.
        guard let secret, !settings.loginHasLines else { return nil }
        guard secret.revealed.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw OutputError(
                .badFile, "the secret for \(HTTPAddress(url)?.host ?? "") contains a control character")
        }
        switch (settings.login, place) {
        case (nil, _), (.oauth2, _), (.aws, _): return nil
        case (.password(let user, _), _):
            return .header("Authorization: Basic \(Base64.encode(Array("\(user):\(secret.revealed)".utf8)))")
        case (.token, _) where http.tokenIn == .query:
            let name = "the token for \(HTTPAddress(url)?.host ?? "")"
            return .argument(try HTTPOptions.arguments(secret, name))
        case (.token, .authorization(let usual)):
            let word = http.tokenScheme ?? usual
            return .header("Authorization: \(word.isEmpty ? "" : "\(word) ")\(secret.revealed)")
        case (.token, .header(let name)):
            return .header("\(name): \(secret.revealed)")
        case (.token, .argument(let name)):
            return .argument("\(name)=\(secret.revealed.percentEncoded)")
        }
    }

    /// A token that is arguments of an address; the question mark before them, with which Azure shows SAS
    /// tokens, is left out.
    ///
    /// - Throws: `OutputError` with code `badFile` if an address must not contain it.
    private static func arguments(_ secret: Secret, _ name: String) throws(OutputError) -> String {
        let text = secret.revealed.hasPrefix("?") ? String(secret.revealed.dropFirst()) : secret.revealed
        guard text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "#") }) else {
            throw OutputError(
                .badFile,
                "\(name) has a character that an address must not contain (token_in = query)")
        }
        return text
    }

    /// The lines of the head that are the same for every request. A header of the settings replaces the
    /// format's own.
    func staticHeaders(_ format: any BatchEncoder) -> [String] {
        let headers = settings.sortedHeaders.filter { !Template.hasPlaceholders($0.value) }
        var own =
            [("Content-Type", http.contentType ?? format.traits.contentType)] + format.traits.headers
        own.removeAll { own in settings.sortedHeaders.contains { $0.name.lowercased() == own.0.lowercased() }
        }
        // `Expect:` without a value removes libcurl's own `Expect: 100-continue`, which costs a round trip.
        // For AWS it is left out, because libcurl would sign the header and then not send it.
        var lines = if case .aws = settings.login { [String]() } else { ["Expect:"] }
        for (name, value) in own + headers {
            // libcurl sends a header without a value only if it ends in a semicolon
            // (CURLOPT_HTTPHEADER(3)).
            lines.append(value.isEmpty ? "\(name);" : "\(name): \(value)")
        }
        if settings.compression != .none {
            lines.append("Content-Encoding: \(settings.compression.name)")
        }
        return lines
    }
}

extension DestinationSettings {
    /// How the agent proves that it may write, and the source of the secret for it. NATS has further ways
    /// (`NATSIdentity`).
    enum Login {
        case password(user: String, SecretSource)
        /// A token, at the place where the format's receivers expect it.
        case token(SecretSource)
        /// An access token, requested with the client's secret or an account's key.
        case oauth2(SecretSource)
        /// A signature, with the key of the settings or one that AWS issues.
        case aws(SecretSource?)

        /// The source of the secret; nil for a role of AWS.
        var secret: SecretSource? {
            switch self {
            case .password(_, let source), .token(let source), .oauth2(let source): source
            case .aws(let source): source
            }
        }
    }

    /// The login of these settings; nil for none. A configuration that passed its checks has at most one.
    var login: Login? {
        if case .http(let http) = reach, !http.aws.region.isEmpty {
            return .aws(http.aws.credentials == .key ? http.aws.secret.source : nil)
        }
        if oauth2.tokenURL != nil, let source = oauth2.proof { return .oauth2(source) }
        if let user, let source = password.source { return .password(user: user, source) }
        return token.source.map { .token($0) }
    }

    /// Whether the login's secret may have several lines, as a key in PEM has.
    var loginHasLines: Bool { if case .oauth2 = login { oauth2.grant == .jwtBearer } else { false } }

    /// The configured headers by name, so that equal settings make equal requests.
    var sortedHeaders: [(name: String, value: String)] {
        headers.sorted { $0.key < $1.key }.map { ($0.key, $0.value.revealed) }
    }
}
