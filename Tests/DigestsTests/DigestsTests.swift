import Model
import TestKit
import Testing

@testable import Digests

@Suite("Digests")
struct DigestsTests {
    @Test(
        "SHA-256: the examples of FIPS 180-4",
        arguments: [
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ])
    func sha256(text: String, digits: String) {
        #expect(SHA256.hexadecimal(Array(text.utf8)) == digits)
    }

    @Test(
        "HMAC-SHA-256: the examples of RFC 4231",
        arguments: [
            (
                [UInt8](repeating: 0x0B, count: 20), "Hi There",
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
            ),
            (
                Array("Jefe".utf8), "what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
            ),
            (
                [UInt8](repeating: 0xAA, count: 131),
                "Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
            ),
        ])
    func hmac(key: [UInt8], message: String, digits: String) {
        #expect(Hexadecimal.text(HMAC(key: key).bytes(Array(message.utf8))) == digits)
    }

    @Test("hexadecimal: two digits for each byte, lower case")
    func hexadecimal() { #expect(Hexadecimal.text([0, 9, 10, 0xA5, 255] as [UInt8]) == "00090aa5ff") }

    @Test("base64 for addresses: other characters, no padding")
    func forURL() {
        #expect(Base64.encode([0xFB, 0xFF, 0xFE, 1]) == "+//+AQ==")
        #expect(Base64.encodeForURL([0xFB, 0xFF, 0xFE, 1]) == "-__-AQ")
    }

    @Test("base64 decodes what encodes to the same text, for every length")
    func base64() {
        var random = SplitMix64(seed: Seeds.one(8))
        for length in 0..<100 {
            let bytes = (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) }
            #expect(Base64.decode(Base64.encode(bytes)) == bytes)
        }
        for text in ["A", "AA", "AA=", "AB==", "AAB=", "A===", "====", "AA==AA=="] {
            #expect(Base64.decode(text) == nil)
        }
    }
}
