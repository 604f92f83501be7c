/// A document made ready to be applied to events: compiled once for each version, immutable, shared by all threads.
public final class CompiledContainer: Sendable {
    /// What it was made of.
    public let document: ContainerDocument
    /// Functions that the document names and the configuration does not let it call: they give null.
    public let deniedFunctions: [String]
    /// The apps whose events it rules; empty for all.
    public let apps: Set<String>

    // Unsafe only for the compiler: written in init, read afterwards, freed with this. Pointers, because an array would
    // count references for each condition of each event.
    nonisolated(unsafe) let conditions: UnsafeMutableBufferPointer<CompiledCondition>
    nonisolated(unsafe) let conditionTable: UnsafePointer<CompiledCondition>
    /// The conditions of each rule, the cheapest first.
    nonisolated(unsafe) let rules: UnsafeMutableBufferPointer<UnsafeMutableBufferPointer<Int32>>
    nonisolated(unsafe) let macros: UnsafeMutableBufferPointer<CompiledMacro>
    nonisolated(unsafe) let tags: UnsafeMutableBufferPointer<CompiledTag>
    nonisolated(unsafe) let tagRules: UnsafeMutableBufferPointer<TagRules>
    /// What the conditions point to.
    private nonisolated(unsafe) let texts: UnsafeMutableBufferPointer<UInt8>
    private let expressions: [Expression]

    /// The members of events that macros read.
    let wanted: WantedMembers
    /// For each macro the node of the member that it reads; negative for other macros.
    let nodes: [Int]
    let nameNode: Int

    let index: NameIndex
    /// The conditions of each rule, in the document's order.
    let writtenRules: [[Int]]
    let values: [(key: String, operand: CompiledOperand)]
    let collections: [Int]
    let throttles: Int
    /// The reason under which a discard is in the ledger and in metrics, for each rule: `GTM-1234/rule`.
    let reasons: [String]
    /// The members of the data layer that tags may come to read, by their names at the top.
    let layerNames: Set<[UInt8]>
    /// Whether tags may come to ask functions for values.
    let asksFunctions: Bool
    /// For each condition the functions' macros that it needs, those that may not be called included.
    let conditionFunctions: [[Int]]
    /// For each condition whether it reads from data layers what tags hide there: nobody can say whether it holds.
    let blindConditions: [Bool]
    /// Tags that hide by rules that read hidden members of data layers: they fire unless something else rules that out.
    public let blindTags: Set<String>
    /// Whether a tag that redacts or hashes may have to fire without an answer.
    let failsClosed: Bool
    let facts: AgentFacts

    struct TagRules {
        let rules: UnsafeMutableBufferPointer<Int32>
        let blocking: UnsafeMutableBufferPointer<Int32>
    }

