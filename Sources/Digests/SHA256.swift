//  Digests: hashes, and Base64. It knows nothing of what they are for.

internal import COpenSSL
internal import Model

/// Source: FIPS 180-4, by OpenSSL.
public enum SHA256 {
    // Looked up once: by itself OpenSSL looks it up for each digest, which costs more than the digest of a short text. Never
    // changed, and never let go.
    private nonisolated(unsafe) static let algorithm = EVP_MD_fetch(nil, "SHA256", nil)

    /// The 32 bytes of the hash.
    public static func bytes(_ bytes: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        var length: UInt32 = 0
        let done = EVP_Digest(bytes, bytes.count, &digest, &length, algorithm, nil)
        // Only want of memory ends here; to go on would send what was to be hidden.
        precondition(done == 1 && length == 32, "cannot make a digest")
        return digest
    }

    /// The hash as 64 hexadecimal digits.
    public static func hexadecimal(_ bytes: [UInt8]) -> String { Hexadecimal.text(SHA256.bytes(bytes)) }
}

/// A key made ready. Source: RFC 2104, with SHA-256.
public struct HMAC: Sendable, Equatable {
    private let inner: [UInt8]
    private let outer: [UInt8]

    /// - Parameter key: of any length.
    public init(key: [UInt8]) {
        let short = key.count > 64 ? SHA256.bytes(key) : key
        let block = short + [UInt8](repeating: 0, count: 64 - short.count)
        inner = block.map { $0 ^ 0x36 }
        outer = block.map { $0 ^ 0x5C }
    }

    /// The 32 bytes that tell a message and the key.
    public func bytes(_ message: [UInt8]) -> [UInt8] { SHA256.bytes(outer + SHA256.bytes(inner + message)) }
}
