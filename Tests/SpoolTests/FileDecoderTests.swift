import Model
import TestKit
import Testing

@testable import Spool

/// Decoding without a file.
@Suite("Decoding UTF-16 and Latin-1")
struct FileDecoderTests {
    private func decoded(_ bytes: [UInt8], _ encoding: FileEncoding, isWhole: Bool = true) -> [UInt8] {
        let decoder = FileDecoder(encoding)
        return bytes.withUnsafeBytes {
            let block = DecodedBlock($0, by: decoder, isBeginning: false, isWhole: isWhole)
            return Array(block.text)
        }
    }

    private func encoded(_ text: String, _ encoding: FileEncoding) -> [UInt8] {
        TestText.encoded(text, encoding)
    }

    @Test("every character becomes the same character in UTF-8", arguments: FileEncoding.allCases)
    func everyCharacter(encoding: FileEncoding) {
        var text = ""
        for value in UInt32(0)...(encoding == .latin1 ? 0xFF : 0x10FFFF) {
            if let scalar = Unicode.Scalar(value) { text.unicodeScalars.append(scalar) }
        }
        #expect(decoded(encoded(text, encoding), encoding) == Array(text.utf8))
    }

    @Test("malformed units become a byte that is not UTF-8, one for each unit")
    func malformed() {
        let cases: [([UInt16], [UInt8])] = [
            ([0xD83D, 0x0A], [0xFF, 0x0A]), ([0xDE00, 0x61], [0xFF, 0x61]),
            ([0xD83D, 0xD83D], [0xFF, 0xFF]),
            ([0xD83D, 0xD83D, 0xDE00], [0xFF, 0xF0, 0x9F, 0x98, 0x80]), ([0xDE00, 0xD83D], [0xFF, 0xFF]),
        ]
        for (units, text) in cases {
            #expect(decoded(units.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }, .utf16le) == text)
            #expect(decoded(units.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }, .utf16be) == text)
        }
        #expect(decoded([0x61, 0, 0x62], .utf16le) == [0x61, 0xFF])
        // What may still become a character is left out.
        #expect(decoded([0x61, 0, 0x62], .utf16le, isWhole: false) == [0x61])
        #expect(decoded([0x61, 0, 0x3D, 0xD8, 0x00], .utf16le, isWhole: false) == [0x61])
    }

    @Test(
        "each part of a text stands for as many bytes as it was made of, whatever the bytes",
        arguments: Seeds.list(0..<8))
    func lengths(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for encoding in FileEncoding.allCases {
            for _ in 0..<200 {
                let most = [0x10, 0x100, 0xD900, 0x10000].randomElement(using: &random) ?? 0x100
                var bytes: [UInt8] = []
                for _ in 0..<Int.random(in: 0...40, using: &random) {
                    let unit = Int.random(in: 0..<most, using: &random)
                    bytes += [UInt8(unit & 0xFF), UInt8(unit >> 8)]
                }
                if Bool.random(using: &random) { bytes.append(0x41) }
                let decoder = FileDecoder(encoding)
                bytes.withUnsafeBytes { all in
                    let block = DecodedBlock(all, by: decoder, isBeginning: true, isWhole: true)
                    var place = 0
                    while !block.text.isEmpty {
                        // A whole character, or several.
                        var count = Int.random(in: 1...block.text.count, using: &random)
                        while count < block.text.count, block.text[count] & 0xC0 == 0x80 { count += 1 }
                        let part = Array(block.text[..<count])
                        let start = place == 0 ? decoder.markLength(of: all) : place
                        place += block.use(count)
                        #expect(part == decoder.text(of: Array(all[min(start, place)..<place])))
                    }
                    #expect(place == bytes.count || bytes.count == decoder.markLength(of: all))
                }
            }
        }
    }

    @Test("line feeds and zeros are found as units, not as bytes of others")
    func units() {
        // U+0A00 and U+000A beside each other in both orders, after an odd number of bytes that look alike.
        for (encoding, bytes) in [
            (FileEncoding.utf16le, [0x00, 0x0A, 0x0A, 0x0A, 0x0A, 0x00, 0x41, 0x00] as [UInt8]),
            (.utf16be, [0x0A, 0x00, 0x0A, 0x0A, 0x00, 0x0A, 0x00, 0x41]),
        ] {
            let decoder = FileDecoder(encoding)
            bytes.withUnsafeBytes {
                #expect(decoder.first(0x0A, in: $0) == 4)
                #expect(decoder.endOfLastLine(in: $0) == 6)
                #expect(decoder.first(0, in: $0) == nil)
            }
        }
    }

    @Test(
        "a byte order mark counts without a setting, and more than the other byte order, but not than Latin-1"
    )
    func marks() {
        func found(_ head: [UInt8], _ configured: FileEncoding?) -> FileEncoding? {
            head.withUnsafeBytes { FileDecoder(head: $0, configured)?.encoding }
        }
        #expect(found([0xFF, 0xFE, 0x41], nil) == .utf16le && found([0xFE, 0xFF], nil) == .utf16be)
        #expect(found([0xFF, 0xFE], .utf16be) == .utf16le && found([0xFF, 0xFE], .latin1) == .latin1)
        #expect(found([0xEF, 0xBB, 0xBF], nil) == nil && found([0xFF], nil) == nil)
        #expect(found([], .utf16be) == .utf16be)
        #expect(FileText.decoded([0xFF, 0xFE, 0x41, 0x00, 0x0A, 0x00], nil) == [0x41, 0x0A])
        #expect(FileText.decoded([0xE4, 0x0A], .latin1) == [0xC3, 0xA4, 0x0A])
        #expect(FileText.decoded([0xE4, 0x0A], nil) == [0xE4, 0x0A])
    }
}

/// Texts in other encodings.
enum TestText {
    static func encoded(_ text: String, _ encoding: FileEncoding, hasMark: Bool = false) -> [UInt8] {
        let text = (hasMark ? "\u{FEFF}" : "") + text
        return switch encoding {
        case .latin1: text.unicodeScalars.map { UInt8($0.value) }
        case .utf16le: text.utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
        case .utf16be: text.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }
        }
    }
}
