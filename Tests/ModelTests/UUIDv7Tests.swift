import EventLoops
import Model
import TestKit
import Testing

@Suite("UUIDv7")
struct UUIDv7Tests {
    @Test("ids increase, also within a millisecond and when the clock is set back")
    func idsGrow() {
        var random = SplitMix64(seed: 7)
        var generator = UUIDv7Generator()
        var last = UUIDv7(high: 0, low: 0)
        for step in 0..<20_000 {
            let id = generator.next(
                at: Timestamp(milliseconds: 1_700_000_000_000 - Int64(step / 5000)), using: &random)
            #expect(id > last)
            last = id
        }
    }

    @Test("the text has version and variant of RFC 9562, and reads back")
    func textRoundTrips() throws {
        var random = SplitMix64(seed: 1)
        var generator = UUIDv7Generator()
        for _ in 0..<1000 {
            let id = generator.next(at: Timestamp(milliseconds: 1_700_000_000_000), using: &random)
            let text = Array(id.description)
            #expect(text.count == 36 && text[14] == "7" && "89ab".contains(text[19]))
            #expect(UUIDv7(id.description) == id)
            #expect(UUIDv7(id.description.uppercased()) == id)
            #expect(UUIDv7(bytes: id.bytes) == id)
        }
        #expect(
            UUIDv7(high: 0x017F_22E2_79B0_7CC3, low: 0x98C4_DC0C_0C07_398F).description
                == "017f22e2-79b0-7cc3-98c4-dc0c0c07398f")
        for text in ["", "017f22e2-79b0-7cc3-98c4-dc0c0c07398", "017f22e2079b0-7cc3-98c4-dc0c0c07398f"] {
            #expect(UUIDv7(text) == nil)
        }
    }
}
