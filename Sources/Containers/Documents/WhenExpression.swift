internal import Events
internal import Model

/// A condition as one expression: `name == "Order paid" && (properties.amount > 100 || country in ["DE",
/// "AT"])`.
///
/// It becomes alternatives of conditions, the disjunctive normal form, which are compiled like those of
/// rules: nothing is interpreted for an event. `&&` between several `||` multiplies alternatives;
/// `DocumentLimits.alternatives` bounds them.
///
/// A name is a macro of the document, a standard macro, `name`, or a path that begins with `properties`,
/// `device`, `event` (any member of the event) or `data_layer`. Other names are mistakes, so that misspelled
/// ones are noticed.
///
/// Comparisons of order take levels by severity (`level < 'info'`) and sizes by bytes (`properties.size >
/// '10MB'`).
struct WhenExpression {
    /// Where the expression is written.
    enum Source {
        /// In a document.
        case document
        /// In the configuration: equality with an unknown level is a mistake, and `warning` means `warn`;
        /// in a document the level is compared as a text.
        case configuration
    }

    /// The alternatives; one of them must hold as a whole.
    private(set) var alternatives: [[Condition]] = []
    /// Macros that the paths of the expression stand for.
    private(set) var macros: [Macro] = []

    /// The node, for errors.
    private let node: DocumentNode
    /// The text.
    private let text: [UInt8]
    /// Names of the document's macros.
    private let known: Set<String>
    /// Where the expression is written.
    private let source: Source
    /// Offset of the next byte.
    private var position = 0
    /// Number of open parentheses and negations; bounded, because the parser is recursive.
    private var depth = 0

    /// Reads an expression.
    ///
    /// - Parameter known: names of the document's macros.
    /// - Throws: `ContainerError` with the column in the expression, in characters from 1.
    init(reading node: DocumentNode, known: Set<String>, in source: Source = .document) throws(ContainerError)
    {
        try self.init(node, known, source)
        alternatives = try either(negated: false)
        // A complete text was read: what is left is a mistake.
        guard self.position == text.count else { throw error("expected && or || here") }
        // Each alternative had a condition together with its opposite.
        guard !alternatives.isEmpty else { throw node.error("can never hold") }
    }

    /// A parser at the beginning of the text.
    private init(_ node: DocumentNode, _ known: Set<String>, _ source: Source) throws(ContainerError) {
        self.node = node
        self.known = known
        self.source = source
        text = try node.text(limit: DocumentLimits.whenBytes).bytes
    }

    /// The macro that a single name stands for, as in the `by` of a rule. A new macro is added to `macros`.
    static func macro(
        named node: DocumentNode, macros: inout [Macro], in source: Source
    ) throws(ContainerError) -> String {
        var parser = try WhenExpression(node, Set(macros.map(\.name)), source)
        let name = try parser.operand()
        guard parser.position == parser.text.count else { throw parser.error("expected nothing more here") }
        macros += parser.macros
        return name
    }

    // MARK: Structure

    /// Reads terms between `||`, the weakest operator.
    private mutating func either(negated: Bool) throws(ContainerError) -> [[Condition]] {
        try terms("||", joined: negated) { (parser: inout WhenExpression) throws(ContainerError) in
            try parser.all(negated: negated)
        }
    }

    /// Reads terms between `&&`.
    private mutating func all(negated: Bool) throws(ContainerError) -> [[Condition]] {
        try terms("&&", joined: !negated) { (parser: inout WhenExpression) throws(ContainerError) in
            try parser.unary(negated: negated)
        }
    }

    /// Reads terms between operators. Negated, "and" is the "or" of the negated terms, and the other way
    /// round (De Morgan).
    private mutating func terms(
        _ word: String, joined: Bool, _ read: (inout WhenExpression) throws(ContainerError) -> [[Condition]]
    ) throws(ContainerError) -> [[Condition]] {
        var found = try read(&self)
        while consume(word) {
            let next = try read(&self)
            found = try joined ? both(found, next) : oneOf(found + next)
        }
        return found
    }

