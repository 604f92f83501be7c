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
