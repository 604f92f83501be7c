import Containers
import Model
import TestKit
import Testing

/// For any document and any event: a value at a redacted or hashed path is nowhere in what the engine gives to others.
@Suite("Privacy")
struct PrivacyPropertyTests {
    private static let names = ["properties", "device", "user", "email", "a.b", "é", "list", "name"]

    /// A document's tags and what they hide, drawn.
    private struct Drawn {
        var random: SplitMix64
        var marker: String { "SECRET-MARKER" }

        mutating func path() -> [String] {
            let first =
                ["properties", "properties", "device", "user", "plan"].randomElement(using: &random) ?? "user"
            return [first] + (0..<Int.random(in: 1...2, using: &random)).map { _ in name() }
        }

        mutating func name() -> String { PrivacyPropertyTests.names.randomElement(using: &random) ?? "email" }

        /// The name as JSON, sometimes under another spelling.
        mutating func spelled(_ name: String) -> String {
            guard Bool.random(using: &random) else { return "\"\(name)\"" }
            return "\""
                + name.unicodeScalars.map { "\\u" + String($0.value + 0x10000, radix: 16).suffix(4) }.joined()
                + "\""
        }

        /// What leads to the marker by these names: objects, lists on the way, members around it.
        mutating func tree(_ path: ArraySlice<String>) -> String {
            guard let first = path.first else {
                return ["\"\(marker)\"", "[\"\(marker)\"]", "{\"x\":\"\(marker)\"}"].randomElement(
                    using: &random) ?? ""
            }
            let member = spelled(first) + ":" + tree(path.dropFirst())
            let object =
                ["{\(member)}", "{\"o\":1,\(member)}", "{\(member),\"o\":[1]}"].randomElement(using: &random)
                ?? ""
            return path.startIndex > 0 && Int.random(in: 0..<4, using: &random) == 0
                ? "[1,\(object)]" : object
        }

        func json(_ path: [String]) -> String { "[" + path.map { "\"\($0)\"" }.joined(separator: ",") + "]" }
    }

    @Test(
        "a hidden value is in no sent event, no data layer and no quarantined line",
        arguments: Seeds.list(1...400))
    func nowhere(seed: UInt64) throws {
        var drawn = Drawn(random: SplitMix64(seed: seed))
        let path = drawn.path()
        let plain = path.first == "properties" ? Array(path.dropFirst()) : path
        let hides =
            [
                #""type":"redact","paths":[\#(drawn.json(path))]"#,
                #""type":"redact","with":"-","paths":[\#(drawn.json(path))]"#,
                #""type":"hash","salt":"s","paths":[\#(drawn.json(path))]"#,
            ].randomElement(using: &drawn.random) ?? ""
        let trial = try Trial(
            """
            "macros":{"l":{"type":"data_layer","path":\(drawn.json(plain))},"p":{"type":"data_layer","path":\(drawn.json(path))}},
            "rules":{"all":{"conditions":[]}},
            "tags":[{"name":"hide","rules":["all"],\(hides)},
              {"name":"l","type":"set","path":"o.l","value":{"macro":"l"},"rules":["all"]},
              {"name":"p","type":"set","path":"o.p","value":{"macro":"p"},"rules":["all"]}]
            """)
        func clean(_ text: String) -> Bool { !text.contains(drawn.marker) }
        for shape in [path, plain] where !shape.isEmpty {
            let push = drawn.tree(shape[...])
            _ = trial.push("{\"type\":\"data_layer\"," + push.dropFirst())
            #expect(clean(trial.apply(#"{"name":"n"}"#).line), "\(path): \(push)")
        }
        let event = "{\"name\":\"n\"," + drawn.tree(path[...]).dropFirst()
        #expect(clean(trial.apply(event).line), "\(path): \(event)")
        #expect(clean(trial.apply(event, largest: 1).line), "\(path): \(event)")
        let kept = trial.engine.presentable(Array(event.utf8), of: "shop")
        #expect(clean(String(decoding: kept, as: UTF8.self)), "\(path): \(event)")
        for (_, bytes) in trial.engine.takeMemory() {
            #expect(clean(String(decoding: bytes ?? [], as: UTF8.self)), "\(path): \(event)")
        }
    }
}
