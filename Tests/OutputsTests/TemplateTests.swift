import EventLoops
import Logs
import Model
import TestKit
import Testing

@testable import Outputs

@Suite("Templates")
struct TemplateTests {
    private func filled(
        _ text: String, _ place: Template.Place, _ events: [String], most: Int = 100
    ) throws -> [String] {
        let templates = EventTemplates([try Template(text, for: place)], TemplateScope(mostValues: most))
        return try fill(templates, events)
    }

    /// - Parameter apps: whose the events are; empty where nobody knows.
    private func fill(
        _ templates: EventTemplates, _ events: [String], of apps: [String] = []
    ) throws -> [String] {
        let views = try EventView.all(Array(events.map { $0 + "\n" }.joined().utf8))
        var header = header(events: events.count)
        header.apps = apps
        let filled = try templates.fill(for: header) { views }
        return events.indices.map { filled[$0].joined(separator: " ") }
    }

    @Test(
        "each placeholder gives its part of an event",
        arguments: [
            ("{app}", "shop"), ("{level}", "warn"), ("{name}", "Video_clicked"),
            ("{member:user.kind}", "buyer"),
            ("{member:n}", "3"), ("{member:ok}", "true"), ("{date}", "2026-11-19"), ("{hour}", "23"),
            ("{priority}", "normal"), ("a-{app}.{date}", "a-shop.2026-11-19"), ("{member:list}", "none"),
            ("{member:user}", "none"), ("{member:nothing}", "none"), ("{member:empty}", "none"),
            ("plain", "plain"),
        ])
    func placeholders(text: String, expected: String) throws {
        let event = #"""
            {"app":"shop","name":"Video clicked","level":"WARNING","timestamp":"2026-11-20T00:59:59+01:00","user":{"kind":"buyer"},"n":3,"ok":true,"list":[1],"nothing":null,"empty":""}
            """#
        #expect(try filled(text, .topic, [event]) == [expected])
    }

    @Test(
        "a value can neither begin another part of a name, nor lead elsewhere, nor be invalid in its place",
        arguments: [
            (Template.Place.index, #"Web\/Shop"#, "web_shop"), (.index, "-_..", "none"), (.index, "+a", "a"),
            (.index, "Größe,x", "gr__e_x"), (.topic, "a.b/ü", "a_b__"), (.topic, "..", "__"),
            (.subject, "a.b c*>", "a_b_c__"), (.subject, "größe", "größe"),
            (.subject, #"x\u0000\r\nPUB"#, "x___PUB"),
            (.key, "../../other", "_._.._other"), (.key, "1.2", "1.2"),
            (.key, #"a\nb"#, "a_b"), (.label, #"a b\u0007\"c"#, "a b_\"c"), (.key, "/", "_"),
            (.request, #"a/../b?c=d&e\r\nX: y"#, "a_.._b_c_d_e__X__y"), (.request, "..é", "_._"),
        ])
    func safe(place: Template.Place, app: String, expected: String) throws {
        let text = place == .key ? "{app}/{batch_id}" : "{app}"
        let found = try #require(try filled(text, place, [#"{"app":"\#(app)"}"#]).first)
        #expect(found == expected + (place == .key ? "/\(header(events: 1).id)" : ""))
    }

    @Test(
        "values beyond the limit become `other`; unused ones make room after a day; the log is once an hour"
    )
    func bound() throws {
        let (time, log) = (ManualTime(), KeptLog())
        let template = try Template("{app}-{name}-{priority}", for: .topic)
        let templates = EventTemplates(
            [template], TemplateScope(destination: "main", mostValues: 2, log: Log(log), time: time))
        func send(_ names: String...) throws -> [String] {
            try fill(templates, names.map { #"{"app":"a","name":"\#($0)"}"# })
        }
        let beyond = "other-other-normal"
        #expect(
            try send("x", "y", "z", "x", "z") == ["a-x-normal", "a-y-normal", beyond, "a-x-normal", beyond])
        #expect(templates.takeCounts() == EventTemplates.Counts(missing: 0, beyond: 2))
        #expect(templates.takeCounts() == EventTemplates.Counts())
        time.advance(by: .seconds(3599))
        #expect(try send("z") == [beyond])
        #expect(log.messages.count == 1)
        time.advance(by: .seconds(1))
        #expect(try send("z", "x") == [beyond, "a-x-normal"])
        #expect(log.messages.map { $0.fields.last?.value } == ["2", "2"])
        #expect(log.messages.allSatisfy { message in !message.fields.contains { $0.value == "z" } })
        // y was last there 23 hours before the next batch, then 24.
        time.advance(by: .seconds(22 * 3600))
        #expect(try send("z", "x") == [beyond, "a-x-normal"])
        time.advance(by: .seconds(3600))
        #expect(try send("z", "x", "y") == ["a-z-normal", "a-x-normal", beyond])
    }

    @Test("values with one resulting text share it: no object or message replaces another of its batch")
    func samePlace() throws {
        let templates = EventTemplates([try Template("{app}-{name}/{batch_id}", for: .key)])
        let lines = [#"{"app":"shop","name":"web-click"}"#, #"{"app":"shop-web","name":"click"}"#]
        let views = try EventView.all(Array(lines.map { $0 + "\n" }.joined().utf8))
        let groups = try templates.fill(for: header(events: 2)) { views }.groups
        #expect(groups.map(\.events) == [[0, 1]])
    }

    @Test("an app at its limit of values leaves room for other apps; owner ids of one range count as one app")
    func sharedBound() throws {
        let templates = EventTemplates(
            [try Template("{app}-{name}", for: .topic)], TemplateScope(destination: "main", mostValues: 100))
        func send(_ app: String, _ names: Int) throws -> Int {
            let events = (0..<names).map { #"{"app":"\#(app)","name":"n\#($0)"}"# }
            return try fill(templates, events).count { $0 != "other-other" }
        }
        #expect(try send("a", 120) == 100)
        #expect(try send("b", 10) == 10)
        #expect(try (0..<300).reduce(0) { try $0 + send("uid-\(100_000 + $1)", 1) } == 45)
        #expect(try send("c", 10) == 10)
        // What was taken stays: a repeat finds its place again.
        #expect(try send("a", 120) == 100)
        #expect(try send("b", 10) == 10)
    }

    @Test("each template has its own limit: too many values of one affect neither others nor fixed texts")
    func boundByTemplate() throws {
        let templates = EventTemplates(
            [try Template("{name}", for: .label), try Template("{level}", for: .label), Template("fixed")],
            TemplateScope(destination: "main", mostValues: 10))
        let events = (0..<1000).map {
            #"{"app":"a","name":"n\#($0)","level":"\#($0 % 2 == 0 ? "info" : "warn")"}"#
        }
        let found = try fill(templates, events)
        #expect(
            found
                == events.indices.map {
                    "\($0 < 10 ? "n\($0)" : "other") \($0 % 2 == 0 ? "info" : "warn") fixed"
                })
        #expect(templates.takeCounts() == EventTemplates.Counts(missing: 0, beyond: 990))
    }

    @Test("an app that names others in its events uses its own values, not theirs")
    func sharedBoundByHolder() throws {
        let templates = EventTemplates(
            [try Template("{member:app}", for: .topic)], TemplateScope(destination: "main", mostValues: 100))
        func send(_ app: String, _ names: Int) throws -> Int {
            let events = (0..<names).map { #"{"app":"\#(app)-\#($0)"}"# }
            return try fill(templates, events, of: events.map { _ in app }).count { $0 != "other" }
        }
        #expect(try send("a", 300) == 100)
        #expect(try send("b", 10) == 10)
    }

    @Test("{app} is the app that owns the event, else what the event says; {member:app} is what it says")
    func whose() throws {
        let templates = EventTemplates([try Template("{app}.{member:app}", for: .topic)])
        let events = [#"{"app":"web"}"#, #"{"app":"web"}"#, "{}", #"{"app":7}"#]
        let found = try fill(templates, events, of: ["shop", "", "shop", "web"])
        #expect(found == ["shop.web", "web.web", "shop.none", "web.7"])
        #expect(templates.takeCounts() == EventTemplates.Counts(missing: 1, beyond: 0))
        // Loki's label, which is there without a setting.
        var header = header(events: 3)
        header.apps = ["Web", "Web", ""]
        let body = try LokiEncoder().encode(Array(mixed.utf8), of: header)
        let streams = try #require(slice(String(decoding: body, as: UTF8.self))?["streams"]?.elements)
        #expect(streams.compactMap { $0["stream"]?["app"]?.string } == ["Web", "shop"])
    }

    @Test("property: an event goes where it would if it named its owner itself", arguments: Seeds.list(1...8))
    func whoseProperty(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<20 {
            let place = Template.Place.allCases.randomElement(using: &random) ?? .key
            let template = try Template("p-{app}" + (place == .key ? "/{batch_id}" : ""), for: place)
            let events = (0..<50).map { _ in
                (
                    app: ["", "shop", "Web-1", "größe", "a.b", "uid-70000"].randomElement(using: &random)
                        ?? "",
                    said: text(&random)
                )
            }
            func lines(_ app: ((app: String, said: String)) -> String) -> [String] {
                events.map { #"{"app":"\#(app($0))"}"# }
            }
            let found = try fill(EventTemplates([template]), lines(\.said), of: events.map(\.app))
            let honest = try fill(EventTemplates([template]), lines { $0.app.isEmpty ? $0.said : $0.app })
            #expect(found == honest, "\(Seeds.again(seed))")
        }
    }

    @Test("a template without parts from events does not read the events")
    func constant() throws {
        let templates = EventTemplates([try Template("a.{priority}", for: .subject)])
        let filled = try templates.fill(for: header(events: 2)) { () throws(OutputError) in
            throw OutputError(.badBatch, "looked at")
        }
        #expect(!templates.areOfEvents && filled[0] == ["a.normal"] && filled[1] == ["a.normal"])
    }

    /// Text of characters that mean something somewhere.
    private func text(_ random: inout SplitMix64) -> String {
        let signs = [
            "a", "B", "9", ".", "..", "/", "\\\\", " ", "*", ">", "-", "_", "+", "é", "日", "\\u0000", "\\n",
            "\\\"",
            "\u{202E}", "#", "{",
        ]
        return (0..<Int.random(in: 0...80, using: &random)).map { _ in
            signs.randomElement(using: &random) ?? ""
        }
        .joined()
    }

    @Test(
        "property: for any events a template's texts are valid in their place, repeatable, and few",
        arguments: Seeds.list(1...8))
    func property(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<20 {
            let place = Template.Place.allCases.randomElement(using: &random) ?? .key
            let signs = place == .subject ? "." : place == .key ? "/" : "-"
            let parts = ["{app}", "{name}", "{member:a.b}", "{level}", "{hour}", "x"].shuffled(using: &random)
            let template = try Template(
                "p" + signs + parts.prefix(3).joined(separator: signs) + (place == .key ? "/{batch_id}" : ""),
                for: place)
            let most = Int.random(in: 1...20, using: &random)
            let templates = EventTemplates([template], TemplateScope(mostValues: most))
            let events = (0..<50).map { _ in
                #"{"app":"\#(text(&random))","name":"\#(text(&random))","a":{"b":"\#(text(&random))"},"level":"\#(text(&random))"}"#
            }
            let found = try fill(templates, events)
            #expect(Set(found).count <= 2 * most + 1, "\(Seeds.again(seed))")
            #expect(try fill(templates, events) == found, "\(Seeds.again(seed))")
            for name in found {
                let isRight =
                    switch place {
                    case .index: name.isKafkaTopic && name.lowercased() == name && name.hasPrefix("p-")
                    case .topic: name.isKafkaTopic && !name.contains(".")
                    case .subject: name.isNATSSubject && name.split(separator: ".").count == 4
                    case .label: name.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
                    case .request, .address:
                        name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"/?#&%".utf8.contains($0) }
                    case .key:
                        name.split(separator: "/", omittingEmptySubsequences: false).count == 5
                            && !name.split(separator: "/").contains { $0.hasPrefix(".") }
                    }
                #expect(isRight, "\(name): \(Seeds.again(seed))")
            }
        }
    }

    // MARK: Formats

    private let mixed = """
        {"app":"shop","name":"a","level":"info","timestamp":"2026-11-20T10:00:00Z","id":"1"}
        {"app":"Web","name":"b","level":"error","timestamp":"2026-11-21T10:00:00Z","id":"2"}
        {"app":"shop","name":"c","level":"error","timestamp":"2026-11-20T11:00:00Z","id":"3"}

        """

    @Test("elasticsearch: each event names its index; a missing index rejects only its events")
    func elasticsearch() throws {
        let encoder = ElasticsearchEncoder(index: try Template("events-{app}-{date}", for: .index))
        let lines = try encoded(encoder, mixed).split(separator: "\n")
        let indexes = [0, 2, 4].compactMap { slice(String(lines[$0]))?["create"]?["_index"]?.string }
        #expect(indexes == ["events-shop-2026-11-20", "events-web-2026-11-21", "events-shop-2026-11-20"])
        let missing =
            #"{"errors":true,"items":[{"create":{"status":404,"error":{"type":"index_not_found_exception"}}}]}"#
        guard case .partial(let rejected, let retry) = outcome(encoder, events: 1, missing) else {
            Issue.record("not in part")
            return
        }
        #expect(rejected.map(\.index) == [0] && retry.isEmpty)
        guard case .held = outcome(ElasticsearchEncoder(index: "a"), events: 1, missing) else {
            Issue.record("the one index of all events is the destination's trouble")
            return
        }
    }

    @Test("loki: a stream for each set of labels; splunk_hec: an index with each event")
    func others() throws {
        let labels = ["job": "j", "lvl": try Template("{level}", for: .label), "host": ""]
        let streams = try #require(
            slice(try encoded(LokiEncoder(labels: labels), mixed))?["streams"]?.elements)
        #expect(
            streams.compactMap { $0["stream"]?.text } == [
                #"{"app":"shop","job":"j","lvl":"info"}"#, #"{"app":"Web","job":"j","lvl":"error"}"#,
                #"{"app":"shop","job":"j","lvl":"error"}"#,
            ])
        var settings = SplunkSettings()
        settings.index = try Template("{app}", for: .index)
        let lines = try encoded(SplunkEncoder(settings), mixed).split(separator: "\n")
        #expect(lines.compactMap { slice(String($0))?["index"]?.string } == ["shop", "web", "shop"])
    }

    @Test("the settings print a template as it was read")
    func text() throws {
        for (text, place) in [
            ("{app}/{date}/{event_date}/{member:a.b c}-{batch_id}x", Template.Place.key),
            ("a.{date}.{hour}", .subject),
        ] {
            #expect(try Template(text, for: place).text == text)
        }
        #expect(Template("").isEmpty && Template("a").text == "a")
    }
}
