package import Containers
internal import EventLoops
internal import Model
internal import Schemas

/// The containers' part of reading: the rule engine, and the answers of functions that events wait for. All
/// intakes share one, because throttles and data layers belong to the agent as a whole.
///
/// An event that needs an answer is not kept here. Its file stops, and offers the line again when the answer
/// is there; the answer is then in `answers`.
///
/// Unchecked, because it belongs to the reader's loop, like everything that uses it.
package final class IntakeRules: @unchecked Sendable {
    let engine: RuleEngine
    /// Runs functions; nil if the agent has no caller for them.
    let functions: (any FunctionCaller)?
    /// Apps that answer calls of tags; nil if none can.
    private let apps: (any AppAudience)?
    /// Containers that are in force.
    private let inForce: ContainersInForce
    /// Where the counts are published.
    private let figures: IntakeFigures?
    /// Number of the last publication that is in force here.
    private var seen = 0
    /// Containers without which events must not be read.
    private var awaited: [AwaitedContainer] = []
    /// The schemas of the documents in force, in the order of the configuration.
    private var layers: [SchemaLayer] = []
    /// The last set that was made of a directory's schemas and `layers`. All intakes ask for the same.
    private var combined: (local: SchemaSet, publication: Int, set: SchemaSet)?
    /// Called at the next publication.
    private var documentWaiters: [() -> Void] = []

    /// Answers for events that will be offered again; removed when an event has used them.
    private var answers: [FunctionCall: JSONValue] = [:]
    /// Answers that the event in hand has used. If it needs another one, they stay for its next try.
    @exclusivity(unchecked) private var used: [FunctionCall] = []
    /// Gives the engine answers; made once, because each event needs it.
    private lazy var answer: (FunctionCall) -> JSONValue? = { [unowned self] in result(of: $0) }
    /// Questions without an answer so far.
    private var asked: Set<FunctionCall> = []
    /// Number of open questions by holder, which bounds each app's share.
    private var holdings = Holdings()
    /// The question that the last event on `needs` waits for.
    private var needed: Need?
    /// Files that wait, in order of arrival.
    private var waiters: [(need: Need, body: () -> Void)] = []

    /// What an event waits for: the answer to a question, or a free place to ask it.
    private struct Need {
        let call: FunctionCall
        let app: String
        var isAsked: Bool
    }

    /// Most open questions, half of them of one app. Files that need more wait for a place.
    private static let mostAsked = 128
    /// Most answers that are kept. Some events never come again, because their file is gone or was truncated;
    /// their answers would stay for ever.
    private static let mostAnswers = 1024

    /// Rules of what is in force.
    ///
    /// - Parameters:
    ///   - inForce: where containers are published; taken over between two events.
    ///   - functions: runs functions. Without it all give null, and calls of tags are not made.
    ///   - apps: apps that listen for calls of tags.
    ///   - figures: where the counts of all intakes together are published.
    package init(
        _ inForce: ContainersInForce, functions: (any FunctionCaller)?, apps: (any AppAudience)? = nil,
        figures: IntakeFigures? = nil
    ) {
        self.apps = apps
        self.inForce = inForce
        self.figures = figures
        self.functions = functions
        let random = KernelRandom()
        engine = RuleEngine(random: { random.next() })
    }

    /// Takes over what was published since the last call; call it between two events.
    func refresh() {
        guard let news = inForce.news(since: &seen) else { return }
        engine.use(news.containers)
        awaited = news.awaited
        layers = news.containers.compactMap(\.schemas)
    }

    /// The schemas in force, as of the last `refresh`: those of the directory, and those of the documents for
    /// events that the directory does not name.
    func schemas(behind local: SchemaSet) -> SchemaSet {
        if let combined, combined.local == local, combined.publication == seen { return combined.set }
        let set = local.followed(by: layers)
        combined = (local, seen, set)
        return set
    }

    /// The container without which events of an app must not be read, as of the last `refresh`; nil for none.
    func awaited(for app: String) -> AwaitedContainer? {
        awaited.isEmpty ? nil : awaited.first { $0.concerns(app) }
    }

    /// Whether the containers in force, as of the last `refresh`, are all that may hide something of an app.
    func knowsWhatIsHidden(of app: String) -> Bool { !awaited.contains { $0.mayHide && $0.concerns(app) } }

    /// Calls `body` at the next publication, never before this returns.
    func whenPublished(_ body: @escaping () -> Void) { documentWaiters.append(body) }

    /// Tells the waiters, on the loop, that something was published.
    package func documentsChanged() {
        let woken = documentWaiters
        documentWaiters = []
        for body in woken { body() }
    }

    /// Whether no container is in force, as of the last `refresh`: then events pass unchanged.
    var isIdle: Bool { engine.isIdle }

    /// Whether an event may have to wait for a function's answer.
    var asksFunctions: Bool { functions?.hasFunctions == true }

    /// Publishes the engine's counts.
    func publish() {
        for _ in 0..<(apps?.takeLost() ?? 0) { engine.note(.unheardCall) }
        figures?.update { $0.rules = engine.counts }
    }

    /// Gives calls of durable events to the apps that listen for them.
    func offer(_ calls: [(call: AppCall, app: String)]) {
        guard !calls.isEmpty else { return }
        for (call, app) in calls where apps?.offer(call, of: app) != true { engine.note(.unheardCall) }
        publish()
    }

    /// Applies the rules to an event. On `needs` a function has been asked, and the event must be offered
    /// again `whenAnswered`.
    ///
    /// - Parameters:
    ///   - isOld: whether the event is of another time: it changes no data layer.
    ///   - isNow: whether the event cannot be offered again: functions that were not asked before give null.
    func apply(
        to line: UnsafeRawBufferPointer, app: String, file: String, priority: Priority, at now: Timestamp,
        largest: Int, isOld: Bool = false, isNow: Bool = false
    ) -> RuleEngine.Fate {
        finish(
            engine.apply(
                to: line, app: app, file: file, priority: priority, at: now, largest: largest,
                isPushed: !isOld,
                results: isNow ? { [answer] in answer($0) ?? .null } : answer), app)
    }

    /// Takes a push to the data layer; otherwise as `apply`.
    func push(_ line: UnsafeRawBufferPointer, app: String, at now: Timestamp) -> RuleEngine.Fate {
        finish(engine.push(line, app: app, at: now) { self.result(of: $0) }, app)
    }

    /// The answer to a call if there is one; nil if the function must be asked.
    private func result(of call: FunctionCall) -> JSONValue? {
        guard let functions else { return .null }
        if let answer = answers[call] {
            used.append(call)
            return answer
        }
        return functions.cachedResult(of: call)
    }

    /// Asks what the event needs; otherwise removes the answers that it has used.
    private func finish(_ fate: RuleEngine.Fate, _ app: String) -> RuleEngine.Fate {
        if case .needs(let calls) = fate {
            used = []
            // One question at a time: the event names the others when it is offered again.
            needed = calls.first.map {
                Need(call: $0, app: app, isAsked: asked.contains($0) || ask($0, for: app))
            }
            return fate
        }
        if !used.isEmpty {
            for call in used { answers[call] = nil }
            used = []
        }
        return fate
    }

    /// Asks a question; false if its app has no place for another one.
    private func ask(_ call: FunctionCall, for app: String) -> Bool {
        let holder = Holdings.holder(of: app)
        guard holdings.takeFair(for: holder, of: IntakeRules.mostAsked) else { return false }
        asked.insert(call)
        functions?.call(call, for: app) { [self] answer in
            asked.remove(call)
            holdings.release(holder)
            if answers.count >= IntakeRules.mostAnswers {
                answers = [:]
            }
            answers[call] = answer
            wake(after: call)
        }
        return true
    }

    /// Wakes the files that wait for this answer, and for each free place a file that waits for one. Each
    /// offers its lines again.
    private func wake(after answered: FunctionCall) {
        // If no question is open, no answer will wake the others: all of them continue.
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

    /// Calls `body` later, when the last `needs` was answered or there is a place to ask: its event is then
    /// to be offered again.
    func whenAnswered(_ body: @escaping () -> Void) {
        guard let needed else { return }
        waiters.append((needed, body))
        count(needed, 1)
    }

    /// Counts a file that waits, for status.
    private func count(_ need: Need, _ change: Int) {
        figures?.update {
            let files = $0.waiting[need.call.function]?[need.app] ?? 0
            $0.waiting[need.call.function, default: [:]][need.app] = files + change > 0 ? files + change : nil
        }
    }
}
