public import EventLoops
internal import Events
public import Model
internal import Schemas

/// A container's document as it was published: parsed, checked, immutable.
///
/// JSON (RFC 8259) with the members `id`, `version`, `expires`, `rollout`, `description`, `values`,
/// `macros`, `rules`, `tags`, `schemas` and `tests`. `id` and `version` are required, and unknown members
/// are errors, so that a misspelled one is noticed. A value of this type was checked as a whole: each name
/// in it is defined, no macro depends on itself, and `DocumentLimits` are kept. Only regular expressions
/// are checked later, when `CompiledContainer` compiles them.
public struct ContainerDocument: Sendable, Equatable {
    /// Id of the container: 1 to 64 of A-Z, a-z, 0-9, - and _.
    public let id: String
    /// Version, which grows with each publication, from 1; 0 for a file of values only.
    public private(set) var version = 0
    /// Time from which the document is refused; nil for never.
    public private(set) var expires: Timestamp?
    /// Share of the machines that take the document, in percent; nil for all.
    public private(set) var rollout: Double?
    /// Values by key, in the document's order.
    public let values: [Value]
    /// Macros in the document's order, then one for each path that expressions read. Standard macros need not
    /// be listed.
    public private(set) var macros: [Macro] = []
    /// Rules in the document's order, then those of tags' expressions. An expression is several rules of one
    /// name.
    public private(set) var rules: [Rule] = []
    /// Tags, in the order in which they act.
    public private(set) var tags: [Tag] = []
    /// Schemas of events, in the document's order.
    package private(set) var schemas: [DocumentSchema] = []
    /// Test cases, which `container test` runs.
    package private(set) var tests: [TestCase] = []

    /// Reads a document.
    ///
    /// - Throws: `limit`, `notJSON` or `form`, with the path in the document.
    public init(reading bytes: [UInt8]) throws(ContainerError) {
        guard bytes.count <= DocumentLimits.bytes else {
            throw ContainerError(
                .limit, "the document has \(bytes.count) bytes; at most \(DocumentLimits.bytes)")
        }
        try self.init(reading: DocumentNode(value: try ContainerDocument.json(bytes), path: ""))
    }

    /// The JSON value of a text. A number that would change by being read is an error: a rule must compare
    /// what the author wrote.
    static func json(_ bytes: [UInt8]) throws(ContainerError) -> JSONValue {
        let (value, lost) = try relaying(try KeptNumbers.read(bytes)) { (error: JSONError) in
            ContainerError(.notJSON, error.description)
        }
        if let number = lost?.number {
            throw ContainerError(
                .form,
                "the number \(number) has more digits than a number can hold; write it as a text, "
                    + "\(quoted(number))"
            )
        }
        return value
    }

    /// A document of values only, as in `ID.json` or `ID.plist`.
    ///
    /// - Throws: `form` for rules, tags or macros, which need a complete document, and for a complete
    ///   document in such a file, which would otherwise become values named `id` and `values`.
    public init(id: String, valuesOnly value: JSONValue) throws(ContainerError) {
        let node = DocumentNode(value: value, path: "")
        let members = try node.members(limit: DocumentLimits.values)
        for word in ["rules", "tags", "macros"]
        where members.value[word]?.members != nil || members.value[word]?.array != nil {
            throw node.error(
                "has \(word); a file of values only has none: name the file \(id), without an extension")
        }
        for word in ["id", "values"]
        where word == "id" ? members.value[word]?.string == id : members.value[word]?.members != nil {
            throw node.error(
                "has \(word), as a complete document has; name that \(id), without an extension, or write "
                    + "the keys of values at the top"
            )
        }
        self.id = try ContainerDocument.checkedID(DocumentNode(value: .string(id), path: "id"))
        values = try node.values(limit: DocumentLimits.values)
        try References(self).check()
    }

    /// Reads the members of a complete document.
    private init(reading node: DocumentNode) throws(ContainerError) {
        let members = try node.members(
            known: [
                "id", "version", "expires", "rollout", "description", "values", "macros", "rules", "tags",
                "schemas", "tests",
            ])
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
                "the rules have \(rules.count) alternatives; at most \(DocumentLimits.allAlternatives)",
                .limit)
        }
        try readSchemas(members)
        for node in try members.optional("tests")?.elements(limit: DocumentLimits.tests) ?? [] {
            tests.append(try TestCase(reading: node))
        }
        try References(self).check()
    }

    /// Reads and compiles the schemas, which share one budget.
    private mutating func readSchemas(_ members: DocumentNode) throws(ContainerError) {
        let limit = DocumentLimits.schemas
        guard let section = try members.optional("schemas")?.members(limit: limit) else { return }
        var budget = SchemaBudget()
        for (name, node) in section.all {
            schemas.append(try DocumentSchema(name, reading: node, of: (id, version), within: &budget))
        }
    }

    /// The rules of the configuration file as one document, so that they are applied as containers are.
    init(macros: [Macro], rules: [Rule], tags: [Tag]) throws(ContainerError) {
        id = WrittenRule.documentID
        values = []
        self.macros = macros
        self.rules = rules
        self.tags = tags
        guard rules.count <= DocumentLimits.allAlternatives else {
            throw ContainerError(
                .limit,
                "the rules have \(rules.count) alternatives; at most \(DocumentLimits.allAlternatives)")
        }
        try References(self).check()
    }

    /// An id that is allowed. It is part of file names, URLs and metrics.
    private static func checkedID(_ node: DocumentNode) throws(ContainerError) -> String {
        let id = try node.text()
        guard (1...64).contains(id.utf8.count), id.hasOnlyLettersDigits(and: "-_") else {
            throw node.error("must have 1 to 64 of A-Z, a-z, 0-9, - and _")
        }
        return id
    }
}
