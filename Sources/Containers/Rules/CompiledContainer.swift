internal import Model

/// A document made ready to be applied to events: compiled once for each version, immutable, shared by all threads.
public final class CompiledContainer: Sendable {
    /// What it was made of.
    public let document: ContainerDocument
    /// Functions that the document names and the configuration does not let it call: they give null.
    public let deniedFunctions: [String]

    // Unsafe only for the compiler: written in init, read afterwards, freed with this. Pointers, because an array would
    // count references for each condition of each event.
    nonisolated(unsafe) let conditions: UnsafeMutableBufferPointer<CompiledCondition>
    nonisolated(unsafe) let rules: UnsafeMutableBufferPointer<UnsafeMutableBufferPointer<Int32>>
    nonisolated(unsafe) let macros: UnsafeMutableBufferPointer<CompiledMacro>
    nonisolated(unsafe) let tags: UnsafeMutableBufferPointer<CompiledTag>
    let index: NameIndex
    let macroNames: [String]
    let values: [(key: String, operand: CompiledOperand)]
    let collections: [Int]
    let throttles: Int
    /// The reason under which a discard stands in the ledger and in metrics, for each rule: `GTM-1234/rule`.
    let reasons: [String]
    /// The members of the data layer that macros read, by their names at the top.
    let layerNames: Set<String>

    /// Compiles a document.
    ///
    /// - Parameters:
    ///   - mayCall: the functions that the configuration lets it call; others give null.
    ///   - facts: what macros know of the agent.
    /// - Throws: `ContainerError` with code `expression` or `limit`.
    public init(
        _ document: ContainerDocument, mayCall: Set<String> = [], facts: AgentFacts = AgentFacts()
    ) throws(ContainerError) {
        let compiler = try ContainerCompiler(document, mayCall: mayCall, facts: facts)
        self.document = document
        deniedFunctions = compiler.deniedFunctions.sorted()
        conditions = CompiledContainer.copy(compiler.conditions)
        rules = CompiledContainer.copy(
            compiler.rules.map { CompiledContainer.copy($0.map { Int32(truncatingIfNeeded: $0) }) })
        macros = CompiledContainer.copy(compiler.macros)
        tags = CompiledContainer.copy(compiler.tags)
        index = compiler.makeIndex()
        macroNames = compiler.macroNames
        values = compiler.values
        collections = compiler.collections
        throttles = compiler.throttles
        reasons = document.rules.map { "\(document.id)/\($0.name)" }
        self.locale = facts.locale
        layerNames = Set(
            compiler.macros.compactMap { macro in
                if case .dataLayer(let names, _) = macro { names.first } else { nil }
            })
    }

    /// The agent's own locale.
    let locale: String?

    deinit {
        conditions.deinitialize()
        conditions.deallocate()
        for rule in rules { rule.deallocate() }
        rules.deallocate()
        macros.deinitialize()
        macros.deallocate()
        tags.deinitialize()
        tags.deallocate()
    }

    private static func copy<Element>(_ elements: [Element]) -> UnsafeMutableBufferPointer<Element> {
        let made = UnsafeMutableBufferPointer<Element>.allocate(capacity: elements.count)
        _ = made.initialize(from: elements)
        return made
    }
}
