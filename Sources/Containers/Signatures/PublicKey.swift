internal import COpenSSL
internal import Digests

/// A trusted key: an Ed25519 public key (RFC 8032).
public struct PublicKey: Sendable, Hashable {
    /// The key as in the configuration: 44 characters of Base64.
    public let text: String

    /// The key's 32 bytes.
    let bytes: [UInt8]

    /// A key of its text; nil if the text is not 32 bytes in Base64.
    public init?(_ text: String) {
        // All zeros is a point of small order, for which anybody can make valid signatures.
        guard let bytes = Base64.decode(text), bytes.count == 32, bytes.contains(where: { $0 != 0 }) else {
            return nil
        }
        self.init(bytes: bytes)
    }

    /// A key of its bytes.
    init(bytes: [UInt8]) {
        self.bytes = bytes
        text = Base64.encode(bytes)
    }

    /// Whether a signature is this key's, over exactly these bytes.
    func verifies(_ signature: [UInt8], of message: [UInt8]) -> Bool {
        // A failure leaves errors in OpenSSL's queue of the thread, where the next caller would take them for
        // its own.
        defer { ERR_clear_error() }
        guard signature.count == 64 else { return false }
        let key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nil, bytes, bytes.count)
        defer { EVP_PKEY_free(key) }
        let context = EVP_MD_CTX_new()
        defer { EVP_MD_CTX_free(context) }
        guard let key, let context, EVP_DigestVerifyInit(context, nil, nil, nil, key) == 1 else {
            return false
        }
        return EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }
}
