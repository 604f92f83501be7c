/// Which macros a document's tags may come to read: straight, through rules, and through other macros.
struct MacroReach {
    /// By the macros' places.
    private let ofTags: Set<Int>
    /// Those that need a function's answer, themselves or through others.
    private let onFunctions: Set<Int>
    /// For each macro the functions' macros that it needs, itself included.
    private let functions: [[Int]]
    /// For each macro the paths of data layers that it reads, itself or through others.
    private let layerPaths: [[[[UInt8]]]]

    init(_ compiler: ContainerCompiler) {
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
        let functions = reached.map { $0.filter { compiler.macros[$0].isFunction } }
        self.functions = functions
        layerPaths = reached.map {
            $0.compactMap { if case .dataLayer(let names, _) = compiler.macros[$0] { names.map(\.bytes) } else { nil } }
        }
        onFunctions = Set(
            functions.indices.filter { macro in functions[macro].contains { compiler.macros[$0].asks } })
    }

    /// The members of the data layer that are read, by their names at the top.
    func layerNames(of compiler: ContainerCompiler) -> Set<[UInt8]> {
        Set(
            ofTags.compactMap { macro in
                if case .dataLayer(let names, _) = compiler.macros[macro] { names.first?.bytes } else { nil }
            })
    }

    /// Whether functions are asked for values.
    func asksFunctions(of compiler: ContainerCompiler) -> Bool { !ofTags.isDisjoint(with: onFunctions) }

    /// The functions' macros that a condition needs.
    func functions(of condition: ContainerCompiler.ConditionDraft) -> [Int] {
        functions[condition.macro] + (condition.comparandMacro.map { functions[$0] } ?? [])
    }

    /// Whether a condition reads what is hidden from data layers, so that nothing is ever there.
    func isBlind(_ condition: ContainerCompiler.ConditionDraft, hidden: [[[UInt8]]]) -> Bool {
        let read = layerPaths[condition.macro] + (condition.comparandMacro.map { layerPaths[$0] } ?? [])
        return read.contains { path in hidden.contains { PathSteps.meets($0, path) } }
    }

    /// A rule's conditions in the order in which they are looked at: what needs a function last, so that it is asked only
    /// where nothing else decides; of equals as they are written.
    func cheapestFirst(_ rule: [Int], of compiler: ContainerCompiler) -> [Int] {
        func cost(_ number: Int) -> Int {
            let condition = compiler.conditions[number]
            let macros = [condition.macro, condition.comparandMacro].compactMap { $0 }
            let own = condition.condition.predicate.cost + (condition.comparandMacro == nil ? 0 : 4)
            return macros.contains(where: onFunctions.contains) ? 100 + own : own
        }
        return rule.enumerated().sorted { (cost($0.element), $0.offset) < (cost($1.element), $1.offset) }
            .map(\.element)
    }
}

extension CompiledMacro {
    /// Whether it is a function's answer, or would be if the function might be called.
    fileprivate var isFunction: Bool {
        switch self {
        case .function, .denied: true
        default: false
        }
    }

    fileprivate var asks: Bool { if case .function = self { true } else { false } }
}
