internal import COpenSSL
internal import Digests
internal import EventLoops
internal import Model

/// A user's key of NATS: an Ed25519 key with a text form of its own.
///
/// The text of a seed is Base32 of two prefix bytes (seed, user), the 32 bytes of the seed, and a checksum
/// (CRC-16/XMODEM, low byte first). Source: nats-io/nkeys, README.
struct NKey: Sendable {
    /// The public key by which the server knows the user: `U…`.
    let publicName: String
    /// The seed's text, in a type that logs and debuggers do not show; decoded for each signature.
    private let seed: Secret

    /// Prefix of a user's public key.
    static let userPrefix: UInt8 = 20 << 3
    /// Prefix of a seed.
    static let seedPrefix: UInt8 = 18 << 3

    /// - Throws: `OutputError` with code `invalidSetting` if the text is not the seed of a user. The
    ///   message does not contain the text.
    init(seed: Secret) throws(OutputError) {
        guard let bytes = Base32.decode(seed.revealed), bytes.count == 36 else {
            throw OutputError(
                .invalidSetting, "the nkey is not a seed: it has 58 characters and begins with SU")
        }
        try require(
            NKey.checksum(bytes[..<34]) == UInt16(bytes[34]) | UInt16(bytes[35]) << 8,
            "the nkey's checksum is wrong: a character of it was changed or lost")
        // The kind of key is spread over two bytes: three bits of the first, five of the second.
        let kind = (bytes[0] & 7) << 5 | bytes[1] >> 3
        try require(
            bytes[0] & 0xF8 == NKey.seedPrefix && kind == NKey.userPrefix,
            "the nkey is not a user's seed, which begins with SU")
        var point = [UInt8](repeating: 0, count: 32)
        var length = 32
        let key = NKey.key(of: seed)
        defer { EVP_PKEY_free(key) }
        guard let key, EVP_PKEY_get_raw_public_key(key, &point, &length) == 1, length == 32 else {
            throw OutputError(.library, "OpenSSL made no Ed25519 key from the nkey")
        }
        self.seed = seed
        publicName = NKey.text([NKey.userPrefix] + point)
    }

    /// OpenSSL's key of a valid seed, which the caller must free; nil if there is no memory.
    private static func key(of seed: Secret) -> OpaquePointer? {
        guard let bytes = Base32.decode(seed.revealed), bytes.count == 36 else { return nil }
        return EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nil, Array(bytes[2..<34]), 32)
    }

    /// The signature of the server's nonce, in unpadded Base64 for URLs; nil if there is no memory.
    func signature(of nonce: String) -> String? {
        let key = NKey.key(of: seed)
        defer { EVP_PKEY_free(key) }
        guard let key, let context = EVP_MD_CTX_new() else { return nil }
        defer { EVP_MD_CTX_free(context) }
        var signature = [UInt8](repeating: 0, count: 64)
        var length = 64
        let text = Array(nonce.utf8)
        guard EVP_DigestSignInit(context, nil, nil, nil, key) == 1,
            EVP_DigestSign(context, &signature, &length, text, text.count) == 1, length == 64
        else { return nil }
        return Base64.encodeForURL(signature)
    }

    /// The text form of bytes that begin with a prefix.
    static func text(_ bytes: [UInt8]) -> String {
        let sum = checksum(bytes[...])
        return Base32.encode(bytes + [UInt8(truncatingIfNeeded: sum), UInt8(truncatingIfNeeded: sum >> 8)])
    }

    /// CRC-16/XMODEM: polynomial 0x1021, initial value 0.
    private static func checksum(_ bytes: ArraySlice<UInt8>) -> UInt16 {
        bytes.reduce(UInt16(0)) { sum, byte in
            (0..<8).reduce(sum ^ UInt16(byte) << 8) { sum, _ in
                sum & 0x8000 != 0 ? sum << 1 ^ 0x1021 : sum << 1
            }
        }
    }
}

/// Base32 without padding. Source: RFC 4648, section 6.
enum Base32 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)

    /// The bytes of a text; nil if it has other characters, or its unused last bits are not zero.
    static func decode(_ text: String) -> [UInt8]? {
        var bytes: [UInt8] = []
        var bits: UInt32 = 0
        var count: UInt32 = 0
        for byte in text.utf8 {
            guard let value = alphabet.firstIndex(of: byte) else { return nil }
            bits = (bits << 5 | UInt32(value)) & 0xFFF
            count += 5
            if count >= 8 {
                count -= 8
                bytes.append(UInt8(truncatingIfNeeded: bits >> count))
            }
        }
        return count < 5 && bits & (1 << count - 1) == 0 ? bytes : nil
    }

    static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        var bits: UInt32 = 0
        var count: UInt32 = 0
        for byte in bytes {
            bits = (bits << 8 | UInt32(byte)) & 0xFFFF
            count += 8
            while count >= 5 {
                count -= 5
                text.append(alphabet[Int(bits >> count & 31)])
            }
        }
        if count > 0 {
            text.append(alphabet[Int(bits << (5 - count) & 31)])
        }
        return String(decoding: text, as: UTF8.self)
    }
}
