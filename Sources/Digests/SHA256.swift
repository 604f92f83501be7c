//  Digests: hashes, and bytes as text. It knows nothing of what they are for.

internal import COpenSSL

/// Source: FIPS 180-4, by OpenSSL.
public enum SHA256 {
    /// The 32 bytes of the hash.
    public static func bytes(_ bytes: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        var length: UInt32 = 0
        let done = EVP_Digest(bytes, bytes.count, &digest, &length, EVP_sha256(), nil)
        // Only want of memory ends here; to go on would send what was to be hidden.
        precondition(done == 1 && length == 32, "cannot make a digest")
        return digest
    }

    /// The hash as 64 hexadecimal digits.
    public static func hexadecimal(_ bytes: [UInt8]) -> String { Hexadecimal.text(SHA256.bytes(bytes)) }
}

/// Source: RFC 2104, with SHA-256.
public enum HMAC {
    /// The 32 bytes that tell a message and a key.
    public static func bytes(_ message: [UInt8], key: [UInt8]) -> [UInt8] {
        let short = key.count > 64 ? SHA256.bytes(key) : key
        let block = short + [UInt8](repeating: 0, count: 64 - short.count)
        return SHA256.bytes(block.map { $0 ^ 0x5C } + SHA256.bytes(block.map { $0 ^ 0x36 } + message))
    }
}
