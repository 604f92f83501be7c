internal import COpenSSL

/// Base64 with padding, as keys and signatures are written. Only the canonical form is accepted: what
/// is decoded encodes to the same text, so two texts never stand for one key.
///
/// Source: RFC 4648, section 4.
public enum Base64 {
    /// The text of the bytes.
    public static func encode(_ bytes: [UInt8]) -> String {
        // OpenSSL writes a zero byte behind the text.
        var text = [UInt8](repeating: 0, count: (bytes.count + 2) / 3 * 4 + 1)
        EVP_EncodeBlock(&text, bytes, Int32(clamping: bytes.count))
        return String(decoding: text.dropLast(), as: UTF8.self)
    }

    /// The bytes of a text.
    ///
    /// - Returns: nil if the text is not what `encode` would write.
    public static func decode(_ text: some StringProtocol) -> [UInt8]? {
        let characters = Array(text.utf8)
        var bytes = [UInt8](repeating: 0, count: characters.count / 4 * 3)
        let padding = characters.reversed().prefix { $0 == UInt8(ascii: "=") }.count
        guard characters.count % 4 == 0, padding <= 2,
            EVP_DecodeBlock(&bytes, characters, Int32(clamping: characters.count)) >= 0
        else { return nil }
        bytes.removeLast(padding)
        return encode(bytes) == String(text) ? bytes : nil
    }

    /// The text with the URL-safe alphabet, without padding. Source: RFC 4648, section 5.
    public static func encodeForURL(_ bytes: [UInt8]) -> String {
        let text = encode(bytes).utf8.filter { $0 != UInt8(ascii: "=") }.map { byte -> UInt8 in
            switch byte {
            case UInt8(ascii: "+"): UInt8(ascii: "-")
            case UInt8(ascii: "/"): UInt8(ascii: "_")
            default: byte
            }
        }
        return String(decoding: text, as: UTF8.self)
    }
}
