public import EventLoops
internal import Events
public import Model

/// Applies the containers in force to events, one event at a time: the pure part of what a container does.
///
/// Values in, values out: time and random numbers are passed in, functions run elsewhere, nothing is waited for. It
/// belongs to one thread.
///
/// An event first becomes part of its app's data layer. Then each container in turn, in configuration order (tm17),
/// decides which of its tags fire, on the event as it came to this container, and these act in order. The next
/// container sees the result.
public final class RuleEngine {
    /// What is to become of an event.
    public enum Fate: Equatable {
        /// It goes on, as `RuleEngine.line` has it.
        case kept
        /// A tag took it out; the reason (`GTM-1234/rule`) is in the ledger and in metrics.
        case discarded(reason: String)
        /// Tags made it larger than it may be: it is not to be sent, and `RuleEngine.line` is what may be kept of it, with
        /// everything redacted and hashed that was to be; empty where even that is too much.
        case tooLarge
        /// Results of functions are missing: nothing has happened; ask again with them.
        case needs([FunctionCall])
    }

    /// What happened so far; each figure grows.
    public internal(set) var counts = RuleCounts()
    /// The event's priority, after `apply`.
    public internal(set) var priority = Priority.normal
    /// Where the event goes by its containers, sorted; nil leaves it to the configuration. After `apply`.
    public internal(set) var destinations: [String]?
    /// Calls of functions that tags ask for, to be made once the event is durable. After `apply`.
    public internal(set) var calls: [FunctionCall] = []

    /// The tags that fired for the event, in their order, discarding ones included. After `apply` and `push`.
    @exclusivity(unchecked) public internal(set) var firings: [Firing] = []

    /// A tag that fired.
    public struct Firing: Sendable, Hashable {
        /// The container, by its place.
        public let container: Int
        /// The tag, by its place in the document.
        public let tag: Int
    }

    /// The containers, with their evaluations for the present event.
    var evaluations: [Evaluation] = []
    var throttles: [Throttles] = []
    private var savedThrottles: [String: [UInt8]] = [:]
    var layers = DataLayers()
    /// What of events becomes part of data layers.
    var pushed = PushedMembers([])
    /// What is redacted or hashed, and so is in no data layer and no quarantine.
    private var hidden: [[Bool]: HiddenMembers] = [:]
    @exclusivity(unchecked) var editor = EventEditor()
    /// The event as it came to the present container: the caller's bytes, or `changed`.
    var arrived = UnsafeRawBufferPointer(start: nil, count: 0)
    /// The event, once a tag has changed it.
    private var changed = LineBuffer(capacity: 1024)
    let random: () -> UInt64
    private var hidesAnything = false
    /// How often other containers came into force.
    private(set) var changes = 0
    /// Whether a container behind the first one calls functions.
    private var asksLater = false

    /// Whether nothing is in force: events then pass by untouched.
    public private(set) var isIdle = true

    /// - Parameter random: where random numbers come from.
    public init(random: @escaping () -> UInt64) { self.random = random }

    // MARK: Containers

    /// Puts containers in force, in their order. What is remembered of tags goes on where the container's id is the same and
    /// as many tags throttle.
    public func use(_ containers: [CompiledContainer]) {
        for (place, evaluation) in evaluations.enumerated() where evaluation.container.throttles > 0 {
            savedThrottles[evaluation.container.document.id] = throttles[place].takeMemory()
        }
        begin(containers)
    }

    private func begin(_ containers: [CompiledContainer]) {
        evaluations = containers.map { Evaluation($0) }
        throttles = containers.map { container in
            var made = Throttles(count: container.throttles)
            if let saved = savedThrottles[container.document.id] { made.restore(saved) }
            return made
        }
        pushed = PushedMembers(Set(containers.flatMap(\.layerNames)))
        hidden = [:]
        changes += 1
        hidesAnything = containers.contains(where: \.hides)
        for app in layers.layers.keys { layers.hide(hidden(of: app), of: app) }
        isIdle = containers.isEmpty
        asksLater = containers.dropFirst().contains(where: \.asksFunctions)
    }

