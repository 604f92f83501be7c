public import EventLoops
internal import Events
public import Model

/// Applies the containers in force to events, one event at a time.
///
/// It is pure: time and random numbers are passed in, functions run elsewhere, and it never waits. It belongs
/// to one thread.
///
/// An event first becomes part of its app's data layer. Then each container in turn, in the order of the
/// configuration, decides which of its tags fire, by the event as it came to this container, and these tags
/// act in order. The next container sees the result. So within a container the order of tags decides what is
/// done, but not whether.
public final class RuleEngine {
    /// What becomes of an event.
    public enum Fate: Equatable {
        /// The event is kept, in the form that `RuleEngine.line` has.
        case kept
        /// A tag discarded it; the reason (`GTM-1234/rule`) is in the ledger and in metrics.
        case discarded(reason: String)
        /// Tags made it larger than allowed, so it must not be sent. `RuleEngine.line` is what may be kept of
        /// it, with everything hidden that tags hide; empty if even that is too large.
        case tooLarge
        /// Results of functions are missing. Nothing has happened; ask again with the results.
        case needs([FunctionCall])
    }

    /// What tags and rules have done since the engine was made, for metrics and status.
    public internal(set) var counts = RuleCounts()
    /// The event's priority, after `apply`.
    public internal(set) var priority = Priority.normal
    /// The destinations that containers chose, sorted; nil leaves the choice to the configuration. After
    /// `apply`.
    public internal(set) var destinations: [String]?
    /// Calls of functions that tags asked for, to be made when the event is durable. After `apply`.
    public internal(set) var calls: [FunctionCall] = []

    /// The tags that fired for the event, in order, with one that discarded it. After `apply` and `push`.
    @exclusivity(unchecked) public internal(set) var firings: [Firing] = []

    /// A tag that fired.
    public struct Firing: Sendable, Hashable {
        /// Index of the container.
        public let container: Int
        /// Index of the tag in the document.
        public let tag: Int
    }

    /// The containers, with their evaluations for the present event.
    var evaluations: [Evaluation] = []
    /// The throttles of each container.
    var throttles: [Throttles] = []
    /// Throttles of containers that were in force before, or of an earlier process, by id.
    private var savedThrottles: [String: [UInt8]] = [:]
    /// The apps' data layers.
    var layers = DataLayers()
    /// The members of events that become part of data layers.
    var pushed = PushedMembers([])
    /// Hidden members, by the set of containers that concern an app; computed when first needed.
    private var hidden: [[Bool]: HiddenMembers] = [:]
    /// Edits the present event.
    @exclusivity(unchecked) var editor = EventEditor()
    /// The event as it came to the present container: the caller's bytes, or `changed`.
    var arrived = UnsafeRawBufferPointer(start: nil, count: 0)
    /// The event, after a tag has changed it.
    private var changed = LineBuffer(capacity: 1024)
    /// Gives random numbers.
    let random: () -> UInt64
    /// Whether any container hides anything.
    private var hidesAnything = false
    /// Number of changes of the containers in force; a change means that `hiding` may give another result.
    private(set) var changes = 0
    /// Whether a container after the first one needs functions.
    private var asksLater = false

    /// Whether no container is in force: events then pass unchanged.
    public private(set) var isIdle = true

    /// An engine without containers.
    ///
    /// - Parameter random: gives random numbers.
    public init(random: @escaping () -> UInt64) { self.random = random }

    // MARK: Containers

    /// Puts containers in force, in order. Throttles continue if a container of the same id has as many
    /// throttling tags.
    public func use(_ containers: [CompiledContainer]) {
        for (place, evaluation) in evaluations.enumerated() where evaluation.container.throttles > 0 {
            savedThrottles[evaluation.container.document.id] = throttles[place].takeMemory()
        }
        begin(containers)
    }