    /// - Parameter mayCall: the functions that the configuration lets it call; others give null.
    /// - Throws: `ContainerError` with code `expression` or `limit`.
    public init(
        _ document: ContainerDocument, mayCall: Set<String> = [], facts: AgentFacts = AgentFacts(),
        apps: Set<String> = []
    ) throws(ContainerError) {
        self.apps = apps
        let compiler = try ContainerCompiler(document, mayCall: mayCall, facts: facts)
        let reach = MacroReach(compiler)
        self.document = document
        deniedFunctions = compiler.deniedFunctions.sorted()
        (conditions, texts) = CompiledContainer.lay(compiler.conditions)
        conditionTable = UnsafePointer(conditions.baseAddress.unsafelyUnwrapped)
        expressions = compiler.conditions.compactMap(\.expression)
        writtenRules = compiler.rules
        let costs = compiler.conditions.map { reach.cost(of: $0) }
        // Of equally dear ones as they are written.
        rules = .copy(
            of: compiler.rules.map { rule in
                let cheapestFirst = rule.enumerated().sorted {
                    (costs[$0.element], $0.offset) < (costs[$1.element], $1.offset)
                }
                return .places(cheapestFirst.map(\.element))
            })
        macros = .copy(of: compiler.macros)
        tags = .copy(of: compiler.tags)
        tagRules = .copy(
            of: compiler.tags.map { TagRules(rules: .places($0.rules), blocking: .places($0.blockingRules)) })
        let wanted = WantedMembers(
            [WantedMembers.name, WantedMembers.event, WantedMembers.id] + compiler.macros.flatMap(\.members))
        nodes = compiler.macros.map { macro in
            if case .member(let names, _) = macro { wanted.node(at: names) ?? -1 } else { -1 }
        }
        nameNode = wanted.node(at: WantedMembers.name) ?? -1
        self.wanted = wanted
        index = compiler.makeIndex()
        values = compiler.values
        collections = compiler.collections
        throttles = compiler.throttles
        reasons = document.rules.map { "\(document.id)/\($0.name)" }
        self.facts = facts
        layerNames = reach.layerNames
        asksFunctions = reach.asksFunctions
        conditionFunctions = compiler.conditions.map { reach.functions(of: $0) }
        let hidden = HiddenMembers(compiler.tags, keyLengths: facts.keyLengths).layerPaths
        let blind = compiler.conditions.map { reach.isBlind($0, hidden: hidden) }
        blindConditions = blind
        blindTags = Set(
            compiler.tags.filter { tag in
                tag.action.hides
                    && (tag.rules + tag.blockingRules).contains { compiler.rules[$0].contains { blind[$0] } }
            }.map(\.name))
        failsClosed = !blindTags.isEmpty || conditionFunctions.contains { !$0.isEmpty }
    }

    /// Whether it redacts or hashes anything.
    public var hides: Bool { tags.contains { $0.action.hides } }

    @inline(__always)
    func concerns(_ app: String) -> Bool { apps.isEmpty || apps.contains(app) }

    deinit {
        conditions.deallocate()
        texts.deallocate()
        for rule in rules { rule.deallocate() }
        rules.deallocate()
        macros.deinitialize()
        macros.deallocate()
        tags.deinitialize()
        tags.deallocate()
        for tag in tagRules {
            tag.rules.deallocate()
            tag.blocking.deallocate()
        }
        tagRules.deallocate()
    }

    /// Lays conditions and the texts that they compare with side by side.
    private static func lay(
        _ drafts: [ContainerCompiler.ConditionDraft]
    ) -> (UnsafeMutableBufferPointer<CompiledCondition>, UnsafeMutableBufferPointer<UInt8>) {
        let spelled = drafts.map {
            Comparand.text(of: $0.condition.comparand.constant, ignoreCase: $0.condition.ignoreCase)
        }
        // One more than needed, so that each text has an address.
        let texts = UnsafeMutableBufferPointer.copy(of: spelled.joined() + [0])
        let conditions = UnsafeMutableBufferPointer<CompiledCondition>.allocate(capacity: max(1, drafts.count))
        var used = 0
        for (place, draft) in drafts.enumerated() {
            let text = UnsafeBufferPointer(rebasing: UnsafeBufferPointer(texts)[used..<used + spelled[place].count])
            used += text.count
            conditions.initializeElement(
                at: place,
                to: CompiledCondition(draft, Comparand(.value(draft.condition.comparand.constant), text)))
        }
        return (UnsafeMutableBufferPointer(rebasing: conditions[0..<drafts.count]), texts)
    }
}

extension UnsafeMutableBufferPointer {
    /// Storage of its own with these elements.
    static func copy(of elements: some Collection<Element>) -> UnsafeMutableBufferPointer {
        let made = UnsafeMutableBufferPointer.allocate(capacity: elements.count)
        _ = made.initialize(from: elements)
        return made
    }
}

extension UnsafeMutableBufferPointer<Int32> {
    static func places(_ numbers: [Int]) -> Self { .copy(of: numbers.map { Int32(truncatingIfNeeded: $0) }) }
}
