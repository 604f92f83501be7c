internal import Model

/// A value in a TOML text, with its place.
struct TOMLNode: Sendable {
    /// What it is.
    indirect enum Value: Sendable {
        case table([Member])
        case array([TOMLNode])
        case string(String)
        case integer(Int64)
        case double(Double)
        case boolean(Bool)
        case date
    }

    /// A key of a table, and what it stands for.
    struct Member: Sendable {
        let key: String
        let keyPosition: Position?
        let node: TOMLNode
    }

    let value: Value
    let position: Position?
    /// Whether it, or something in it, holds text of the environment: messages do not quote it.
    let isFromEnvironment: Bool

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

    /// The member of that name, when it is a table that has one.
    subscript(key: String) -> TOMLNode? {
        guard case .table(let members) = value else { return nil }
        return members.first { $0.key == key }?.node
    }

    /// A node without a place, from a value that did not come from a file.
    init(_ value: SettingValue) {
        position = nil
        isFromEnvironment = false
        self.value =
            switch value {
            case .string(let text): .string(text)
            case .integer(let number): .integer(number)
            case .double(let number): .double(number)
            case .boolean(let flag): .boolean(flag)
            case .array(let values): .array(values.map { TOMLNode($0) })
            case .table(let members):
                .table(members.map { Member(key: $0.name, keyPosition: nil, node: TOMLNode($0.value)) })
            case .secret(let secret): .string(secret.revealed)
            case .url(let url): .string(url.text)
            }
    }

    init(value: Value, position: Position?, isFromEnvironment: Bool = false) {
        self.value = value
        self.position = position
        self.isFromEnvironment = isFromEnvironment
    }
}
