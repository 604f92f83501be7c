import Model
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

    @Test("what is unread or unsent is on its way; what is set aside, rejected or held is not")
    func onTheWay() throws {
        let status = try JSONValue(
            parsing: """
                {"spool":{"lag_bytes":465},"destinations":[
                {"name":"file","set_aside":{},"lanes":[{"queued":0},{"queued":0}]},
                {"name":"loki","set_aside":{"a":5,"b":2},"lanes":[{"queued":1},{"queued":9}]},
                {"name":"ga4","set_aside":{"a":9},"lanes":[{"queued":0},{"queued":9}]},
                {"name":"rejecting","lanes":[{"queued":7}]},{"name":"holding","lanes":[{"queued":7}]}]}
                """)
        #expect(PrivacyProof.onTheWay(status) == ["465 bytes unread", "3 events for loki"])
        #expect(PrivacyProof.onTheWay(["spool": ["lag_bytes": 0], "destinations": []]).isEmpty)
    }
}
