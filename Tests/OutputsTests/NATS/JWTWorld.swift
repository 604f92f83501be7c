import COpenSSL
import Digests
import Foundation

@testable import Outputs

/// A key of NATS of any kind, made of a number.
struct TestKey {
    enum Kind: UInt8 {
        case operating = 112
        case account = 0
        case user = 160
    }

    private let bytes: [UInt8]

    init(_ number: UInt8) { bytes = [UInt8](repeating: number, count: 32) }

    func seed(_ kind: Kind) -> String {
        NKey.text([NKey.seedPrefix | kind.rawValue >> 5, (kind.rawValue & 31) << 3] + bytes)
    }

    func name(_ kind: Kind) -> String {
        let key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nil, bytes, 32)
        defer { EVP_PKEY_free(key) }
        var point = [UInt8](repeating: 0, count: 32)
        var length = 32
        EVP_PKEY_get_raw_public_key(key, &point, &length)
        return NKey.text([kind.rawValue] + point)
    }

    /// A JWT with these claims, signed by this key.
    func sign(_ kind: Kind, subject: String, name: String, _ claims: String) -> String {
        let head = Base64.encodeForURL(Array(#"{"typ":"JWT","alg":"ed25519-nkey"}"#.utf8))
        let body = """
            {"jti":"\(name)","iat":1700000000,"iss":"\(self.name(kind))","name":"\(name)","sub":"\(subject)","nats":\(claims)}
            """
        let text = "\(head).\(Base64.encodeForURL(Array(body.utf8)))"
        let key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nil, bytes, 32)
        let context = EVP_MD_CTX_new()
        defer {
            EVP_PKEY_free(key)
            EVP_MD_CTX_free(context)
        }
        var signature = [UInt8](repeating: 0, count: 64)
        var length = 64
        EVP_DigestSignInit(context, nil, nil, nil, key)
        EVP_DigestSign(context, &signature, &length, Array(text.utf8), text.utf8.count)
        return "\(text).\(Base64.encodeForURL(signature))"
    }
}

/// A server's world of operator, accounts and users, as `nsc` would make it.
struct JWTWorld {
    let account = TestKey(2)
    private let operating = TestKey(1)
    private let system = TestKey(3)

    /// The server's part.
    var settings: String {
        let limits = """
            {"subs":-1,"data":-1,"payload":-1,"imports":-1,"exports":-1,"wildcards":true,"conn":-1,"leaf":-1}
            """
        func account(_ key: TestKey, _ name: String) -> String {
            let claims =
                "{\"limits\":\(limits),\"default_permissions\":{\"pub\":{},\"sub\":{}},\"type\":\"account\",\"version\":2}"
            let jwt = operating.sign(.operating, subject: key.name(.account), name: name, claims)
            return "\(key.name(.account)): \(jwt)"
        }
        let operatorJWT = operating.sign(
            .operating, subject: operating.name(.operating), name: "operator",
            "{\"type\":\"operator\",\"version\":2}")
        return """
            operator: \(operatorJWT)
            system_account: \(system.name(.account))
            resolver: MEMORY
            resolver_preload: { \(account(self.account, "shop"))
            \(account(system, "system")) }
            """
    }

    /// A user's credentials file.
    func credentials(of user: TestKey, by account: TestKey) -> String {
        let claims = """
            {"pub":{},"sub":{},"subs":-1,"data":-1,"payload":-1,"type":"user","version":2}
            """
        let jwt = account.sign(.account, subject: user.name(.user), name: "agent", claims)
        return """
            -----BEGIN NATS USER JWT-----
            \(jwt)
            ------END NATS USER JWT------

            -----BEGIN USER NKEY SEED-----
            \(user.seed(.user))
            ------END USER NKEY SEED------
            """
    }
}
