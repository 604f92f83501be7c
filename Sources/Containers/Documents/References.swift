internal import Model

/// Whether the parts of a document fit together: names that are there, macros that do not stand behind themselves.
struct References {
    private let document: ContainerDocument
    private let macros: [String: Macro]
    private let rules: [String: [Rule]]

    init(_ document: ContainerDocument) {
        self.document = document
        macros = Dictionary(uniqueKeysWithValues: document.macros.map { ($0.name, $0) })
        rules = Dictionary(grouping: document.rules, by: \.name)
    }

    func check() throws(ContainerError) {
        try checkNames()
        try checkCounts()
        try checkChains()
    }

    private func checkNames() throws(ContainerError) {
        for value in document.values { try check(value.operand, at: "values.\(value.key)") }
        for macro in document.macros {
            for operand in macro.operands { try check(operand, at: "macros.\(macro.name)") }
            if case .valueCollection(let rules, _) = macro.kind { try check(rules, at: "macros.\(macro.name).rules") }
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

    private func check(_ operand: Operand, at path: String) throws(ContainerError) {
        guard case .macro(let name) = operand, macros[name] == nil, StandardMacro(rawValue: name) == nil else { return }
        throw ContainerError(.form, at: path, "there is no macro \(quoted(name))")
    }

    private func check(_ names: [String], at path: String) throws(ContainerError) {
        for name in names where rules[name] == nil {
            throw ContainerError(.form, at: path, "there is no rule \(quoted(name))")
        }
    }

    private func checkCounts() throws(ContainerError) {
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

    /// Follows each macro to those it needs; a macro met on the way to itself is a mistake.
    private func checkChains() throws(ContainerError) {
        var depths: [String: Int] = [:]
        for macro in document.macros {
            var way: [String] = []
            _ = try depth(of: macro, &depths, &way)
        }
    }

    private func depth(
        of macro: Macro, _ depths: inout [String: Int], _ way: inout [String]
    ) throws(ContainerError) -> Int {
        let name = macro.name
        if let known = depths[name] { return known }
        guard !way.contains(name) else {
            let circle = way.drop { $0 != name } + [name]
            throw ContainerError(
                .form, at: "macros.\(name)", "the macro depends on itself: \(circle.joined(separator: " → "))")
        }
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

    private func tooLong(_ name: String) -> ContainerError {
        ContainerError(
            .limit, at: "macros.\(name)", "more than \(DocumentLimits.macroChain) macros depend on each other")
    }

    /// The macros that a macro needs by itself; none for those that need no definition.
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

    func needs(ofRules names: [String]) -> [String] {
        names.flatMap { rules[$0] ?? [] }.flatMap(\.conditions).flatMap {
            [$0.macro] + [$0.comparand.macroName].compactMap { $0 }
        }
    }
}

extension Operand {
    var macroName: String? {
        if case .macro(let name) = self { name } else { nil }
    }

    /// The value itself; null where a macro gives it.
    var constant: JSONValue { if case .constant(let value) = self { value } else { .null } }
}

extension Macro {
    var operands: [Operand] {
        switch kind {
        case .valueCollection(_, let values): values.map(\.operand)
        case .functionCall(_, let parameters): parameters.map(\.operand)
        default: []
        }
    }

    var collected: [Value] {
        if case .valueCollection(_, let values) = kind { values } else { [] }
    }
}

extension Tag.Action {
    var changes: Int {
        switch self {
        case .set, .rename: 1
        case .redact(let paths, _), .hash(let paths, _): paths.count
        case .scrub(let paths, let patterns, _): paths.count * patterns.count
        default: 0
        }
    }
}

extension Tag {
    var operands: [Operand] {
        switch action {
        case .sample(_, let key), .throttle(_, _, let key): key.map { [$0] } ?? []
        case .set(_, let value): [value]
        case .function(_, let parameters): parameters.map(\.operand)
        default: []
        }
    }
}
