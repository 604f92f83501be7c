import EventLoops
import Foundation
import Model
import TestKit
import Testing

@testable import spoolship

@Suite("container test")
struct ContainerTestCommandTests {
    private let directory: TemporaryDirectory
    private static let examples = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "examples/containers").path

    init() throws { directory = try TemporaryDirectory() }

    private func write(_ name: String, _ text: String) throws -> String {
        let path = "\(directory.path)/\(name)"
        try Data(text.utf8).write(to: URL(filePath: path))
        return path
    }

    @Test("tm16: the tests of the example document pass without an agent")
    func tm16_exampleTests() {
        let (code, kept) = KeptConsole.run("container", "test", "\(Self.examples)/GTM-EXAMPLE")
        #expect(code == .success, "\(kept.errorOutput)")
        #expect(kept.output.hasPrefix("GTM-EXAMPLE version 3: 6 tests, 6 rules, 7 tags\n"))
        #expect(kept.output.contains("  ok    payments are critical and carry no secrets\n"))
    }

    @Test("tm16: recorded events show which tags fire, which conditions hold, and the event before and after")
    func tm16_recordedEvents() throws {
        let (code, kept) = KeptConsole.run(
            "container", "test", "\(Self.examples)/GTM-EXAMPLE", "--events", "\(Self.examples)/events.jsonl")
        #expect(code == .success, "\(kept.errorOutput)")
        let output = kept.output
        for part in [
            "line 3: \"Video clicked\"\n", "  fires  music to analytics\n    rule music video holds\n",
            "      yes  category starts_with (any case) \"music\" (it is \"Music/Jazz\")\n",
            "      yes  plan equals \"gold\" (it is \"gold\")\n", "  to      ga4, main\n",
            "  silent  a tenth of the videos\n", "blocking rule gold customer holds\n",
            "line 4: \"Bought\"\n", "  priority critical\n", "  discarded by GTM-EXAMPLE/health check\n",
            "  after   the same\n",
        ] { #expect(output.contains(part), "no \(part) in\n\(output)") }
        let bought = try #require(output.components(separatedBy: "line 4").last)
        #expect(
            bought.contains(
                "before  {\"name\": \"Bought\", \"properties\": {\"user\": \"u1\", \"card\": \"4111111111111111\""
            ))
        let after = try #require(bought.components(separatedBy: "after   ").dropFirst().first)
        #expect(!after.contains("4111111111111111"))
        #expect(after.contains("\"plan\":\"gold\""))
    }

    @Test("tm16: --json has the same content")
    func tm16_json() throws {
        let (code, kept) = KeptConsole.run(
            "container", "test", "--json", "\(Self.examples)/GTM-EXAMPLE", "--events",
            "\(Self.examples)/events.jsonl")
        #expect(code == .success)
        let report = try JSONValue(parsing: kept.output)
        #expect(report["passes"] == true)
        let events = report["events"]?.array ?? []
        #expect(events.map { $0["line"]?.integer } == [1, 3, 4, 5])
        #expect(events.last?["discarded_by"] == "GTM-EXAMPLE/health check")
        #expect(events.last?["after"] == .null)
        #expect(events[1]["destinations"] == ["ga4", "main"])
    }

    @Test("--json keeps the digits of an event's numbers, even those that a double would change")
    func exactNumbers() throws {
        let document = try write("GTM-1", #"{"id": "GTM-1", "version": 1}"#)
        let numbers = ["18446744073709551615", "-0.1000000000000000055", "1E3", "12"]
        let event = #"{"name":"n","text":"1E3","list":["# + numbers.joined(separator: ",") + "]}\n"
        let events = try write("events", event)
        let output = KeptConsole.run("container", "test", "--json", document, "--events", events).1.output
        for number in numbers {
            #expect(output.components(separatedBy: number).count >= 3, "no \(number) in \(output)")
        }
        #expect(output.contains(#""text": "1E3""#) && !output.contains(#""12""#))
        #expect((try? JSONValue(parsing: output)) != nil)
    }

    @Test("why a rule holds is said with a number's digits as the event has them, with --json and without")
    func exactValues() throws {
        let document = try write(
            "GTM-1",
            #"""
            {"id": "GTM-1", "version": 1, "macros": {"n": {"type": "event_property", "path": "n"}},
             "rules": {"big": {"conditions": [{"macro": "n", "equals": "18446744073709551615"}]}},
             "tags": [{"name": "t", "type": "prioritise", "priority": "critical", "rules": ["big"]}]}
            """#)
        let events = try write("events", #"{"name":"n","properties":{"n":18446744073709551615}}"# + "\n")
        let text = KeptConsole.run("container", "test", document, "--events", events).1.output
        #expect(text.contains(#"n equals "18446744073709551615" (it is 18446744073709551615)"#), "\(text)")
        let json = KeptConsole.run("container", "test", "--json", document, "--events", events).1.output
        #expect(json.contains(#""value": 18446744073709551615,"#), "\(json)")
        #expect(json.contains(#""comparand": "18446744073709551615""#), "\(json)")
    }

    @Test(
        "tm16: tags after a discard are not reported as fired; the functions that a document calls are listed"
    )
    func tm16_discards() throws {
        let document = try write(
            "GTM-1",
            """
            {"id": "GTM-1", "version": 1, "rules": {"all": {"conditions": []}, "none": {"conditions": [{"macro": "event", "equals": "x"}]}},
             "tags": [{"name": "first", "type": "prioritise", "priority": "critical", "rules": ["all"]},
                      {"name": "gone", "type": "discard", "rules": ["all"]},
                      {"name": "behind", "type": "function", "function": "audit", "parameters": {}, "rules": ["all"]},
                      {"name": "never", "type": "discard", "rules": ["none"]}]}
            """)
        let events = try write("events", "{\"name\":\"n\"}\n")
        let (code, kept) = KeptConsole.run("container", "test", document, "--events", events)
        #expect(code == .success)
        for line in [
            "  fires  first\n", "  fires  gone\n", "  not reached: the event was already discarded  behind\n",
            "  silent  never\n",
        ] { #expect(kept.output.contains(line), "no \(line) in\n\(kept.output)") }
        #expect(kept.errorOutput.contains("GTM-1 calls audit: if may_call and [functions] do not name them"))
        let report = try JSONValue(
            parsing: KeptConsole.run("container", "test", "--json", document, "--events", events).1.output)
        let tags = report["events"]?.array?.first?["tags"]?.array ?? []
        #expect(tags.map { $0["fires"] } == [true, true, false, false])
        #expect(tags.map { $0["not_reached"] } == [false, false, true, false])
    }

    @Test("container check lists all mistakes with line and column; container test knows hosts and settings")
    func checkAndHosts() throws {
        let document = try write(
            "GTM-1",
            """
            {"id": "GTM-1", "version": 1, "rollout": {"percent": 50, "by": "host"},
             "rules": {"some": {"conditions": [], "rollout": {"percent": 10, "by": "host"}}},
             "tags": [{"name": "r", "type": "redact", "rules": ["some"], "paths": ["a"]},
                      {"name": "s", "type": "ship", "rules": ["some"], "destinations": ["lost"]}]}
            """)
        #expect(KeptConsole.run("container", "check", document).0 == .success)
        let configuration = try write(
            "c.toml",
            "[[container]]\nid = \"GTM-1\"\ndefault_file = \"\(document)\"\n[[destination]]\nname = \"main\"\ntype = \"stdout\"\n"
        )
        for command in ["check", "test"] {
            let (code, kept) = KeptConsole.run("container", command, document, "--config", configuration)
            #expect(code == .badData, "\(kept.output)")
            #expect(
                kept.errorOutput.contains(
                    "GTM-1:4:76: tags[1].destinations: there is no destination \"lost\""),
                "\(kept.errorOutput)")
        }
        let hosts = (1...40).flatMap { ["--host", "web-\($0)"] }
        let (code, kept) = KeptConsole.run(["container", "test", document] + hosts)
        #expect(code == .success)
        let lines = kept.output.split(separator: "\n").filter { $0.contains("  web-") }
        #expect(lines.count == 40)
        #expect((10...30).contains(lines.count { $0.contains(", takes the document") }))
        #expect((1...12).contains(lines.count { $0.contains("some: in") }))
    }

    @Test("with a configuration, lines are read by its settings: limits, kind, level, name and country")
    func configuredApp() throws {
        let document = try write(
            "GTM-1",
            """
            {"id": "GTM-1", "version": 1, "tags": [
              {"name": "cut", "type": "set", "when": "properties.nest == 5", "path": "a", "value": 1},
              {"name": "level", "type": "set", "when": "level == \\"error\\"", "path": "b", "value": 1},
              {"name": "name", "type": "set", "when": "name == \\"Bought\\"", "path": "c", "value": 1},
              {"name": "country", "type": "set", "when": "country == \\"DE\\"", "path": "d", "value": 1}],
             "tests": [
              {"name": "event", "app": "web", "event": {"name": "a", "properties": {"nested": 5}},
               "expect": {"tags": ["cut"]}},
              {"name": "record", "app": "shop", "host": "web-1", "event": {"sev": 17, "who": "Bought"},
               "expect": {"tags": ["level", "name", "country"]}}]}
            """)
        let configuration = try write(
            "c.toml",
            """
            [apps.shop]
            kind = "log"
            name = "who"
            level = ["sev"]
            level_scale = "otel"
            [apps.web.limits]
            property_key_length = 4
            beyond_property_key_length = "cut"
            [[country.rule]]
            app = "shop"
            host = "web-*"
            code = "DE"
            [[destination]]
            name = "main"
            type = "stdout"

            """)
        // The country is that of the host which the test names, whatever `--host` says.
        let withHost = ["--config", configuration, "--host", "db-1"]
        for (options, isGood) in [([], false), (["--config", configuration], true), (withHost, true)] {
            let (code, kept) = KeptConsole.run(["container", "test", document] + options)
            #expect(code == (isGood ? .success : .negative), "\(kept.output) \(kept.errorOutput)")
        }
        let key = "\(directory.path)/key"
        #expect(KeptConsole.run("container", "keygen", key).0 == .success)
        #expect(KeptConsole.run(["container", "sign", "--key", key, document]).0 == .badData)
        let (code, kept) = KeptConsole.run([
            "container", "sign", "--key", key, document, "--config", configuration,
        ])
        #expect(
            code == .badData && kept.errorOutput.contains("record fails: tags fired: level, name;"),
            "\(kept.errorOutput)")
    }

    @Test("the name of the app is checked, and warnings of the configuration are printed once")
    func namedApp() throws {
        let group: gid_t = geteuid() == 0 ? 54_321 : getegid()
        let configuration = try write("spoolship.toml", "")
        try #require(chown(configuration, geteuid(), group) == 0 && chmod(configuration, 0o664) == 0)
        for command in ["check", "test"] {
            let (_, kept) = KeptConsole.run(
                "container", command, "\(Self.examples)/GTM-EXAMPLE", "--config", configuration)
            let warnings = kept.errorOutput.split(separator: "\n").filter {
                $0.contains("can be written by the group")
            }
            #expect(warnings.count == 1, "\(kept.errorOutput)")
        }
        for app in ["a/b", ".a", ""] {
            #expect(
                KeptConsole.run("container", "test", "\(Self.examples)/GTM-EXAMPLE", "--app", app).0 == .usage
            )
        }
    }

    @Test("tm15: a sample without a key decides the same in every run of a document's tests")
    func tm15_stableSamples() throws {
        let cases = (0..<40).map {
            "{\"name\": \"\($0)\", \"event\": {\"name\": \"n\"}, \"expect\": {\"kept\": true}}"
        }
        let document = try write(
            "GTM-1",
            """
            {"id": "GTM-1", "version": 1, "rules": {"all": {"conditions": []}},
             "tags": [{"name": "half", "type": "sample", "rate": 0.5, "rules": ["all"]}],
             "tests": [\(cases.joined(separator: ", "))]}
            """)
        let first = KeptConsole.run("container", "test", document)
        for _ in 0..<8 {
            // Ids begin with the time of day: another moment, another id.
            let end = SystemTime().wallTime
            while SystemTime().wallTime <= end {}
            let again = KeptConsole.run("container", "test", document)
            #expect(first.1.output == again.1.output && first.0 == again.0)
        }
    }

    @Test("a signed document is not signed again, and the message says so")
    func signedAlready() throws {
        let key = "\(directory.path)/key"
        #expect(KeptConsole.run("container", "keygen", key).0 == .success)
        let draft = try write("draft", #"{"id":"A","version":1}"#)
        let signed = "\(directory.path)/signed"
        #expect(KeptConsole.run("container", "sign", draft, "--key", key, "--output", signed).0 == .success)
        let (code, kept) = KeptConsole.run("container", "sign", signed, "--key", key)
        #expect(code == .badData && kept.output.isEmpty)
        #expect(kept.errorOutput.contains("signed is signed already; sign the document, which"))
    }

    @Test("--host is the host of recorded events; a document's own tests run as they are written")
    func host() throws {
        let document = try write(
            "GTM-1",
            #"""
            {"id": "GTM-1", "version": 1, "macros": {"host": {"type": "host_name"}},
             "rules": {"here": {"conditions": [{"macro": "host", "equals": "web-1"}]}},
             "tags": [{"name": "t", "type": "prioritise", "priority": "critical", "rules": ["here"]}],
             "tests": [{"name": "elsewhere", "event": {"name": "n"}, "expect": {"tags": []}},
                       {"name": "there", "host": "web-1", "event": {"name": "n"}, "expect": {"tags": ["t"]}}]}
            """#)
        let events = try write("events", "{\"name\":\"n\"}\n")
        let (code, kept) = KeptConsole.run(
            "container", "test", document, "--events", events, "--host", "web-1")
        #expect(code == .success, "\(kept.output)")
        #expect(kept.output.contains("fires  t\n"), "\(kept.output)")
    }

    @Test(
        "tm16: a failing test ends with 1, a bad document or event with 65, a file that cannot be read with 74"
    )
    func tm16_exitCodes() throws {
        let failing = try write(
            "failing",
            #"{"id":"A","version":1,"tests":[{"name":"t","event":{"name":"n"},"expect":{"kept":false}}]}"#)
        let (code, kept) = KeptConsole.run("container", "test", failing)
        #expect(code == .negative)
        #expect(kept.output.contains("  FAIL  t\n          it is kept, expected to be discarded\n"))

        let bad = try write("bad", #"{"id":"A","version":1,"tags":[{"name":"t","type":"drop"}]}"#)
        let (badCode, badKept) = KeptConsole.run("container", "test", bad)
        #expect(badCode == .badData)
        #expect(badKept.errorOutput.contains("bad:1:31: tags[0]: there is no tag type \"drop\""))

        let expression = try write(
            "expression",
            #"{"id":"A","version":1,"rules":{"r":{"conditions":[{"macro":"event","matches":"(a"}]}}}"#)
        #expect(KeptConsole.run("container", "test", expression).0 == .badData)

        let good = try write("good", #"{"id":"A","version":1}"#)
        let events = try write("events", "{\"name\":\"n\"}\nnot an event\n")
        let (eventCode, eventKept) = KeptConsole.run("container", "test", good, "--events", events)
        #expect(eventCode == .badData)
        #expect(eventKept.errorOutput.contains("events:2: "))
        #expect(KeptConsole.run("container", "test", "\(directory.path)/nothing").0 == .inputOutput)
        #expect(KeptConsole.run("container", "test").0 == .usage)
    }
}