    func hidden(of app: String) -> HiddenMembers {
        guard hidesAnything else { return HiddenMembers([]) }
        let key = evaluations.map { $0.container.concerns(app) }
        if let known = hidden[key] { return known }
        // As many as there are sets of containers that apps have: few.
        let made = HiddenMembers(containers.filter { $0.concerns(app) })
        if hidden.count >= 256 { hidden = [:] }
        hidden[key] = made
        return made
    }

    package var containers: [CompiledContainer] { evaluations.map(\.container) }

    // MARK: Memory

    /// What has changed since the last call and must be durable with the events: for `Commit.memory`.
    public func takeMemory() -> [String: [UInt8]?] {
        var memory = layers.takeMemory()
        for place in throttles.indices where throttles[place].isChanged {
            memory["throttle/\(evaluations[place].container.document.id)"] = throttles[place].takeMemory()
        }
        return memory
    }

    /// Takes up what an earlier process remembered; entries of others are left alone.
    public func restore(_ memory: [String: [UInt8]]) {
        layers.restore(memory)
        for (key, bytes) in memory where key.hasPrefix("throttle/") {
            savedThrottles[String(key.dropFirst(9))] = bytes
        }
        begin(containers)
    }

    // MARK: Events

    /// Whether an event of that name may concern anything in force. If not, it is not to be shown to `apply`.
    @inline(__always)
    public func mayConcern(name: UnsafeBufferPointer<UInt8>) -> Bool {
        if !pushed.isEmpty { return true }
        for evaluation in evaluations where !evaluation.container.index.tags(for: name).isEmpty { return true }
        return false
    }

    /// - Parameters:
    ///   - line: the event as the events' pass wrote it, its line feed included.
    ///   - app: whose it is.
    ///   - priority: its priority so far.
    ///   - now: when it was accepted.
    ///   - largest: an event that tags make larger than this, in bytes, is `tooLarge`, and counted.
    ///   - isPushed: whether it becomes part of its app's data layer; old events do not.
    ///   - results: results of functions that are at hand; nil for others.
    /// - Returns: what happens to it; unless calls are needed, `priority`, `destinations`, `calls` and `line` say the rest.
    public func apply(
        to line: UnsafeRawBufferPointer, app: String, priority: Priority, at now: Timestamp, largest: Int = .max,
        isPushed: Bool = true, results: @escaping (FunctionCall) -> JSONValue? = { _ in nil }
    ) -> Fate {
        self.priority = priority
        if destinations != nil { destinations = nil }
        reset()
        arrived = line
        if isPushed, !pushed.isEmpty { push(line, app) }
        // A copy makes the next change of a throttle dear: only where a later container may ask for the event again.
        let before = asksLater ? (throttles, counts) : nil
        let limit = max(largest, line.count)
        for (place, evaluation) in evaluations.enumerated() where evaluation.container.concerns(app) {
            let fate = apply(evaluation, place, app, now, limit, results)
            if case .kept = fate { continue }
            if case .needs = fate, let before { (throttles, counts) = before }
            return fate
        }
        // Looked at last: what is kept of it is to be as all containers want it.
        guard arrived.count > limit else { return .kept }
        note(.tooLarge)
        // It is not an event any more, so what tags hide is hidden whatever their rules say.
        let hidden = hidden(of: app)
        if !hidden.isEmpty { (hideAll(hidden, in: arrived) ?? []).withUnsafeBytes { keep($0) } }
        return .tooLarge
    }

    private func keep(_ bytes: UnsafeRawBufferPointer) {
        changed.removeAll(keepingCapacity: 1 << 20)
        changed.append(bytes)
        arrived = changed.bytes
    }

