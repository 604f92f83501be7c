internal import Events
package import Schemas

/// A document in the form that is applied to events: compiled once for each version, immutable, shared by all
/// threads.
public final class CompiledContainer: Sendable {
    /// The document.
    public let document: ContainerDocument
    /// Functions that the document names and the configuration does not let it call; they give null.
    public let deniedFunctions: [String]
    /// The apps that the container concerns; empty for all.
    public let apps: Set<String>

    // Unsafe only for the compiler: written in `init`, read afterwards, freed with this object. Pointers,
    // because an array would count references for each condition of each event.
    nonisolated(unsafe) let conditions: UnsafeMutableBufferPointer<CompiledCondition>
    nonisolated(unsafe) let conditionTable: UnsafePointer<CompiledCondition>
    /// Numbers of each rule's conditions, the cheapest first.
    nonisolated(unsafe) let rules: UnsafeMutableBufferPointer<UnsafeMutableBufferPointer<Int32>>
    /// The macros, by number.
    nonisolated(unsafe) let macros: UnsafeMutableBufferPointer<CompiledMacro>
    /// The tags, in the document's order.
    nonisolated(unsafe) let tags: UnsafeMutableBufferPointer<CompiledTag>
    /// Whether the action of any tag needs values (`CompiledTag.Action.needsValues`).
    let needsValues: Bool
    /// Whether any tag calls a function that it may not call.
    let hasDeniedTags: Bool
    /// Numbers of each tag's rules.
    nonisolated(unsafe) let tagRules: UnsafeMutableBufferPointer<TagRules>
    /// The texts that conditions point to.
    private nonisolated(unsafe) let texts: UnsafeMutableBufferPointer<UInt8>
    /// The expressions that conditions point to.
    private let expressions: [Expression]

    /// The members of events that macros read.
    let wanted: WantedMembers
    /// Node of the member that each macro reads; negative for macros that read none.
    let nodes: [Int]
    /// The node of the event's name.
    let nameNode: Int

    /// The tags that may fire, by the event's name.
    let index: NameIndex
    /// Numbers of each rule's conditions, in the document's order.
    let writtenRules: [[Int]]
    /// The container's own values.
    let values: [(key: String, operand: CompiledOperand)]
    /// Numbers of the macros that are collections, in the document's order.
    let collections: [Int]
    /// Number of throttling tags.
    let throttles: Int
    /// Reason for events that each rule discards, as the ledger and metrics name it: `GTM-1234/rule`.
    let reasons: [String]
    /// Names at the top of the data layer that tags may read.
    let layerNames: Set<[UInt8]>
    /// Whether tags may need results of functions.
    let asksFunctions: Bool
    /// Macros of functions that only apps have, and that tags may read although nobody is asked for an event.
    let appFunctionsOfTags: Set<String>
    /// Numbers of the function macros that each condition needs, including those that cannot be called.
    let conditionFunctions: [[Int]]
    /// Whether each condition reads from the data layer what tags hide there, so that it cannot be decided.
    let blindConditions: [Bool]
    /// Whether any of `blindConditions` is true.
    let hasBlindConditions: Bool
    /// Tags whose rules read hidden members of data layers. If they hide members they fire unless something
    /// else excludes it; other tags fire only by rules that do not read such members.
    public let blindTags: Set<String>
    /// Whether a tag that redacts or hashes has rules that may be undecidable. It fires then, so that nothing
    /// leaves that should be hidden.
    let failsClosed: Bool
    /// The facts of the machine.
    let facts: AgentFacts

    /// The rules of a tag.
    struct TagRules {
        /// Numbers of the rules by which the tag fires.
        let rules: UnsafeMutableBufferPointer<Int32>
        /// Numbers of the blocking rules.
        let blocking: UnsafeMutableBufferPointer<Int32>
    }

