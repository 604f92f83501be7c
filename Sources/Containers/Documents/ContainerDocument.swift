public import EventLoops
internal import Events
public import Model

/// A container's document as it was published: parsed, checked, immutable.
///
/// JSON (RFC 8259) with the members `id`, `version`, `expires`, `description`, `values`, `macros`, `rules`, `tags` and
/// `tests`; `id` and `version` are needed, unknown members are errors. A value of this type was checked as a whole:
/// every name in it is defined, no macro needs itself, `DocumentLimits` are kept. `CompiledContainer` compiles, and
/// refuses, regular expressions.
public struct ContainerDocument: Sendable, Equatable {
    /// Which container it is: 1 to 64 of A-Z, a-z, 0-9, - and _.
    public let id: String
    /// Grows with each publication; 0 for a file of values only.
    public private(set) var version = 0
    /// From then on it is refused; nil for never.
    public private(set) var expires: Timestamp?
    /// The share of the machines that take it, in percent; nil for all.
    public private(set) var rollout: Double?
    /// Values by key, in their order.
    public let values: [Value]
    /// Macros, in their order, then those that paths in expressions stand for; the standard ones need not be listed.
    public private(set) var macros: [Macro] = []
    /// Rules, in their order, then those of tags' expressions.
    public private(set) var rules: [Rule] = []
    /// Tags, in the order in which they act.
    public private(set) var tags: [Tag] = []
    package private(set) var tests: [TestCase] = []

    /// - Throws: `ContainerError` with the codes `limit`, `notJSON` and `form`, and the place in the document.
    public init(reading bytes: [UInt8]) throws(ContainerError) {
        guard bytes.count <= DocumentLimits.bytes else {
            throw ContainerError(.limit, "the document has \(bytes.count) bytes; at most \(DocumentLimits.bytes)")
        }
        try self.init(reading: DocumentNode(value: try ContainerDocument.json(bytes), path: ""))
    }

    /// A value whose numbers are all kept as they are spelled.
    static func json(_ bytes: [UInt8]) throws(ContainerError) -> JSONValue {
        let (value, lost) = try relaying(try KeptNumbers.read(bytes)) { (error: JSONError) in
            ContainerError(.notJSON, error.description)
        }
        if let number = lost {
            throw ContainerError(
                .form,
                "the number \(number) has more digits than a number can hold; write it as a text, \(quoted(number))")
        }
        return value
    }

    /// Values only, as in `ID.json` or `ID.plist` (tm02); throws for rules or tags: those need a complete document.
    public init(id: String, valuesOnly value: JSONValue) throws(ContainerError) {
        let node = DocumentNode(value: value, path: "")
        let members = try node.members(limit: DocumentLimits.values)
        for word in ["rules", "tags", "macros"]
        where members.value[word]?.members != nil || members.value[word]?.array != nil {
            throw node.error("has \(word); a file of values only has none: name the file \(id), without an extension")
        }
        for word in ["id", "values"]
        where word == "id" ? members.value[word]?.string == id : members.value[word]?.members != nil {
            throw node.error(
                "has \(word), as a complete document has; name that \(id), without an extension, or write the keys of values at the top"
            )
        }
        self.id = try ContainerDocument.checkedID(DocumentNode(value: .string(id), path: "id"))
        values = try node.values(limit: DocumentLimits.values)
        try References(self).check()
    }

    private init(reading node: DocumentNode) throws(ContainerError) {
        let members = try node.members(
            known: ["id", "version", "expires", "rollout", "description", "values", "macros", "rules", "tags", "tests"])
        id = try ContainerDocument.checkedID(try members.required("id"))
        version = try members.required("version").integer(1...Int(Int32.max))
        expires = try members.optional("expires").map { node throws(ContainerError) in
            var text = try node.text(limit: 64)
            guard let time = text.withUTF8({ TimestampText.parse($0) }) else {
                throw node.error("must be a time such as \"2027-01-01T00:00:00Z\"")
            }
            return time
        }
        rollout = try members.optional("rollout")?.rolloutPercent()
        _ = try members.optional("description")?.text()
        values = try members.optional("values")?.values(limit: DocumentLimits.values) ?? []
        for (name, node) in try members.optional("macros")?.members(limit: DocumentLimits.macros).all ?? [] {
            try node.checkName(name)
            macros.append(try Macro(name: name, reading: node))
        }
        for (name, node) in try members.optional("rules")?.members(limit: DocumentLimits.rules).all ?? [] {
            try node.checkName(name)
            rules += try Rule.alternatives(name: name, reading: node, macros: &macros)
        }
        for node in try members.optional("tags")?.elements(limit: DocumentLimits.tags) ?? [] {
            let tag = try Tag(reading: node)
            tags.append(tag)
            guard let when = node.optional("when") else { continue }
            guard !rules.contains(where: { $0.name == tag.name }) else {
                throw node.error("there is already a rule \(quoted(tag.name)), the name that when would use")
            }
            rules += try Rule.alternatives(name: tag.name, when: when, path: node.path, macros: &macros)
        }
        guard rules.count <= DocumentLimits.allAlternatives else {
            throw node.error(
                "the rules have \(rules.count) alternatives; at most \(DocumentLimits.allAlternatives)", .limit)
        }
        for node in try members.optional("tests")?.elements(limit: DocumentLimits.tests) ?? [] {
            tests.append(try TestCase(reading: node))
        }
        try References(self).check()
    }

    private static func checkedID(_ node: DocumentNode) throws(ContainerError) -> String {
        let id = try node.text()
        guard (1...64).contains(id.utf8.count), id.hasOnlyLettersDigits(and: "-_") else {
            throw node.error("must have 1 to 64 of A-Z, a-z, 0-9, - and _")
        }
        return id
    }
}
