internal import Model

/// Checks that the parts of a document fit together: each name is defined, and no macro depends on itself.
struct References {
    /// The document.
    private let document: ContainerDocument
    /// Macros by name.
    private let macros: [String: Macro]
    /// Rules by name; alternatives of an expression share one.
    private let rules: [String: [Rule]]

    /// The references of a document.
    init(_ document: ContainerDocument) {
        self.document = document
        macros = Dictionary(uniqueKeysWithValues: document.macros.map { ($0.name, $0) })
        rules = Dictionary(grouping: document.rules, by: \.name)
    }

    /// Makes all checks, names first: the others follow names.
    func check() throws(ContainerError) {
        try checkNames()
        try checkCounts()
        try checkChains()
    }

    /// Checks that each name is defined, and that tags and tests have different names.
    private func checkNames() throws(ContainerError) {
        for value in document.values { try check(value.operand, at: "values.\(value.key)") }
        for macro in document.macros {
            for operand in macro.operands { try check(operand, at: "macros.\(macro.name)") }
            if case .valueCollection(let rules, _) = macro.kind {
                try check(rules, at: "macros.\(macro.name).rules")
            }
        }
        for rule in document.rules {
            for (index, condition) in rule.conditions.enumerated() {
                let path = "rules.\(rule.name).conditions[\(index)]"
                try check(.macro(condition.macro), at: path)
                try check(condition.comparand, at: path)
            }
        }
        var names: Set<String> = []
        for (index, tag) in document.tags.enumerated() {
            let path = "tags[\(index)]"
            // Metrics and explanations name tags, so the names must differ.
            guard names.insert(tag.name).inserted else {
                throw ContainerError(.form, at: path, "there are two tags \(quoted(tag.name))")
            }
            try check(tag.rules, at: path + ".rules")
            try check(tag.blockingRules, at: path + ".blocking_rules")
            for operand in tag.operands { try check(operand, at: path) }
        }
        var tests: Set<String> = []
        for (index, test) in document.tests.enumerated() where !tests.insert(test.name).inserted {
            throw ContainerError(.form, at: "tests[\(index)]", "there are two tests \(quoted(test.name))")
        }
    }

    /// Checks that an operand's macro is defined, or is a standard one.
    private func check(_ operand: Operand, at path: String) throws(ContainerError) {
        guard case .macro(let name) = operand, macros[name] == nil, StandardMacro(rawValue: name) == nil
        else { return }
        throw ContainerError(.form, at: path, "there is no macro \(quoted(name))")
    }

    /// Checks that rules are defined.
    private func check(_ names: [String], at path: String) throws(ContainerError) {
        for name in names where rules[name] == nil {
            throw ContainerError(.form, at: path, "there is no rule \(quoted(name))")
        }
    }

    /// Checks limits that count over several parts of the document.
    private func checkCounts() throws(ContainerError) {
        // Each change costs time for each event, so their number is bounded over all tags.
        let changes = document.tags.reduce(0) { $0 + $1.action.changes }
        guard changes <= DocumentLimits.changes else {
            throw ContainerError(
                .limit, at: "tags", "the tags change \(changes) members; at most \(DocumentLimits.changes)")
        }
        let collected = document.macros.reduce(document.values.count) { $0 + $1.collected.count }
        guard collected <= DocumentLimits.values else {
            throw ContainerError(
                .limit, at: "values", "there are \(collected) values; at most \(DocumentLimits.values)")
        }
    }

    /// Follows each macro to those that it needs. A macro that is met on the way to itself is a mistake, and
    /// so is a long chain.
    private func checkChains() throws(ContainerError) {
        var depths: [String: Int] = [:]
        for macro in document.macros {
            var way: [String] = []
            _ = try depth(of: macro, &depths, &way)
        }
    }

    /// Length of the longest chain from a macro. Lengths are kept, so that each macro is followed once.
    private func depth(
        of macro: Macro, _ depths: inout [String: Int], _ way: inout [String]
    ) throws(ContainerError) -> Int {
        let name = macro.name
        // Counted before, on the way from another macro.
        if let known = depths[name] { return known }
        guard !way.contains(name) else {
            // The message shows the whole circle, which can go through several macros.
            let circle = way.drop { $0 != name } + [name]
            throw ContainerError(
                .form, at: "macros.\(name)", "the macro depends on itself: \(circle.joined(separator: " → "))"
            )
        }
        // Checked on the way down, because the function is recursive.
        guard way.count < DocumentLimits.macroChain else { throw tooLong(name) }
        way.append(name)
        var deepest = 0
        for needed in needs(of: name).compactMap({ macros[$0] }) {
            deepest = max(deepest, try depth(of: needed, &depths, &way))
        }
        way.removeLast()
        guard deepest < DocumentLimits.macroChain else { throw tooLong(name) }
        depths[name] = deepest + 1
        return deepest + 1
    }

    /// The error for a chain that is too long.
    private func tooLong(_ name: String) -> ContainerError {
        ContainerError(
            .limit, at: "macros.\(name)", "more than \(DocumentLimits.macroChain) macros depend on each other"
        )
    }

    /// Names of the macros that a macro needs directly; empty for standard macros.
    func needs(of name: String) -> [String] {
        guard let macro = macros[name] else { return [] }
        let needed = macro.operands.compactMap(\.macroName)
        switch macro.kind {
        case .valueCollection(let enabling, _): return needed + needs(ofRules: enabling)
        case .value(let key):
            return document.values.filter { $0.key == key }.compactMap(\.operand.macroName)
                + document.macros.filter { $0.collected.contains { $0.key == key } }.map(\.name)
        default: return needed
        }
    }

    /// Names of the macros that rules need directly.
    func needs(ofRules names: [String]) -> [String] {
        names.flatMap { rules[$0] ?? [] }.flatMap(\.conditions).flatMap {
            [$0.macro] + [$0.comparand.macroName].compactMap { $0 }
        }
    }
}

extension Operand {
    /// Name of the macro; nil for a constant.
    var macroName: String? {
        if case .macro(let name) = self {
            name
        } else {
            nil
        }
    }

    /// The constant; null for a macro.
    var constant: JSONValue { if case .constant(let value) = self { value } else { .null } }
}

extension Macro {
    /// The operands that a macro reads.
    var operands: [Operand] {
        switch kind {
        case .valueCollection(_, let values): values.map(\.operand)
        case .functionCall(_, let parameters, _, _): parameters.map(\.operand)
        default: []
        }
    }

    /// The values that a macro collects.
    var collected: [Value] {
        if case .valueCollection(_, let values) = kind {
            values
        } else {
            []
        }
    }
}

extension Tag.Action {
    /// Number of changes that the action counts for in the limit.
    var changes: Int {
        switch self {
        case .set, .rename: 1
        case .remove(let paths), .redact(let paths, _), .hash(let paths, _): paths.count
        case .scrub(let paths, let patterns, _): paths.count * patterns.count
        default: 0
        }
    }
}

extension Tag {
    /// The operands that a tag reads.
    var operands: [Operand] {
        switch action {
        case .sample(_, let key), .throttle(_, _, let key): key.map { [$0] } ?? []
        case .set(_, let value): [value]
        case .function(_, let parameters, _): parameters.map(\.operand)
        default: []
        }
    }
}
