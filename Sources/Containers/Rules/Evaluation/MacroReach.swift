/// Which macros a document's tags may read: directly, through rules, and through other macros.
struct MacroReach {
    /// The compiler, with the numbers of macros.
    private let compiler: ContainerCompiler
    /// Numbers of the macros that tags may read.
    private let ofTags: Set<Int>
    /// Numbers of the macros that each macro needs, including itself.
    private let ofMacros: [[Int]]
    /// Path that each macro reads in the data layer; nil for other macros.
    private let layerPaths: [[[UInt8]]?]

    /// The reach of a document's tags.
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
                if seen.insert(name).inserted {
                    left += needs[name] ?? []
                }
            }
            return Set(seen.compactMap { compiler.macroNumbers[$0] })
        }
        ofTags = reach(
            from: compiler.document.tags.flatMap { tag in
                references.needs(ofRules: tag.rules + tag.blockingRules)
                    + tag.operands.compactMap(\.macroName)
            })
        var reached = [[Int]](repeating: [], count: compiler.macros.count)
        for (name, number) in compiler.macroNumbers { reached[number] = reach(from: [name]).sorted() }
        ofMacros = reached
    }

    /// Names at the top of data layers that tags may read.
    var layerNames: Set<[UInt8]> { Set(ofTags.compactMap { layerPaths[$0]?.first }) }

    /// The macros that tags may read, of functions that only apps have.
    var appFunctions: Set<String> {
        Set(
            compiler.macroNumbers.filter { ofTags.contains($0.value) && compiler.macros[$0.value].isOfApp }
                .map(\.key))
    }

    /// Whether tags may need results of functions.
    var asksFunctions: Bool { ofTags.contains { compiler.macros[$0].asks } }

    /// The macros that a condition needs.
    private func macros(of condition: ContainerCompiler.ConditionDraft) -> [Int] {
        ofMacros[condition.macro] + (condition.comparandMacro.map { ofMacros[$0] } ?? [])
    }

    /// The macros of functions that a condition needs, with those that cannot be called.
    func functions(of condition: ContainerCompiler.ConditionDraft) -> [Int] {
        macros(of: condition).filter { compiler.macros[$0].asks || compiler.macros[$0].isDenied }
    }

    /// Whether a condition reads what is hidden from data layers, and so never finds it.
    func isBlind(_ condition: ContainerCompiler.ConditionDraft, hidden: [PathSteps]) -> Bool {
        let read = macros(of: condition).compactMap { layerPaths[$0] }
        return read.contains { path in hidden.contains { $0.meets(path) } }
    }

    /// Cost of evaluating a condition. Functions are dearest, so that they are called only if no other
    /// condition decides.
    func cost(of condition: ContainerCompiler.ConditionDraft) -> Int {
        let own = condition.condition.predicate.cost + (condition.comparandMacro == nil ? 0 : 4)
        return macros(of: condition).contains { compiler.macros[$0].asks } ? 100 + own : own
    }
}

extension CompiledMacro {
    /// Whether the macro calls a function.
    fileprivate var asks: Bool { if case .function = self { true } else { false } }

    /// Whether the macro is a function that cannot be called for an event.
    fileprivate var isDenied: Bool {
        switch self {
        case .denied, .appFunction: true
        default: false
        }
    }

    /// Whether the macro is a function that only apps have.
    fileprivate var isOfApp: Bool { if case .appFunction = self { true } else { false } }

    /// The path that the macro reads in data layers; nil for other macros.
    fileprivate var layerPath: [[UInt8]]? {
        if case .dataLayer(let names, _) = self {
            names.map(\.bytes)
        } else {
            nil
        }
    }
}