    /// The event as the tags left it, its line feed included: where nothing has changed it, the very bytes that were given
    /// to `apply`. Valid as long as those are, until the next `apply`.
    public var line: UnsafeRawBufferPointer { arrived }

    /// The tags that acted on the last event, as `CONTAINER/TAG`, for people.
    public func firedTags(most: Int) -> [String] {
        firings.prefix(most).map { firing in
            let document = evaluations[firing.container].container.document
            return "\(document.id)/\(document.tags[firing.tag].name)"
        }
    }

    /// How large an event may be between two tags.
    static func ceiling(_ limit: Int) -> Int { limit < 1 << 40 ? limit * 2 + 65_536 : .max }

    private func apply(
        _ evaluation: Evaluation, _ place: Int, _ app: String, _ now: Timestamp, _ limit: Int,
        _ results: @escaping (FunctionCall) -> JSONValue?
    ) -> Fate {
        let container = evaluation.container
        guard let base = arrived.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return .kept }
        let subject = Evaluation.Subject(base: base, count: arrived.count)
        evaluation.begin(subject, app: app, layer: layer(of: app, for: container), results: results, random: random)
        // Those that may fire by the event's name, as it is now.
        let fired = fire(evaluation, evaluation.withEventName { container.index.tags(for: $0) })
        if evaluation.hasMissedFunction || fired.contains(where: { container.tags[$0.tag].action.isDenied }) {
            note(.deniedCall)
        }
        guard !fired.isEmpty || !evaluation.neededCalls.isEmpty else { return .kept }
        // All that the tags will ask for, before any of them acts: an event is not to be half done.
        for (tag, _) in fired { workOut(container.tags[tag].action, evaluation) }
        guard evaluation.neededCalls.isEmpty else { return .needs(evaluation.neededCalls) }

        var isChanged = false
        let before = firings.count
        defer { countFired(container, since: before) }
        for (tag, rule) in fired {
            firings.append(Firing(container: place, tag: tag))
            if act(container.tags[tag].action, evaluation, place, now, limit, &isChanged) {
                return .discarded(reason: container.reasons[rule])
            }
            guard !isChanged || editor.fits() else {
                // Bounded in memory; and tags that would have redacted it have not acted: nothing of it is kept.
                note(.tooLarge)
                arrived = UnsafeRawBufferPointer(rebasing: arrived[..<0])
                return .tooLarge
            }
        }
        guard isChanged else { return .kept }
        keep(editor.line())
        return .kept
    }

    /// An app's data layer, where the container may read it.
    func layer(of app: String, for container: CompiledContainer) -> DataLayer? {
        container.layerNames.isEmpty ? nil : layers.layers[app]
    }

    func reset() {
        if !calls.isEmpty { calls = [] }
        if !firings.isEmpty { firings.removeAll(keepingCapacity: true) }
    }

    /// Counts something that a tag could not do.
    public func note(_ problem: RuleProblem) { counts.problems[problem, default: 0] += 1 }

    /// Counts the tags of a container that have fired since there were so many.
    func countFired(_ container: CompiledContainer, since before: Int) {
        if firings.count > before { counts.fired[container.document.id, default: 0] += firings.count - before }
    }

    /// The tags that fire, each with the rule that makes it.
    func fire(
        _ evaluation: Evaluation, _ candidates: UnsafeMutableBufferPointer<Int32>
    ) -> [(tag: Int, rule: Int)] {
        var fired: [(tag: Int, rule: Int)] = []
        let rules = evaluation.container.tagRules
        for candidate in candidates {
            let tag = Int(candidate)
            if evaluation.container.failsClosed, evaluation.container.tags[tag].action.hides {
                if let rule = evaluation.firstUnlessRuledOut(rules[tag]) { fired.append((tag, rule)) }
                continue
            }
            guard let rule = evaluation.firstHolding(rules[tag].rules),
                evaluation.firstHolding(rules[tag].blocking) == nil
            else { continue }
            fired.append((tag, rule))
        }
        return fired
    }
}
