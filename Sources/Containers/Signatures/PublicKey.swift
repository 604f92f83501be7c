internal import COpenSSL
internal import Digests

/// A trusted key: an Ed25519 public key (RFC 8032).
public struct PublicKey: Sendable, Hashable {
    /// The key as it is in the configuration: 44 characters of base64.
    public let text: String

    let bytes: [UInt8]

    /// - Parameter text: 32 bytes in base64; nil for anything else.
    public init?(_ text: String) {
        // All zeros is a point for which anybody can sign.
        guard let bytes = Base64.decode(text), bytes.count == 32, bytes.contains(where: { $0 != 0 }) else { return nil }
        self.init(bytes: bytes)
    }

    init(bytes: [UInt8]) {
        self.bytes = bytes
        text = Base64.encode(bytes)
    }

    /// Whether a signature is this key's over just these bytes.
    func verifies(_ signature: [UInt8], of message: [UInt8]) -> Bool {
        // What fails here leaves its errors in the thread's queue, where others would take them for theirs.
        defer { ERR_clear_error() }
        guard signature.count == 64 else { return false }
        let key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nil, bytes, bytes.count)
        defer { EVP_PKEY_free(key) }
        let context = EVP_MD_CTX_new()
        defer { EVP_MD_CTX_free(context) }
        guard let key, let context, EVP_DigestVerifyInit(context, nil, nil, nil, key) == 1 else { return false }
        return EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }
}
