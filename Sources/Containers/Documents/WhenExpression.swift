internal import Model

/// A condition as one expression: `name == "Order paid" && (properties.amount > 100 || country in ["DE", "AT"])`.
///
/// It becomes alternatives of conditions, its disjunctive normal form, which are compiled as those of rules are: nothing is
/// interpreted when an event comes. So `&&` of many `||` multiplies; `DocumentLimits.alternatives` is the bound.
///
/// A name is a macro of the document, a standard one, `name`, or a path that begins with `properties`, `device`, `event` (any
/// member of the event) or `data_layer`; anything else is a mistake, so that a misspelled name is found.
struct WhenExpression {
    /// One of these must hold, each as a whole.
    private(set) var alternatives: [[Condition]] = []
    private(set) var macros: [Macro] = []

    private let node: DocumentNode
    private let text: [UInt8]
    private let known: Set<String>
    private var place = 0
    private var depth = 0

    /// - Parameter known: the names of the document's macros.
    /// - Throws: `ContainerError` with the column in the expression, counted in characters from 1.
    init(reading node: DocumentNode, known: Set<String>) throws(ContainerError) {
        self.node = node
        self.known = known
        text = try node.text(limit: DocumentLimits.whenBytes).bytes
        alternatives = try either(negated: false)
        guard place == text.count else { throw error("expected && or || here") }
        guard !alternatives.isEmpty else { throw node.error("can never hold") }
    }

    // MARK: Structure

    private mutating func either(negated: Bool) throws(ContainerError) -> [[Condition]] {
        try terms("||", joined: negated) { (parser: inout WhenExpression) throws(ContainerError) in
            try parser.all(negated: negated)
        }
    }

    private mutating func all(negated: Bool) throws(ContainerError) -> [[Condition]] {
        try terms("&&", joined: !negated) { (parser: inout WhenExpression) throws(ContainerError) in
            try parser.unary(negated: negated)
        }
    }

    /// Terms between operators; negated, "and" is "or" of the negated terms, and the other way round.
    private mutating func terms(
        _ word: String, joined: Bool, _ read: (inout WhenExpression) throws(ContainerError) -> [[Condition]]
    ) throws(ContainerError) -> [[Condition]] {
        var found = try read(&self)
        while take(word) {
            let next = try read(&self)
            found = try joined ? both(found, next) : oneOf(found + next)
        }
        return found
    }

    private mutating func unary(negated: Bool) throws(ContainerError) -> [[Condition]] {
        depth += 1
        defer { depth -= 1 }
        guard depth <= DocumentLimits.depth else {
            throw error("nested more than \(DocumentLimits.depth) levels deep", .limit)
        }
        if take("!") { return try unary(negated: !negated) }
        guard take("(") else { return try comparison(negated: negated) }
        let found = try either(negated: negated)
        guard take(")") else { throw error("expected ) here") }
        return found
    }

    private func both(_ left: [[Condition]], _ right: [[Condition]]) throws(ContainerError) -> [[Condition]] {
        var made: [[Condition]] = []
        for one in left {
            for other in right {
                let all = one + other.filter { !one.contains($0) }
                // A condition and its opposite never hold together.
                if !all.contains(where: { all.contains($0.negated) }) { made.append(all) }
            }
            made = try oneOf(made)
        }
        guard made.allSatisfy({ $0.count <= DocumentLimits.conditions }) else {
            throw node.error("has more than \(DocumentLimits.conditions) conditions at once", .limit)
        }
        return made
    }

    private func oneOf(_ alternatives: [[Condition]]) throws(ContainerError) -> [[Condition]] {
        var seen: Set<[Condition]> = []
        let made = alternatives.filter { seen.insert($0).inserted }
        guard made.count <= DocumentLimits.alternatives else {
            throw node.error(
                "has more than \(DocumentLimits.alternatives) alternatives: || within && multiplies them; split it into rules",
                .limit)
        }
        return made
    }

    // MARK: Comparisons

    private mutating func comparison(negated: Bool) throws(ContainerError) -> [[Condition]] {
        let macro = try operand()
        if take(word: "in") {
            guard take("[") else { throw error("expected a list such as [\"DE\", \"AT\"] here") }
            var values: [(Operand, Int)] = []
            repeat { values.append((try comparand(), place)) } while take(",")
            guard take("]") else { throw error("expected , or ] here") }
            let ignoreCase = take(word: "ignore_case")
            var found: [[Condition]] = []
            for (value, end) in values {
                let one = try condition(macro, .equals, value, negated, ignoreCase, until: end)
                found = try found.isEmpty || !negated ? oneOf(found + [[one]]) : both(found, [[one]])
            }
            return found
        }
        let operators: [(String, Condition.Predicate, Bool)] = [
            ("==", .equals, false), ("!=", .equals, true), ("<=", .lessOrEqual, false), (">=", .greaterOrEqual, false),
            ("<", .less, false), (">", .greater, false),
        ]
        var found = operators.first { take($0.0) }.map { ($0.1, $0.2) }
        for predicate in [Condition.Predicate.contains, .startsWith, .endsWith, .matches]
        where found == nil && take(word: predicate.rawValue) { found = (predicate, false) }
        guard let (predicate, isOpposite) = found else {
            throw error(
                "expected ==, !=, <, <=, >, >=, in, contains, starts_with, ends_with or matches here; write \(macro) == true for a truth value"
            )
        }
        let value = try comparand()
        let end = place
        let ignoreCase = take(word: "ignore_case")
        return [[try condition(macro, predicate, value, negated != isOpposite, ignoreCase, until: end)]]
    }

