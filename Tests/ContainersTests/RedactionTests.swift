import Containers
import EventLoops
import Model
import TestKit
import Testing

/// What must not leave does not leave, whichever way an event takes (tm15).
@Suite("Redaction")
struct RedactionTests {
    private static let all = "\"rules\": {\"all\": {\"conditions\": []}}"

    private func trial(_ tags: String..., mayCall: Set<String> = []) throws -> Trial {
        let named = tags.enumerated().map { "{\"name\": \"t\($0)\", \"rules\": [\"all\"], \($1)}" }
        return try Trial(
            "\(RedactionTests.all), \"tags\": [\(named.joined(separator: ","))]", mayCall: mayCall)
    }

    @Test(
        "tm15: an event that tags make too large is not sent, and is stored redacted and hashed by all containers"
    )
    func tm15_tooLarge() throws {
        func document(_ id: String, _ tag: String) -> String {
            "{\"id\":\"\(id)\",\"version\":1,\(RedactionTests.all),\"tags\":[{\"name\":\"t\",\"rules\":[\"all\"],\(tag)}]}"
        }
        let trial = try Trial(
            document("A", #""type": "set", "path": "a", "value": "0123456789""#),
            document("B", #""type": "redact", "paths": ["properties.email"]"#),
            document("C", #""type": "hash", "paths": ["properties.user"], "salt": "s""#))
        let event = #"{"name":"n","properties":{"email":"ann@example.com","user":"ann"}}"#
        let outcome = trial.apply(event, largest: 70)
        #expect(outcome.fate == .tooLarge)
        #expect(trial.engine.counts.problems[.tooLarge, default: 0] == 1)
        #expect(!outcome.line.contains("ann"))
        #expect(outcome.line.contains("0123456789"))
        #expect(trial.apply(event, largest: 1000).fate == .kept)
        // What redacting makes small enough again may go.
        let small = try self.trial(
            #""type": "set", "path": "a", "value": "0123456789""#,
            #""type": "redact", "paths": ["properties"]"#)
        #expect(small.apply(event, largest: 70).line == #"{"name":"n","a":"0123456789"}"#)
    }

    @Test(
        "tm15: an event that tags made too large is stored without hidden members, even if the rule does not hold"
    )
    func tm15_tooLargeUnruled() throws {
        let trial = try Trial(
            #""rules":{"all":{"conditions":[]},"never":{"conditions":[{"macro":"app","equals":""}]}},"tags":[{"name":"s","type":"set","rules":["all"],"path":"a","value":"0123456789"},{"name":"r","type":"redact","rules":["never"],"paths":["properties.email"]}]"#
        )
        let outcome = trial.apply(#"{"name":"n","properties":{"email":"ann@example.com"}}"#, largest: 60)
        #expect(outcome.fate == .tooLarge)
        #expect(outcome.line == #"{"name":"n","properties":{},"a":"0123456789"}"#)
    }

    @Test("tm15: an event that becomes so large that later tags never run leaves nothing behind")
    func tm15_farTooLarge() throws {
        let text = String(repeating: "0", count: 40_000)
        let sets = (0..<3).map { "\"type\": \"set\", \"path\": \"a\($0)\", \"value\": \"\(text)\"" }
        let trial = try trial(sets[0], sets[1], sets[2], #""type": "redact", "paths": ["properties.email"]"#)
        let outcome = trial.apply(#"{"name":"n","properties":{"email":"ann@example.com"}}"#, largest: 100)
        #expect(outcome.fate == .tooLarge)
        #expect(outcome.line.isEmpty)
        #expect(trial.engine.counts.problems[.tooLarge, default: 0] == 1)
    }

    static let disguises = [
        #"{"name":"n","properties":{"email":"SECRET"}}"#,
        #"{"name":"n","properties":{"\u0065mail":"SECRET"}}"#,
        #"{"name":"n","properties":{"email":"SECRET","email":"SECRET"}}"#,
        #"{"name":"n","properties":{"email":"SECRET"},"properties":{"other":1}}"#,
        #"{"name":"n","pr\u006fperties":{"email":"SECRET"},"properties":{"email":"SECRET"}}"#,
        #"{"name":"n","properties":[{"email":"SECRET"},{"x":[{"email":1}]},[{"email":"SECRET"}]]}"#,
        #"{"name":"n","properties":{"email":{"work":["SECRET"]}}}"#,
        #"{"name":"n","properties":{"email":"SECRET\ud83d\ude00\n"}}"#,
        #"{"name":"n","properties":{"mail":"SECRET"}}"#,
        #"{"name":"n","properties":{"mail":"SECRET"},"properties":{"mail":"SECRET","email":"SECRET"}}"#,
        #"{"name":"n","properties":[{"mail":"SECRET"}]}"#,
        #"{"name":"n","properties.email":"SECRET"}"#,
        #"{"name":"n","properties\u002eemail":"SECRET","properties":{"email":"SECRET"}}"#,
    ]

    @Test(
        "tm15: a member is redacted or hashed under each spelling of its name, each time it occurs",
        arguments: disguises)
    func tm15_disguises(_ event: String) throws {
        let rename = #""type": "rename", "path": "properties.mail", "to": "email""#
        for tag in [
            #""type": "redact", "paths": ["properties.email"]"#,
            #""type": "redact", "paths": ["properties.email"], "with": "-""#,
            #""type": "hash", "paths": ["properties.email"], "salt": "s""#,
        ] {
            let outcome = try trial(rename, tag).apply(event)
            #expect(outcome.fate == .kept)
            #expect(!outcome.line.contains("SECRET"), "\(tag)")
            #expect(outcome.event.members != nil, "\(outcome.line) is no JSON any more")
        }
    }

    @Test("tm15: a rule on an event's name holds for each spelling of the name")
    func tm15_escapedNames() throws {
        let trial = try Trial(
            #""rules": {"pay": {"conditions": [{"macro": "event", "equals": "Pay"}]}}, "tags": [{"name": "t", "type": "redact", "rules": ["pay"], "paths": ["properties.email"]}]"#
        )
        for name in [#"Pay"#, #"\u0050ay"#, #"P\u0061\u0079"#] {
            let line = trial.apply("{\"name\":\"\(name)\",\"properties\":{\"email\":\"SECRET\"}}").line
            #expect(!line.contains("SECRET"))
        }
    }

    private static let byFunction = #"""
        "macros": {"answer": {"type": "function_call", "function": "consent"}},
        "rules": {
          "shop": {"conditions": [{"macro": "app", "equals": "shop"}, {"macro": "answer", "equals": "no"}]},
          "all": {"conditions": []}, "yes": {"conditions": [{"macro": "answer", "equals": "yes"}]},
          "not no": {"conditions": [{"macro": "answer", "equals": "no", "negate": true}]}},
        """#

    @Test(
        "tm15: redact and hash fire while a function has not answered, unless other conditions rule them out")
    func tm15_failedFunctions() throws {
        func line(_ rules: String, _ blocking: String = "", answer: JSONValue, app: String = "shop") throws
            -> String
        {
            let trial = try Trial(
                RedactionTests.byFunction
                    + "\"tags\": [{\"name\": \"t\", \"type\": \"redact\", \"paths\": [\"secret\"], \"rules\": [\(rules)], \"blocking_rules\": [\(blocking)]}]",
                mayCall: ["consent"])
            trial.results["consent"] = answer
            return trial.apply(#"{"name":"n","secret":1}"#, app: app).line
        }
        let gone = #"{"name":"n"}"#
        let kept = #"{"name":"n","secret":1}"#
        #expect(try line("\"shop\"", answer: "no") == gone)
        #expect(try line("\"shop\"", answer: "yes") == kept)
        #expect(try line("\"shop\"", answer: .null) == gone)
        #expect(try line("\"shop\"", answer: .null, app: "other") == kept)
        // A blocking rule blocks only where it surely holds; negated, null would hold it.
        #expect(try line("\"all\"", "\"yes\"", answer: "yes") == kept)
        #expect(try line("\"all\"", "\"yes\"", answer: .null) == gone)
        #expect(try line("\"all\"", "\"not no\"", answer: "yes") == kept)
        #expect(try line("\"all\"", "\"not no\"", answer: .null) == gone)
    }

    @Test("tm15: redact fires if the function in its rule may not be called")
    func tm15_deniedFunctions() throws {
        let trial = try Trial(
            RedactionTests.byFunction
                + #""tags": [{"name": "t", "type": "redact", "paths": ["secret"], "rules": ["shop"]}, {"name": "d", "type": "discard", "rules": ["shop"]}]"#
        )
        #expect(trial.apply(#"{"name":"n","secret":1}"#).line == #"{"name":"n"}"#)
    }

    @Test("tm11, tm15: redacted and hashed members are in no data layer: of events, pushes or earlier pushes")
    func tm11_layers() throws {
        let reading = #"""
            "macros": {"email": {"type": "data_layer", "path": "email"}, "mail": {"type": "data_layer", "path": "mail"},
              "user": {"type": "data_layer", "path": "user.name"}, "list": {"type": "data_layer", "path": "list"},
              "plan": {"type": "data_layer", "path": "plan"}},
            "rules": {"r": {"conditions": [
              {"macro": "email", "equals": "x"}, {"macro": "mail", "equals": "x"}, {"macro": "user", "equals": "x"},
              {"macro": "list", "equals": "x"}, {"macro": "plan", "equals": "x"}]}, "never": {"conditions": [{"macro": "app", "equals": ""}]}},
            """#
        let before = try Trial(reading + #""tags": [{"name": "t", "type": "discard", "rules": ["r"]}]"#)
        let push =
            #"{"type":"data_layer","email":"SECRET","user":{"name":"SECRET","age":1},"list":[{"name":"SECRET"}],"plan":"gold"}"#
        let event =
            #"{"name":"n","properties":{"mail":"SECRET","email":"SECRET","plan":"gold","list":[{"n\u0061me":"SECRET"}]},"user":{"name":"SECRET"}}"#
        _ = before.push(push)
        _ = before.apply(event)
        #expect(text(before.engine.takeMemory()).contains("SECRET"))

        // None of its rules ever holds: it is enough that it might.
        let hiding =
            reading
            + #""tags": [{"name": "m", "type": "rename", "path": "properties.mail", "to": "email", "rules": ["never"]}, {"name": "t", "type": "redact", "paths": ["properties.email", "user.name"], "rules": ["never"]}, {"name": "h", "type": "hash", "paths": ["properties.list.name"], "rules": ["never"]}, {"name": "r", "type": "discard", "rules": ["r"]}]"#
        let after = try Trial(hiding)
        before.engine.use(after.engine.containers)
        let left = text(before.engine.takeMemory())
        #expect(!left.contains("SECRET"))
        #expect(left.contains("gold") && left.contains("age"))
        _ = after.push(push)
        _ = after.apply(event)
        let fresh = text(after.engine.takeMemory())
        #expect(!fresh.contains("SECRET"))
        #expect(fresh.contains("gold"))
        // What an earlier process left.
        let restored = try Trial(hiding)
        restored.engine.restore(["layer/shop": Array(#"{"email":"SECRET","plan":"gold"}"#.utf8)])
        #expect(!text(restored.engine.takeMemory()).contains("SECRET"))
    }

    private func text(_ memory: [String: [UInt8]?]) -> String {
        memory.sorted { $0.key < $1.key }.map { String(decoding: $0.value ?? [], as: UTF8.self) }.joined()
    }

    @Test("a property is hidden under its full name and the truncated one: in events, layers and quarantine")
    func cutNames() throws {
        var facts = AgentFacts()
        facts.keyLengths = [8, 6]
        for (written, sent) in [
            ("customer_email", "customer"), ("customer", "customer"), ("straß😀e", "straß"),
        ] {
            let tag = #"{"name":"t","type":"redact","rules":["all"],"paths":[["properties","\#(written)"]]}"#
            let trial = try Trial("\(RedactionTests.all),\"tags\":[\(tag)]", facts: facts)
            #expect(
                !trial.apply(#"{"name":"n","properties":{"\#(sent)":"SECRET"}}"#).line.contains("SECRET"),
                "\(written)")
            let full = written == "customer" ? "customer_email" : written
            let escaped =
                full.hasPrefix("c")
                ? "\\u0063" + String(full.dropFirst()) : "\\u0073" + String(full.dropFirst())
            for spelled in [full, escaped] {
                let line = #"{"name":"n","properties":{"\#(spelled)":"SECRET","other":1}}"#
                let kept = String(
                    decoding: trial.engine.presentable(Array(line.utf8), of: "shop"), as: UTF8.self)
                #expect(!kept.contains("SECRET") && kept.contains("other"), "\(kept)")
                _ = trial.push(
                    #"{"type":"data_layer","\#(spelled)":"SECRET","properties":{"\#(spelled)":"SECRET"},"custom":1}"#
                )
                let memory = text(trial.engine.takeMemory())
                #expect(!memory.contains("SECRET"), "\(memory)")
            }
        }
    }

    @Test("a tag that hides what its own rule reads from the data layer still acts, and is a mistake")
    func blindRules() throws {
        func trial(_ extra: String = "") throws -> Trial {
            try Trial(
                #""macros":{"plan":{"type":"data_layer","path":"user.plan"}},"rules":{"gold":{"conditions":[{"macro":"plan","equals":"gold"}\#(extra)]}},"tags":[{"name":"t","type":"redact","rules":["gold"],"paths":["properties.user","properties.email"]}]"#
            )
        }
        let blind = try trial()
        _ = blind.push(#"{"type":"data_layer","user":{"plan":"gold"}}"#)
        #expect(
            blind.apply(#"{"name":"n","properties":{"email":"SECRET"}}"#).line
                == #"{"name":"n","properties":{}}"#)
        #expect(blind.engine.containers[0].blindTags == ["t"])
        #expect(blind.engine.containers[0].mistake?.contains("use event_property") == true)
        // What else its rule says still rules it out.
        let other = try trial(#",{"macro":"app","equals":"other"}"#)
        #expect(other.apply(#"{"name":"n","properties":{"email":"x"}}"#).line.contains("email"))
    }

    @Test("tm15: a line is quarantined without hidden members; if it is not JSON, only its shape is")
    func tm15_quarantine() throws {
        let trial = try trial(
            #""type": "redact", "paths": ["properties.email"]"#,
            #""type": "hash", "paths": ["user"], "salt": "s""#)
        func kept(_ line: String) -> String {
            String(decoding: trial.engine.presentable(Array(line.utf8), of: "shop"), as: UTF8.self)
        }
        #expect(kept(#"{"properties":{"email":"SECRET","a":1}}"# + "\n") == #"{"properties":{"a":1}}"#)
        #expect(!kept(#"{"user":"SECRET"}"#).contains("SECRET"))
        #expect(kept(#"{"a":1}"# + "\n") == #"{"a":1}"# + "\n")
        #expect(kept(#"{"properties":{"email":"SECRET""#) == #"{"xxxxxxxxxx":{"xxxxx":"xxxxxx"#)
        #expect(kept("SECRET é 1\n") == "xxxxxx xx x")
        #expect(!kept(#"["SECRET"]"#).contains("SECRET"))
        // What was changed is never taken for the whole line.
        for line in ["x\n", #"{"user":"\#(String(repeating: "y", count: 64))"}"#, "[1]"] {
            #expect(kept(line).utf8.count != line.utf8.count)
        }
        // Where nothing is hidden, everything is kept.
        let open = try self.trial(#""type": "discard""#)
        #expect(open.engine.presentable(Array("SECRET".utf8), of: "shop") == Array("SECRET".utf8))
    }
}
