internal import EventLoops
internal import Model

/// How the agent authenticates to NATS, with the secrets that were read from files.
enum NATSIdentity: Sendable {
    /// No authentication, or by the TLS client certificate alone.
    case none
    /// A token (`auth_token`).
    case token(Secret)
    /// A user with a password.
    case user(String, Secret)
    /// A key with which the server's nonce is signed; the seed never leaves the agent.
    case nkey(NKey)
    /// A user's JWT, with the key that it names.
    case credentials(jwt: Secret, NKey)

    /// - Parameter secret: content of the source that `NATSOptions.secret` names.
    /// - Throws: `OutputError` with code `invalidSetting` if the content is not what it should be.
    init(_ options: NATSOptions, _ secret: Secret?) throws(OutputError) {
        guard let secret else {
            self = .none
            return
        }
        if options.nats.credentials.source != nil {
            let (jwt, seed) = try NATSIdentity.parts(of: secret)
            self = .credentials(jwt: jwt, try NKey(seed: seed))
        } else if options.nats.nkey.source != nil {
            self = .nkey(try NKey(seed: secret))
        } else if case .password(let user, _) = options.settings.login {
            self = .user(user, secret)
        } else {
            self = .token(secret)
        }
    }

    /// The members of `CONNECT` that authenticate the agent; nil if the server sent no nonce to sign, or
    /// there is no memory.
    func members(nonce: String?) -> [(String, String)]? {
        func signed(by key: NKey, _ name: String, _ value: String) -> [(String, String)]? {
            nonce.flatMap(key.signature).map { [(name, value), ("sig", $0)] }
        }
        return switch self {
        case .none: []
        case .token(let token): [("auth_token", token.revealed)]
        case .user(let name, let password): [("user", name), ("pass", password.revealed)]
        case .nkey(let key): signed(by: key, "nkey", key.publicName)
        case .credentials(let jwt, let key): signed(by: key, "jwt", jwt.revealed)
        }
    }

    /// The two parts of a credentials file: the lines between the first pair of dashed lines, and between
    /// the second.
    private static func parts(of file: Secret) throws(OutputError) -> (jwt: Secret, seed: Secret) {
        let mistake = OutputError(
            .invalidSetting,
            "the credentials file must hold a user's JWT and the seed of its nkey, each between lines of dashes"
        )
        var found: [String] = []
        var isOpen = false
        for line in file.revealed.split(whereSeparator: \.isNewline) {
            let words = line.split { $0 == " " || $0 == "\t" }
            guard let first = words.first else { continue }
            if first.hasPrefix("---") {
                isOpen.toggle()
            } else if isOpen {
                guard words.count == 1 else { throw mistake }
                found.append(String(first))
            }
        }
        guard !isOpen, found.count == 2, found[0].hasOnlyLettersDigits(and: "-_.=") else { throw mistake }
        return (Secret(found[0]), Secret(found[1]))
    }
}
