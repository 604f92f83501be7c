import Containers
import EventLoops
import Model
import TestKit
import Testing

@Suite("Tags")
struct TagTests {
    /// A container whose tags act on every event.
    private func trial(_ tags: String..., macros: String = "", mayCall: Set<String> = []) throws -> Trial {
        let named = tags.enumerated().map { "{\"name\": \"t\($0)\", \"rules\": [\"all\"], \($1)}" }
        return try Trial(
            "\"macros\": {\(macros)}, \"rules\": {\"all\": {\"conditions\": []}}, \"tags\": [\(named.joined(separator: ","))]",
            mayCall: mayCall)
    }

    private func line(_ event: String, _ tags: String...) throws -> String {
        let named = tags.enumerated().map { "{\"name\": \"t\($0)\", \"rules\": [\"all\"], \($1)}" }
        return try Trial(
            "\"rules\": {\"all\": {\"conditions\": []}}, \"tags\": [\(named.joined(separator: ","))]"
        ).apply(event).line
    }

    @Test(
        "tm15: ship names destinations, and those of several tags add up; without one the configuration decides"
    )
    func tm15_ship() throws {
        let two = try trial(
            #""type": "ship", "destinations": ["ga4", "b"]"#, #""type": "ship", "destinations": ["a"]"#)
        #expect(two.apply(#"{"name":"n"}"#).destinations == ["a", "b", "ga4"])
        #expect(try trial(#""type": "discard""#).apply(#"{"name":"n"}"#).destinations == nil)
    }

    @Test("tm15: discard ends an event, counted under the rule's name")
    func tm15_discard() throws {
        let trial = try trial(#""type": "discard""#, #""type": "prioritise", "priority": "critical""#)
        let outcome = trial.apply(#"{"name":"n"}"#)
        #expect(outcome.fate == .discarded(reason: "GTM-1/all"))
        #expect(outcome.tags == ["t0"])
    }

    @Test(
        "tm15: sample keeps its share, the same events for the same key; a smaller share is within a larger one"
    )
    func tm15_sample() throws {
        let user = #""user": {"type": "event_property", "path": "user"}"#
        let tenth = try trial(#""type": "sample", "rate": 0.1, "key": {"macro": "user"}"#, macros: user)
        let half = try trial(#""type": "sample", "rate": 0.5, "key": {"macro": "user"}"#, macros: user)
        var kept = 0
        for number in 0..<10_000 {
            let event = "{\"name\":\"n\",\"id\":\"e\(number)\",\"properties\":{\"user\":\"u\(number)\"}}"
            let isKept = tenth.apply(event).fate == .kept
            if isKept {
                kept += 1
                #expect(half.apply(event).fate == .kept)
            }
            let again = "{\"name\":\"m\",\"id\":\"f\(number)\",\"properties\":{\"user\":\"u\(number)\"}}"
            #expect((tenth.apply(again).fate == .kept) == isKept)
        }
        #expect((900...1100).contains(kept))
        // Without a key, or where it gives nothing, the event's id counts.
        let byID = try trial(#""type": "sample", "rate": 0.5, "key": {"macro": "user"}"#, macros: user)
        let ids = (0..<1000).filter { byID.apply("{\"name\":\"n\",\"id\":\"\($0)\"}").fate == .kept }.count
        #expect((400...600).contains(ids))
        #expect(try trial(#""type": "sample", "rate": 0"#).apply(#"{"name":"n","id":"1"}"#).fate != .kept)
        #expect(try trial(#""type": "sample", "rate": 1"#).apply(#"{"name":"n","id":"1"}"#).fate == .kept)
    }

    struct Edit: Sendable, CustomTestStringConvertible {
        let tag: String
        let before: String
        let after: String
        var testDescription: String { "\(tag) on \(before)" }
        init(_ tag: String, _ before: String, _ after: String) {
            self.tag = tag
            self.before = before
            self.after = after
        }
    }

    static let edits: [Edit] = [
        Edit(#""type": "set", "path": "a", "value": 1"#, #"{"name":"n"}"#, #"{"name":"n","a":1}"#),
        Edit(
            #""type": "set", "path": "a", "value": [1, "x"]"#, #"{"name":"n" }"#, #"{"name":"n","a":[1,"x"]}"#
        ),
        Edit(
            #""type": "set", "path": "a", "value": 1"#, #"{"a" : 1.50 ,"name":"n"}"#,
            #"{"a" : 1 ,"name":"n"}"#),
        Edit(
            #""type": "set", "path": "p.q.r", "value": true"#, #"{"name":"n"}"#,
            #"{"name":"n","p":{"q":{"r":true}}}"#),
        Edit(
            #""type": "set", "path": "p.q", "value": true"#, #"{"p":{ },"name":"n","z":1e0}"#,
            #"{"p":{"q":true},"name":"n","z":1e0}"#),
        Edit(
            #""type": "set", "path": "p.q", "value": null"#, #"{"p":"text","name":"n"}"#,
            #"{"p":{"q":null},"name":"n"}"#),
        Edit(
            #""type": "set", "path": "a", "value": 2"#, #"{"a":1,"name":"n","a":3}"#, #"{"name":"n","a":2}"#),
        Edit(
            #""type": "set", "path": "a\"b", "value": "\n""#, #"{"name":"n"}"#, #"{"name":"n","a\"b":"\n"}"#),
        Edit(#""type": "set", "path": "name", "value": "m""#, #"{"name":"n"}"#, #"{"name":"m"}"#),
        Edit(
            #""type": "rename", "path": "p.a", "to": "b""#, #"{"p":{"a":1,"b":2},"name":"n"}"#,
            #"{"p":{"b":1},"name":"n"}"#),
        Edit(
            #""type": "rename", "path": "a", "to": "b""#, #"{"b":2,"a":1,"name":"n","b":3}"#,
            #"{"b":1,"name":"n"}"#),
        Edit(#""type": "rename", "path": "a", "to": "a""#, #"{"a":1,"name":"n"}"#, #"{"a":1,"name":"n"}"#),
        Edit(#""type": "rename", "path": "x", "to": "b""#, #"{"b":1,"name":"n"}"#, #"{"b":1,"name":"n"}"#),
        Edit(#""type": "redact", "paths": ["a"]"#, #"{"a":1,"name":"n"}"#, #"{"name":"n"}"#),
        Edit(#""type": "redact", "paths": ["a"]"#, #"{"name":"n" , "a":1 }"#, #"{"name":"n" }"#),
        Edit(#""type": "redact", "paths": ["a"]"#, #"{"a":1,"name":"n","a":2,"\u0061":3}"#, #"{"name":"n"}"#),
        Edit(#""type": "redact", "paths": ["p.a"]"#, #"{"p":{"a":1},"name":"n"}"#, #"{"p":{},"name":"n"}"#),
        Edit(
            #""type": "redact", "paths": ["p.a"]"#, #"{"p":{"a":"secret"},"name":"n","p":{"b":1}}"#,
            #"{"p":{},"name":"n","p":{"b":1}}"#),
        Edit(
            #""type": "redact", "paths": ["p.a", "b", "missing"], "with": "***""#,
            #"{"p":{"a":{"x":1}},"b":2,"name":"n"}"#,
            #"{"p":{"a":"***"},"b":"***","name":"n"}"#),
        Edit(
            #""type": "hash", "paths": ["a", "b", "missing"], "salt": "s""#,
            #"{"a":"x","b":null,"name":"n"}"#,
            #"{"a":"9740c9dcdb4487d8cd63d2a544d8e6573f082081c49aef08c7853ab0f99e019a","b":null,"name":"n"}"#),
    ]

    @Test(
        "tm15: set, rename, redact and hash change their members and leave the other bytes unchanged",
        arguments: edits)
    func tm15_edits(_ edit: Edit) throws {
        #expect(try line(edit.before, edit.tag) == edit.after)
    }

    @Test("tm15: tags act in their order, each on the result of those before")
    func tm15_order() throws {
        let line = try line(
            #"{"name":"n","a":1}"#, #""type": "rename", "path": "a", "to": "b""#,
            #""type": "set", "path": "b", "value": 2"#, #""type": "rename", "path": "b", "to": "c""#)
        #expect(line == #"{"name":"n","c":2}"#)
    }

    @Test("tm15: an event keeps a name and its id, whatever a document does")
    func tm15_nameAndID() throws {
        let refused = [
            #""type": "set", "path": "id", "value": "x""#, #""type": "set", "path": "name", "value": """#,
            #""type": "rename", "path": "name", "to": "title""#,
            #""type": "rename", "path": "x", "to": "name""#,
            #""type": "redact", "paths": ["name"]"#, #""type": "hash", "paths": ["id"]"#,
        ]
        for tag in refused { #expect(throws: ContainerError.self, "\(tag)") { try trial(tag) } }
        let byMacro = try trial(
            #""type": "set", "path": "name", "value": {"macro": "m"}"#,
            macros: #""m": {"type": "event_member", "path": "title"}"#)
        #expect(byMacro.apply(#"{"name":"n","title":"t"}"#).line == #"{"name":"t","title":"t"}"#)
        #expect(byMacro.apply(#"{"name":"n","title":""}"#).line == #"{"name":"n","title":""}"#)
        #expect(byMacro.apply(#"{"name":"n"}"#).line == #"{"name":"n"}"#)
        #expect(byMacro.engine.counts.problems[.badName, default: 0] == 2)
    }

    @Test("tm15: prioritise raises and lowers the priority")
    func tm15_prioritise() throws {
        let critical = try trial(#""type": "prioritise", "priority": "critical""#)
        #expect(critical.apply(#"{"name":"n"}"#).priority == .critical)
        let normal = try trial(#""type": "prioritise", "priority": "normal""#)
        #expect(normal.apply(#"{"name":"n"}"#, priority: .critical).priority == .normal)
    }

    @Test("tm15: throttle keeps a number of events in a period, for each of its keys, across a restart")
    func tm15_throttle() throws {
        let tag = #""type": "throttle", "events": 3, "seconds": 60, "key": {"macro": "u"}"#
        let macro = #""u": {"type": "event_property", "path": "u"}"#
        let trial = try trial(tag, macros: macro)
        func kept(_ trial: Trial, _ user: String, _ count: Int) -> Int {
            (0..<count).filter { _ in
                trial.apply("{\"name\":\"n\",\"properties\":{\"u\":\"\(user)\"}}").fate == .kept
            }
            .count
        }
        #expect(kept(trial, "a", 5) == 3)
        #expect(kept(trial, "b", 2) == 2)
        let memory = trial.engine.takeMemory().compactMapValues { $0 }
        let later = try self.trial(tag, macros: macro)
        later.engine.restore(memory)
        #expect(kept(later, "a", 1) == 0)
        #expect(kept(later, "b", 5) == 1)
        later.now = later.now + .seconds(60)
        #expect(kept(later, "a", 5) == 3)
        // Another version of the container goes on counting.
        later.engine.use(later.engine.containers)
        #expect(kept(later, "a", 5) == 0)
        // Keys beyond the bound share one count.
        let many = (0..<2000).filter { kept(later, "many \($0)", 1) == 1 }.count
        #expect((1000...1030).contains(many))
    }

    @Test("tm15: an app that exhausts a throttle's keys takes none from another app, also after a restart")
    func tm15_throttleOfApps() throws {
        let tag = #""type": "throttle", "events": 10, "seconds": 86400, "key": {"macro": "u"}"#
        let macro = #""u": {"type": "event_property", "path": "u"}"#
        let trial = try trial(tag, macros: macro)
        func kept(_ trial: Trial, _ app: String, _ users: Range<Int>, each: Int) -> Int {
            users.reduce(0) { sum, user in
                sum
                    + (0..<each).count { _ in
                        trial.apply("{\"name\":\"n\",\"properties\":{\"u\":\"\(user)\"}}", app: app).fate
                            == .kept
                    }
            }
        }
        // Those beyond share one count.
        #expect(kept(trial, "a", 0..<1100, each: 1) == 1024 + 10)
        #expect(trial.engine.counts.problems[.crowdedThrottle] == 76)
        #expect(kept(trial, "b", 0..<7, each: 12) == 70)
        // A range of subordinate ids is one holder, and takes from the largest.
        for owner in 0..<600 { _ = kept(trial, "uid-\(131_072 + owner)", 0..<1, each: 1) }
        let later = try self.trial(tag, macros: macro)
        later.engine.restore(trial.engine.takeMemory().compactMapValues { $0 })
        #expect(kept(later, "b", 0..<7, each: 1) == 0)
        #expect(kept(later, "b", 7..<14, each: 12) == 70)
        #expect(kept(later, "c", 0..<7, each: 12) == 70)
    }

    @Test("tm15: function requests a call with parameters from the event; other calls of the event go ahead")
    func tm15_function() throws {
        let trial = try trial(
            #""type": "function", "function": "notify", "parameters": {"what": {"macro": "event"}}"#,
            #""type": "set", "path": "told", "value": true"#, mayCall: ["notify"])
        let outcome = trial.apply(#"{"name":"Bought"}"#)
        #expect(outcome.calls == [FunctionCall(function: "notify", parameters: ["what": "Bought"])])
        #expect(outcome.line == #"{"name":"Bought","told":true}"#)
        #expect(trial.apply(#"{"name":"Other"}"#).calls.count == 1)
    }
}
