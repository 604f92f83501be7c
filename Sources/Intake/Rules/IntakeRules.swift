public import Containers
internal import EventLoops
internal import Model

/// The containers' part of reading: the engine, and the functions' answers that events wait for. All intakes share one,
/// because throttles and data layers belong to the agent as a whole.
///
/// Unchecked, because it belongs to the reader's loop, like everything that uses it.
public final class IntakeRules: @unchecked Sendable {
    let engine: RuleEngine
    let functions: (any FunctionCaller)?
    private let inForce: ContainersInForce
    private let figures: IntakeFigures?
    private var seen = 0
    private var awaited: [AwaitedContainer] = []
    private var documentWaiters: [() -> Void] = []

    /// Answers that came for events that are to be offered again; a used one goes.
    private var answers: [FunctionCall: JSONValue] = [:]
    private var used: [FunctionCall] = []
    private var asked: Set<FunctionCall> = []
    /// The question that the last event waits for.
    private var needed: FunctionCall?
    private var waiters: [(question: FunctionCall?, body: () -> Void)] = []

    /// Questions that are open at once; files that want more wait for a place.
    private static let mostAsked = 64
    /// Answers that are kept for events that never came again (their file is gone, or was cut).
    private static let mostAnswers = 1024

    /// The rules of what is in force.
    ///
    /// - Parameters:
    ///   - inForce: what is published, and taken up between two events.
    ///   - functions: runs functions; without one they all give null, and tags' calls are left alone.
    ///   - figures: where its counts are published: those of all intakes together.
    public init(_ inForce: ContainersInForce, functions: (any FunctionCaller)?, figures: IntakeFigures? = nil) {
        self.inForce = inForce
        self.figures = figures
        self.functions = functions
        let random = KernelRandom()
        engine = RuleEngine(random: { random.next() })
    }

    /// Takes up what was published since; between two events.
    func refresh() {
        guard let news = inForce.news(since: &seen) else { return }
        engine.use(news.containers)
        awaited = news.awaited
    }

    /// The container without which events of that app are not to be read, as of the last `refresh`; nil for none.
    func awaited(for app: String) -> AwaitedContainer? {
        awaited.isEmpty ? nil : awaited.first { $0.apps.isEmpty || $0.apps.contains(app) }
    }

    /// Calls `body` when something else has come into force. Never before this returns.
    func whenPublished(_ body: @escaping () -> Void) { documentWaiters.append(body) }

    /// To be called on the loop when something was published.
    public func documentsChanged() {
        let woken = documentWaiters
        documentWaiters = []
        for body in woken { body() }
    }

    /// Whether containers are in force, as of the last `refresh`.
    var isIdle: Bool { engine.isIdle }

    func publish() { figures?.update { $0.rules = engine.counts } }

    // MARK: Events

    /// Applies what is in force; on `needs` a function has been asked, and the event is to be offered again `whenAnswered`.
    ///
    /// - Parameters:
    ///   - isOld: whether it is no news: it changes no data layer.
    ///   - isNow: whether it cannot be offered again: functions that were not asked before give null.
    func apply(
        to line: UnsafeRawBufferPointer, app: String, priority: Priority, at now: Timestamp, largest: Int,
        isOld: Bool = false, isNow: Bool = false
    ) -> RuleEngine.Fate {
        finish(
            engine.apply(
                to: line, app: app, priority: priority, at: now, largest: largest, isPushed: !isOld
            ) { self.result(of: $0) ?? (isNow ? .null : nil) })
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
            // What else it needs it will say when this is answered.
            needed = calls.first
            if let call = needed, !asked.contains(call) {
                if asked.count < IntakeRules.mostAsked { ask(call) } else { needed = nil }
            }
            return fate
        }
        if !used.isEmpty {
            for call in used { answers[call] = nil }
            used = []
        }
        return fate
    }

    private func ask(_ call: FunctionCall) {
        asked.insert(call)
        functions?.call(call) { [self] answer in
            asked.remove(call)
            if answers.count >= IntakeRules.mostAnswers { answers = [:] }
            answers[call] = answer
            wake(after: call)
        }
    }

    /// Wakes the sources that wait for the answer, and for each free place one that waits for a place: each reads its file again.
    private func wake(after answered: FunctionCall) {
        var places = asked.isEmpty ? Int.max : IntakeRules.mostAsked - asked.count
        var woken: [() -> Void] = []
        waiters.removeAll { question, body in
            guard question == answered || question == nil && places > 0 else { return false }
            if question == nil { places -= 1 }
            woken.append(body)
            return true
        }
        for body in woken { body() }
    }

    /// Calls `body` when the event that the last `needs` was about is worth offering again: its question was answered, or
    /// there is room for one. Never before this returns.
    func whenAnswered(_ body: @escaping () -> Void) { waiters.append((needed, body)) }
}
