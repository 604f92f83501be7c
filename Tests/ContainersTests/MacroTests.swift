import Containers
import Model
import Testing

@Suite("Macros")
struct MacroTests {
    /// What a macro gives for an event.
    private func value(
        _ macro: String, _ event: String = #"{"name":"Video clicked"}"#, app: String = "shop",
        facts: AgentFacts = AgentFacts(), seed: UInt64 = 1
    ) throws -> JSONValue? {
        let trial = try Trial(
            """
            "macros": {"m": \(macro)}, "rules": {"all": {"conditions": []}},
            "tags": [{"name": "show", "type": "set", "path": "shown", "value": {"macro": "m"}, "rules": ["all"]}]
            """, facts: facts, seed: seed)
        return trial.apply(event, app: app)["shown"]
    }

    static let event = #"""
        {"name":"Video clicked","app":"claimed","country":"IT","locale":"it_IT.UTF-8",
        "device":{"app_version":"2.1","model":"X1","locale":"en_US"},
        "properties":{"Category":"Music","n":1.50,"deep":{"a":{"b":[1]}},"a.b":7,"no":null}}
        """#.filter { $0 != "\n" }

    struct Case: Sendable, CustomTestStringConvertible {
        let macro: String
        let gives: String
        var testDescription: String { macro }
        init(_ macro: String, _ gives: String) {
            self.macro = macro
            self.gives = gives
        }
    }

    static let cases: [Case] = [
        Case(#"{"type": "constant", "value": {"a": [1, null]}}"#, #"{"a":[1,null]}"#),
        Case(#"{"type": "event"}"#, #""Video clicked""#),
        Case(#"{"type": "event_property", "path": "Category"}"#, #""Music""#),
        Case(#"{"type": "event_property", "path": "n"}"#, "1.50"),
        Case(#"{"type": "event_property", "path": "deep.a"}"#, #"{"b":[1]}"#),
        Case(#"{"type": "event_property", "path": ["a.b"]}"#, "7"),
        Case(#"{"type": "event_property", "path": "missing"}"#, "null"),
        Case(#"{"type": "event_property", "path": "missing", "default": "d"}"#, #""d""#),
        Case(#"{"type": "event_property", "path": "no", "default": "d"}"#, "null"),
        Case(#"{"type": "event_property", "path": "Category.deeper", "default": 0}"#, "0"),
        Case(#"{"type": "event_member", "path": "device.model"}"#, #""X1""#),
        Case(#"{"type": "app"}"#, #""shop""#), Case(#"{"type": "app_version"}"#, #""2.1""#),
        Case(#"{"type": "platform"}"#, #""linux""#), Case(#"{"type": "country"}"#, #""IT""#),
        Case(#"{"type": "language"}"#, #""it""#), Case(#"{"type": "os_version"}"#, #""12""#),
        Case(#"{"type": "agent_version"}"#, #""1.2.3""#), Case(#"{"type": "host_name"}"#, #""web1""#),
        Case(#"{"type": "device_property", "name": "model"}"#, #""X1""#),
        Case(#"{"type": "device_property", "name": "oem", "default": "?"}"#, #""?""#),
        Case(#"{"type": "container_id"}"#, #""GTM-1""#), Case(#"{"type": "container_version"}"#, "3"),
        Case(#"{"type": "function_call", "function": "nobody"}"#, "null"),
        Case(#"{"type": "value", "key": "nobody"}"#, "null"),
    ]

    @Test("tm13: each macro gives its value; an unknown value is null", arguments: cases)
    func tm13_macros(_ example: Case) throws {
        let facts = AgentFacts(
            hostName: "web1", osVersion: "12", agentVersion: "1.2.3", locale: "de_DE.UTF-8")
        let value = try value(example.macro, Self.event, facts: facts)
        #expect(try value == JSONValue(parsing: example.gives))
    }

    @Test("tm13: the language is the event's, else the device's, else the agent's; C and POSIX are English")
    func tm13_language() throws {
        let agent = AgentFacts(locale: "de_DE.UTF-8")
        #expect(
            try value(#"{"type": "language"}"#, #"{"name":"n","device":{"locale":"fr-FR"}}"#, facts: agent)
                == "fr")
        #expect(try value(#"{"type": "language"}"#, facts: agent) == "de")
        #expect(try value(#"{"type": "language"}"#, facts: AgentFacts(locale: "POSIX")) == "en")
        #expect(try value(#"{"type": "language"}"#, facts: AgentFacts(locale: "C.UTF-8")) == "en")
        // A service of systemd has no locale in its environment: by POSIX that is C.
        #expect(try value(#"{"type": "language"}"#) == "en")
    }

    @Test(
        "the level is read from the logger's member; time and name of a record from what the agent added",
        arguments: [
            (#"{"level":50}"#, "error"), (#"{"PRIORITY":"4"}"#, "warn"),
            (#"{"levelname":"CRITICAL"}"#, "error"),
            (#"{"log":{"level":"alert"}}"#, "error"), (#"{"log.level":"Trace","s":"F"}"#, "trace"),
            (#"{"level":"?","lvl":"wrn"}"#, "warn"),
            (#"{"record":{"level":{"name":"SUCCESS"}}}"#, "info"), (#"{"level":4}"#, nil), (#"{}"#, nil),
        ] as [(String, String?)])
    func levels(line: String, level: String?) throws {
        #expect(try value(#"{"type": "level"}"#, line) == JSONValue(level))
        let record = #"{"a":1,"name":"log","timestamp":"2026-11-20T10:00:00.000Z"}"#
        #expect(try value(#"{"type": "timestamp"}"#, record) == "2026-11-20T10:00:00.000Z")
        #expect(try value(#"{"type": "event"}"#, record) == "log")
    }

    @Test("tm13: random numbers are from 0 to 2147483647, and new for each event")
    func tm13_random() throws {
        let trial = try Trial(
            """
            "rules": {"all": {"conditions": []}},
            "tags": [{"name": "a", "type": "set", "path": "a", "value": {"macro": "random_number"}, "rules": ["all"]},
                     {"name": "b", "type": "set", "path": "b", "value": {"macro": "random_number"}, "rules": ["all"]}]
            """)
        var seen: Set<Int> = []
        for _ in 0..<200 {
            let outcome = trial.apply(#"{"name":"n"}"#)
            let number = try #require(outcome["a"]?.integer)
            #expect((0...2_147_483_647).contains(number))
            // One event, one number.
            #expect(outcome["b"]?.integer == number)
            seen.insert(number)
        }
        #expect(seen.count > 190)
    }

    @Test(
        "tm13: a value collection applies while its rule holds; the first one wins, then the container's values"
    )
    func tm13_valueCollections() throws {
        let trial = try Trial(
            """
            "values": {"greeting": "hello", "bye": "goodbye"},
            "macros": {
              "spanish": {"type": "value_collection", "rules": ["es"], "values": {"greeting": "hola"}},
              "any": {"type": "value_collection", "rules": ["es", "it"], "values": {"greeting": "ciao"}},
              "greeting": {"type": "value", "key": "greeting"}},
            "rules": {"es": {"conditions": [{"macro": "language", "equals": "es"}]},
                      "it": {"conditions": [{"macro": "language", "equals": "it"}]}, "all": {"conditions": []}},
            "tags": [{"name": "g", "type": "set", "path": "g", "value": {"macro": "greeting"}, "rules": ["all"]},
                     {"name": "c", "type": "set", "path": "c", "value": {"macro": "spanish"}, "rules": ["all"]}]
            """)
        func greeting(_ locale: String) -> Trial.Outcome {
            trial.apply("{\"name\":\"n\",\"locale\":\"\(locale)\"}")
        }
        #expect(greeting("es_ES")["g"] == "hola")
        #expect(greeting("es_ES")["c"] == ["greeting": "hola"])
        #expect(greeting("it_IT")["g"] == "ciao")
        #expect(greeting("it_IT")["c"] == .null)
        #expect(greeting("en_US")["g"] == "hello")
    }

    @Test("tm10: values are evaluated without an event; a value that needs one is refused")
    func tm10_valuesWithoutEvent() throws {
        let text = Trial.document(
            """
            "values": {"plain": "30s", "host": {"macro": "host_name"}, "by event": {"macro": "event"},
                       "looked up": {"macro": "lookup"}},
            "macros": {
              "lookup": {"type": "function_call", "function": "lookup", "parameters": {"host": {"macro": "host_name"}}},
              "de": {"type": "value_collection", "rules": ["de"], "values": {"plain": "1m", "only here": 1}},
              "shop": {"type": "value_collection", "rules": ["shop"], "values": {"shop": 1}}},
            "rules": {"de": {"conditions": [{"macro": "language", "equals": "de"}]},
                      "shop": {"conditions": [{"macro": "app", "equals": "shop"}]}}
            """)
        let document = try ContainerDocument(reading: Array(text.utf8))
        func compiled(_ locale: String) throws -> CompiledContainer {
            try CompiledContainer(
                document, mayCall: ["lookup"], facts: AgentFacts(hostName: "web1", locale: locale))
        }
        let english = try compiled("en_GB")
        #expect(english.value(ofKey: "plain") == .value("30s"))
        #expect(try compiled("de_AT").value(ofKey: "plain") == .value("1m"))
        #expect(english.value(ofKey: "host") == .value("web1"))
        #expect(english.value(ofKey: "only here") == .missing)
        #expect(english.value(ofKey: "nothing") == .missing)
        #expect(english.value(ofKey: "by event") == .needsEvent)
        #expect(english.value(ofKey: "shop") == .needsEvent)
        let call = FunctionCall(function: "lookup", parameters: ["host": "web1"])
        #expect(english.value(ofKey: "looked up") == .needs([call]))
        #expect(english.value(ofKey: "looked up") { $0 == call ? 7 : nil } == .value(7))
        #expect(english.keys == ["plain", "host", "by event", "looked up", "only here", "shop"])
    }

    @Test("a macro's default is used without an event, and for a missing member, but not for null")
    func defaults() throws {
        let body =
            """
            "values": {"plan": {"macro": "plan"}, "category": {"macro": "category"}, "bare": {"macro": "bare"}},
            "macros": {"plan": {"type": "data_layer", "path": "plan", "default": "free"},
                       "category": {"type": "event_property", "path": "Category", "default": "none"},
                       "bare": {"type": "event_property", "path": "Category"}},
            "rules": {"all": {"conditions": []}},
            "tags": [{"name": "c", "type": "set", "path": "c", "value": {"macro": "category"}, "rules": ["all"]},
                     {"name": "p", "type": "set", "path": "p", "value": {"macro": "plan"}, "rules": ["all"]}]
            """
        let container = try CompiledContainer(ContainerDocument(reading: Array(Trial.document(body).utf8)))
        #expect(container.value(ofKey: "plan") == .value("free"))
        #expect(container.value(ofKey: "category") == .value("none"))
        #expect(container.value(ofKey: "bare") == .needsEvent)
        let trial = try Trial(body)
        for (properties, category) in [
            ("{}", "none"), (#"{"Category":null}"#, .null), (#"{"Category":""}"#, ""),
        ]
            as [(String, JSONValue)]
        {
            let outcome = trial.apply(#"{"name":"n","properties":\#(properties)}"#)
            #expect(outcome["c"] == category && outcome["p"] == "free")
        }
    }

    @Test(
        "tm14: a function is called first, with parameters from macros, and its result is used by other macros"
    )
    func tm14_functionMacros() throws {
        let document = """
            "macros": {
              "user": {"type": "event_property", "path": "user"},
              "plan": {"type": "function_call", "function": "plan", "parameters": {"user": {"macro": "user"}, "v": 2}},
              "team": {"type": "function_call", "function": "team", "parameters": {"plan": {"macro": "plan"}}}},
            "rules": {"gold": {"conditions": [{"macro": "event", "equals": "Bought"}, {"macro": "plan", "equals": "gold"}]}},
            "tags": [{"name": "limit", "type": "throttle", "events": 1, "seconds": 60, "rules": ["gold"]},
                     {"name": "team", "type": "set", "path": "team", "value": {"macro": "team"}, "rules": ["gold"]}]
            """
        let trial = try Trial(document, mayCall: ["plan", "team"])
        let event = #"{"name":"Bought","properties":{"user":"u1"}}"#
        let plan = FunctionCall(function: "plan", parameters: ["user": "u1", "v": 2])
        #expect(trial.apply(event).fate == .needs([plan]))
        #expect(plan.request.description == #"{"function":"plan","parameters":{"user":"u1","v":2}}"#)
        trial.results = ["plan": "gold", "team": ["id": 9]]
        let outcome = trial.apply(event)
        // Asked twice on the way, throttled once.
        #expect(outcome.fate == .kept)
        #expect(outcome["team"] == ["id": 9])
        #expect(trial.asked.contains(FunctionCall(function: "team", parameters: ["plan": "gold"])))
        #expect(trial.apply(event).fate == .discarded(reason: "GTM-1/gold"))
        #expect(trial.apply(#"{"name":"Other"}"#).fate == .kept)
    }

    @Test("tm14: a function that the configuration does not allow the container gives null and is not called")
    func tm14_deniedFunctions() throws {
        let trial = try Trial(
            """
            "macros": {"f": {"type": "function_call", "function": "f"}}, "rules": {"null": {"conditions": [{"macro": "f", "equals": null}]}},
            "tags": [{"name": "call", "type": "function", "function": "g", "rules": ["null"]}]
            """, mayCall: ["other"])
        let outcome = trial.apply(#"{"name":"n"}"#)
        #expect(outcome.fate == .kept)
        #expect(outcome.tags == ["call"])
        #expect(outcome.calls.isEmpty)
        #expect(trial.engine.containers[0].deniedFunctions == ["f", "g"])
    }
}