    /// Reads a comparison, a negation or an expression in parentheses.
    private mutating func unary(negated: Bool) throws(ContainerError) -> [[Condition]] {
        depth += 1
        defer { depth -= 1 }
        guard depth <= DocumentLimits.depth else {
            throw error("nested more than \(DocumentLimits.depth) levels deep", .limit)
        }
        // The negation is carried down to the comparisons, so that no node for "not" is needed.
        if consume("!") { return try unary(negated: !negated) }
        guard consume("(") else { return try comparison(negated: negated) }
        let found = try either(negated: negated)
        guard consume(")") else { throw error("expected ) here") }
        return found
    }

    /// The alternatives of two terms that must both hold: each of one with each of the other.
    private func both(_ left: [[Condition]], _ right: [[Condition]]) throws(ContainerError) -> [[Condition]] {
        var made: [[Condition]] = []
        for one in left {
            for other in right {
                let all = one + other.filter { !one.contains($0) }
                // A condition and its opposite never hold together.
                if !all.contains(where: { all.contains($0.negated) }) {
                    made.append(all)
                }
            }
            // Checked for each term, so that the list cannot grow far beyond the limit in between.
            made = try oneOf(made)
        }
        guard made.allSatisfy({ $0.count <= DocumentLimits.conditions }) else {
            throw node.error("has more than \(DocumentLimits.conditions) conditions at once", .limit)
        }
        return made
    }

    /// Alternatives without duplicates, within the limit.
    private func oneOf(_ alternatives: [[Condition]]) throws(ContainerError) -> [[Condition]] {
        var seen: Set<[Condition]> = []
        let made = alternatives.filter { seen.insert($0).inserted }
        guard made.count <= DocumentLimits.alternatives else {
            throw node.error(
                "has more than \(DocumentLimits.alternatives) alternatives: || within && multiplies them; "
                    + "split it into rules",
                .limit)
        }
        return made
    }

    // MARK: Comparisons

    /// Reads a comparison. `in` with a list is an alternative for each value.
    private mutating func comparison(negated: Bool) throws(ContainerError) -> [[Condition]] {
        let macro = try operand()
        if consume(word: "in") {
            guard consume("[") else { throw error("expected a list such as [\"DE\", \"AT\"] here") }
            var values: [(Operand, Range<Int>)] = []
            repeat { values.append(try rangedComparand()) } while consume(",")
            guard consume("]") else { throw error("expected , or ] here") }
            let ignoreCase = consume(word: "ignore_case")
            var found: [[Condition]] = []
            for (value, range) in values {
                let one = try condition(macro, .equals, value, negated, ignoreCase, at: range)
                // `in [a, b]` is `a || b`; `!(x in [a, b])` is `!a && !b`.
                found = try found.isEmpty || !negated ? oneOf(found + [[one]]) : both(found, [[one]])
            }
            return found
        }
        let isOpposite = consume("!=")
        guard let predicate = isOpposite ? .equals : predicate() else {
            throw error(
                "expected ==, !=, <, <=, >, >=, in, contains, starts_with, ends_with or matches here; write "
                    + "\(macro) == true for a truth value"
            )
        }
        let (value, range) = try rangedComparand()
        let ignoreCase = consume(word: "ignore_case")
        return [[try condition(macro, predicate, value, negated != isOpposite, ignoreCase, at: range)]]
    }

    /// Reads an operator; nil if something else is next.
    private mutating func predicate() -> Condition.Predicate? {
        // Longer operators first: `<=` begins with `<`.
        let byLength = Condition.Predicate.allCases.sorted {
            $0.inExpressions.utf8.count > $1.inExpressions.utf8.count
        }
        return byLength.first { predicate in
            let form = predicate.inExpressions
            return form == predicate.rawValue ? consume(word: form) : consume(form)
        }
    }

    /// Reads the value of a comparison, and returns its range in the text, for errors.
    private mutating func rangedComparand() throws(ContainerError) -> (value: Operand, range: Range<Int>) {
        skipBlanks()
        let start = position
        let value = try comparand()
        return (value, start..<max(start, position))
    }

