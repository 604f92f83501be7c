import Containers
import EventLoops
import Model
import TestKit
import Testing

/// Containers in force over an engine, for tests: events in, what became of them out.
final class Trial {
    static let now = Timestamp(milliseconds: 1_795_168_800_000)

    let engine: RuleEngine
    var now = Trial.now
    var results: [String: JSONValue] = [:]
    private(set) var asked: [FunctionCall] = []

    /// What became of an event.
    struct Outcome {
        var fate: RuleEngine.Fate
        var line: String
        var event: JSONValue { (try? JSONValue(parsing: line)) ?? .null }
        var tags: [String]
        var priority: Priority
        var destinations: [String]?
        var calls: [FunctionCall]

        subscript(_ names: String...) -> JSONValue? { names.reduce(event) { ($0 ?? .null)[$1] } }
    }

    init(
        _ documents: String..., mayCall: Set<String> = [], facts: AgentFacts = AgentFacts(), seed: UInt64 = 1
    ) throws {
        var random = SplitMix64(seed: seed)
        engine = RuleEngine(random: { random.next() })
        engine.use(
            try documents.map { text in
                try CompiledContainer(
                    try ContainerDocument(reading: Array(Trial.document(text).utf8)), mayCall: mayCall,
                    facts: facts)
            })
    }

    /// A document of these members; `id` and `version` are added where they are missing.
    static func document(_ members: String) -> String {
        members.hasPrefix("{") ? members : "{\"id\":\"GTM-1\",\"version\":3,\(members)}"
    }

    func apply(_ event: String, app: String = "shop", priority: Priority = .normal, largest: Int = .max)
        -> Outcome
    {
        let line = event + "\n"
        while true {
            let (fate, left) = Array(line.utf8).withUnsafeBytes { bytes in
                let fate = engine.apply(
                    to: bytes, app: app, priority: priority, at: now, largest: largest, results: result)
                return (fate, String(decoding: engine.line.dropLast(), as: UTF8.self))
            }
            if case .needs(let calls) = fate, answer(calls) { continue }
            return outcome(fate, left)
        }
    }

    func push(_ line: String, app: String = "shop") -> Outcome {
        while true {
            let fate = Array((line + "\n").utf8).withUnsafeBytes {
                engine.push($0, app: app, at: now, results: result)
            }
            if case .needs(let calls) = fate, answer(calls) { continue }
            return outcome(fate, line)
        }
    }

    private func result(of call: FunctionCall) -> JSONValue? {
        asked.contains(call) ? results[call.function] : nil
    }

    /// Notes that functions were asked; false when nobody knows their answers.
    private func answer(_ calls: [FunctionCall]) -> Bool {
        asked += calls
        return calls.allSatisfy { results[$0.function] != nil }
    }

    private func outcome(_ fate: RuleEngine.Fate, _ line: String) -> Outcome {
        Outcome(
            fate: fate, line: line,
            tags: engine.firings.map { engine.containers[$0.container].document.tags[$0.tag].name },
            priority: engine.priority, destinations: engine.destinations, calls: engine.calls)
    }
}