    /// Takes containers up.
    private func begin(_ containers: [CompiledContainer]) {
        evaluations = containers.map { Evaluation($0) }
        throttles = containers.map { container in
            var made = Throttles(count: container.throttles)
            if let saved = savedThrottles[container.document.id] {
                made.restore(saved)
            }
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

    /// What is hidden in events of an app.
    func hidden(of app: String) -> HiddenMembers {
        guard hidesAnything else { return HiddenMembers([]) }
        let key = evaluations.map { $0.container.concerns(app) }
        if let known = hidden[key] { return known }
        // There are few sets of containers that concern an app. The bound is for many apps with different
        // sets.
        let made = HiddenMembers(containers.filter { $0.concerns(app) })
        if hidden.count >= 256 {
            hidden = [:]
        }
        hidden[key] = made
        return made
    }

    /// The containers in force.
    package var containers: [CompiledContainer] { evaluations.map(\.container) }

    // MARK: Memory

    /// What has changed since the last call and must be durable with the events, for `Commit.memory`.
    public func takeMemory() -> [String: [UInt8]?] {
        var memory = layers.takeMemory()
        for place in throttles.indices where throttles[place].isChanged {
            memory["throttle/\(evaluations[place].container.document.id)"] = throttles[place].takeMemory()
        }
        return memory
    }

    /// Restores what an earlier process stored. Entries of other parts of the agent are ignored.
    public func restore(_ memory: [String: [UInt8]]) {
        layers.restore(memory)
        for (key, bytes) in memory where key.hasPrefix("throttle/") {
            savedThrottles[String(key.dropFirst(9))] = bytes
        }
        begin(containers)
    }

    /// Gives up data layers whose JSON text is found. Later pushes begin new ones.
    public func forgetLayers(_ isFound: ([UInt8]) -> Bool) { layers.forget(isFound) }

    // MARK: Events

    /// Whether an event of that name may concern anything in force. If not, `apply` need not be called.
    @inline(__always)
    public func mayConcern(name: UnsafeBufferPointer<UInt8>) -> Bool {
        if !pushed.isEmpty { return true }
        for evaluation in evaluations where !evaluation.container.index.tags(for: name).isEmpty {
            return true
        }
        return false
    }

    /// Applies the containers to an event.
    ///
    /// - Parameters:
    ///   - line: the event as the events' pass wrote it, with its line feed.
    ///   - app: the app that wrote it.
    ///   - file: the file of its line; empty if there is no file.
    ///   - priority: its priority so far.
    ///   - now: when it was accepted.
    ///   - largest: most bytes of an event after the tags; a larger one is `tooLarge`.
    ///   - isPushed: whether the event becomes part of its app's data layer; old events do not.
    ///   - results: results of functions that are known; nil for others.
    /// - Returns: what becomes of the event. Unless calls are needed, `priority`, `destinations`, `calls` and
    ///   `line` say the rest.
    public func apply(
        to line: UnsafeRawBufferPointer, app: String, file: String = "", priority: Priority,
        at now: Timestamp,
        largest: Int = .max, isPushed: Bool = true,
        results: @escaping (FunctionCall) -> JSONValue? = { _ in nil }
    ) -> Fate {
        self.priority = priority
        if destinations != nil {
            destinations = nil
        }
        reset()
        arrived = line
        if isPushed, !pushed.isEmpty {
            push(line, app)
        }
        // A copy makes the next change of a throttle expensive, so it is made only if a later container may
        // ask for the event again.
        let before = asksLater ? (throttles: throttles, counts: counts) : nil
        let limit = max(largest, line.count)
        for (place, evaluation) in evaluations.enumerated() where evaluation.container.concerns(app) {
            let fate = apply(evaluation, place, app, file, now, limit, results)
            if case .kept = fate { continue }
            if case .needs = fate, let before {
                throttles = before.throttles
                counts = before.counts
            }
            return fate
        }
        // The size is checked last, so that all containers have acted on what is kept.
        guard arrived.count > limit else { return .kept }
        note(.tooLarge)
        // The line is no longer an event, so what tags hide is hidden regardless of their rules.
        let hidden = hidden(of: app)
        if !hidden.isEmpty { (hideAll(hidden, in: arrived) ?? []).withUnsafeBytes { keep($0) } }
        return .tooLarge
    }

    /// Makes bytes the present event.
    private func keep(_ bytes: UnsafeRawBufferPointer) {
        changed.removeAll(keepingCapacity: 1 << 20)
        changed.append(bytes)
        arrived = changed.bytes
    }

    /// The event as the tags left it, with its line feed. If nothing changed it, these are the bytes that
    /// were given to `apply`. Valid as long as those are, until the next `apply`.
    public var line: UnsafeRawBufferPointer { arrived }

    /// The tags that acted on the last event, as `CONTAINER/TAG`, for people.
    public func firedTags(most: Int) -> [String] {
        firings.prefix(most).map { firing in
            let document = evaluations[firing.container].container.document
            return "\(document.id)/\(document.tags[firing.tag].name)"
        }
    }

    /// The rules of the configuration that acted on the last event, in order.
    public var actedRules: [String] {
        var names: [String] = []
        for firing in firings where evaluations[firing.container].container.isOfConfiguration {
            let name = evaluations[firing.container].container.document.tags[firing.tag].rules[0]
            if names.last != name {
                names.append(name)
            }
        }
        return names
    }

    /// Most bytes of an event between two tags: twice the limit, because later tags may shorten it.
    static func ceiling(_ limit: Int) -> Int { limit < 1 << 40 ? limit * 2 + 65_536 : .max }

    /// Applies one container.
    private func apply(
        _ evaluation: Evaluation, _ place: Int, _ app: String, _ file: String, _ now: Timestamp, _ limit: Int,
        _ results: @escaping (FunctionCall) -> JSONValue?
    ) -> Fate {
        let container = evaluation.container
        guard let base = arrived.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return .kept }
        let subject = Evaluation.Subject(base: base, count: arrived.count)
        evaluation.begin(
            subject, app: app, file: file, layer: layer(of: app, for: container), results: results,
            random: random)
        // Only tags that may fire for the event's name, as it is now.
        let fired = fire(evaluation, evaluation.withEventName { container.index.tags(for: $0) })
        if evaluation.hasMissedFunction || fired.contains(where: { container.tags[$0.tag].action.isDenied }) {
            note(.deniedCall)
        }
        guard !fired.isEmpty || !evaluation.neededCalls.isEmpty else { return .kept }
        // Ask for everything that the tags need before any of them acts: an event must not be changed by some
        // of them only.
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
                // Memory is bounded. Tags that would have redacted the event have not acted yet, so nothing
                // of it is kept.
                note(.tooLarge)
                arrived = UnsafeRawBufferPointer(rebasing: arrived[..<0])
                return .tooLarge
            }
        }
        guard isChanged else { return .kept }
        keep(editor.line())
        return .kept
    }

    /// An app's data layer, if the container reads it.
    func layer(of app: String, for container: CompiledContainer) -> DataLayer? {
        container.layerNames.isEmpty ? nil : layers.layers[app]
    }

    /// Forgets calls and firings of the last event.
    func reset() {
        if !calls.isEmpty {
            calls = []
        }
        if !firings.isEmpty {
            firings.removeAll(keepingCapacity: true)
        }
    }

    /// Counts something that a tag could not do.
    public func note(_ problem: RuleProblem) { counts.problems[problem, default: 0] += 1 }

    /// Counts the tags of a container that have fired since there were `before` firings.
    func countFired(_ container: CompiledContainer, since before: Int) {
        guard firings.count > before else { return }
        counts.fired[container.document.id, default: 0] += firings.count - before
        guard container.isOfConfiguration else { return }
        var last = ""
        for firing in firings[before...] {
            // Tags of one rule follow each other.
            let name = container.document.tags[firing.tag].rules[0]
            if name != last {
                counts.byRule[name, default: 0] += 1
            }
            last = name
        }
    }

    /// The tags that fire, each with the rule that makes it fire.
    func fire(
        _ evaluation: Evaluation, _ candidates: UnsafeMutableBufferPointer<Int32>
    ) -> [(tag: Int, rule: Int)] {
        var fired: [(tag: Int, rule: Int)] = []
        let rules = evaluation.container.tagRules
        for candidate in candidates {
            let tag = Int(candidate)
            if evaluation.container.failsClosed, evaluation.container.tags[tag].action.hides {
                if let rule = evaluation.firstUnlessRuledOut(rules[tag]) {
                    fired.append((tag, rule))
                }
                continue
            }
            if evaluation.container.hasBlindConditions {
                // If a condition cannot be decided, tags that do not hide must not act on a guess.
                if let rule = evaluation.firstKnownToHold(rules[tag]) {
                    fired.append((tag, rule))
                }
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
