internal import Model

/// A value in a TOML text, with its place.
struct TOMLNode: Sendable {
    indirect enum Value: Sendable {
        case table([Member])
        case array([TOMLNode])
        case string(String)
        case integer(Int64)
        case double(Double)
        case boolean(Bool)
        case date
    }

    struct Member: Sendable {
        let key: String
        var keyPosition: Position?
        var node: TOMLNode
    }

    var value: Value
    var position: Position?
    /// Whether it, or something in it, holds text of the environment: messages do not quote it.
    var isFromEnvironment = false

    /// What it is, for a person: `a string`.
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

    subscript(key: String) -> TOMLNode? {
        guard case .table(let members) = value else { return nil }
        return members.first { $0.key == key }?.node
    }
}

extension TOMLNode {
    /// A node without a place, from a value that did not come from a file; nil where there is a null in it, which TOML has not.
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