    private func condition(
        _ macro: String, _ predicate: Condition.Predicate, _ value: Operand, _ negate: Bool, _ ignoreCase: Bool,
        until end: Int
    ) throws(ContainerError) -> Condition {
        let made = Condition(
            macro: macro, predicate: predicate, comparand: value, negate: negate, ignoreCase: ignoreCase)
        try relaying(try made.check(node)) { (mistake: ContainerError) in
            error("what \(predicate.rawValue) compares with \(mistake.message)", mistake.code, at: end)
        }
        return made
    }

    private mutating func comparand() throws(ContainerError) -> Operand {
        skipBlanks()
        guard let byte = next else { throw error("expected a value here") }
        let start = place
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "'"): return .constant(.string(try string()))
        case UInt8(ascii: "-"), 0x30...0x39:
            while let byte = next, (0x30...0x39).contains(byte) || "+-.eE".utf8.contains(byte) { place += 1 }
            guard let number = try? KeptNumbers.read(Array(text[start..<place])) else {
                throw error("is not a number", at: start)
            }
            guard number.lost == nil else {
                throw error("has more digits than a number can hold; write it as a text", at: start)
            }
            return .constant(number.value)
        default: break
        }
        for (word, value) in [("true", JSONValue.bool(true)), ("false", .bool(false)), ("null", .null)]
        where take(word: word) { return .constant(value) }
        return .macro(try operand())
    }

    /// The macro that a name or a path stands for.
    private mutating func operand() throws(ContainerError) -> String {
        skipBlanks()
        let start = place
        if next == UInt8(ascii: "`") {
            let end = text[(place + 1)...].firstIndex(of: UInt8(ascii: "`")) ?? text.count
            let name = String(decoding: text[min(place + 1, end)..<end], as: UTF8.self)
            guard known.contains(name) else { throw error("there is no macro \(quoted(name))") }
            place = end + 1
            return name
        }
        var names = [word()]
        guard !names[0].isEmpty else { throw error("expected the name of a macro or a member here") }
        while let byte = next {
            if byte == UInt8(ascii: ".") {
                place += 1
                names.append(word())
            } else if byte == UInt8(ascii: "["), place + 1 < text.count, "\"'".utf8.contains(text[place + 1]) {
                place += 1
                names.append(try string())
                guard take("]") else { throw error("expected ] here") }
            } else {
                break
            }
        }
        let name = String(decoding: text[start..<place], as: UTF8.self)
        guard !names.contains(""), names.count <= DocumentLimits.depth else {
            throw error("\(quoted(name)) is not a path", at: start)
        }
        if known.contains(name) || names.count == 1 && StandardMacro(rawValue: name) != nil { return name }
        let rest = MemberPath(names: Array(names.dropFirst()))
        let kind: Macro.Kind
        switch (names[0], names.count) {
        case ("name", 1): kind = .standard(.event)
        case ("event", 2...): kind = .member(path: rest, default: .null)
        case ("properties", 2...), ("device", 2...): kind = .member(path: MemberPath(names: names), default: .null)
        case ("data_layer", 2...): kind = .dataLayer(path: rest, default: .null)
        default:
            throw error(
                "there is no macro \(quoted(name)); a member of events is event.\(name) or properties.\(name)",
                at: start)
        }
        if !macros.contains(where: { $0.name == name }) { macros.append(Macro(name: name, kind: kind)) }
        return name
    }

    // MARK: Words

    private var next: UInt8? { place < text.count ? text[place] : nil }

    private mutating func skipBlanks() {
        while let byte = next, byte == 0x20 || (0x09...0x0D).contains(byte) { place += 1 }
    }

    private mutating func take(_ sign: String) -> Bool {
        skipBlanks()
        guard text[place...].starts(with: sign.utf8) else { return false }
        // `!` begins `!=`, which is an operator.
        if sign == "!", text[place...].starts(with: "!=".utf8) { return false }
        place += sign.utf8.count
        skipBlanks()
        return true
    }

    private mutating func take(word wanted: String) -> Bool {
        skipBlanks()
        let start = place
        if word() == wanted {
            skipBlanks()
            return true
        }
        place = start
        return false
    }

    private mutating func word() -> String {
        let start = place
        while let byte = next,
            byte | 0x20 >= 0x61 && byte | 0x20 <= 0x7A || (0x30...0x39).contains(byte) || byte >= 0x80
                || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "-")
        { place += 1 }
        return String(decoding: text[start..<place], as: UTF8.self)
    }

    /// In double quotes as in JSON, in single ones as it is.
    private mutating func string() throws(ContainerError) -> String {
        let start = place
        let quote = text[place]
        place += 1
        while let byte = next, byte != quote {
            place += byte == UInt8(ascii: "\\") && quote == UInt8(ascii: "\"") ? 2 : 1
        }
        guard place < text.count else { throw error("the text does not end", at: start) }
        place += 1
        if quote == UInt8(ascii: "'") { return String(decoding: text[start + 1..<place - 1], as: UTF8.self) }
        guard case .string(let found)? = try? JSONValue(parsing: Array(text[start..<place])) else {
            throw error("is not a JSON text", at: start)
        }
        return found
    }

    private func error(
        _ message: String, _ code: ContainerError.Code = .form, at offset: Int? = nil
    ) -> ContainerError {
        let before = String(decoding: text[..<min(offset ?? place, text.count)], as: UTF8.self)
        return node.error("column \(before.unicodeScalars.count + 1): \(message)", code)
    }
}
