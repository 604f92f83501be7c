import Containers
import Model
import TestKit
import Testing

@Suite("Data layer")
struct DataLayerTests {
    /// Shows what the layer holds at some paths, in each event.
    private func trial(_ paths: String...) throws -> Trial {
        let macros = paths.enumerated().map {
            "\"m\($0)\": {\"type\": \"data_layer\", \"path\": \"\($1)\", \"default\": \"none\"}"
        }
        let tags = paths.indices.map {
            "{\"name\": \"t\($0)\", \"type\": \"set\", \"path\": \"shown.m\($0)\", \"value\": {\"macro\": \"m\($0)\"}, \"rules\": [\"all\"]}"
        }
        return try Trial(
            """
            "macros": {\(macros.joined(separator: ","))}, "rules": {"all": {"conditions": []}},
            "tags": [\(tags.joined(separator: ","))]
            """)
    }

    private func shown(_ outcome: Trial.Outcome) -> [JSONValue] {
        outcome["shown"]?.members?.map(\.value) ?? []
    }

    @Test(
        "tm11: an event pushes its name as `event`, its properties at the top, and other members under their names"
    )
    func tm11_eventsArePushed() throws {
        let trial = try trial("event", "plan", "country", "user.id", "name")
        let first = trial.apply(
            #"{"name":"Login","country":"IT","properties":{"plan":"gold","user":{"id":7}}}"#)
        #expect(shown(first) == ["Login", "gold", "IT", 7, "none"])
        // What an event does not say stays as it was.
        #expect(shown(trial.apply(#"{"name":"Start"}"#)) == ["Start", "gold", "IT", 7, "none"])
    }

    @Test("what an event says about consent concerns the event: only a push puts it into the layer")
    func consentOfEvents() throws {
        let trial = try trial("consent", "consent.analytics")
        let event = #"{"name":"n","consent":{"analytics":true},"properties":{"consent":true}}"#
        #expect(shown(trial.apply(event)) == ["none", "none"])
        _ = trial.push(#"{"type":"data_layer","consent":{"analytics":false}}"#)
        #expect(shown(trial.apply(event)) == [["analytics": false], false])
    }

    /// What the layer says of analytics and ads after these pushes; nil for nothing.
    private func consent(after pushes: String...) throws -> [Bool?] {
        let trial = try trial("plan")
        for members in pushes { _ = trial.push(#"{"type":"data_layer",\#(members)}"#) }
        // A restart changes nothing.
        let later = try self.trial("plan")
        later.engine.restore(trial.engine.takeMemory().compactMapValues { $0 })
        #expect(said(later) == said(trial), "\(pushes)")
        return said(trial)
    }

    private func said(_ trial: Trial, of app: String = "shop") -> [Bool?] {
        ["analytics", "ads"].map { trial.engine.consent(of: app)?.answer(for: $0) }
    }

    @Test("an object changes the purposes that it names: the others keep their answer, whatever its form was")
    func consentByPurpose() throws {
        let ads = #""consent":{"ads":true}"#
        #expect(try consent(after: ads) == [nil, true])
        #expect(try consent(after: #""consent":false"#, ads) == [false, true])
        #expect(try consent(after: #""consent":"no""#, ads) == [false, true])
        #expect(try consent(after: #""consent":["ads"]"#, #""consent":{"video":true}"#) == [false, true])
        #expect(try consent(after: #""consent":[]"#, ads, #""consent":{"ads":false}"#) == [false, false])
        #expect(try consent(after: #""consent":true"#, #""consent":{"ads":false}"#) == [true, false])
        #expect(try consent(after: #""consent":null"#, ads) == [nil, true])
        // So does a name with a dot.
        #expect(try consent(after: #""consent":false"#, #""consent.ads":true"#) == [false, true])
        #expect(try consent(after: ads, #""consent.ads":false"#, ads) == [nil, true])
        #expect(try consent(after: #""consent.ads":false"#, #""consent.ads":true"#) == [nil, true])
        #expect(try consent(after: #""consent":false"#, #""consent.ads":true"#, ads) == [false, true])
        #expect(
            try consent(after: #""consent":["","ads"],"consent.x":true"#, #""consent":{"x":true}"#)
                == [false, true])
        // The name of the layer's own answer is no purpose.
        #expect(try consent(after: #""consent":{"":true}"#, #""consent.":true"#) == [nil, nil])
        #expect(try consent(after: #""consent":["","ads"]"#, #""consent":{"x":true}"#) == [false, true])
    }

    @Test("a whole answer replaces all that was said, also names with dots")
    func wholeConsent() throws {
        #expect(try consent(after: #""consent.analytics":false"#, #""consent":true"#) == [true, true])
        #expect(
            try consent(after: #""consent":{"ads":true},"consent.analytics":true"#, #""consent":[]"#)
                == [false, false])
    }

    @Test("null says nothing: what was pushed before stays, for all purposes and for one")
    func nullConsent() throws {
        let ads = #""consent":{"ads":false}"#
        #expect(
            try consent(after: #""consent":false"#, #""consent.ads":true"#, #""consent":null"#)
                == [false, true])
        let nulls = [
            #""consent":{"ads":null}"#, #""consent.ads":null"#, #""consent":null,"consent.ads":null"#,
        ]
        for null in nulls {
            #expect(try consent(after: #""consent":true"#, ads, null) == [true, false])
            #expect(try consent(after: null) == [nil, nil])
        }
        #expect(try consent(after: ads, #""consent":{"ads":null,"analytics":true}"#) == [true, false])
        #expect(try consent(after: #""consent":null,"consent":true"#) == [true, true])
    }

    @Test("a name with a dot is a purpose of the member `consent`, where macros read it")
    func dottedConsent() throws {
        let trial = try trial("consent", "consent.ads")
        _ = trial.push(#"{"type":"data_layer","consent.ads":false,"consent.video":true}"#)
        #expect(shown(trial.apply(#"{"name":"n"}"#)) == [["ads": false, "video": true], false])
        _ = trial.push(#"{"type":"data_layer","consent":{"ads":true}}"#)
        #expect(shown(trial.apply(#"{"name":"n"}"#)) == [["ads": true, "video": true], true])
    }

    @Test("layers that an older version stored: of members that differ the refusal counts")
    func oldConsent() throws {
        func restored(_ row: String, _ pushes: String...) throws -> [Bool?] {
            let trial = try trial("plan")
            trial.engine.restore(["layer/shop": Array(row.utf8)])
            for members in pushes { _ = trial.push(#"{"type":"data_layer",\#(members)}"#) }
            return said(trial)
        }
        #expect(try restored(#"{"consent":{"analytics":false},"consent.ads":true}"#) == [false, true])
        #expect(try restored(#"{"consent":true,"consent.ads":false}"#) == [true, false])
        #expect(try restored(#"{"consent":{"ads":null},"consent.ads":null}"#) == [nil, nil])
        // What an app pushed under the name of the layer's own answer grants nothing.
        #expect(try restored(#"{"consent":{"":true,"ads":true}}"#) == [nil, true])
        #expect(try restored(#"{"consent":{"":true}}"#, #""consent":{"ads":true}"#) == [nil, true])
        #expect(try restored(#"{"consent":{"":true},"consent.ads":true}"#) == [nil, true])
        #expect(try restored(#"{"consent":{"":false,"ads":true}}"#) == [false, true])
    }

    @Test(
        "what a tag hides of consent leaves no grant, and of a refusal a refusal of everything",
        arguments: [
            #""properties""#, #""properties.consent""#, #""consent""#, #""consent.*""#,
            #""properties.consent.ads""#, #"["consent.ads"]"#,
        ])
    func hiddenConsent(_ path: String) throws {
        func trial() throws -> Trial {
            try Trial(
                """
                "rules": {"all": {"conditions": []}},
                "tags": [{"name": "t", "type": "redact", "paths": [\(path)], "rules": ["all"]}]
                """)
        }
        let refusals = [
            #""consent":{"ads":false,"analytics":true}"#, #""consent.ads":false,"consent.analytics":true"#,
            #""consent":{"ads":true,"analytics":false}"#, #""consent":false"#,
        ]
        for refusal in refusals {
            let pushed = try trial()
            _ = pushed.push(#"{"type":"data_layer",\#(refusal)}"#)
            #expect(said(pushed) == [false, false], "\(refusal)")
            // Also if the document comes into force later; the second time there is nothing to store.
            let later = try trial()
            let containers = later.engine.containers
            later.engine.use([])
            _ = later.push(#"{"type":"data_layer",\#(refusal)}"#)
            later.engine.use(containers)
            #expect(said(later) == [false, false], "\(refusal)")
            #expect(later.engine.takeMemory()["layer/shop"] == Array(#"{"consent":false}"#.utf8))
            later.engine.use(containers)
            #expect(later.engine.takeMemory().isEmpty)
        }
        for grant in [#""consent":{"ads":true,"video":true}"#, #""consent.ads":true"#] {
            let pushed = try trial()
            _ = pushed.push(#"{"type":"data_layer",\#(grant)}"#)
            #expect(said(pushed) == [nil, nil], "\(grant)")
        }
        // What does not fit is refused, whatever is hidden.
        let full = try trial()
        let large = String(repeating: "x", count: 16 << 10)
        _ = full.push("{\"type\":\"data_layer\",\"consent\":{\"\(large)\":true}}")
        #expect(said(full) == [false, false])
    }

    @Test("if members of a push differ the refusal counts, and a push that cannot be read refuses")
    func doubledConsent() throws {
        #expect(try consent(after: #""consent":false,"consent":true"#) == [false, false])
        #expect(try consent(after: #""consent":true,"consent":false"#) == [false, false])
        #expect(
            try consent(after: #""consent":{"analytics":false,"analytics":true}"#) == [false, nil])
        #expect(try consent(after: #""consent.ads":false,"consent.ads":true"#) == [nil, false])
        #expect(try consent(after: #""consent":false,"consent.analytics":true"#) == [false, false])
        #expect(
            try consent(after: #""consent":{"ads":true}"#, #""consent":false,"consent":{"analytics":true}"#)
                == [false, false])
        #expect(try consent(after: #""consent":true"#, #""consent":false,"n":1e999"#) == [false, false])
        // A line that says nothing about it refuses nothing.
        #expect(try consent(after: #""consent":true"#, #""plan":"x","n":1e999"#) == [true, true])
        #expect(try consent(after: #""consent":true"#, #""plan":"caf\u00e9","n":1e999"#) == [true, true])
        #expect(
            try consent(after: #""consent":true"#, #""\u0063onsent":true,"n":1e999"#) == [false, false])
    }

    @Test("consent for which a layer has no room refuses every purpose; members beside it are left out")
    func consentWithoutRoom() throws {
        let large = String(repeating: "x", count: 16 << 10)
        #expect(
            try consent(after: #""consent":true,"plan":"x""#, "\"consent\":{\"\(large)\":false}")
                == [false, false])
        #expect(try consent(after: "\"consent\":{\"\(large)\":false}") == [false, false])
        // Its other members had no room: consent has.
        #expect(
            try consent(after: #""consent":true"#, "\"consent\":{\"ads\":false},\"plan\":\"\(large)\"")
                == [true, false])
    }

    @Test("the removal of a person's data from a layer leaves what it says about consent")
    func erasedLayer() throws {
        let trial = try trial("plan")
        _ = trial.push(#"{"type":"data_layer","consent":{"ads":false,"4711":true},"plan":"anna"}"#)
        func forget(_ text: String) {
            trial.engine.forgetLayers { String(decoding: $0, as: UTF8.self).contains(text) }
        }
        func stored() -> String? {
            trial.engine.takeMemory()["layer/shop"].flatMap { $0 }.map { String(decoding: $0, as: UTF8.self) }
        }
        forget("anna")
        #expect(said(trial) == [nil, false])
        #expect(stored() == #"{"consent":{"4711":true,"ads":false}}"#)
        // If it is in that, too, all is refused.
        forget("4711")
        #expect(said(trial) == [false, false])
        #expect(stored() == #"{"consent":false}"#)
        _ = trial.push(#"{"type":"data_layer","plan":"berta"}"#, app: "web")
        forget("berta")
        #expect(trial.engine.takeMemory()["layer/web"] == .some(nil))
    }

    @Test("a layer that is given up keeps a refusal; layers that say nothing about consent go first")
    func evictedConsent() throws {
        let trial = try trial("plan")
        func app(_ number: Int) -> String { "uid-\(131_072 + number)" }
        for number in 0..<512 {
            let consent = number == 1 ? "" : #""consent":{"ads":false},"#
            _ = trial.push(#"{"type":"data_layer",\#(consent)"plan":"x"}"#, app: app(number))
        }
        for name in ["a", "b"] { _ = trial.push(#"{"type":"data_layer","plan":"x"}"#, app: name) }
        let memory = trial.engine.takeMemory().compactMapValues { $0 }
        #expect(memory["layer/\(app(1))"] == nil)
        #expect(memory["layer/\(app(0))"] == Array(#"{"consent":{"ads":false}}"#.utf8))
        #expect(said(trial, of: app(0)) == [nil, false] && said(trial, of: app(2)) == [nil, false])
        // What gets no room at all is kept for its consent, and changes by later pushes; also after a restart.
        _ = trial.push(#"{"type":"data_layer","consent":false,"plan":"x"}"#, app: app(600))
        _ = trial.push(#"{"type":"data_layer","consent":{"ads":true}}"#, app: app(0))
        #expect(said(trial, of: app(600)) == [false, false] && said(trial, of: app(0)) == [nil, true])
        let later = try self.trial("plan")
        later.engine.restore(memory.merging(trial.engine.takeMemory().compactMapValues { $0 }) { $1 })
        for number in [0, 2, 600] {
            #expect(said(later, of: app(number)) == said(trial, of: app(number)))
        }
    }

    @Test("a layer that refuses because a push had no room has changed last")
    func refusedLast() throws {
        let trial = try trial("plan")
        func app(_ number: Int) -> String { "uid-\(131_072 + number)" }
        for number in 0..<512 {
            _ = trial.push(#"{"type":"data_layer","consent":{"ads":false},"plan":"x"}"#, app: app(number))
        }
        let large = String(repeating: "x", count: 16 << 10)
        _ = trial.push("{\"type\":\"data_layer\",\"consent\":{\"\(large)\":false}}", app: app(5))
        _ = trial.push(#"{"type":"data_layer","plan":"x"}"#, app: "a")
        // The one that changed longest ago is given up, and its consent kept.
        #expect(trial.engine.takeMemory()["layer/\(app(0))"] == Array(#"{"consent":{"ads":false}}"#.utf8))
        #expect(said(trial, of: app(5)) == [false, false])
    }

    @Test("a push of a disabled app changes its consent and nothing else")
    func consentAlone() throws {
        let trial = try trial("plan")
        let line = #"{"type":"data_layer","plan":"gold","consent":false,"event":"e"}"#
        Array(line.utf8).withUnsafeBytes { trial.engine.pushConsent($0, app: "shop") }
        #expect(said(trial) == [false, false])
        #expect(shown(trial.apply(#"{"name":"n"}"#)) == ["none"])
    }

    @Test("tm11: each app has its own layer")
    func tm11_oneForEachApp() throws {
        let trial = try trial("plan")
        _ = trial.apply(#"{"name":"n","properties":{"plan":"gold"}}"#, app: "a")
        #expect(shown(trial.apply(#"{"name":"n"}"#, app: "b")) == ["none"])
        #expect(shown(trial.apply(#"{"name":"n"}"#, app: "a")) == ["gold"])
    }

    @Test("tm11: maps merge deeply, lists merge by index, scalars replace, and null is a value")
    func tm11_merging() throws {
        let trial = try trial("m", "l", "s", "l.1", "m.x")
        _ = trial.push(#"{"type":"data_layer","m":{"a":1,"b":{"c":2}},"l":[1,[2,3],3],"s":"text"}"#)
        _ = trial.push(#"{"type":"data_layer","m":{"b":{"d":4},"x":null},"l":[9,[8]],"s":{"now":"a map"}}"#)
        #expect(
            shown(trial.apply(#"{"name":"n"}"#)) == [
                ["a": 1, "b": ["c": 2, "d": 4], "x": .null], [9, [8, 3], 3], ["now": "a map"], [8, 3], .null,
            ])
        _ = trial.push(#"{"type":"data_layer","l":null,"m":[1]}"#)
        #expect(shown(trial.apply(#"{"name":"n"}"#)) == [[1], .null, ["now": "a map"], "none", "none"])
    }

    @Test("tm11: a push fires tags only if it has an `event`, and is not an event itself")
    func tm11_pushesWithEvent() throws {
        let trial = try Trial(
            """
            "macros": {"screen": {"type": "data_layer", "path": "screenName"}},
            "rules": {"confirmed": {"conditions": [{"macro": "event", "equals": "openScreen"}, {"macro": "screen", "equals": "Confirmation"}]}},
            "tags": [{"name": "call", "type": "function", "function": "f", "parameters": {"screen": {"macro": "screen"}}, "rules": ["confirmed"]},
                     {"name": "discard", "type": "discard", "rules": ["confirmed"]}]
            """, mayCall: ["f"])
        #expect(trial.push(#"{"type":"data_layer","screenName":"Confirmation"}"#).tags == [])
        let fired = trial.push(#"{"type":"data_layer","event":"openScreen"}"#)
        #expect(fired.fate == .kept)
        #expect(fired.tags == ["call"])
        #expect(fired.calls == [FunctionCall(function: "f", parameters: ["screen": "Confirmation"])])
        #expect(trial.push(#"{"type":"data_layer","event":"openScreen","screenName":"Home"}"#).tags == [])
        #expect(trial.push(#"{"type":"data_layer","event":7}"#).tags == [])
    }

    @Test("tm11: pushes before a container is in force update the layer and fire no tags")
    func tm11_pushesBefore() throws {
        let trial = try trial("plan")
        let containers = trial.engine.containers
        trial.engine.use([])
        let early = trial.push(#"{"type":"data_layer","plan":"gold","event":"openScreen"}"#)
        #expect(early.tags.isEmpty)
        trial.engine.use(containers)
        #expect(shown(trial.apply(#"{"name":"n"}"#)) == ["gold"])
    }

    @Test("tm11: a push beyond the layer's bound changes nothing and is counted")
    func tm11_bound() throws {
        let trial = try trial("a", "big", "list")
        _ = trial.push(#"{"type":"data_layer","a":1}"#)
        let big = String(repeating: "x", count: 20_000)
        _ = trial.push("{\"type\":\"data_layer\",\"a\":2,\"big\":\"\(big)\"}")
        #expect(trial.engine.counts.problems[.refusedPush, default: 0] == 1)
        #expect(shown(trial.apply(#"{"name":"n"}"#)) == [1, "none", "none"])
        // Small steps come to the same end.
        for number in 0..<3000 {
            _ = trial.push("{\"type\":\"data_layer\",\"key \(number)\":\"0123456789\"}")
        }
        #expect(trial.engine.counts.problems[.refusedPush, default: 0] > 2000)
        // Another app is not troubled.
        _ = trial.push(#"{"type":"data_layer","a":3}"#, app: "other")
        #expect(shown(trial.apply(#"{"name":"n"}"#, app: "other")).first == 3)
        for number in 0..<1000 { _ = trial.push(#"{"type":"data_layer","a":3}"#, app: "app \(number)") }
        let memory = trial.engine.takeMemory()
        #expect(memory.keys.filter { $0.hasPrefix("layer/") }.count == 512)
    }

    @Test(
        "tm11: an app finds room for its layer beside hundreds of owner ids; the displaced layer is deleted"
    )
    func tm11_boundOfApps() throws {
        let trial = try trial("plan")
        for number in 0..<515 {
            _ = trial.push(#"{"type":"data_layer","plan":"x"}"#, app: "uid-\(131_072 + number)")
        }
        #expect(trial.engine.counts.problems[.refusedPush] == 3)
        let before = trial.engine.takeMemory().compactMapValues { $0 }
        _ = trial.push(#"{"type":"data_layer","plan":"gold"}"#, app: "b")
        #expect(shown(trial.apply(#"{"name":"n"}"#, app: "b")) == ["gold"])
        #expect(trial.engine.counts.problems[.refusedPush] == 4)
        let changes = trial.engine.takeMemory()
        #expect(changes.count == 2 && changes["layer/uid-131072"] == .some(nil))
        // The next process knows whose they are.
        let later = try self.trial("plan")
        later.engine.restore(before)
        _ = later.push(#"{"type":"data_layer","plan":"gold"}"#, app: "b")
        #expect(shown(later.apply(#"{"name":"n"}"#, app: "b")) == ["gold"])
    }

    @Test("tm11: the layer outlives a restart, because it is stored with the events that changed it")
    func tm11_memory() throws {
        let first = try trial("plan", "user.id")
        _ = first.apply(#"{"name":"n","properties":{"plan":"gold","user":{"id":"a\"b"}}}"#)
        let memory = first.engine.takeMemory().compactMapValues { $0 }
        #expect(first.engine.takeMemory().isEmpty)
        let second = try trial("plan", "user.id")
        second.engine.restore(memory)
        #expect(shown(second.apply(#"{"name":"n"}"#)) == ["gold", "a\"b"])
    }

    @Test("tm11: merging agrees with a model, for random pushes")
    func tm11_agreesWithModel() throws {
        let seed = Seeds.one(1)
        var random = SplitMix64(seed: seed)
        let trial = try trial("a", "b", "c")
        var model: [String: JSONValue] = [:]
        for _ in 0..<2000 {
            var members: [JSONValue.Member] = []
            for key in ["a", "b", "c"] where Bool.random(using: &random) {
                members.append(.init(key, value(depth: 3, &random)))
            }
            let text = JSONValue.object([.init("type", "data_layer")] + members).description
            let refused = trial.engine.counts.problems[.refusedPush, default: 0]
            _ = trial.push(text)
            guard trial.engine.counts.problems[.refusedPush, default: 0] == refused else { continue }
            for member in members { model[member.key] = merged(model[member.key], member.value) }
            let expected = ["a", "b", "c"].map { sorted(model[$0] ?? "none") }
            #expect(shown(trial.apply(#"{"name":"n"}"#)) == expected, "\(Seeds.again(seed))")
        }
    }

    private func value(depth: Int, _ random: inout SplitMix64) -> JSONValue {
        switch Int.random(in: 0..<(depth > 0 ? 6 : 4), using: &random) {
        case 0: return .null
        case 1: return .integer(Int.random(in: 0..<10, using: &random))
        case 2: return .string(String(Int.random(in: 0..<1000, using: &random)))
        case 3: return .bool(Bool.random(using: &random))
        case 4:
            return .array(
                (0..<Int.random(in: 0..<4, using: &random)).map { _ in value(depth: depth - 1, &random) })
        default:
            let keys = ["x", "y", "z"].filter { _ in Bool.random(using: &random) }
            return .object(keys.map { .init($0, value(depth: depth - 1, &random)) })
        }
    }

    /// The model: merging as tm11 says it, without regard to size or speed.
    private func merged(_ old: JSONValue?, _ new: JSONValue) -> JSONValue {
        switch (old, new) {
        case (.object(let left)?, .object(let right)):
            var result = left
            for member in right {
                if let place = result.firstIndex(where: { $0.key == member.key }) {
                    result[place] = .init(member.key, merged(result[place].value, member.value))
                } else {
                    result.append(member)
                }
            }
            return .object(result)
        case (.array(let left)?, .array(let right)):
            return .array(
                (0..<max(left.count, right.count)).map { index in
                    index < right.count
                        ? merged(index < left.count ? left[index] : nil, right[index]) : left[index]
                })
        default: return new
        }
    }

    private func sorted(_ value: JSONValue) -> JSONValue {
        switch value {
        case .object(let members):
            .object(members.sorted { $0.key < $1.key }.map { .init($0.key, sorted($0.value)) })
        case .array(let elements): .array(elements.map { sorted($0) })
        default: value
        }
    }
}
