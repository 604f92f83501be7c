import TestKit
import Testing

@testable import Spool

@Suite("Splitting a JSON text into events")
struct ObjectSplitterTests {
    /// What comes out of a text that is given in blocks of `step` bytes.
    private func split(_ text: String, longest: Int = 1000, step: Int = 1 << 20) -> (finds: [String], whole: Bool) {
        var splitter = ObjectSplitter(longest: longest)
        var finds: [String] = []
        func note(_ find: ObjectSplitter.Find) {
            let event = String(
                decoding: splitter.event.last == 0x0A ? splitter.event.dropLast() : splitter.event[...], as: UTF8.self)
            switch find {
            case .more: break
            case .event: finds.append(event)
            case .tooLong(let length): finds.append("too long: \(length)")
            case .brokenString: finds.append("broken: \(event)")
            }
        }
        let bytes = Array(text.utf8)
        for start in stride(from: 0, to: bytes.count, by: step) {
            let block = Array(bytes[start..<min(bytes.count, start + step)])
            block.withUnsafeBytes { block in
                var used = 0
                while true {
                    let find = splitter.next(block, used: &used)
                    note(find)
                    if find == .more { break }
                }
            }
        }
        let whole = splitter.isComplete
        if whole { note(splitter.finish()) }
        return (finds, whole)
    }

    @Test(
        "an event is one line, whatever the layout and wherever blocks end",
        arguments: [
            (#"{"name":"a"}"#, [#"{"name":"a"}"#]),
            ("{\n  \"name\" : \"a b\",\r\n\t\"x\": [1, 2]\n}\n", [#"{"name":"a b","x":[1,2]}"#]),
            ("[]", []), (" [ ] ", []),
            (#"[{"a":"]},{"},{"b":"\"["}]"#, [#"{"a":"]},{"}"#, #"{"b":"\"["}"#]),
            ("[\n {\"a\": {\"b\": []}}\n,\n {}\n]", [#"{"a":{"b":[]}}"#, "{}"]),
            ("{}\n{}", ["{}", "{}"]), ("[{}][{}]", ["{}", "{}"]),
            ("[1, {\"a\":1}, \"x y\"]", ["1", #"{"a":1}"#, #""x y""#]),
            ("12", ["12"]), ("1 2\n", ["1", "2"]),
            (#"[{"a": 1 2, "b" : tru e}]"#, [#"{"a":1 2,"b":tru e}"#]),
        ] as [(String, [String])])
    func eventsAreOneLineEach(text: String, events: [String]) {
        for step in [1, 2, 3, 7, 1 << 20] {
            let result = split(text, step: step)
            #expect(result.finds == events, "blocks of \(step)")
            #expect(result.whole)
        }
    }

    @Test("a bad element comes out alone; its neighbours are whole")
    func badElementsStandAlone() {
        #expect(split(#"[{"a":[1}, {"b":1}]"#).finds == [#"{"a":[1}"#, #"{"b":1}"#])
        #expect(split(#"[{"a":1} junk, {"b":1}]"#).finds == [#"{"a":1}junk"#, #"{"b":1}"#])
        #expect(split("[{\"a\":\"x\ny\"}, {}]").finds == ["broken: {\"a\":\"x\ny\"}", "{}"])
        #expect(split(#"[{"a":"0123456789"},{}]"#, longest: 12).finds == ["too long: 18", "{}"])
    }

    @Test(
        "fault18: a text that ends too early is not complete", arguments: ["", "  \n", "{", "[", "[{}", "{\"a", "[{},"])
    func fault18_cutTextsAreNotComplete(text: String) {
        for step in [1, 1 << 20] { #expect(!split(text, step: step).whole) }
    }

    @Test("reading goes on at the last place as if it had never stopped")
    func placesResume() {
        var random = SplitMix64(seed: 11)
        for _ in 0..<200 {
            let events = (0..<Int.random(in: 1...6, using: &random)).map { "{ \"n\": \($0), \"s\": \"],[\\\"\" }" }
            let text = Array(("[" + events.joined(separator: ",\n") + "]").utf8)
            let cut = Int.random(in: 0...text.count, using: &random)
            var found = 0
            var first = ObjectSplitter(longest: 1000)
            text[..<cut].withUnsafeBytes { block in
                var used = 0
                while first.next(block, used: &used) != .more { found += 1 }
            }
            var second = ObjectSplitter(longest: 1000, from: first.place)
            text[Int(first.place.offset)...].withUnsafeBytes { block in
                var used = 0
                while second.next(block, used: &used) != .more { found += 1 }
            }
            #expect(found == events.count)
            #expect(second.isComplete)
        }
    }
}
