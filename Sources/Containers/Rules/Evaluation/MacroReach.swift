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
        var walk = Walk(compiler)
        for tag in compiler.tags {
            (tag.rules + tag.blockingRules).forEach { walk.visit(rule: $0) }
            tag.action.operands.forEach { walk.visit($0) }
        }
        ofTags = walk.macros
        let reached = compiler.macros.indices.map { macro in
            var walk = Walk(compiler)
            walk.visit(macro: macro)
            return walk.macros.sorted()
        }
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
            let own = condition.predicate.cost + (condition.comparandMacro == nil ? 0 : 4)
            return macros.contains(where: onFunctions.contains) ? 100 + own : own
        }
        return rule.enumerated().sorted { (cost($0.element), $0.offset) < (cost($1.element), $1.offset) }
            .map(\.element)
    }

    /// Visits each macro and rule once.
    private struct Walk {
        let compiler: ContainerCompiler
        var macros: Set<Int> = []
        var rules: Set<Int> = []

        init(_ compiler: ContainerCompiler) { self.compiler = compiler }

        mutating func visit(rule: Int) {
            guard rules.insert(rule).inserted else { return }
            for number in compiler.rules[rule] {
                visit(macro: compiler.conditions[number].macro)
                if let other = compiler.conditions[number].comparandMacro { visit(macro: other) }
            }
        }

        mutating func visit(_ operand: CompiledOperand) {
            if case .macro(let number) = operand { visit(macro: number) }
        }

        mutating func visit(macro number: Int) {
            guard macros.insert(number).inserted else { return }
            switch compiler.macros[number] {
            case .collection(let rules, let values):
                rules.forEach { visit(rule: $0) }
                values.forEach { visit($0.operand) }
            case .value(let key):
                for collection in compiler.collections {
                    guard case .collection(_, let values) = compiler.macros[collection],
                        values.contains(where: { $0.key == key })
                    else { continue }
                    visit(macro: collection)
                }
                compiler.values.filter { $0.key == key }.forEach { visit($0.operand) }
            case .function(_, let parameters): parameters.forEach { visit($0.operand) }
            case .constant, .member, .dataLayer, .event, .app, .language, .level, .random, .denied: break
            }
        }
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

extension CompiledTag.Action {
    /// What it works out of macros.
    fileprivate var operands: [CompiledOperand] {
        switch self {
        case .sample(_, let key), .throttle(_, _, _, let key): key.map { [$0] } ?? []
        case .set(_, let value, _): [value]
        case .function(_, let parameters): parameters.map(\.operand)
        case .ship, .discard, .rename, .redact, .hash, .scrub, .prioritise, .denied: []
        }
    }
}