    /// Compiles a document.
    ///
    /// - Parameter mayCall: functions that the configuration lets the document call; others give null.
    /// - Throws: `expression` or `limit`.
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
        // Conditions of equal cost stay in the written order.
        rules = .copy(
            of: compiler.rules.map { rule in
                let cheapestFirst = rule.enumerated().sorted {
                    (costs[$0.element], $0.offset) < (costs[$1.element], $1.offset)
                }
                return .numbers(cheapestFirst.map(\.element))
            })
        macros = .copy(of: compiler.macros)
        tags = .copy(of: compiler.tags)
        needsValues = compiler.tags.contains { $0.action.needsValues }
        hasDeniedTags = compiler.tags.contains { $0.action.isDenied }
        tagRules = .copy(
            of: compiler.tags.map {
                TagRules(rules: .numbers($0.rules), blocking: .numbers($0.blockingRules))
            })
        let wanted = WantedMembers(
            [WantedMembers.name, WantedMembers.event, WantedMembers.id] + compiler.macros.flatMap(\.members))
        nodes = compiler.macros.map { macro in
            if case .member(let names, _) = macro {
                wanted.node(at: names) ?? -1
            } else {
                -1
            }
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
        appFunctionsOfTags = reach.appFunctions
        conditionFunctions = compiler.conditions.map { reach.functions(of: $0) }
        let hidden = HiddenMembers(compiler.tags, keyLengths: facts.keyLengths).layerPaths
        let blind = compiler.conditions.map { reach.isBlind($0, hidden: hidden) }
        blindConditions = blind
        hasBlindConditions = blind.contains(true)
        blindTags = Set(
            compiler.tags.filter { tag in
                (tag.rules + tag.blockingRules).contains { compiler.rules[$0].contains { blind[$0] } }
            }.map(\.name))
        failsClosed = !blindTags.isEmpty || conditionFunctions.contains { !$0.isEmpty }
    }

    /// Whether these are the rules of the configuration. Published documents have a version, and files of
    /// values have no tags.
    var isOfConfiguration: Bool { document.version == 0 && !document.tags.isEmpty }

    /// The document's schemas, for the apps that the container concerns; nil without any.
    package var schemas: SchemaLayer? {
        document.schemas.isEmpty ? nil : SchemaLayer(document.schemas.map(\.compiled), apps: apps)
    }

    /// Whether the container redacts or hashes anything.
    public var hides: Bool { tags.contains { $0.action.hides } }

    /// Whether the container hides members by paths, which can be found in JSON objects only.
    public var hidesByPath: Bool { HiddenMembers([self]).withheldTexts == .members }

    /// Whether the container concerns an app.
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

    /// Puts conditions and the texts that they compare with next to each other in memory.
    private static func lay(
        _ drafts: [ContainerCompiler.ConditionDraft]
    ) -> (UnsafeMutableBufferPointer<CompiledCondition>, UnsafeMutableBufferPointer<UInt8>) {
        let spelled = drafts.map {
            Comparand.text(of: $0.condition.comparand.constant, ignoreCase: $0.condition.ignoreCase)
        }
        // One byte more than needed, so that an empty text has an address.
        let texts = UnsafeMutableBufferPointer.copy(of: spelled.joined() + [0])
        let conditions = UnsafeMutableBufferPointer<CompiledCondition>.allocate(
            capacity: max(1, drafts.count))
        var used = 0
        for (index, draft) in drafts.enumerated() {
            let text = UnsafeBufferPointer(
                rebasing: UnsafeBufferPointer(texts)[used..<used + spelled[index].count])
            used += text.count
            conditions.initializeElement(
                at: index,
                to: CompiledCondition(draft, Comparand(.value(draft.condition.comparand.constant), text)))
        }
        return (UnsafeMutableBufferPointer(rebasing: conditions[0..<drafts.count]), texts)
    }
}

extension UnsafeMutableBufferPointer {
    /// Storage with these elements, owned by the caller.
    static func copy(of elements: some Collection<Element>) -> UnsafeMutableBufferPointer {
        let made = UnsafeMutableBufferPointer.allocate(capacity: elements.count)
        _ = made.initialize(from: elements)
        return made
    }
}

extension UnsafeMutableBufferPointer<Int32> {
    /// Numbers as Int32, in storage owned by the caller.
    static func numbers(_ numbers: [Int]) -> Self { .copy(of: numbers.map { Int32(truncatingIfNeeded: $0) }) }
}
