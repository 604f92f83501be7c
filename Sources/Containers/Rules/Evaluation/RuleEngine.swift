public import EventLoops
public import Events
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
    public var counts: RuleCounts { tally.total() }
    /// What is counted. Exclusive access is not checked at run time, here and for other fields that each
    /// event changes: no code that does it can reach the engine meanwhile.
    @exclusivity(unchecked) private var tally = RuleTally()
    /// What the tags have decided about the event.
    @exclusivity(unchecked) var decisions = EventDecisions()

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
    @exclusivity(unchecked) var evaluations: [Evaluation] = []
    /// The throttles of the containers.
    var throttles = ContainerThrottles()
    /// The apps' data layers.
    var layers = DataLayers()
    /// The members of events that become part of data layers.
    @exclusivity(unchecked) var pushed = PushedMembers([])
    /// What the containers hide in events of each app.
    private var hidden = HiddenMembersByApp()
    /// Edits the present event.
    @exclusivity(unchecked) var editor = EventEditor()
    /// The event as it came to the present container: the caller's bytes, or `changed`.
    @exclusivity(unchecked) var arrived = UnsafeRawBufferPointer(start: nil, count: 0)
    /// The event, after a tag has changed it.
    @exclusivity(unchecked) private var changed = LineBuffer(capacity: 1024)
    /// Gives random numbers.
    let random: () -> UInt64
    /// What is known of the containers as a whole.
    @exclusivity(unchecked) private var containersInForce = (isNone: true, asksLater: false)

    /// Whether no container is in force: events then pass unchanged.
    public var isIdle: Bool { containersInForce.isNone }
    /// The event's priority, after `apply`.
    public var priority: Priority { decisions.priority }
    /// The destinations that containers chose, sorted; nil leaves the choice to the configuration. After
    /// `apply`.
    public var destinations: [String]? { decisions.destinations }
    /// Whether tags asked for `calls` or `offers`. After `apply`.
    public var hasCalls: Bool { decisions.hasCalls }
    /// Calls of functions that tags asked for, to be made when the event is durable. After `apply`.
    public var calls: [FunctionCall] { decisions.calls }
    /// Calls that tags gave to the event's app, to be offered when the event is durable. After `apply`.
    public var offers: [AppCall] { decisions.offers }

    /// An engine without containers.
    ///
    /// - Parameter random: gives random numbers.
    public init(random: @escaping () -> UInt64) { self.random = random }

    // MARK: Containers

    /// Puts containers in force, in order. Throttles continue if a container of the same id has as many
    /// throttling tags.
    public func use(_ containers: [CompiledContainer]) {
        throttles.save()
        begin(containers)
    }

    /// Takes containers up.
    private func begin(_ containers: [CompiledContainer]) {
        evaluations = containers.map { Evaluation($0) }
        tally.begin(containers)
        throttles.use(containers)
        pushed = PushedMembers(Set(containers.flatMap(\.layerNames)))
        hidden.use(containers)
        for app in layers.layers.keys { layers.hide(hidden(of: app), of: app) }
        // If a later container calls functions, the event is evaluated again once their results are there.
        containersInForce = (containers.isEmpty, containers.dropFirst().contains(where: \.asksFunctions))
    }

    /// What is hidden in events of an app.
    func hidden(of app: String) -> HiddenMembers { hidden.members(of: app) }

    /// The containers in force.
    package var containers: [CompiledContainer] { evaluations.map(\.container) }

    // MARK: Hiding

    /// What tags hide in an app's events: which texts must not be sent, whether patterns search texts, and
    /// from which members the agent copies nothing.
    public func hiding(of app: String) -> (withheld: WithheldTexts, isSearched: Bool, paths: HiddenPaths?) {
        let members = hidden(of: app)
        let paths: HiddenPaths = (hidden.changes, { names in members.uncopied.contains { $0.covers(names) } })
        return (members.withheldTexts, !members.scrubbers.isEmpty, members.isEmpty ? nil : paths)
    }

    /// Which parts of the agent's memory of an app must not be stored, because tags hide them.
    public func hiddenMemory(of app: String) -> (sessions: Bool, names: Bool) { hidden(of: app).memory }

    /// What may be kept of a line that is not an event: the line itself if nothing is redacted or hashed;
    /// otherwise JSON without its hidden members; of other lines only the shape.
    ///
    /// What was changed never has the length of the line, so that it cannot be mistaken for the whole line
    /// and read again.
    ///
    /// - Parameter isText: whether the line contains text in which members cannot be found, although it may
    ///   be JSON.
    public func presentable(_ content: [UInt8], of app: String, isText: Bool = false) -> [UInt8] {
        let hidden = hidden(of: app)
        guard !hidden.isEmpty, !content.isEmpty else { return content }
        guard !isText else { return RuleEngine.shape(of: content) }
        var text = content[...]
        while let last = text.last, last <= 0x20 { text.removeLast() }
        while let first = text.first, first <= 0x20 { text.removeFirst() }
        guard text.first == UInt8(ascii: "{"), (try? JSONValue(parsing: Array(text))) != nil,
            let kept = text.withUnsafeBytes({ hideAll(hidden, in: $0) })
        else { return RuleEngine.shape(of: content) }
        guard !kept.elementsEqual(text) else { return content }
        return kept.count == content.count ? kept + [UInt8(ascii: " ")] : kept
    }

    /// The shape of a line: letters, digits and bytes beyond ASCII become `x`. The last byte is dropped, so
    /// that the result cannot be mistaken for the line.
    public static func shape(of content: [UInt8]) -> [UInt8] {
        content.dropLast().map { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x80...: UInt8(ascii: "x")
            default: byte
            }
        }
    }

    // MARK: Memory

    /// What has changed since the last call and must be durable with the events, for `Commit.memory`.
    public func takeMemory() -> [String: [UInt8]?] {
        var memory = layers.takeMemory()
        for (id, bytes) in throttles.takeChanged() { memory["throttle/\(id)"] = bytes }
        return memory
    }

    /// Restores what an earlier process stored. Entries of other parts of the agent are ignored.
    public func restore(_ memory: [String: [UInt8]]) {
        layers.restore(memory)
        for (key, bytes) in memory where key.hasPrefix("throttle/") {
            throttles.restore(bytes, of: String(key.dropFirst(9)))
        }
        begin(containers)
    }

    /// Gives up data layers whose JSON text is found. Later pushes begin new ones.
    public func forgetLayers(_ isFound: ([UInt8]) -> Bool) { layers.forget(isFound) }

    // MARK: Events

    /// Whether any container in force may act on an event with this name. If not, `apply` is not called.
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
        decisions.begin(priority)
        reset()
        arrived = line
        if isPushed, !pushed.isEmpty {
            push(line, app)
        }
        // A copy makes the next change of a throttle expensive, so it is made only if a later container may
        // ask for the event again.
        let before = containersInForce.asksLater ? (throttles: throttles, counts: counts) : nil
        let limit = max(largest, line.count)
        for (index, evaluation) in evaluations.enumerated() where evaluation.container.concerns(app) {
            let fate = apply(evaluation, index, app, file, now, limit, results)
            if case .kept = fate { continue }
            if case .needs = fate, let before {
                throttles = before.throttles
                tally.restore(before.counts)
            }
            return fate
        }
        // The size is checked last, so that all containers have acted on what is kept.
        guard arrived.count > limit else { return .kept }
        note(.tooLarge)
        // The line is no longer an event, so what tags hide is hidden regardless of their rules.
        let hidden = hidden(of: app)
        if !hidden.isEmpty { (hideAll(hidden, in: arrived) ?? []).withUnsafeBytes { replaceEvent($0) } }
        return .tooLarge
    }

    /// Explains for each tag of the first container why it fires or does not. No tag acts, but the event
    /// becomes part of the data layer, as it would in `apply`.
    public func explain(
        _ line: UnsafeRawBufferPointer, app: String, file: String = "",
        results: @escaping (FunctionCall) -> JSONValue? = { _ in nil }
    ) -> [TagExplanation] {
        guard let evaluation = evaluations.first else { return [] }
        push(line, app)
        guard let base = line.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return [] }
        evaluation.begin(
            Evaluation.Subject(base: base, count: line.count), app: app, file: file,
            layer: layers.layers[app], results: results, random: random)
        return TagExplainer(evaluation: evaluation).explanations()
    }

    /// Makes bytes the present event.
    private func replaceEvent(_ bytes: UnsafeRawBufferPointer) {
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
        _ evaluation: Evaluation, _ index: Int, _ app: String, _ file: String, _ now: Timestamp, _ limit: Int,
        _ results: @escaping (FunctionCall) -> JSONValue?
    ) -> Fate {
        let container = evaluation.container
        guard let base = arrived.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return .kept }
        let subject = Evaluation.Subject(base: base, count: arrived.count)
        evaluation.begin(
            subject, app: app, file: file, layer: layer(of: app, for: container), results: results,
            random: random)
        // Only tags that may fire for the event's name, as it is now.
        let fired = fire(
            evaluation,
            container.index.tagsForAnyName ?? evaluation.withEventName { container.index.tags(for: $0) })
        if evaluation.missed.function
            || container.hasDeniedTags && fired.contains(where: { container.tags[$0.tag].action.isDenied })
        {
            note(.deniedCall)
        }
        guard !fired.isEmpty || !evaluation.neededCalls.isEmpty else { return .kept }
        // Ask for everything that the tags need before any of them acts: an event must not be changed by some
        // of them only.
        if container.needsValues {
            for (tag, _) in fired { workOut(container.tags[tag].action, evaluation) }
        }
        guard evaluation.neededCalls.isEmpty else { return .needs(evaluation.neededCalls) }

        var isChanged = false
        let before = firings.count
        defer { countFired(index, since: before) }
        for (tag, rule) in fired {
            firings.append(Firing(container: index, tag: tag))
            let patterns = container.tags[tag].patterns
            // Patterns find nothing in most events; their tag's action need not be copied for this.
            if !isChanged, !patterns.isEmpty, !patterns.mayBe(inLine: arrived) { continue }
            if act(container.tags[tag].action, evaluation, index, now, limit, &isChanged) {
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
        replaceEvent(editor.line())
        return .kept
    }

    /// An app's data layer, if the container reads it.
    func layer(of app: String, for container: CompiledContainer) -> DataLayer? {
        container.layerNames.isEmpty ? nil : layers.layers[app]
    }

    /// Forgets calls and firings of the last event.
    func reset() {
        decisions.forgetCalls()
        if !firings.isEmpty {
            firings.removeAll(keepingCapacity: true)
        }
    }

    /// Counts something that a tag could not do.
    public func note(_ problem: RuleProblem) { tally.note(problem) }

    /// Notes how many pushes were refused so far.
    func note(refusedPushes: Int) { tally.note(refusedPushes: refusedPushes) }

    /// Counts the tags of a container that have fired since there were `before` firings.
    func countFired(_ container: Int, since before: Int) {
        guard firings.count > before else { return }
        tally.count(firings[before...], of: container)
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
                if let rule = CautiousRules(evaluation: evaluation).firstUnlessRuledOut(rules[tag]) {
                    fired.append((tag, rule))
                }
                continue
            }
            if evaluation.container.hasBlindConditions {
                // If a condition cannot be decided, tags that do not hide must not act on a guess.
                if let rule = CautiousRules(evaluation: evaluation).firstKnownToHold(rules[tag]) {
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
