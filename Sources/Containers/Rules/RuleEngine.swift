public import EventLoops
internal import Events
internal import Glibc
public import Model

/// Applies the containers in force to events, one event at a time: the pure part of what a container does.
///
/// Values in, values out: time and chance are given to it, functions are somebody else's, nothing is waited for. It belongs
/// to one thread.
///
/// An event first becomes part of its app's data layer. Then each container in turn, in configuration order (tm17), works
/// out which of its tags fire, on the event as it came to this container, and these act in their order. The next
/// container sees what they left.
public final class RuleEngine {
    /// What is to become of an event.
    public enum Fate: Equatable {
        /// It goes on, as `RuleEngine.line` has it.
        case kept
        /// A tag took it out; the reason (`GTM-1234/rule`) stands in the ledger and in metrics.
        case discarded(reason: String)
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
    public internal(set) var firings: [Firing] = []

    /// A tag that fired.
    public struct Firing: Sendable, Hashable {
        /// The container, by its place.
        public let container: Int
        /// The tag, by its place in the document.
        public let tag: Int
        /// The rule that made it fire, by its place in the document.
        public let rule: Int
    }

    /// The containers, with what is worked out for the present event.
    var evaluations: [Evaluation] = []
    var throttles: [Throttles] = []
    private var savedThrottles: [String: [UInt8]] = [:]
    var layers = DataLayers()
    private var layerNames: [[UInt8]] = []
    var editor = EventEditor()
    /// The event as it came to the present container.
    var arrived = LineBuffer(capacity: 1024)
    let random: () -> UInt64
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
        layerNames = Set(containers.flatMap(\.layerNames)).sorted().map { Array($0.utf8) }
        isIdle = containers.isEmpty
        asksLater = containers.dropFirst().contains { container in
            container.macros.contains { if case .function = $0 { true } else { false } }
        }
    }

