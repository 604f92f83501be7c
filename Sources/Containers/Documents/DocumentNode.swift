internal import Model

/// A value of a document with its path. Its functions are the strict reader: each returns what the document
/// must have there, or throws an error with the path.
struct DocumentNode {
    /// The value.
    let value: JSONValue
    /// Path in the document, as `rules.music.conditions[0]`.
    let path: String

    /// An error at this path.
    func error(_ message: String, _ code: ContainerError.Code = .form) -> ContainerError {
        ContainerError(code, at: path, message)
    }

    /// The same node, checked to be an object without a duplicate name.
    ///
    /// - Parameters:
    ///   - known: the members that are allowed; nil allows any.
    ///   - limit: most members.
    func members(known: [String]? = nil, limit: Int = .max) throws(ContainerError) -> DocumentNode {
        guard case .object(let members) = value else { throw error("must be an object") }
        guard members.count <= limit else {
            throw error("has \(members.count) members; at most \(limit)", .limit)
        }
        var found: Set<String> = []
        for member in members {
            guard found.insert(member.key).inserted else { throw error("says \(quoted(member.key)) twice") }
            if let known, !known.contains(member.key) {
                throw error("has no member \(quoted(member.key)); known are \(known.joined(separator: ", "))")
            }
        }
        return self
    }

    /// A member; nil if it is missing.
    func optional(_ name: String) -> DocumentNode? { value[name].map { below(name, $0) } }

    /// A member that must be there.
    func required(_ name: String) throws(ContainerError) -> DocumentNode {
        guard let found = optional(name) else { throw error("needs a member \(quoted(name))") }
        return found
    }

    /// The value that names of members and indexes in lists lead to; of a path that breaks off, the last
    /// value that exists.
    func descendant(_ steps: [String]) -> DocumentNode {
        var node = self
        for step in steps {
            if let elements = node.value.array {
                guard let index = Int(step), elements.indices.contains(index) else { break }
                node = DocumentNode(value: elements[index], path: "\(node.path)[\(index)]")
            } else {
                guard let next = node.optional(step) else { break }
                node = next
            }
        }
        return node
    }

    /// All members, in order.
    var all: [(name: String, node: DocumentNode)] {
        (value.members ?? []).map { ($0.key, below($0.key, $0.value)) }
    }

    /// A member's node. A name with other characters than letters, digits, `_` and `-` is in brackets in its
    /// place.
    private func below(_ name: String, _ value: JSONValue) -> DocumentNode {
        guard name.hasOnlyLettersDigits(and: "_-"), !name.isEmpty else {
            return DocumentNode(value: value, path: "\(path)[\(quoted(name))]")
        }
        return DocumentNode(value: value, path: path.isEmpty ? name : "\(path).\(name)")
    }

    /// The elements of a list.
    func elements(limit: Int) throws(ContainerError) -> [DocumentNode] {
        guard case .array(let elements) = value else { throw error("must be a list") }
        guard elements.count <= limit else {
            throw error("has \(elements.count) entries; at most \(limit)", .limit)
        }
        return elements.enumerated().map { DocumentNode(value: $1, path: "\(path)[\($0)]") }
    }

    /// A text.
    func text(limit: Int = DocumentLimits.bytes) throws(ContainerError) -> String {
        guard case .string(let text) = value else { throw error("must be a string") }
        guard text.utf8.count <= limit else { throw error("is longer than \(limit) bytes", .limit) }
        return text
    }

    /// A name. It appears in logs, metrics and tables, so it is short and printable.
    func name() throws(ContainerError) -> String {
        let text = try text()
        try checkName(text)
        return text
    }

    /// Checks that a text is a name.
    func checkName(_ text: String) throws(ContainerError) {
        guard !text.isEmpty, text.utf8.count <= DocumentLimits.nameBytes,
            text.unicodeScalars.allSatisfy({
                $0.value >= 0x20 && !(0x7F...0x9F).contains($0.value) && $0 != "\""
            })
        else {
            throw error(
                "the name must have 1 to \(DocumentLimits.nameBytes) bytes, no quotes and no control "
                    + "characters"
            )
        }
    }

