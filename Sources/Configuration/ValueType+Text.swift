internal import Model

extension ValueType where Value: CaseIterable & RawRepresentable, Value.RawValue == String {
    /// One of the words of an enum.
    static var choice: ValueType { choice(by: \.rawValue) }
}

extension ValueType where Value: CaseIterable {
    /// One of some words; by default those of all cases.
    static func choice(
        by word: any KeyPath<Value, String> & Sendable, of allowed: [Value] = Array(Value.allCases)
    ) -> ValueType {
        let words = allowed.map { $0[keyPath: word] }
        return ValueType("choice", range: words.joined(separator: ", ")) { node throws(Problem) in
            guard case .string(let text) = node.value else {
                throw .wrongType("one of " + words.map { "\"\($0)\"" }.joined(separator: ", "), node)
            }
            guard let value = allowed.first(where: { $0[keyPath: word] == text }) else {
                // The most similar word, if one is similar enough to be meant.
                let meant =
                    nearestName(to: text.lowercased(), among: words).map { "; did you mean \"\($0)\"?" } ?? ""
                throw Problem(
                    .outOfRange,
                    "is \(SettingValue.quote(text)); must be one of \(words.joined(separator: ", "))\(meant)")
            }
            return value
        } print: {
            .string($0[keyPath: word])
        }
    }
}

extension ValueType where Value == String {
    /// Text that is written as it is.
    init(_ name: String, range: String, parse: @escaping @Sendable (TOMLNode) throws(Problem) -> String) {
        self.init(name, range: range, parse: parse) { .string($0) }
    }

    /// Text of 1 to `maxLength` bytes without control characters, so that it stays on one line of a log.
    static func text(_ name: String = "string", range: String = "", maxLength: Int = 1024) -> ValueType {
        ValueType(name, range: range) { node throws(Problem) in
            guard case .string(let text) = node.value else { throw .wrongType("a string", node) }
            // Empty texts are almost always a variable or a template that was not filled in.
            guard !text.isEmpty else { throw Problem(.outOfRange, "is empty") }
            guard text.utf8.count <= maxLength else {
                throw Problem(.outOfRange, "is \(text.utf8.count) bytes long; must be at most \(maxLength)")
            }
            guard text.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F }) else {
                throw Problem(.outOfRange, "contains a control character")
            }
            return text
        }
    }

    /// An absolute path of at most PATH_MAX - 1 bytes.
    static var path: ValueType { path("absolute", maxLength: 4095) }

    /// An absolute path of at most `maxLength` bytes.
    static func path(_ range: String, maxLength: Int) -> ValueType {
        checked("path", range: range, mustBe: "an absolute path, beginning with /", maxLength: maxLength) {
            $0.hasPrefix("/")
        }
    }

    /// A text that a test accepts; `wanted` completes "must be" in the message for others.
    static func checked(
        _ name: String, range: String = "", mustBe wanted: String, maxLength: Int = 1024,
        _ accepts: @escaping @Sendable (String) -> Bool
    ) -> ValueType {
        let text = text(name, range: range, maxLength: maxLength)
        return ValueType(name, range: range) { node throws(Problem) in
            let value = try text.parse(node)
            guard accepts(value) else {
                throw Problem(.outOfRange, "is \(SettingValue.quote(value)); must be \(wanted)")
            }
            return value
        }
    }

    /// The name of a destination. It becomes a metric label and an argument of commands, so it has few
    /// characters.
    static var destinationName: ValueType {
        checked("name", range: "a-z, 0-9, _ and -, at most 40", mustBe: "1 to 40 of a-z, 0-9, _ and -") {
            name in
            (1...40).contains(name.utf8.count) && name.hasOnlyLettersDigits(and: "-_")
                && name.lowercased() == name
        }
    }

    /// A country by ISO 3166-1 alpha-2: capital or small letters are read, capitals are kept.
    static var country: ValueType {
        let wanted = "two letters by ISO 3166-1, such as \"IT\""
        let code = checked("country code", range: "ISO 3166-1 alpha-2", mustBe: wanted) {
            CountryCodes.all.contains($0.uppercased())
        }
        return ValueType(code.name, range: code.range) { node throws(Problem) in
            try code.parse(node).uppercased()
        }
    }
}

extension ValueType where Value == Template {
    /// Text with placeholders that events fill in; `place` says what it may contain.
    static func template(_ place: Template.Place) -> ValueType {
        let text = ValueType<String>.text()
        return ValueType("template") { node throws(Problem) in
            // An empty label removes the default one.
            if place == .label, case .string("") = node.value { return "" }
            let value = try text.parse(node)
            return try relaying(try Template(value, for: place)) { (mistake: Template.Mistake) in
                Problem(.outOfRange, "is \(SettingValue.quote(value)); \(mistake.message)")
            }
        } print: {
            .string($0.text)
        }
    }
}

extension ValueType where Value == Secret {
    /// A secret. 8 KiB have room for tokens such as JWTs.
    static var secret: ValueType {
        let text = ValueType<String>.text("secret", maxLength: 8192)
        return ValueType(text.name) { node throws(Problem) in
            Secret(try text.parse(node))
        } print: {
            .secret($0)
        }
    }
}

extension ValueType where Value == SecretSource {
    /// A secret: itself, `file:/path`, or `credential:name`. One that begins with `file:`, `credential:` or
    /// `text:` is written behind `text:`. 8 KiB have room for tokens such as JWTs.
    static var secretSource: ValueType { source(isInline: true) }

