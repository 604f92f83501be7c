import Testing

@testable import spoolship

@Suite("The proof's search")
struct PrivacyProofTests {
    @Test("a marker is found in each of forty spellings, alone and between others")
    func spellings() {
        let marker = "marker4711@example.com"
        var spelled: [String] = []
        for (place, character) in marker.enumerated() {
            let code = character.unicodeScalars.first?.value ?? 0
            let (before, after) = (marker.prefix(place), marker.dropFirst(place + 1))
            let four = "00" + String(code, radix: 16)
            spelled.append("\(before)\\u\(four)\(after)")
            spelled.append("\(before)\\u\(four.uppercased())\(after)")
        }
        let all = marker.unicodeScalars.map { String($0.value, radix: 16) }
        spelled += [
            marker, all.map { "\\u00\($0)" }.joined(), all.map { "%\($0)" }.joined(),
            all.map { "&#x\($0);" }.joined(), all.map { "\\x\($0)" }.joined(),
        ]
        #expect(spelled.count >= 40)
        for text in spelled {
            #expect(PrivacyProof.mentions(of: marker, in: Array("{\"a\":\"\(text)\"}".utf8)) == 1, "\(text)")
        }
        let together = Array(spelled.joined(separator: "\n").utf8)
        #expect(PrivacyProof.mentions(of: marker, in: together) == spelled.count)
        #expect(PrivacyProof.mentions(of: marker, in: Array("marker4711\\u0041example.com".utf8)) == 0)
    }
}
