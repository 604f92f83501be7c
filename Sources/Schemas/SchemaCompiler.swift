internal import Model

/// What the schemas of one document may still use. A container's document has several schemas, which share a
/// budget: the document comes from the network and must not take more memory than a file of the operator.
package struct SchemaBudget: Sendable {
    /// Schemas within schemas that are left.
    var nodes = SchemaBudget.nodes
    /// Expressions that are left; each may take 256 KiB of memory.
    var patterns = SchemaBudget.patterns

    /// Most schemas of one document, nested ones included.
    package static let nodes = 4096
    /// Most expressions of one document.
    package static let patterns = 64

    package init() {}
}

/// Makes nodes of a document: one for each schema in it, and one for each place that `$ref` names.
///
/// Unknown keywords are errors, and so is everything whose check would not be complete.
struct SchemaCompiler {
    /// The whole document; `$ref` starts here.
    private let root: JSONValue
    /// Indexes of nodes by JSON Pointer. A schema that was met already is not compiled again, which also ends
    /// recursion through `$ref`.
    private var places: [String: Int] = [:]
    /// The compiled content of each node; nil while its schema is being compiled.
    private var contents: [SchemaNode.Content?] = []
    /// What the document may still use.
    private var budget: SchemaBudget

    /// Most names in one `required`: each has a bit of 64.
    static let mostRequired = 64
    /// Most values of one `enum`; they are compared one after the other.
    static let mostValues = 1024

    /// Compiles a document.
    ///
    /// - Parameter budget: what the document may use; lowered by what it does use.
    /// - Throws: `SchemaError` with the place of what cannot be used.
    static func compile(
        _ root: JSONValue, within budget: inout SchemaBudget
    ) throws(SchemaError) -> SchemaDocument {
        var compiler = SchemaCompiler(root: root, budget: budget)
        _ = try compiler.nodeIndex(of: root, at: "")
        budget = compiler.budget
        let contents = compiler.contents.compactMap { $0 }
        try compiler.refuseCircles(in: contents)
        return SchemaDocument(contents.map { SchemaNode($0) })
    }

    private init(root: JSONValue, budget: SchemaBudget) {
        self.root = root
        self.budget = budget
    }

    /// Keywords that check nothing. `format` is one by default in draft 2020-12 (Validation, section 7.2.1).
    private static let annotations: Set<String> = [
        "title", "description", "default", "examples", "$schema", "$comment", "deprecated", "readOnly",
        "writeOnly",
        "format", "contentEncoding", "contentMediaType", "version",
    ]

    /// Index of a schema's node, which is made when the schema is first met.
    private mutating func nodeIndex(of schema: JSONValue, at pointer: String) throws(SchemaError) -> Int {
        if let known = places[pointer] { return known }
        let index = contents.count
        budget.nodes -= 1
        guard budget.nodes >= 0 else {
            throw SchemaError(at: pointer, "the document has more than \(SchemaBudget.nodes) schemas")
        }
        // Reserve the index before the content is compiled: the schema may refer to itself.
        places[pointer] = index
        contents.append(nil)
        contents[index] = try content(of: schema, at: pointer)
        return index
    }

    /// What a schema says.
    private mutating func content(of schema: JSONValue, at pointer: String) throws(SchemaError)
        -> SchemaNode.Content
    {
        var content = SchemaNode.Content()
        if let isAllowed = schema.bool {
            content.isNever = !isAllowed
            return content
        }
        guard let members = schema.members else {
            throw SchemaError(at: pointer, "a schema is an object, true or false")
        }
        var seen: Set<String> = []
        for member in members {
            let path = "\(pointer)/\(SchemaCompiler.escaped(member.key))"
            guard seen.insert(member.key).inserted else {
                throw SchemaError(at: path, "the keyword is there twice")
            }
            try read(member.key, member.value, at: path, of: pointer, into: &content)
        }
        try addMembers(of: schema, at: pointer, to: &content)
        return content
    }