    /// A secret that is too long for a line: `file:/path` or `credential:name`.
    static var secretFile: ValueType { source(isInline: false) }

    private static func source(isInline: Bool) -> ValueType {
        let text = ValueType<String>.text(maxLength: 8192)
        let places = "file:/path or credential:name"
        return ValueType(
            isInline ? "secret" : "place of a secret", range: isInline ? "text, \(places)" : places
        ) { node throws(Problem) in
            let value = try text.parse(node)
            // The value may be the secret itself, so no message quotes it.
            if let path = value.behind("file:") {
                guard path.hasPrefix("/"), path.utf8.count <= 4095 else {
                    throw Problem(
                        .outOfRange,
                        "must have an absolute path after file:"
                            + (isInline ? "; a secret that begins so is written text:file:…" : ""))
                }
                return .file(path)
            }
            if let name = value.behind("credential:") {
                return try relaying(
                    .credential(try SecretSource.credentialNameType.parse(TOMLNode(value: .string(name))))
                ) { (_: Problem) in
                    Problem(
                        .outOfRange,
                        "must have a credential's name after credential: (letters, digits, _, - and .)"
                            + (isInline ? "; a secret that begins so is written text:credential:…" : ""))
                }
            }
            guard isInline else {
                throw Problem(
                    .outOfRange, "must be \"file:\" and an absolute path, or \"credential:\" and a name")
            }
            let secret = value.behind("text:") ?? value
            guard !secret.isEmpty else { throw Problem(.outOfRange, "is empty") }
            return .inline(Secret(secret))
        } print: { source in
            switch source {
            case .inline(let secret): .secret(secret)
            case .file(let path): .string("file:\(path)")
            case .credential(let name): .string("credential:\(name)")
            }
        }
    }
}

extension String {
    /// What follows a beginning; nil if the text begins otherwise.
    fileprivate func behind(_ beginning: String) -> String? {
        hasPrefix(beginning) ? String(dropFirst(beginning.count)) : nil
    }
}

extension ValueType {
    /// A list of values.
    ///
    /// - Parameters:
    ///   - count: how many values are allowed.
    ///   - unique: whether a duplicate is a mistake.
    static func list<Element>(
        of element: ValueType<Element>, count: ClosedRange<Int> = 0...1000, unique: Bool = false
    ) -> ValueType where Value == [Element] {
        ValueType("list of \(element.name)", range: element.range) { node throws(Problem) in
            // 1000 values by default: more are a mistake, and each is checked against all others if they must
            // be unique.
            guard case .array(let nodes) = node.value else { throw .wrongType("a list, as [\"…\"]", node) }
            guard count.contains(nodes.count) else {
                throw Problem(
                    .outOfRange,
                    "has \(nodes.count) values; must have \(count.lowerBound) to \(count.upperBound)")
            }
            var values: [Element] = []
            for node in nodes {
                // The message says which value is wrong; its place is the element's if the type knows no
                // closer one.
                let value = try relaying(try element.parse(node)) { (error: Problem) in
                    Problem(
                        error.code, "has a value that " + error.message, at: error.position ?? node.position)
                }
                if unique && values.contains(value) {
                    throw Problem(.conflict, "has a value twice", at: node.position)
                }
                values.append(value)
            }
            return values
        } print: { values in
            .array(values.compactMap { element.print($0) })
        }
    }

    /// A table of values by name.
    ///
    /// - Parameters:
    ///   - names: what names are allowed, for messages.
    ///   - accepts: whether a name is allowed.
    static func map<Element>(
        of element: ValueType<Element>, names: String = "any name",
        accepts: @escaping @Sendable (String) -> Bool = { !$0.isEmpty }
    ) -> ValueType where Value == [String: Element] {
        ValueType("table of \(element.name)", range: element.range) { node throws(Problem) in
            guard case .table(let members) = node.value else {
                throw .wrongType("a table, such as { name = … }", node)
            }
            guard members.count <= 1000 else { throw Problem(.outOfRange, "has more than 1000 members") }
            var values: [String: Element] = [:]
            for member in members {
                // A name that is not allowed is reported at the name, a value at the value.
                guard accepts(member.key) else {
                    throw Problem(
                        .unknownKey, "has the name \(SettingValue.quote(member.key)); names are \(names)",
                        at: member.keyPosition)
                }
                values[member.key] = try relaying(try element.parse(member.node)) { (error: Problem) in
                    Problem(
                        error.code, "has \(SettingValue.quote(member.key)), which " + error.message,
                        at: error.position ?? member.node.position)
                }
            }
            return values
        } print: { values in
            .table(
                // Sorted, because a dictionary has no order and output must not change between runs.
                values.sorted { $0.key < $1.key }.compactMap { name, value in
                    element.print(value).map { SettingValue.Member(name: name, value: $0) }
                })
        }
    }
}

extension ValueType where Value == [String] {
    /// Names of members, or paths with dots, in order of precedence.
    static var members: ValueType {
        let path = ValueType<String>.checked(
            "string", mustBe: "a member's name, or a path with dots such as record.message"
        ) { text in
            !text.split(separator: ".", omittingEmptySubsequences: false).contains { $0.isEmpty }
        }
        return .list(of: path, count: 1...16, unique: true)
    }
}