    /// A condition, in which levels and sizes are replaced by numbers.
    private func condition(
        _ macro: String, _ predicate: Condition.Predicate, _ value: Operand, _ negate: Bool,
        _ ignoreCase: Bool,
        at range: Range<Int>
    ) throws(ContainerError) -> Condition {
        var macro = macro
        var value = value
        if case .constant(.string(let text)) = value {
            if macro == StandardMacro.level.rawValue, !known.contains(macro) {
                (macro, value) = try level(text, predicate, at: range.lowerBound)
            } else if predicate.isOrder, let bytes = WhenExpression.bytes(of: text) {
                value = .constant(.integer(bytes))
            }
        }
        let made = Condition(
            macro: macro, predicate: predicate, comparand: value, negate: negate, ignoreCase: ignoreCase)
        try relaying(try made.check(node)) { (mistake: ContainerError) in
            error(
                "what \(predicate.rawValue) compares with \(mistake.message)", mistake.code,
                at: range.upperBound)
        }
        return made
    }

    /// What a level is compared as: by order the number of its severity, otherwise the word that the macro
    /// gives.
    private func level(
        _ text: String, _ predicate: Condition.Predicate, at start: Int
    ) throws(ContainerError) -> (macro: String, value: Operand) {
        let isName = predicate.isOrder || predicate == .equals && source == .configuration
        guard isName else { return (StandardMacro.level.rawValue, .constant(.string(text))) }
        guard let level = Severity(text: text)?.level else {
            let known = SeverityLevel.allCases.map(\.rawValue).joined(separator: ", ")
            throw error("there is no level \(quoted(text)); levels are \(known)", at: start)
        }
        guard predicate.isOrder else {
            return (StandardMacro.level.rawValue, .constant(.string(level.rawValue)))
        }
        return (StandardMacro.severity.rawValue, .constant(.integer(Severity(level).number)))
    }

    /// The bytes of a size such as `10MB` or `1.5KiB`; nil for another text.
    private static func bytes(of text: String) -> Int? {
        let units = [
            "B": 1, "kB": 1_000, "KB": 1_000, "MB": 1_000_000, "GB": 1_000_000_000, "KiB": 1 << 10,
            "MiB": 1 << 20,
            "GiB": 1 << 30,
        ]
        let digits = text.prefix { $0.isASCII && $0.isNumber || $0 == "." }
        guard digits.utf8.count <= 12, let number = Double(digits),
            let unit = units[String(text[digits.endIndex...])]
        else { return nil }
        return Int(exactly: number * Double(unit))
    }

