public import EventLoops
public import Events
public import Model
internal import Schemas

/// What a container does to one event, and why; without an agent.
public struct EventTrial: Sendable, Equatable {
    /// The event as the agent accepts it: what the app wrote, with the members that are added.
    public let before: String
    /// The event as it would be queued; nil if it is discarded.
    public let after: String?
    /// The reason under which it is discarded (`GTM-1234/rule`); nil if it is kept.
    public let discardedBy: String?
    /// Why each tag fires or does not, in the document's order.
    public let tags: [TagExplanation]
    /// Names of the tags that fire, in order; one that discards is the last.
    public let fired: [String]
    /// The priority afterwards.
    package let priority: Priority
    /// The destinations, if tags choose them.
    public let destinations: [String]?
    /// The calls that tags ask for.
    public let calls: [FunctionCall]
}

/// Tries a container on events, and runs a document's test cases. Earlier events and pushes are remembered.
public final class ContainerTrials {
    /// An event that the agent would not accept.
    public struct Refusal: Error, Sendable, Equatable {
        /// What is wrong, in one line for a person.
        public let message: String
        /// Location that the event's schema does not allow, as a JSON Pointer; nil if no schema refuses the
        /// event.
        public var schemaPath: String?
    }

    /// The container.
    package let container: CompiledContainer
    /// The document's schemas.
    private let schemas: SchemaSet
    /// The engine with this container alone.
    private let engine: RuleEngine
    /// Reads events as the agent does.
    private var pass: EventPass
    /// Random numbers that are the same each time.
    private var random = RepeatableRandom()
    /// The time of day.
    private let now: Timestamp

    /// Trials of a document.
    ///
    /// - Parameters:
    ///   - document: the document; it may call every function that it names, and all give null unless a test
    ///     says otherwise.
    ///   - events: how the agent reads lines; sessions and expiry are off.
    ///   - now: the time of day at which events are accepted.
    /// - Throws: as `CompiledContainer`.
    public init(
        _ document: ContainerDocument, facts: AgentFacts = AgentFacts(),
        events: EventOptions = EventOptions(),
        now: Timestamp
    ) throws(ContainerError) {
        var facts = facts
        var options = events
        facts.hashKey = facts.hashKey ?? .trial
        container = try CompiledContainer(document, mayCall: document.functions, facts: facts)
        schemas = SchemaSet().followed(by: container.schemas.map { [$0] } ?? [])
        options.session.mode = .off
        options.maxAge = nil
        pass = EventPass(options: options)
        self.now = now
        // The same random numbers each time, so that a test that passes does not fail later.
        var random = RepeatableRandom()
        engine = RuleEngine(random: { random.next() })
        engine.use([container])
    }

    /// Tries an event.
    ///
    /// - Parameters:
    ///   - line: the event as an app would write it, on one line.
    ///   - file: path of the file with the line; empty for none.
    ///   - functions: results of functions by name; others give null.
    /// - Throws: `Refusal` if the agent would not accept the event, or its schema does not allow it.
    /// - Returns: nil for a push into the data layer, which is not an event.
    public func run(
        _ line: [UInt8], app: String, file: String = "", functions: [String: JSONValue] = [:]
    ) throws(Refusal) -> EventTrial? {
        let source = pass.source(app: app, using: &random)
        pass.hiding = engine.hiding(of: app).paths
        pass.begin(source, at: now, isSynchronised: false, using: &random)
        let results: (FunctionCall) -> JSONValue? = { functions[$0.function] ?? .null }
        let block = line.last == 0x0A ? line : line + [0x0A]
        var buffer = LineBuffer()
        var unfit: Refusal?
        let verdict = block.withUnsafeBufferPointer { block -> Verdict? in
            guard let base = block.baseAddress else { return nil }
            let verdict = pass.read(base, from: 0, to: block.count)
            if verdict.kind == .accepted {
                unfit = refusal(app: app)
                pass.write(into: &buffer)
            }
            return verdict
        }
        if let unfit { throw unfit }
        switch verdict?.kind {
        case .accepted?: break
        case .dataLayer?:
            _ = block.withUnsafeBytes { engine.push($0, app: app, at: now, results: results) }
            return nil
        case .blank?: throw Refusal(message: "it contains no event")
        default: throw Refusal(message: pass.problem?.detail ?? "it is not an event")
        }
        var tags = engine.explain(buffer.bytes, app: app, file: file, results: results)
        let fate = engine.apply(
            to: buffer.bytes, app: app, file: file, priority: verdict?.priority ?? .normal, at: now,
            results: results)
        // What the agent does, not what each tag would do alone: nothing acts after a discard.
        let fired = Set(engine.firings.map(\.tag))
        for index in tags.indices where tags[index].fires != fired.contains(index) {
            tags[index].isCutOff = tags[index].fires
            tags[index].fires = fired.contains(index)
        }
        let discardedBy: String? = if case .discarded(let reason) = fate { reason } else { nil }
        // Copy the result first: the line may be the buffer's own bytes.
        let after = String(decoding: engine.line.dropLast(), as: UTF8.self)
        let before = String(decoding: buffer.bytes.dropLast(), as: UTF8.self)
        return EventTrial(
            before: before, after: discardedBy == nil ? after : nil,
            discardedBy: discardedBy, tags: tags,
            fired: engine.firings.map { container.document.tags[$0.tag].name },
            priority: engine.priority, destinations: engine.destinations, calls: engine.calls)
    }

    /// Why a schema of the document does not allow the event that the pass has just read; nil if it does.
    private func refusal(app: String) -> Refusal? {
        guard let index = schemas.table(of: app).index(of: pass.name),
            let failure = schemas.schemas[index].failure(in: pass.object)
        else { return nil }
        return Refusal(
            message: "schema: \(schemas.schemas[index].title): \(failure.description)",
            schemaPath: failure.path)
    }
}

extension ContainerDocument {
    /// The functions of the configuration that macros and tags name.
    var functions: Set<String> {
        var names: Set<String> = []
        for macro in macros {
            if case .functionCall(let function, _, .agent, _) = macro.kind {
                names.insert(function)
            }
        }
        for tag in tags {
            if case .function(let name, _, .agent) = tag.action {
                names.insert(name)
            }
        }
        return names
    }
}
