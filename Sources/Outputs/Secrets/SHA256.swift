internal import COpenSSL

/// SHA-256, by OpenSSL.
public enum SHA256 {
    /// The 32 bytes of the hash.
    static func bytes(_ bytes: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        var length: UInt32 = 0
        // It cannot fail for want of anything but memory.
        let done = EVP_Digest(bytes, bytes.count, &digest, &length, EVP_sha256(), nil)
        precondition(done == 1 && length == 32, "SHA-256 failed")
        return digest
    }

    /// The hash in hexadecimal digits.
    public static func hexadecimal(_ bytes: [UInt8]) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return String(
            decoding: SHA256.bytes(bytes).flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }
}