    /// Reads one keyword into the content.
    private mutating func read(
        _ keyword: String, _ value: JSONValue, at path: String, of pointer: String,
        into content: inout SchemaNode.Content
    ) throws(SchemaError) {
        switch keyword {
        case "type": content.types = try types(value, at: path)
        case "enum":
            guard let values = value.array, !values.isEmpty, values.count <= SchemaCompiler.mostValues else {
                throw SchemaError(at: path, "must be a list of 1 to \(SchemaCompiler.mostValues) values")
            }
            try setAllowed(AllowedValues(values, keyword: keyword), at: path, in: &content)
        case "const": try setAllowed(AllowedValues([value], keyword: keyword), at: path, in: &content)
        case "minimum": content.bounds.minimum = try number(value, at: path)
        case "maximum": content.bounds.maximum = try number(value, at: path)
        case "exclusiveMinimum": content.bounds.exclusiveMinimum = try number(value, at: path)
        case "exclusiveMaximum": content.bounds.exclusiveMaximum = try number(value, at: path)
        case "minLength": content.lengths.least = try length(value, at: path)
        case "maxLength": content.lengths.most = try length(value, at: path)
        case "minItems": content.itemCounts.least = try length(value, at: path)
        case "maxItems": content.itemCounts.most = try length(value, at: path)
        case "pattern":
            guard let text = value.string else { throw SchemaError(at: path, "must be a text") }
            budget.patterns -= 1
            guard budget.patterns >= 0 else {
                throw SchemaError(at: path, "the document has more than \(SchemaBudget.patterns) patterns")
            }
            content.pattern = try SchemaPattern(text, at: path)
        case "items":
            guard value.array == nil else {
                throw SchemaError(at: path, "must be one schema; a list of schemas is not supported")
            }
            content.items = try nodeIndex(of: value, at: path)
        // These three belong together; `addMembers` reads them.
        case "properties", "required", "additionalProperties": break
        // Definitions are compiled even if nothing refers to them, so that errors in them are found.
        case "$defs", "definitions":
            guard let members = value.members else { throw SchemaError(at: path, "must be an object") }
            for member in members {
                _ = try nodeIndex(of: member.value, at: "\(path)/\(SchemaCompiler.escaped(member.key))")
            }
        case "$ref": content.reference = try reference(value, at: path)
        case "$id" where pointer.isEmpty && value.string != nil: break
        case _ where SchemaCompiler.annotations.contains(keyword): break
        default:
            throw SchemaError(
                at: path,
                "the keyword is not supported; supported are type, enum, const, properties, required,"
                    + " additionalProperties, items, minItems, maxItems, minimum, maximum, exclusiveMinimum,"
                    + " exclusiveMaximum, minLength, maxLength, pattern, $ref, $defs and definitions")
        }
    }

    /// Sets the values of `enum` or `const`. A node has one list, so both at once are refused.
    private func setAllowed(
        _ values: AllowedValues, at path: String, in content: inout SchemaNode.Content
    ) throws(SchemaError) {
        guard content.allowed == nil else { throw SchemaError(at: path, "enum and const exclude each other") }
        content.allowed = values
    }

    // MARK: Values of keywords

    /// The types of `type`; `number` includes `integer`.
    private func types(_ value: JSONValue, at path: String) throws(SchemaError) -> SchemaTypes {
        var types: SchemaTypes = []
        for name in value.array ?? [value] {
            guard let known = SchemaTypes.names.first(where: { $0.name == name.string }) else {
                let names = SchemaTypes.names.map(\.name).joined(separator: ", ")
                throw SchemaError(at: path, "must be one of \(names), or a list of these")
            }
            types.insert(known.type)
        }
        guard !types.isEmpty else { throw SchemaError(at: path, "is an empty list") }
        return types.contains(.number) ? types.union(.integer) : types
    }

    private func number(_ value: JSONValue, at path: String) throws(SchemaError) -> SchemaNumber {
        guard let number = SchemaNumber(value) else { throw SchemaError(at: path, "must be a number") }
        return number
    }

    /// A length or count: whole and not negative, 1.0 included.
    private func length(_ value: JSONValue, at path: String) throws(SchemaError) -> Int {
        guard case .integer(let length)? = SchemaNumber(value), length >= 0 else {
            throw SchemaError(at: path, "must be a whole number that is not negative")
        }
        return length
    }

    // MARK: Members

    /// Reads `properties`, `required` and `additionalProperties` into one sorted list of names.
    private mutating func addMembers(
        of schema: JSONValue, at pointer: String, to content: inout SchemaNode.Content
    ) throws(SchemaError) {
        var nodes: [String: Int] = [:]
        if let properties = schema["properties"] {
            guard let members = properties.members else {
                throw SchemaError(at: "\(pointer)/properties", "must be an object")
            }
            for member in members {
                let path = "\(pointer)/properties/\(SchemaCompiler.escaped(member.key))"
                guard nodes[member.key] == nil else { throw SchemaError(at: path, "the name is there twice") }
                nodes[member.key] = try nodeIndex(of: member.value, at: path)
            }
        }
        var bits: [String: UInt64] = [:]
        if let required = schema["required"] {
            let names = required.array?.compactMap(\.string)
            guard let names, names.count == required.array?.count,
                Set(names).count <= SchemaCompiler.mostRequired
            else {
                throw SchemaError(
                    at: "\(pointer)/required",
                    "must be a list of at most \(SchemaCompiler.mostRequired) names")
            }
            for name in names where bits[name] == nil { bits[name] = 1 << UInt64(bits.count) }
        }
        content.names = Set(nodes.keys).union(bits.keys).map {
            SchemaNode.Name(bytes: Array($0.utf8), node: nodes[$0] ?? -1, bit: bits[$0] ?? 0)
        }
        content.names.sort { left, right in
            left.bytes.count == right.bytes.count
                ? left.bytes.lexicographicallyPrecedes(right.bytes) : left.bytes.count < right.bytes.count
        }
        guard let others = schema["additionalProperties"] else { return }
        content.others =
            switch others {
            case .bool(true): .allowed
            case .bool(false): .denied
            default: .node(try nodeIndex(of: others, at: "\(pointer)/additionalProperties"))
            }
    }

