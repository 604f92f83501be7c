internal import Containers
internal import EventLoops
internal import Model

/// The containers' part of the intake: the engine, the functions' answers that events wait for, and the calls that tags ask
/// for.
///
/// It belongs to the reader's loop.
final class IntakeRules {
    let engine: RuleEngine
    private let inForce: ContainersInForce
    private let functions: (any FunctionCaller)?
    private var seen = 0

    /// Answers that came for events that are to be offered again; a used one goes.
    private var answers: [FunctionCall: JSONValue] = [:]
    private var used: [FunctionCall] = []
    private var asked: Set<FunctionCall> = []
    private let waiting = WaitingLine()

    /// Calls that tags asked for and that have not been made to the end: durable with the events that asked.
    private var calls: [Int: FunctionCall] = [:]
    /// Those of them that no commit holds yet.
    private var newCalls: [Int] = []
    private var lastCall = 0
    /// Those of an earlier process, until the first event.
    private var restored: [Int] = []
    private var callsChanged = false

    /// Calls of tags that may wait; reading stands still while there are more.
    private static let mostCalls = 256
    /// Answers that are kept for events that never came again (their file is gone, or was cut).
    private static let mostAnswers = 1024
    private static let memoryName = "calls"

    /// - Parameter functions: who runs functions; without one they all give null, and tags' calls are left alone.
    init(_ inForce: ContainersInForce, functions: (any FunctionCaller)?) {
        self.inForce = inForce
        self.functions = functions
        let random = KernelRandom()
        engine = RuleEngine(random: { random.next() })
    }

    /// Takes up what was published since; between two events.
    func refresh() {
        if !restored.isEmpty {
            start(restored)
            restored = []
        }
        if let containers = inForce.news(since: &seen) { engine.use(containers) }
    }

    // MARK: Events

    /// Applies what is in force; on `needs` the functions have been asked, and the event is to be offered again after
    /// `settled`.
    func apply(
        to line: UnsafeRawBufferPointer, app: String, priority: Priority, at now: Timestamp, largest: Int
    ) -> RuleEngine.Fate {
        finish(
            engine.apply(to: line, app: app, priority: priority, at: now, largest: largest) { self.result(of: $0) })
    }

    /// Applies what is in force to an event that cannot be offered again: functions that were not asked before give null.
    func applyNow(
        to line: UnsafeRawBufferPointer, app: String, priority: Priority, at now: Timestamp, largest: Int
    ) -> RuleEngine.Fate {
        finish(
            engine.apply(to: line, app: app, priority: priority, at: now, largest: largest) { call in
                self.result(of: call) ?? .null
            })
    }

    /// Takes a push into the data layer; as `apply`.
    func push(_ line: UnsafeRawBufferPointer, app: String, at now: Timestamp) -> RuleEngine.Fate {
        finish(engine.push(line, app: app, at: now) { self.result(of: $0) })
    }

    private func result(of call: FunctionCall) -> JSONValue? {
        guard let functions else { return .null }
        if let answer = answers[call] {
            used.append(call)
            return answer
        }
        return functions.cachedResult(of: call)
    }

    private func finish(_ fate: RuleEngine.Fate) -> RuleEngine.Fate {
        if case .needs(let calls) = fate {
            used = []
            for call in calls where !asked.contains(call) { ask(call) }
            return fate
        }
        if !used.isEmpty {
            for call in used { answers[call] = nil }
            used = []
        }
        if !engine.calls.isEmpty, functions != nil {
            for call in engine.calls {
                lastCall += 1
                calls[lastCall] = call
                newCalls.append(lastCall)
            }
            callsChanged = true
        }
        return fate
    }

    private func ask(_ call: FunctionCall) {
        asked.insert(call)
        functions?.call(call) { [self] answer in
            asked.remove(call)
            if answers.count >= IntakeRules.mostAnswers { answers = [:] }
            answers[call] = answer
            waiting.wakeAll()
        }
    }

    /// Returns when the functions that were asked have answered, and not too many calls of tags wait.
    ///
    /// - Throws: `WaitingLine.Ended` when the agent stops first.
    func settled() async throws {
        while !isSettled { try await waiting.wait(unless: { self.isSettled }) }
    }

    private var isSettled: Bool { asked.isEmpty && calls.count < IntakeRules.mostCalls }

    /// Whether so many calls of tags wait that no event more is to be taken.
    var isFull: Bool { calls.count >= IntakeRules.mostCalls }

    /// Ends waiting, now and later.
    func end() { waiting.end() }

    // MARK: Calls of tags

    /// The calls that the next commit makes durable: `start` them when it is.
    func takeNewCalls() -> [Int] {
        defer { newCalls = [] }
        return newCalls
    }

    /// Makes calls whose events are durable: at least once, because only the commit after the answer forgets them.
    func start(_ numbers: [Int]) {
        for number in numbers {
            guard let call = calls[number] else { continue }
            functions?.call(call) { [self] _ in
                calls[number] = nil
                callsChanged = true
                waiting.wakeAll()
            }
        }
    }

    // MARK: Memory

    /// What must be durable with the events that were taken.
    func takeMemory() -> [String: [UInt8]?] {
        var memory = engine.takeMemory()
        if callsChanged {
            callsChanged = false
            let waiting = calls.sorted { $0.key < $1.key }.map(\.value.request)
            memory.updateValue(
                waiting.isEmpty ? nil : Array(JSONValue.array(waiting).description.utf8), forKey: IntakeRules.memoryName
            )
        }
        return memory
    }

    /// Takes up what an earlier process remembered, and, with the first event, makes the calls that it did not make to the
    /// end.
    func restore(_ memory: [String: [UInt8]]) {
        engine.restore(memory)
        guard functions != nil, let bytes = memory[IntakeRules.memoryName],
            case .array(let requests)? = try? JSONValue(parsing: bytes)
        else { return }
        for request in requests {
            guard let name = request["function"]?.string, let parameters = request["parameters"] else { continue }
            lastCall += 1
            calls[lastCall] = FunctionCall(function: name, parameters: parameters)
        }
        restored = calls.keys.sorted()
    }
}
