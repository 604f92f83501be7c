internal import Digests
internal import EventLoops
internal import Model

extension HTTPOptions {
    /// Refuses an address to which nothing may go (`invalidSetting`): not all come from the checked configuration.
    func check() throws(OutputError) {
        guard let address = HTTPAddress(url), address.scheme == "https" || address.scheme == "http" else {
            throw OutputError(.invalidSetting, "the url must have the form https://host/path")
        }
        try require(!address.hasCredentials, "the url contains a user or password; use user and password_file")
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

    /// Whether a request may go where the environment says (`http_proxy` and the like).
    ///
    /// What is for this machine stays on it. Plain HTTP that carries a credential goes to a proxy only when a person has
    /// configured that by name: the environment is often set for something else.
    var mayUseProxyOfEnvironment: Bool {
        guard heedsEnvironment, let address = HTTPAddress(url), !address.isLoopback else { return false }
        return address.scheme == "https" || settings.login == nil && settings.headers.isEmpty
    }

    /// Through which proxy a server is reached: `the proxy http://proxy.example.com:3128 (https_proxy of the environment)`; nil: none.
    func proxy(to server: HTTPAddress) -> String? {
        let variable = AWSSigner.variable
        let exempt = (variable("no_proxy") ?? variable("NO_PROXY") ?? "").lowercased().split { ", ".contains($0) }
        let isExempt = exempt.contains { entry in
            let name = entry.drop { $0 == "." }
            // A network (`10.0.0.0/8`) may be that of any number.
            return name == "*" || server.host == name || server.host.hasSuffix(".\(name)")
                || server.host.isHostNumber && entry.contains("/")
        }
        guard !isExempt else { return nil }
        if let proxy = settings.proxy { return "the proxy \(proxy.place)" }
        let names =
            (server.scheme == "https" ? ["https_proxy", "HTTPS_PROXY"] : ["http_proxy"]) + ["all_proxy", "ALL_PROXY"]
        guard mayUseProxyOfEnvironment, let name = names.first(where: { variable($0) != nil }) else { return nil }
        let text = variable(name) ?? ""
        let place = (EndpointURL(text) ?? EndpointURL("http://\(text)"))?.place
        return "the proxy\(place.map { " \($0)" } ?? "") (\(name) of the environment)"
    }

    /// A server beside the destination, through the same proxy; without `caFile` the system's authorities are trusted.
    func beside(_ url: EndpointURL?, caFile: String?) -> HTTPOptions {
        var other = HTTPOptions(DestinationSettings(), userAgent: userAgent)
        other.settings.url = url
        other.settings.proxy = settings.proxy
        other.settings.connectTimeout = settings.connectTimeout
        other.settings.requestTimeout = settings.requestTimeout
        other.settings.allowPlainHTTP = settings.allowPlainHTTP
        other.settings.tls.caFile = caFile
        // Its requests carry a secret that `mayUseProxyOfEnvironment` does not know of.
        other.heedsEnvironment = heedsEnvironment && url?.scheme == "https"
        return other
    }

    /// What adds to each request a proof that has to be fetched or computed; nil where a header that stays the same is enough.
    ///
    /// - Throws: `OutputError`: an address that is none, an environment that lacks what the settings expect there.
    func authorizer(installID: String?, on loop: EventLoop) throws(OutputError) -> (any RequestAuthorizer)? {
        switch settings.login {
        case nil, .password, .token: nil
        case .oauth2: try OAuth2Client(settings.oauth2, self, on: loop)
        case .aws:
            try AWSSigner(settings.aws, service: settings.aws.service, installID: installID, self, on: loop)
        }
    }

    /// How the secret is shown; throws with code `badFile` when it holds what no header may hold.
    func credential(_ secret: Secret?, in place: TokenPlace) throws(OutputError) -> Credential? {
        guard let secret else { return nil }
        guard secret.revealed.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw OutputError(.badFile, "the secret for \(HTTPAddress(url)?.host ?? "") contains a control character")
        }
        switch (settings.login, place) {
        case (nil, _), (.oauth2, _), (.aws, _): return nil
        case (.password(let user, _), _):
            return .header("Authorization: Basic \(Base64.encode(Array("\(user):\(secret.revealed)".utf8)))")
        case (.token, .authorization(let usual)):
            let word = settings.tokenScheme ?? usual
            return .header("Authorization: \(word.isEmpty ? "" : "\(word) ")\(secret.revealed)")
        case (.token, .header(let name)):
            return .header("\(name): \(secret.revealed)")
        case (.token, .argument(let name)):
            return .argument("\(name)=\(secret.revealed.percentEncoded)")
        }
    }

    func staticHeaders(_ format: any BatchEncoder) -> [String] {
        let headers = settings.sortedHeaders
        var own = [("Content-Type", settings.contentType ?? format.traits.contentType)] + format.traits.headers
        own.removeAll { own in headers.contains { $0.name.lowercased() == own.0.lowercased() } }
        // The library signs a header that takes its own away, and does not send it.
        var lines = if case .aws = settings.login { [String]() } else { ["Expect:"] }
        for (name, value) in own + headers {
            // The library takes a header without a value only with a semicolon.
            lines.append(value.isEmpty ? "\(name);" : "\(name): \(value)")
        }
        if settings.compression != .none { lines.append("Content-Encoding: \(settings.compression.name)") }
        return lines
    }
}

extension DestinationSettings {
    /// How the agent shows that it may write, and where the secret for it is; NATS has further ways.
    enum Login {
        case password(user: String, SecretSource)
        /// By a token, at the place where the format has it.
        case token(SecretSource)
        /// By an access token, for which the client's secret is shown.
        case oauth2(SecretSource)
        /// By a signature, with the key of the settings or another.
        case aws(SecretSource?)

        var secret: SecretSource? {
            switch self {
            case .password(_, let source), .token(let source), .oauth2(let source): source
            case .aws(let source): source
            }
        }
    }

    /// The first of these that there is; nil: none. A configuration that was read has one at most.
    var login: Login? {
        if !aws.region.isEmpty { return .aws(aws.credentials == .key ? aws.secret.source : nil) }
        if oauth2.tokenURL != nil, let source = oauth2.secret.source { return .oauth2(source) }
        if let user, let source = password.source { return .password(user: user, source) }
        return token.source.map { .token($0) }
    }

    var sortedHeaders: [(name: String, value: String)] {
        headers.sorted { $0.key < $1.key }.map { ($0.key, $0.value.revealed) }
    }
}
