internal import COpenSSL
internal import Digests
internal import EventLoops
internal import Model

/// Signs assertions of a service account: JSON Web Tokens by RS256, with which a token endpoint issues access
/// tokens.
///
/// Source: RFC 7523, sections 2.1 and 3; RFC 7519, section 4.1 (claims); RFC 7518, section 3.3 (RS256);
/// Google's "Using OAuth 2.0 for server to server applications".
struct AssertionSigner: Sendable {
    /// How long an assertion is good for. It is used at once; servers accept between a minute and an hour.
    private static let lifetime = Duration.seconds(180)

    /// The key in PEM, in a type that logs and debuggers do not show; decoded for each signature.
    private let pem: Secret
    /// Id of the key; nil leaves it out.
    private let keyID: String?
    /// Who signs.
    let issuer: String
    private let subject: String?
    private let audience: String
    private let scope: String?

    /// - Parameter secret: the key in PEM, or the JSON file of a service account of Google, which has the
    ///   key, its id and the account's name.
    /// - Throws: `OutputError` with code `badFile` if there is no RSA key without a password, or nobody to
    ///   sign. The message does not contain the text.
    init(_ secret: Secret, _ settings: OAuth2Settings) throws(OutputError) {
        let text = secret.revealed
        let isJSON = text.utf8.first { $0 > 0x20 } == UInt8(ascii: "{")
        let account = isJSON ? JSONSlice(Array(text.utf8)[...]) : nil
        pem = account?["private_key"]?.string.map { Secret($0) } ?? secret
        guard let issuer = (settings.clientID.isEmpty ? account?["client_email"]?.string : settings.clientID)
        else {
            throw OutputError(
                .badFile, "oauth2.private_key is not the file of a service account; set oauth2.client_id")
        }
        self.issuer = issuer
        keyID = settings.keyID ?? account?["private_key_id"]?.string
        subject = settings.subject
        audience = settings.audience ?? settings.tokenURL?.text ?? ""
        scope = settings.scope
        let key = AssertionSigner.key(of: pem)
        defer { EVP_PKEY_free(key) }
        guard let key, EVP_PKEY_is_a(key, "RSA") == 1 else {
            throw OutputError(.badFile, "oauth2.private_key has no RSA key in PEM, or one with a password")
        }
        try require(
            EVP_PKEY_get_bits(key) >= 2048, "oauth2.private_key has fewer than the 2048 bits that RS256 needs"
        )
    }

    /// OpenSSL's key, which the caller must free; nil if the text has no key, or one with a password.
    private static func key(of pem: Secret) -> OpaquePointer? {
        let bytes = Array(pem.revealed.utf8)
        let memory = shim_openssl_copy(bytes, bytes.count)
        defer {
            BIO_free(memory)
            ERR_clear_error()
        }
        // Without a callback, OpenSSL would ask for a password on the terminal and block the agent.
        return PEM_read_bio_PrivateKey(memory, nil, { _, _, _, _ in -1 }, nil)
    }

    /// An assertion that is good from now on; nil if there is no memory.
    func assertion(at now: Timestamp) -> String? {
        let seconds = now.nanoseconds / 1_000_000_000
        var header = JSONText()
        header.raw("{")
        header.member("alg", "RS256")
        header.member("typ", "JWT")
        if let keyID {
            header.member("kid", keyID)
        }
        header.close("}")
        var claims = JSONText()
        claims.raw("{")
        claims.member("iss", issuer)
        claims.member("aud", audience)
        for (name, value) in [("sub", subject), ("scope", scope)] {
            if let value {
                claims.member(name, value)
            }
        }
        claims.raw("\"iat\":")
        claims.number(seconds)
        claims.raw(",\"exp\":")
        claims.number(seconds + AssertionSigner.lifetime.components.seconds)
        claims.close("}")
        let text = "\(Base64.encodeForURL(header.bytes)).\(Base64.encodeForURL(claims.bytes))"
        return signature(of: Array(text.utf8)).map { "\(text).\(Base64.encodeForURL($0))" }
    }

    /// The signature by RSASSA-PKCS1-v1_5 with SHA-256; nil if there is no memory.
    private func signature(of text: [UInt8]) -> [UInt8]? {
        let key = AssertionSigner.key(of: pem)
        defer { EVP_PKEY_free(key) }
        guard let key, let context = EVP_MD_CTX_new() else { return nil }
        defer {
            EVP_MD_CTX_free(context)
            ERR_clear_error()
        }
        var length = 0
        guard EVP_DigestSignInit(context, nil, EVP_sha256(), nil, key) == 1,
            EVP_DigestSign(context, nil, &length, text, text.count) == 1
        else { return nil }
        var signature = [UInt8](repeating: 0, count: length)
        guard EVP_DigestSign(context, &signature, &length, text, text.count) == 1 else { return nil }
        return Array(signature.prefix(length))
    }
}
