import Containers
import EventLoops
import Model
import Testing

/// All that is wrong with a document, at once, with its lines.
@Suite("Review of documents")
struct ReviewTests {
    private func found(
        _ text: String, destinations: [String]? = nil, mayCall: [String]? = nil
    ) -> [String] {
        DocumentReview(Array(text.utf8), destinations: destinations, mayCall: mayCall).findings.map {
            line, column, finding in
            "\(line):\(column) \(finding.isMistake ? "" : "warning ")\(finding)"
        }
    }

    @Test("several mistakes are reported at once, each with line and column")
    func several() {
        let found = found(
            """
            {"id": "A", "version": 1,
             "macros": {"m": {"type": "cookie"}},
             "rules": {"a b": {"conditions": [{"macro": "event", "equals": 1, "less": 2}]},
                       "ok": {"conditions": []}},
             "tags": [
               {"name": "t", "type": "drop", "rules": ["ok"]},
               {"name": "u", "type": "redact", "rules": ["ok", "none"], "paths": ["a"]},
               {"name": "v", "type": "redact", "rules": ["a b"], "paths": ["id"]}]}
            """)
        #expect(found.count == 5, "\(found)")
        for (place, says) in [
            ("2:18", "cookie"), ("3:35", "needs exactly one of"), ("6:30", "no tag type \"drop\""),
            ("7:49", "no rule \"none\""),
            ("8:5", "id cannot be changed"),
        ] {
            #expect(
                found.contains { $0.hasPrefix(place.prefix { $0 != ":" } + ":") && $0.contains(says) },
                "\(place) \(says): \(found)")
        }
        #expect(found.contains { $0.hasPrefix("3:35 ") }, "\(found)")
    }

    @Test("text that is not JSON is reported at the position where JSON ends")
    func syntax() {
        for (text, place) in [
            ("{\"id\": \"A\",\n \"version\": 1,\n \"values\": {\"a\": 1,}}", "3:20"),
            ("{\"id\": \"A\",\n \"version\": 1\n \"values\": {}}", "3:2"),
            ("{\"id\": \"A\",\n \"version\": 01}", "2:14"),
            ("{\"id\": \"A\",\n 'version': 1}", "2:2"), ("{\"id\": \"A\",\n \"version\": 1", "2:14"),
            ("{\"id\": \"A\"}\n}", "2:1"),
        ] {
            #expect(
                found(text).count == 1 && found(text)[0].hasPrefix("\(place) not JSON"),
                "\(found(text)) not \(place)")
        }
    }

    @Test("a number that would change by being read is reported with its position")
    func lostNumber() {
        let found = found(
            "{\"id\": \"A\", \"version\": 1,\n \"values\": {\"a\": 1, \"b\": [18446744073709551615]}}")
        #expect(found.count == 1 && found[0].hasPrefix("2:27 the number 18446744073709551615 "), "\(found)")
    }

    @Test("a byte that is not UTF-8 is reported with its position")
    func notUTF8() {
        for (bytes, place) in [
            (Array("{\"id\": \"A\",\n \"version\": \"".utf8) + [0xFF] + Array("\"}".utf8), [2, 14]),
            (Array("{\"ä\": \"".utf8) + [0xC3], [1, 9]),
        ] {
            let found = DocumentReview(bytes).findings
            #expect(found.count == 1 && [found[0].line, found[0].column] == place, "\(found)")
        }
        let marked = DocumentReview([0xEF, 0xBB, 0xBF] + Array(#"{"id":"A","version":1}"#.utf8)).findings
        #expect(marked.first?.finding.message.contains("byte order mark of UTF-8") == true, "\(marked)")
    }

    @Test("an expired document is a mistake if the time is known")
    func expired() {
        let text = "{\"id\": \"A\", \"version\": 1,\n \"expires\": \"2026-11-29T07:00:00Z\"}"
        let end = Timestamp(milliseconds: 1_795_935_600_000)
        func mistakes(_ now: Timestamp?) -> [String] {
            DocumentReview(Array(text.utf8), now: now).findings.map {
                "\($0.line):\($0.column) \($0.finding)"
            }
        }
        #expect(mistakes(nil).isEmpty && mistakes(end - .milliseconds(1)).isEmpty)
        #expect(mistakes(end) == ["2:13 expires: has passed; agents would refuse the document"])
    }

    static let weaknesses: [(String, String)] = [
        (
            #""rules":{"all":{"conditions":[]},"x":{"conditions":[]}},"tags":[{"name":"r","type":"redact","rules":["all"],"paths":["a"]}]"#,
            "warning rules.x: no tag"
        ),
        (
            #""rules":{"all":{"conditions":[]}},"tags":[{"name":"d","type":"discard","rules":["all"]},{"name":"r","type":"redact","rules":["all"],"paths":["a"]}]"#,
            "\"r\" never acts: \"d\" discards"
        ),
        (
            #""rules":{"all":{"conditions":[]}},"tags":[{"name":"r","type":"redact","rules":["all"],"blocking_rules":["all"],"paths":["a"]}]"#,
            "each of its rules blocks it"
        ),
        (
            #""macros":{"m":{"type":"event_property","path":"user"}},"rules":{"all":{"conditions":[]}},"tags":[{"name":"s","type":"set","path":"c","value":{"macro":"m"},"rules":["all"]},{"name":"r","type":"redact","rules":["all"],"paths":["properties.user.mail"]}]"#,
            "warning tags[0]: \"s\" copies what \"r\" removes"
        ),
        (
            #""rules":{"all":{"conditions":[]}},"tags":[{"name":"h","type":"hash","rules":["all"],"paths":["a"],"salt":"s"}]"#,
            "warning tags[0].salt"
        ),
        (
            #""rules":{"all":{"conditions":[]}},"tags":[{"name":"s","type":"ship","rules":["all"],"destinations":["main","lost"]}]"#,
            "tags[0].destinations: there is no destination \"lost\""
        ),
        (
            #""rules":{"all":{"conditions":[]}},"tags":[{"name":"f","type":"function","rules":["all"],"function":"g"}]"#,
            "\"g\" is not in may_call"
        ),
    ]

    @Test("tags that do nothing, leave a copy, or name something unknown are reported", arguments: weaknesses)
    func weak(members: String, says: String) {
        let found = found("{\"id\":\"A\",\"version\":1,\(members)}", destinations: ["main"], mayCall: ["f"])
        #expect(found.count == 1 && found[0].contains(says), "\(found)")
    }

    @Test("mistakes in schemas have their line and column, however the event is called")
    func schemas() {
        let found = found(
            """
            {"id": "A", "version": 1,
             "schemas": {"bought": {"properties": {"a/b": {"minimum": "1"}}},
                         "Video clicked": {"items": {"type": "int"}},
                         "seen": {"$ref": "#/$defs/none"},
                         "ok": {"type": "object"}}}
            """)
        #expect(
            found == [
                "2:59 schemas.bought.properties[\"a/b\"].minimum: must be a number",
                "3:50 schemas[\"Video clicked\"].items.type: must be one of object, array, string, number,"
                    + " integer, boolean, null, or a list of these",
                "4:31 schemas.seen[\"$ref\"]: leads nowhere: #/$defs/none",
            ])
    }

    @Test("schemas of one document share their bounds")
    func schemaBounds() {
        func document(_ schemas: Int, _ schema: (Int) -> String) -> [String] {
            let all = (0..<schemas).map { "\"e\($0)\": \(schema($0))" }.joined(separator: ",")
            return self.found("{\"id\":\"A\",\"version\":1,\"schemas\":{\(all)}}")
        }
        #expect(document(200) { _ in "true" }.isEmpty)
        #expect(document(201) { _ in "true" }[0].contains("has 201 members; at most 200"))
        #expect(document(64) { #"{"pattern":"a\#($0)"}"# }.isEmpty)
        let patterns = document(65) { #"{"pattern":"a\#($0)"}"# }
        #expect(patterns.count == 1 && patterns[0].contains("more than 64 patterns"), "\(patterns)")
        let list = (0..<30).map { "\"p\($0)\":{}" }.joined(separator: ",")
        let nodes = document(200) { _ in "{\"properties\":{\(list)}}" }
        #expect(nodes.first?.contains("more than 4096 schemas") == true, "\(nodes.first ?? "")")
        let nameless = self.found(#"{"id":"A","version":1,"schemas":{"":true}}"#)
        #expect(nameless.first?.contains("an event's name has 1") == true, "\(nameless)")
    }

    @Test("a document that is not JSON is reported, and one without mistakes has no report")
    func ends() {
        #expect(found("{").count == 1)
        #expect(
            found(
                #"{"id":"A","version":1,"rules":{"all":{"conditions":[]}},"tags":[{"name":"r","type":"redact","rules":["all"],"pattern":"email"}]}"#
            ).isEmpty)
    }
}
