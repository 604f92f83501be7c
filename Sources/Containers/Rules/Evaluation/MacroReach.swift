/// Which macros a document's tags may come to read: straight, through rules, and through other macros.
struct MacroReach {
    private let compiler: ContainerCompiler
    /// By the macros' places.
    private let ofTags: Set<Int>
    /// For each macro those that it needs, itself included.
    private let ofMacros: [[Int]]
    /// What each macro reads of data layers.
    private let layerPaths: [[[UInt8]]?]

    init(_ compiler: ContainerCompiler) {
        self.compiler = compiler
        layerPaths = compiler.macros.map(\.layerPath)
        let references = References(compiler.document)
        var needs: [String: [String]] = [:]
        for name in compiler.macroNumbers.keys { needs[name] = references.needs(of: name) }
        func reach(from names: [String]) -> Set<Int> {
            var seen: Set<String> = []
            var left = names
            while let name = left.popLast() {
                if seen.insert(name).inserted { left += needs[name] ?? [] }
            }
            return Set(seen.compactMap { compiler.macroNumbers[$0] })
        }
        ofTags = reach(
            from: compiler.document.tags.flatMap { tag in
                references.needs(ofRules: tag.rules + tag.blockingRules) + tag.operands.compactMap(\.macroName)
            })
        var reached = [[Int]](repeating: [], count: compiler.macros.count)
        for (name, number) in compiler.macroNumbers { reached[number] = reach(from: [name]).sorted() }
        ofMacros = reached
    }

    var layerNames: Set<[UInt8]> { Set(ofTags.compactMap { layerPaths[$0]?.first }) }

    var asksFunctions: Bool { ofTags.contains { compiler.macros[$0].asks } }

    private func macros(of condition: ContainerCompiler.ConditionDraft) -> [Int] {
        ofMacros[condition.macro] + (condition.comparandMacro.map { ofMacros[$0] } ?? [])
    }

    /// The macros that a condition needs and that are a function's answer, or would be if the function might be called.
    func functions(of condition: ContainerCompiler.ConditionDraft) -> [Int] {
        macros(of: condition).filter { compiler.macros[$0].asks || compiler.macros[$0].isDenied }
    }

    /// Whether a condition reads what is hidden from data layers, so that nothing is ever there.
    func isBlind(_ condition: ContainerCompiler.ConditionDraft, hidden: [PathSteps]) -> Bool {
        let read = macros(of: condition).compactMap { layerPaths[$0] }
        return read.contains { path in hidden.contains { $0.meets(path) } }
    }

    /// How dear a condition is to look at: what needs a function comes last, so that it is asked only where nothing else decides.
    func cost(of condition: ContainerCompiler.ConditionDraft) -> Int {
        let own = condition.condition.predicate.cost + (condition.comparandMacro == nil ? 0 : 4)
        return macros(of: condition).contains { compiler.macros[$0].asks } ? 100 + own : own
    }
}

extension CompiledMacro {
    fileprivate var asks: Bool { if case .function = self { true } else { false } }

    fileprivate var isDenied: Bool { if case .denied = self { true } else { false } }

    fileprivate var layerPath: [[UInt8]]? {
        if case .dataLayer(let names, _) = self { names.map(\.bytes) } else { nil }
    }
}
