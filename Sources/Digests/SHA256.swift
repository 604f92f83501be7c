// Digests: SHA-256, HMAC and Base64, by OpenSSL's libcrypto.
//
// It promises results by the standards, and no partial ones: a failure of the library ends the process,
// because the callers hide personal data and sign requests with these values.
//
// Its parts:
// - SHA256.swift: `SHA256`, and `HMAC` with a prepared key.
// - Base64.swift: Base64 in one canonical form, and the variant for URLs.
//
// Its rules: pure functions, usable from any thread. It knows nothing about their use.

internal import COpenSSL
internal import Model

/// SHA-256. Source: FIPS 180-4, https://csrc.nist.gov/pubs/fips/180-4/upd1/final
public enum SHA256 {
    // Looked up once: otherwise OpenSSL looks it up for each digest, which costs more than the digest
    // of a short text. Never changed and never freed.
    private nonisolated(unsafe) static let algorithm = EVP_MD_fetch(nil, "SHA256", nil)

    /// The 32 bytes of the hash.
    public static func bytes(_ bytes: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        var length: UInt32 = 0
        let done = EVP_Digest(bytes, bytes.count, &digest, &length, algorithm, nil)
        // Only lack of memory leads here. Continuing would send data that was to be hidden.
        precondition(done == 1 && length == 32, "cannot make a digest")
        return digest
    }

    /// The hash as 64 hexadecimal digits.
    public static func hexadecimal(_ bytes: [UInt8]) -> String { Hexadecimal.text(SHA256.bytes(bytes)) }
}

/// HMAC with SHA-256 and a prepared key. Source: RFC 2104.
public struct HMAC: Sendable, Equatable {
    /// The key's block for the inner and the outer hash.
    private let inner: [UInt8]
    private let outer: [UInt8]

    /// - Parameter key: of any length; a key of more than 64 bytes is hashed first.
    public init(key: [UInt8]) {
        let short = key.count > 64 ? SHA256.bytes(key) : key
        let block = short + [UInt8](repeating: 0, count: 64 - short.count)
        inner = block.map { $0 ^ 0x36 }
        outer = block.map { $0 ^ 0x5C }
    }

    /// The 32 bytes that authenticate a message.
    public func bytes(_ message: [UInt8]) -> [UInt8] { SHA256.bytes(outer + SHA256.bytes(inner + message)) }
}