    /// The containers in force.
    public var containers: [CompiledContainer] { evaluations.map(\.container) }

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
        if !layerNames.isEmpty { return true }
        for evaluation in evaluations where !evaluation.container.index.tags(for: name).isEmpty { return true }
        return false
    }

    /// Applies what is in force to an event.
    ///
    /// - Parameters:
    ///   - line: the event as the events' pass wrote it, its line feed included.
    ///   - app: whose it is.
    ///   - priority: its priority so far.
    ///   - now: when it was accepted.
    ///   - largest: an event that tags make larger than this, in bytes, goes on as it came, and is counted.
    ///   - results: results of functions that are at hand; nil for others.
    /// - Returns: what becomes of it; unless calls are needed, `priority`, `destinations`, `calls` and `line` say the rest.
    public func apply(
        to line: UnsafeRawBufferPointer, app: String, priority: Priority, at now: Timestamp, largest: Int = .max,
        results: @escaping (FunctionCall) -> JSONValue? = { _ in nil }
    ) -> Fate {
        self.priority = priority
        destinations = nil
        reset()
        arrived.removeAll(keepingCapacity: 1 << 20)
        arrived.append(line)
        push(app)
        // A copy makes the next change of a throttle dear: only where a later container may ask for the event again.
        let before = asksLater ? (throttles, counts) : nil
        for (place, evaluation) in evaluations.enumerated() {
            let fate = apply(evaluation, place, app, now, largest, results)
            if case .needs = fate, let before { (throttles, counts) = before }
            guard fate == .kept else { return fate }
        }
        return .kept
    }

    /// The event as the tags left it, its line feed included; valid until the next `apply`.
    public var line: UnsafeRawBufferPointer { arrived.bytes }

    private func apply(
        _ evaluation: Evaluation, _ place: Int, _ app: String, _ now: Timestamp, _ largest: Int,
        _ results: @escaping (FunctionCall) -> JSONValue?
    ) -> Fate {
        let container = evaluation.container
        guard let base = arrived.bytes.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return .kept }
        let subject = Evaluation.Subject(base: base, count: arrived.count)
        evaluation.begin(subject, app: app, layer: layers.layers[app], results: results, random: random)
        let fired = fire(evaluation, candidates(evaluation))
        guard !fired.isEmpty || !evaluation.neededCalls.isEmpty else { return .kept }
        // All that the tags will ask for, before any of them acts: an event is not to be half done.
        for (tag, _) in fired { workOut(container.tags[tag], evaluation) }
        guard evaluation.neededCalls.isEmpty else { return .needs(evaluation.neededCalls) }

        var isChanged = false
        for (tag, rule) in fired {
            note(place, tag, rule)
            if act(container.tags[tag], evaluation, place, now, &isChanged) {
                return .discarded(reason: container.reasons[rule])
            }
        }
        guard isChanged else { return .kept }
        if editor.line.count > max(largest, arrived.count) {
            counts.tooLarge += 1
        } else {
            arrived.removeAll(keepingCapacity: 1 << 20)
            arrived.append(editor.line.bytes)
        }
        return .kept
    }

    private func reset() {
        if !calls.isEmpty { calls = [] }
        if !firings.isEmpty { firings.removeAll(keepingCapacity: true) }
    }

    private func note(_ place: Int, _ tag: Int, _ rule: Int) {
        firings.append(Firing(container: place, tag: tag, rule: rule))
        counts.fired[evaluations[place].container.document.id, default: 0] += 1
    }

    /// The tags that may fire by the event's name, as it is now.
    private func candidates(_ evaluation: Evaluation) -> UnsafeMutableBufferPointer<Int32> {
        evaluation.withEventName { evaluation.container.index.tags(for: $0) }
    }

    /// The tags that fire, each with the rule that makes it.
    private func fire(
        _ evaluation: Evaluation, _ candidates: some Sequence<Int32>
    ) -> [(tag: Int, rule: Int)] {
        var fired: [(tag: Int, rule: Int)] = []
        for candidate in candidates {
            let tag = Int(candidate)
            guard let rule = evaluation.firstHolding(evaluation.container.tags[tag].rules),
                evaluation.firstHolding(evaluation.container.tags[tag].blockingRules) == nil
            else { continue }
            fired.append((tag, rule))
        }
        return fired
    }

    // MARK: Pushes

    /// Pushes an event's name, properties and other members, as far as something in force reads them (tm11).
    func push(_ app: String) {
        guard !layerNames.isEmpty, let base = arrived.bytes.baseAddress?.assumingMemoryBound(to: UInt8.self) else {
            return
        }
        var found: [RawMember?] = Array(repeating: nil, count: layerNames.count)
        func look(_ member: RawMember) {
            for (place, name) in layerNames.enumerated() where RawJSON.hasName(member, name, in: base) {
                found[place] = member
            }
        }
        var name: RawMember?
        var properties: RawMember?
        var walk = RawWalk(base, from: 0, to: arrived.count)
        while let member = walk.next() {
            if RawJSON.hasName(member, RuleEngine.nameBytes, in: base) {
                name = member
            } else if RawJSON.hasName(member, RuleEngine.propertiesBytes, in: base),
                base[member.value.lowerBound] == UInt8(ascii: "{")
            {
                properties = member
            } else {
                look(member)
            }
        }
        if let properties {
            var walk = RawWalk(base, from: properties.value.lowerBound, to: properties.value.upperBound)
            while let member = walk.next() { look(member) }
        }
        var members: [JSONValue.Member] = []
        for (place, layerName) in layerNames.enumerated() {
            let member = layerName == RuleEngine.eventBytes ? name : found[place]
            guard let member else { continue }
            members.append(
                JSONValue.Member(String(decoding: layerName, as: UTF8.self), RawJSON.value(base, member.value)))
        }
        if !members.isEmpty { pushMembers(members, app) }
    }

    static let nameBytes = "name".bytes
    static let eventBytes = "event".bytes
    private static let propertiesBytes = "properties".bytes

    private func pushMembers(_ members: [JSONValue.Member], _ app: String) {
        layers.push(members, of: app)
        counts.refusedPushes = layers.refused
    }

    /// Takes a line `{"type": "data_layer", …}`: all its members but `type` are pushed, and when one is an `event`, tags
    /// that call functions fire (there is no event that others could change).
    ///
    /// - Returns: `kept`, or `needs` before anything has fired.
    public func push(
        _ line: UnsafeRawBufferPointer, app: String, at now: Timestamp,
        results: @escaping (FunctionCall) -> JSONValue? = { _ in nil }
    ) -> Fate {
        reset()
        guard let base = line.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return .kept }
        let start = line.firstIndex(of: UInt8(ascii: "{")) ?? line.count
        let range = start..<RawWalk.valueEnd(base, start, line.count)
        guard case .object(let members) = RawJSON.value(base, range) else { return .kept }
        pushMembers(members.filter { $0.key != "type" }, app)
        guard case .string(let name)? = JSONValue.object(members)["event"] else { return .kept }
        let subject = Evaluation.Subject(base: base + start, count: range.count, isPush: true)
        var made: [FunctionCall] = []
        for (place, evaluation) in evaluations.enumerated() {
            evaluation.begin(subject, app: app, layer: layers.layers[app], results: results, random: random)
            let candidates = Array(name.utf8).withUnsafeBufferPointer { evaluation.container.index.tags(for: $0) }
            for (tag, rule) in fire(evaluation, candidates) {
                guard case .function(let function, let parameters) = evaluation.container.tags[tag].action else {
                    continue
                }
                note(place, tag, rule)
                made.append(
                    FunctionCall(function: function, parameters: .object(evaluation.parameters(parameters))))
            }
            guard evaluation.neededCalls.isEmpty else { return .needs(evaluation.neededCalls) }
        }
        calls = made
        return .kept
    }
}