    /// Reads a value: a text, a number, `true`, `false`, `null`, or a name.
    private mutating func comparand() throws(ContainerError) -> Operand {
        skipBlanks()
        guard let byte = next else { throw error("expected a value here") }
        let start = position
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "'"): return .constant(.string(try string()))
        case UInt8(ascii: "-"), 0x30...0x39:
            while let byte = next, (0x30...0x39).contains(byte) || "+-.eE".utf8.contains(byte) {
                position += 1
            }
            guard let number = try? KeptNumbers.read(Array(text[start..<position])) else {
                throw error("is not a number", at: start)
            }
            guard number.lost == nil else {
                throw error("has more digits than a number can hold; write it as a text", at: start)
            }
            return .constant(number.value)
        default: break
        }
        for (word, value) in [("true", JSONValue.bool(true)), ("false", .bool(false)), ("null", .null)]
        where consume(word: word) { return .constant(value) }
        return .macro(try operand())
    }

    /// Reads a name or a path, and returns the macro that it stands for. Backquotes allow any name of a
    /// macro.
    private mutating func operand() throws(ContainerError) -> String {
        skipBlanks()
        let start = position
        if next == UInt8(ascii: "`") {
            let end = text[(position + 1)...].firstIndex(of: UInt8(ascii: "`")) ?? text.count
            let name = String(decoding: text[min(position + 1, end)..<end], as: UTF8.self)
            guard known.contains(name) else { throw error("there is no macro \(quoted(name))") }
            position = end + 1
            return name
        }
        var names = [word()]
        guard !names[0].isEmpty else {
            throw error(
                source == .configuration
                    ? "expected a name here, such as app, level or properties.user"
                    : "expected the name of a macro or a member here")
        }
        while let byte = next {
            if byte == UInt8(ascii: ".") {
                position += 1
                names.append(word())
            } else if byte == UInt8(ascii: "["), position + 1 < text.count,
                "\"'".utf8.contains(text[position + 1])
            {
                position += 1
                names.append(try string())
                guard consume("]") else { throw error("expected ] here") }
            } else {
                break
            }
        }
        let name = String(decoding: text[start..<position], as: UTF8.self)
        if names == ["destination"], !known.contains(name), source == .configuration {
            throw error(
                "rules act before events are divided among destinations; name those that get the event with "
                    + "send_to",
                at: start)
        }
        guard !names.contains(""), names.count <= DocumentLimits.depth else {
            throw error("\(quoted(name)) is not a path", at: start)
        }
        if known.contains(name) || names.count == 1 && StandardMacro(rawValue: name) != nil { return name }
        let rest = MemberPath(names: Array(names.dropFirst()))
        let kind: Macro.Kind
        switch (names[0], names.count) {
        case ("name", 1): kind = .standard(.event)
        case ("event", 2...): kind = .member(path: rest, default: .null)
        case ("properties", 2...), ("device", 2...):
            kind = .member(path: MemberPath(names: names), default: .null)
        case ("data_layer", 2...): kind = .dataLayer(path: rest, default: .null)
        default:
            let what = source == .document ? "macro" : "name"
            throw error(
                "there is no \(what) \(quoted(name)); a member of events is event.\(name) or "
                    + "properties.\(name)",
                at: start)
        }
        if !macros.contains(where: { $0.name == name }) {
            macros.append(Macro(name: name, kind: kind))
        }
        return name
    }

    // MARK: Words

    /// The next byte; nil at the end.
    private var next: UInt8? { position < text.count ? text[position] : nil }

    /// Steps over blanks.
    private mutating func skipBlanks() {
        while let byte = next, byte == 0x20 || (0x09...0x0D).contains(byte) { position += 1 }
    }

    /// Consumes a sign and the blanks around it; returns false if another text is next.
    private mutating func consume(_ sign: String) -> Bool {
        skipBlanks()
        guard text[position...].starts(with: sign.utf8) else { return false }
        // `!` begins `!=`, which is an operator.
        if sign == "!", text[position...].starts(with: "!=".utf8) { return false }
        position += sign.utf8.count
        skipBlanks()
        return true
    }

    /// Consumes the word `wanted` and the blanks around it; returns false, and consumes nothing, if another
    /// word is next.
    private mutating func consume(word wanted: String) -> Bool {
        skipBlanks()
        let start = position
        if word() == wanted {
            skipBlanks()
            return true
        }
        position = start
        return false
    }

    /// Reads a word: letters, digits, `_`, `-` and characters beyond ASCII. May be empty.
    private mutating func word() -> String {
        let start = position
        while let byte = next,
            byte | 0x20 >= 0x61 && byte | 0x20 <= 0x7A || (0x30...0x39).contains(byte) || byte >= 0x80
                || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "-")
        { position += 1 }
        return String(decoding: text[start..<position], as: UTF8.self)
    }

    /// Reads a text: in double quotes with JSON's escapes, in single quotes without any.
    private mutating func string() throws(ContainerError) -> String {
        let start = position
        let quote = text[position]
        position += 1
        while let byte = next, byte != quote {
            position += byte == UInt8(ascii: "\\") && quote == UInt8(ascii: "\"") ? 2 : 1
        }
        guard position < text.count else { throw error("the text does not end", at: start) }
        position += 1
        if quote == UInt8(ascii: "'") {
            return String(decoding: text[start + 1..<position - 1], as: UTF8.self)
        }
        guard case .string(let found)? = try? JSONValue(parsing: Array(text[start..<position])) else {
            throw error("is not a JSON text", at: start)
        }
        return found
    }

    /// An error at an offset of the expression, by default at the current position.
    private func error(
        _ message: String, _ code: ContainerError.Code = .form, at offset: Int? = nil
    ) -> ContainerError {
        let before = String(decoding: text[..<min(offset ?? position, text.count)], as: UTF8.self)
        let column = before.unicodeScalars.count + 1
        return ContainerError(code, at: node.path, "column \(column): \(message)", column: column)
    }
}

extension Condition.Predicate {
    /// How an expression writes it: an operator, or its own word. The compiler asks for the form of a new
    /// predicate, which would otherwise work in `conditions` and not in `when`.
    var inExpressions: String {
        switch self {
        case .equals: "=="
        case .less: "<"
        case .lessOrEqual: "<="
        case .greater: ">"
        case .greaterOrEqual: ">="
        case .contains, .startsWith, .endsWith, .matches: rawValue
        }
    }
}