    // MARK: References

    /// Index of the node that a `$ref` names. References to other documents are not supported: a reload would
    /// depend on the network.
    private mutating func reference(_ value: JSONValue, at path: String) throws(SchemaError) -> Int {
        guard let text = value.string, text.utf8.first == UInt8(ascii: "#") else {
            throw SchemaError(at: path, "must lead into the document: \"#\" or \"#/…\"")
        }
        guard text == "#" || text.hasPrefix("#/") else {
            throw SchemaError(at: path, "must be a JSON Pointer: \"#/…\"; anchors are not supported")
        }
        var target = root
        var pointer = ""
        for part in text.dropFirst().split(separator: "/", omittingEmptySubsequences: false).dropFirst() {
            guard let name = SchemaCompiler.unescaped(part),
                let next = SchemaCompiler.member(name, of: target)
            else {
                throw SchemaError(at: path, "leads nowhere: \(text.prefix(200))")
            }
            target = next
            pointer += "/\(SchemaCompiler.escaped(name))"
        }
        return try nodeIndex(of: target, at: pointer)
    }

    /// A member of an object or an item of a list; nil if it does not exist.
    private static func member(_ name: String, of value: JSONValue) -> JSONValue? {
        guard let elements = value.array else { return value[name] }
        return Int(name).flatMap { elements.indices.contains($0) ? elements[$0] : nil }
    }

    /// A name as a part of a JSON Pointer (RFC 6901, section 3).
    static func escaped(_ name: String) -> String {
        String(
            decoding: name.utf8.flatMap { byte -> [UInt8] in
                switch byte {
                case UInt8(ascii: "~"): Array("~0".utf8)
                case UInt8(ascii: "/"): Array("~1".utf8)
                default: [byte]
                }
            }, as: UTF8.self)
    }

    /// The name that a part of a JSON Pointer stands for, as `escaped` wrote it.
    ///
    /// Not with `replacing`, which would link the library of regular expressions.
    static func name(of part: Substring) -> String {
        var bytes: [UInt8] = []
        var isEscape = false
        for byte in part.utf8 {
            if isEscape {
                bytes.append(byte == UInt8(ascii: "1") ? UInt8(ascii: "/") : UInt8(ascii: "~"))
                isEscape = false
            } else if byte == UInt8(ascii: "~") {
                isEscape = true
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The name that a part of a `$ref` stands for; nil for an invalid escape. A reference is a URI fragment,
    /// so parts are percent-encoded too (RFC 6901, section 6).
    private static func unescaped(_ part: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = part.utf8[...]
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "%"):
                guard let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16),
                    rest.count >= 2
                else { return nil }
                bytes.append(value)
                rest = rest.dropFirst(2)
            case UInt8(ascii: "~"):
                guard let next = rest.popFirst(), next == UInt8(ascii: "0") || next == UInt8(ascii: "1")
                else {
                    return nil
                }
                bytes.append(next == UInt8(ascii: "0") ? UInt8(ascii: "~") : UInt8(ascii: "/"))
            default: bytes.append(byte)
            }
        }
        return String(validating: bytes, as: UTF8.self)
    }

    /// Longest chain of references: the walk is as deep on the stack, at each level of an event.
    private static let longestChain = 32

    /// Refuses a `$ref` that leads back to itself: a walk would follow it for ever, since it stays at the
    /// same value. All other recursion goes one level deeper into the event and ends there.
    private func refuseCircles(in contents: [SchemaNode.Content]) throws(SchemaError) {
        for start in contents.indices {
            var index = start
            var steps = 0
            while let next = contents[index].reference {
                steps += 1
                guard steps <= SchemaCompiler.longestChain else {
                    let pointer = places.first { $0.value == start }?.key ?? ""
                    let most = SchemaCompiler.longestChain
                    throw SchemaError(
                        at: pointer, "its $ref leads back to itself, or through more than \(most) others")
                }
                index = next
            }
        }
    }
}
