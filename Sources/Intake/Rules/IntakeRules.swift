package import Containers
internal import EventLoops
internal import Model

/// The containers' part of reading: the engine, and the functions' answers that events wait for. All intakes share one,
/// because throttles and data layers belong to the agent as a whole.
///
/// Unchecked, because it belongs to the reader's loop, like everything that uses it.
package final class IntakeRules: @unchecked Sendable {
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
    private var holdings = Holdings()
    private var needed: Need?
    private var waiters: [(need: Need, body: () -> Void)] = []

    /// A question that an event waits for, or for a place to ask it.
    private struct Need {
        let call: FunctionCall
        let app: String
        var isAsked: Bool
    }

    /// Questions that are open at once, half of them of one app; files that want more wait for a place.
    private static let mostAsked = 128
    /// Answers that are kept for events that never came again (their file is gone, or was cut).
    private static let mostAnswers = 1024

    /// The rules of what is in force.
    ///
    /// - Parameters:
    ///   - inForce: what is published, and taken up between two events.
    ///   - functions: runs functions; without one they all give null, and tags' calls are left alone.
    ///   - figures: where its counts are published: those of all intakes together.
    package init(_ inForce: ContainersInForce, functions: (any FunctionCaller)?, figures: IntakeFigures? = nil) {
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
    package func documentsChanged() {
        let woken = documentWaiters
        documentWaiters = []
        for body in woken { body() }
    }

    /// Whether containers are in force, as of the last `refresh`.
    var isIdle: Bool { engine.isIdle }

    func publish() { figures?.update { $0.rules = engine.counts } }

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
            ) { self.result(of: $0) ?? (isNow ? .null : nil) }, app)
    }

    /// Takes a push into the data layer; as `apply`.
    func push(_ line: UnsafeRawBufferPointer, app: String, at now: Timestamp) -> RuleEngine.Fate {
        finish(engine.push(line, app: app, at: now) { self.result(of: $0) }, app)
    }

    private func result(of call: FunctionCall) -> JSONValue? {
        guard let functions else { return .null }
        if let answer = answers[call] {
            used.append(call)
            return answer
        }
        return functions.cachedResult(of: call)
    }

    private func finish(_ fate: RuleEngine.Fate, _ app: String) -> RuleEngine.Fate {
        if case .needs(let calls) = fate {
            used = []
            // What else it needs it will say when this is answered.
            needed = calls.first.map { Need(call: $0, app: app, isAsked: asked.contains($0) || ask($0, for: app)) }
            return fate
        }
        if !used.isEmpty {
            for call in used { answers[call] = nil }
            used = []
        }
        return fate
    }

    /// Asks a question, unless there is no place for one more of its app.
    private func ask(_ call: FunctionCall, for app: String) -> Bool {
        let holder = Holdings.holder(of: app)
        guard holdings.takeFair(for: holder, of: IntakeRules.mostAsked) else { return false }
        asked.insert(call)
        functions?.call(call, for: app) { [self] answer in
            asked.remove(call)
            holdings.release(holder)
            if answers.count >= IntakeRules.mostAnswers { answers = [:] }
            answers[call] = answer
            wake(after: call)
        }
        return true
    }

    /// Wakes the sources that wait for the answer, and for each free place one that waits for a place: each reads its file again.
    private func wake(after answered: FunctionCall) {
        // When nothing is asked, nothing will wake those that are left.
        let most = asked.isEmpty ? Int.max : IntakeRules.mostAsked
        var places = holdings
        var woken: [() -> Void] = []
        waiters.removeAll { need, body in
            guard
                need.isAsked
                    ? need.call == answered : places.takeFair(for: Holdings.holder(of: need.app), of: most)
            else { return false }
            woken.append(body)
            count(need, -1)
            return true
        }
        for body in woken { body() }
    }

    /// Calls `body`, but later, when the last `needs` was answered, or there is room to ask: offer its event again.
    func whenAnswered(_ body: @escaping () -> Void) {
        guard let needed else { return }
        waiters.append((needed, body))
        count(needed, 1)
    }

    private func count(_ need: Need, _ change: Int) {
        figures?.update {
            let files = $0.waiting[need.call.function]?[need.app] ?? 0
            $0.waiting[need.call.function, default: [:]][need.app] = files + change > 0 ? files + change : nil
        }
    }
}
