/// Bytes as hexadecimal digits, lower case.
public enum Hexadecimal {
    static let digits = Array("0123456789abcdef".utf8)

    /// Whether a byte is a lower-case hexadecimal digit.
    public static func isDigit(_ byte: UInt8) -> Bool { digits.contains(byte) }

    /// Two digits for each byte.
    public static func text(_ bytes: some Collection<UInt8>) -> String {
        String(unsafeUninitializedCapacity: bytes.count * 2) { text in
            for (index, byte) in bytes.enumerated() {
                text[index * 2] = digits[Int(byte >> 4)]
                text[index * 2 + 1] = digits[Int(byte & 15)]
            }
            return bytes.count * 2
        }
    }

    /// The bytes of a hexadecimal text. Pairs that are not digits are skipped, and so is an odd last
    /// digit.
    public static func bytes(_ text: String) -> [UInt8] {
        let digits = Array(text.utf8)
        return stride(from: 0, to: digits.count - 1, by: 2).compactMap {
            UInt8(String(decoding: digits[$0...$0 + 1], as: UTF8.self), radix: 16)
        }
    }
}
