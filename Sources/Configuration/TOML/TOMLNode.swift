internal import Model

/// A value in a TOML text, with its position.
struct TOMLNode: Sendable {
    /// The kinds of values. Dates are only recognised, because no setting is one.
    indirect enum Value: Sendable {
        /// Members in the order of the file.
        case table([Member])
        /// Elements in their order; TOML allows different kinds in one list.
        case array([TOMLNode])
        case string(String)
        case integer(Int64)
        case double(Double)
        case boolean(Bool)
        case date
    }

    /// A member of a table.
    struct Member: Sendable {
        /// The key.
        let key: String
        /// Position of the key; nil for tables that other keys imply.
        var keyPosition: Position?
        /// The value.
        var node: TOMLNode
    }

    /// The value.
    var value: Value
    /// Position of the value; nil if it is not from a file.
    var position: Position?
    /// Whether the value, or something in it, contains text of the environment. Messages do not quote it.
    var isFromEnvironment = false

    /// The kind, for people: `a string`.
    var kind: String {
        switch value {
        case .table: "a table"
        case .array: "a list"
        case .string: "a string"
        case .integer: "a whole number"
        case .double: "a number"
        case .boolean: "true or false"
        case .date: "a date or time"
        }
    }

    /// A member of a table; nil if it is missing, or this is not a table.
    subscript(key: String) -> TOMLNode? {
        guard case .table(let members) = value else { return nil }
        return members.first { $0.key == key }?.node
    }
}

extension TOMLNode {
    /// A node without a position, of a value that is not from a file; nil if it contains null, which TOML
    /// does not have.
    init?(_ json: JSONValue) {
        switch json {
        case .null: return nil
        case .string(let text): value = .string(text)
        case .integer(let number): value = .integer(Int64(number))
        case .double(let number): value = .double(number)
        case .bool(let flag): value = .boolean(flag)
        case .array(let elements):
            let nodes = elements.compactMap { TOMLNode($0) }
            guard nodes.count == elements.count else { return nil }
            value = .array(nodes)
        case .object(let members):
            let found = members.compactMap { member in
                TOMLNode(member.value).map { Member(key: member.key, node: $0) }
            }
            guard found.count == members.count else { return nil }
            value = .table(found)
        }
    }
}
