import Containers
import Model
import TestKit
import Testing

/// What patterns take out of texts, and what `*` and `**` in paths lead to.
@Suite("Patterns in texts")
struct PatternTests {
    private func trial(_ tags: String..., facts: AgentFacts = AgentFacts()) throws -> Trial {
        let named = tags.enumerated().map { "{\"name\":\"t\($0)\",\"rules\":[\"all\"],\($1)}" }
        return try Trial(
            "\"rules\":{\"all\":{\"conditions\":[]}},\"tags\":[\(named.joined(separator: ","))]", facts: facts
        )
    }

    private func line(_ tag: String, _ event: String) throws -> String { try trial(tag).apply(event).line }

    static let ready = [
        ("email", "mail ann@example.com now", "mail [redacted] now"),
        ("email", "é.ü@münchen.de", "[redacted]"),
        ("email", "u=ann%40example.com&x", "u=[redacted]&x"), ("email", "no @ sign, a@b", "no @ sign, a@b"),
        ("ipv4", "from 192.168.0.17:80", "from [redacted]:80"),
        ("ipv4", "300.1.1.1 and 1.2.3", "300.1.1.1 and 1.2.3"),
        ("ipv6", "[2001:db8::1]:443", "[[redacted]]:443"),
        ("ipv6", "addr:2001:db8::1 x", "addr:[redacted] x"),
        ("ipv6", "2001:0db8:0:0:0:0:0:1", "[redacted]"), ("ipv6", "::1", "[redacted]"),
        ("ipv6", "(fe80::8a2e…", "([redacted]…"), ("ipv6", "ip_fe80::8a2e", "ip_[redacted]"),
        ("ipv4", "1.2.3.1000 and 192.168.001.010", "1.2.3.1000 and [redacted]"),
        ("email", "<\"ann smith\"@example.com>", "<[redacted]>"),
        (
            "email", "ann@localhost, ann@[10.0.0.1] and ann@localhosts",
            "[redacted], [redacted] and ann@localhosts"
        ),
        ("email", "ann&#64;example.com, ann&#x40;example&#46;com", "[redacted], [redacted]"),
        ("email", "ann\\x40example.com, ann%40example%2Ecom", "[redacted], [redacted]"),
        ("email", "ann@example%252ecom a&#64b", "[redacted] a&#64b"),
        // Near misses of the quick looks.
        ("ipv4", "1.2.3..4 v1.2.3 .1.2.3 1.2.3.", "1.2.3..4 v1.2.3 .1.2.3 1.2.3."),
        ("ipv4", "..9.9.9.9", "..[redacted]"),
        ("ipv6", "1:2:3:4:5:6:7:8", "[redacted]"),
        ("ipv6", "1:2:3:4:5:6:7 and 10:00:00", "1:2:3:4:5:6:7 and 10:00:00"),
        ("jwt", "eyJ.x, J, yJ, eyj0.a", "eyJ.x, J, yJ, eyj0.a"),
        ("bearer_token", "bear er, bearera, bbearer x", "bear er, bearera, b[redacted]"),
        (
            "email", "\"ann.smith\"@example.com, ann%2540example.com, {\\u0040}",
            "[redacted], [redacted], {\\u0040}"
        ),
        ("ipv6", "std::string at 22:20:38, a :: b", "std::string at 22:20:38, a :: b"),
        ("credit_card", "card 4111 1111 1111 1111 paid", "card [redacted] paid"),
        ("credit_card", "4111-1111-1111-1111", "[redacted]"),
        ("credit_card", "378282246310005", "[redacted]"),
        // The three digits behind it do not hide a card.
        ("credit_card", "4111 1111 1111 1111 123", "[redacted]"),
        ("credit_card", "4111 1111 1111 1112 and 1795168800000", "4111 1111 1111 1112 and 1795168800000"),
        // A date or another number before it hides none either.
        ("credit_card", "20261125 4111 1111 1111 1111 1", "20261125 [redacted]"),
        ("credit_card", "4111.1111.1111.1111 3782/822463/10005", "[redacted] [redacted]"),
        ("credit_card", "order_12_4111_1111_1111_1111_123.pdf", "order_12_[redacted].pdf"),
        ("credit_card", "5.4111111111111111/12/29", "5.[redacted]/12/29"),
        ("credit_card", "番号４１１１１１１１１１１１１１１１。４１１１-1111 １１１１ １１１１", "番号[redacted]。[redacted]"),
        // Other numbers with such signs, though the check digit is right.
        (
            "credit_card", "2026.11.26-18.49.48 took 4.111111111111111 s",
            "2026.11.26-18.49.48 took 4.111111111111111 s"
        ),
        (
            "credit_card", "/log/2026/11/26/18/0003.gz 20261126_184906",
            "/log/2026/11/26/18/0003.gz 20261126_184906"
        ),
        ("credit_card", "4111\u{A0}1111\u{A0}1111\u{A0}1111 4111\t1111‐1111–1111", "[redacted] [redacted]"),
        ("bearer_token", "Bearer%20abc, bearer+def, Bearer:  ghi", "[redacted], [redacted], [redacted]"),
        ("bearer_token", "Authorization: BeArEr abc.def-1", "Authorization: [redacted]"),
        ("jwt", "t=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc_-9;", "t=[redacted];"),
        (#"ORD-\\d+"#, "ORD-17, ORD-18 and ORD-", "[redacted], [redacted] and ORD-"),
        ("^secret$", "secret", "[redacted]"),
    ]

    @Test("built-in patterns and expressions find their texts, plain and with escapes", arguments: ready)
    func readyPatterns(pattern: String, text: String, clean: String) throws {
        let tag = #""type":"redact","pattern":"\#(pattern)""#
        for (text, clean) in [(text, clean), ("\(text) \"\\é", "\(clean) \"\\é")] {
            if pattern == "^secret$", text != "secret" { continue }
            if pattern == "email", text.hasPrefix("é"), text.hasSuffix("é") { continue }
            let value = JSONValue.string(text).description
            let outcome = try line(tag, "{\"name\":\"n\",\"properties\":{\"a\":[{\"b\":\(value)}]}}")
            #expect(outcome == "{\"name\":\"n\",\"properties\":{\"a\":[{\"b\":\(JSONValue.string(clean))}]}}")
        }
    }

    @Test(
        "a built-in pattern finds its text whatever precedes and follows it",
        arguments: Seeds.list(1...200))
    func anywhere(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let values = [
            ("email", "ann@example.com"), ("email", "ann＠example.com"), ("ipv4", "10.11.12.13"),
            ("ipv6", "2001:db8::8a2e:7334"),
            ("ipv6", "fe80::8a2e"), ("credit_card", "4111 1111 1111 1111"),
            ("credit_card", "5500-0000-0000-0004"),
            ("jwt", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc"), ("bearer_token", "Bearer abc.def-1"),
        ]
        let marks = ["", " ", "_", "=", "“", "(", "»", "来自", "…", "|", "[", "\u{FF08}", "\t", "–", "'", "/"]
        let before =
            marks + ["2026-11-25 ", "20261125100000 ", "order 12345678 ", "17, ", "10 00 00 ", "x9 "]
        let behind = marks + [", 17", " 2026-11-25", " x", " 123"]
        for (pattern, value) in values {
            let text = before.randomElement(using: &random)! + value + behind.randomElement(using: &random)!
            let outcome = try line(
                #""type":"redact","pattern":"\#(pattern)""#,
                "{\"name\":\"n\",\"t\":\(JSONValue.string(text))}")
            #expect(!outcome.contains(value) && !outcome.contains(value.suffix(5)), "\(text): \(outcome)")
        }
    }

    @Test("a long text with a match at every position is searched once, or withheld")
    func worst() throws {
        for (pattern, piece, count) in [
            ("ipv6", "a:", 400_000), ("ipv6", "a::", 250_000), ("k[a-z]*=|kk", "k", 800_000),
            ("credit_card", "4 ", 20_000), ("ipv4", "1.", 50_000),
        ] {
            let text = String(repeating: piece, count: count)
            let start = ContinuousClock.now
            let outcome = try line(
                #""type":"redact","pattern":"\#(pattern)""#, #"{"name":"n","t":"\#(text)"}"#)
            #expect(!outcome.contains(text), "\(pattern)")
            // A debug build under load takes seconds; what is quadratic takes minutes.
            #expect(ContinuousClock.now - start < .seconds(20), "\(pattern)")
        }
    }

    @Test("patterns search numbers and names of members too; the rest of the line stays byte for byte")
    func everywhere() throws {
        let card = #""type":"redact","pattern":"credit_card""#
        #expect(
            try line(card, #"{"name":"n","id":"4111111111111112", "p" : 4111111111111111 ,"q":1.50}"#)
                == #"{"name":"n","id":"4111111111111112", "p" : "[redacted]" ,"q":1.50}"#)
        let email = #""type":"redact","pattern":["email","ipv4"],"with":"-""#
        #expect(
            try line(
                email, #"{"name":"a@b.cc","users":{"ann@example.com":1,"x":2},"l":["1.2.3.4",null,true]}"#)
                == #"{"name":"-","users":{"x":2},"l":["-",null,true]}"#)
        #expect(
            try line(email, #"{"name":"n","\u0061":"ann\u0040example.com"}"#) == #"{"name":"n","\u0061":"-"}"#
        )
        #expect(
            try line(
                email + #","paths":["properties"]"#,
                #"{"name":"n","a":"x@y.zz","properties":{"b":{"c":"x@y.zz"}}}"#)
                == #"{"name":"n","a":"x@y.zz","properties":{"b":{"c":"-"}}}"#)
    }

    /// Ids, whether a pattern finds something in them, and their digests by Python's `hmac` with a key of 32
    /// zero bytes.
    static let ids: [(String, Bool, String?)] = [
        (
            #""ann@example.com""#, true,
            "ddda6327-44c3-8e75-88cc-68b2efd5b49d"
        ),
        (
            #""\u0061nn@example.com""#, true,
            "ddda6327-44c3-8e75-88cc-68b2efd5b49d"
        ),
        ("4111111111111111", true, nil),
        (#""01a1fc90-f94c-77c7-93f4-836d5c82edfd""#, false, nil), ("7", false, nil),
    ]

    @Test(
        "an id that contains a match becomes a digest, the same for equal ids",
        arguments: ids)
    func identifiers(id: String, isFound: Bool, keyed: String?) throws {
        let tag = #""type":"redact","pattern":["email","credit_card"]"#
        let event = "{\"name\":\"n\",\"i\\u0064\":\(id)}"
        // Without a key one is drawn: the digest is not one that anybody can compute.
        let changed = try line(tag, event)
        let digest = try JSONValue(parsing: changed)["id"]?.string
        #expect(try line(tag, event) == changed)
        #expect((changed != event) == isFound)
        if isFound {
            #expect(digest?.utf8.count == 36 && digest?.dropFirst(14).first == "8")
            #expect(digest?.hasPrefix("71d4f55f") == false && digest?.hasPrefix("9bbef194") == false)
        }
        var facts = AgentFacts()
        facts.hashKey = .trial
        if let keyed { #expect(try trial(tag, facts: facts).apply(event)["id"]?.string == keyed) }
        let engine = try trial(tag).engine
        let kept = String(decoding: engine.presentable(Array(event.utf8), of: "shop"), as: UTF8.self)
        #expect(kept.contains(isFound ? digest ?? "none" : id), "\(kept)")
    }

    @Test("an id is searched if a pattern's paths include it; a record's own id may be an object")
    func identifiersInPaths() throws {
        let email = #""type":"redact","pattern":"email","#
        let event = #"{"name":"n","id":"ann@example.com"}"#
        #expect(try line(email + #""paths":["properties"]"#, event) == event)
        #expect(try line(email + #""paths":["**.id"]"#, event) != event)
        // Its name stays, whatever finds it.
        let other = try JSONValue(parsing: line(#""type":"redact","pattern":"id|ann""#, event))["id"]?.string
        #expect(other?.utf8.count == 36)
        for tag in [email + #""with":"-""#, #""type":"redact","paths":["**.mail"],"with":"-""#] {
            #expect(
                try line(tag, #"{"name":"n","id":{"mail":"ann@example.com"}}"#)
                    == #"{"name":"n","id":{"mail":"-"}}"#)
        }
    }

    static let paths = [
        ("properties.*", #"{"name":"n","mail":1,"properties":{}}"#),
        (
            "properties.*.mail",
            #"{"name":"n","mail":1,"properties":{"mail":2,"a":{},"l":[{"x":{"mail":4}}]}}"#
        ),
        ("properties.**.mail", #"{"name":"n","mail":1,"properties":{"a":{},"l":[{"x":{}}]}}"#),
        ("**.mail", #"{"name":"n","properties":{"a":{},"l":[{"x":{}}]}}"#),
        ("*.mail", #"{"name":"n","mail":1,"properties":{"a":{"mail":3},"l":[{"x":{"mail":4}}]}}"#),
        ("**", #"{"name":"n"}"#),
    ]

    @Test("* is one level, ** is any number of levels; an event keeps its name and id", arguments: paths)
    func wildcards(path: String, left: String) throws {
        let event = #"{"name":"n","mail":1,"properties":{"mail":2,"a":{"mail":3},"l":[{"x":{"mail":4}}]}}"#
        #expect(try line(#""type":"redact","paths":["\#(path)"]"#, event) == left)
        let hashed = try trial(#""type":"hash","salt":"s","paths":["**.id"]"#).apply(
            #"{"name":"n","id":"i","a":{"id":"j"}}"#)
        #expect(hashed["id"] == "i" && hashed["a", "id"] != "j")
    }

    @Test("members hidden by patterns and ** are in no data layer or quarantine, and under no truncated name")
    func otherPlaces() throws {
        for tag in [#""type":"redact","pattern":"email""#, #""type":"redact","paths":["**.mail"]"#] {
            let macro = #""macros":{"l":{"type":"data_layer","path":"u"}},"rules":{"all":{"conditions":[]}},"#
            let trial = try Trial(
                macro
                    + #""tags":[{"name":"t","rules":["all"],\#(tag)},{"name":"s","type":"set","path":"o","value":{"macro":"l"},"rules":["all"]}]"#
            )
            _ = trial.push(
                #"{"type":"data_layer","u":{"mail":"ann@example.com","x":1},"mail":"ann@example.com"}"#)
            let line = trial.apply(#"{"name":"n"}"#).line
            #expect(!line.contains("ann@") && line.contains(#""x":1"#), "\(line)")
            for (_, bytes) in trial.engine.takeMemory() {
                #expect(!String(decoding: bytes ?? [], as: UTF8.self).contains("ann@"))
            }
            let kept = trial.engine.presentable(
                Array(#"{"a":[{"mail":"ann@example.com"}]}"#.utf8), of: "shop")
            #expect(!String(decoding: kept, as: UTF8.self).contains("ann@"))
        }
        var facts = AgentFacts()
        facts.keyLengths = [4]
        let cut = try trial(#""type":"redact","paths":["**.customer"]"#, facts: facts)
        #expect(
            cut.apply(#"{"name":"n","properties":{"cust":1},"x":{"customer":2}}"#).line
                == #"{"name":"n","properties":{},"x":{}}"#)
    }

    @Test("** also finds a renamed member in a line that is not an event")
    func renamed() throws {
        let trial = try trial(
            #""type":"rename","path":"properties.m","to":"mail""#, #""type":"redact","paths":["**.mail"]"#)
        let kept = trial.engine.presentable(Array(#"{"properties":{"m":"SECRET"}}"#.utf8), of: "shop")
        #expect(!String(decoding: kept, as: UTF8.self).contains("SECRET"))
    }

    @Test("invalid patterns, and patterns that match the empty text, are refused with their place")
    func refused() {
        for (tag, says) in [
            (#""type":"redact","pattern":"(""#, "regular expression cannot be used"),
            (#""type":"redact","pattern":"a*""#, "matches the empty text"),
            (#""type":"redact","pattern":"email","with":"""#, "with must not be empty"),
            (#""type":"redact","pattern":[]"#, "must name at least one pattern"),
            (#""type":"redact","pattern":"x","paths":["id"]"#, "id cannot be changed"),
        ] {
            var message = ""
            do { _ = try trial(tag) } catch { message = "\(error)" }
            #expect(message.contains(says) && message.contains("tags[0]"), "\(message)")
        }
    }

    @Test(
        "in random events no address that a pattern matches is left, wherever it was",
        arguments: Seeds.list(1...200))
    func nowhere(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        func value(_ depth: Int) -> String {
            let address = "ann.\(Int.random(in: 0...99, using: &random))@example.com"
            let spelled = address.unicodeScalars.map { scalar in
                Int.random(in: 0..<6, using: &random) > 0
                    ? String(scalar) : "\\u" + String(scalar.value + 0x10000, radix: 16).suffix(4)
            }.joined()
            switch Int.random(in: 0..<(depth > 0 ? 5 : 2), using: &random) {
            case 0: return "\"\(spelled)\""
            case 1: return "\"to \(spelled), \\n<\(spelled)>\""
            case 2: return "[1,\(value(depth - 1)),[\(value(depth - 1))]]"
            case 3: return "{\"\(spelled)\":\(value(depth - 1)),\"b\" : \(value(depth - 1))}"
            default: return "{ \"a\":\(value(depth - 1)) , \"\(spelled)\":2}"
            }
        }
        let event = "{\"name\":\"n\",\"v\":\(value(4))}"
        let outcome = try trial(#""type":"redact","pattern":"email""#).apply(event)
        #expect(outcome.event.members != nil, "\(outcome.line)")
        let plain = outcome.event.description
        #expect(!plain.contains("@") && !plain.contains("example.com"), "\(event)")
    }
}