    /// A list of names without duplicates.
    func names(atLeast least: Int = 0) throws(ContainerError) -> [String] {
        var names: [String] = []
        for element in try elements(limit: DocumentLimits.list) {
            let name = try element.name()
            guard !names.contains(name) else { throw element.error("occurs twice") }
            names.append(name)
        }
        guard names.count >= least else { throw error("must name at least \(least)") }
        return names
    }

    /// A truth value.
    func bool() throws(ContainerError) -> Bool {
        guard case .bool(let value) = value else { throw error("must be true or false") }
        return value
    }

    /// A whole number in a range.
    func integer(_ range: ClosedRange<Int>) throws(ContainerError) -> Int {
        guard case .integer(let number) = value, range.contains(number) else {
            throw error("must be a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    /// A number in a range.
    func number(_ range: ClosedRange<Double>) throws(ContainerError) -> Double {
        guard let number = value.number, range.contains(number) else {
            throw error("must be a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    /// The `type` of an object.
    func type() throws(ContainerError) -> String {
        guard case .object = value else { throw error("must be an object") }
        return try required("type").text()
    }

    /// A priority by its name.
    func priority() throws(ContainerError) -> Priority {
        guard let priority = Priority(name: try text()) else {
            throw error("must be \"normal\" or \"critical\"")
        }
        return priority
    }

    /// The percentage of `{"percent": 10, "by": "host"}`, from 0 to 100. `host` is the only way of choosing
    /// machines so far.
    func rolloutPercent() throws(ContainerError) -> Double {
        let members = try members(known: ["percent", "by"])
        if let by = members.optional("by"), try by.text() != "host" { throw by.error("must be \"host\"") }
        return try members.required("percent").number(0...100)
    }

    /// An object as a constant.
    func object() throws(ContainerError) -> JSONValue {
        _ = try members()
        return try constant()
    }

    /// A constant, or the macro of `{"macro": "NAME"}`.
    func operand() throws(ContainerError) -> Operand {
        if case .object(let members) = value, members.count == 1, members[0].key == "macro" {
            return .macro(try DocumentNode(value: members[0].value, path: path + ".macro").name())
        }
        return .constant(try constant())
    }

    /// Any value that is not nested too deeply and has no name twice.
    func constant() throws(ContainerError) -> JSONValue {
        try check(value, depth: 1)
        return value
    }

    /// Checks a constant, level by level.
    private func check(_ value: JSONValue, depth: Int) throws(ContainerError) {
        guard depth <= DocumentLimits.depth else {
            throw error("is nested more than \(DocumentLimits.depth) levels deep", .limit)
        }
        switch value {
        case .array(let elements):
            for element in elements { try check(element, depth: depth + 1) }
        case .object(let members):
            guard Set(members.map(\.key)).count == members.count else { throw error("has a member twice") }
            for member in members { try check(member.value, depth: depth + 1) }
        default: break
        }
    }

    /// A path: a text with dots, or a list of names. Names must not be empty.
    func memberPath() throws(ContainerError) -> MemberPath {
        var names: [String]
        let text = value.string
        if let text {
            names = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        } else {
            names = []
            for element in try elements(limit: DocumentLimits.list) { names.append(try element.text()) }
        }
        guard !names.isEmpty, names.count <= DocumentLimits.depth, names.allSatisfy({ !$0.isEmpty }) else {
            throw error("must be a path such as \"properties.Category\", or a list of names")
        }
        return MemberPath(names: names, isDotted: text != nil)
    }
}

/// A name for a message: as a JSON text of at most 80 characters, so that the message stays one line.
func quoted(_ name: String) -> String {
    let shown = name.unicodeScalars.count > 80 ? String(name.unicodeScalars.prefix(80)) + "…" : name
    return JSONValue.string(shown).description
}
