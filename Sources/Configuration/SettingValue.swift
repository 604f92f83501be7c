package import Model

/// A setting's value as it is written: in TOML for people, in JSON for programs.
package indirect enum SettingValue: Sendable, Hashable {
    /// Text, and whatever is written as text: durations, sizes, choices.
    case string(String)
    case integer(Int64)
    case double(Double)
    case boolean(Bool)
    case array([SettingValue])
    /// Names and values, in the order of names.
    case table([Member])
    /// A secret: compared as it is, shown masked only.
    case secret(Secret)
    /// A URL that holds something secret: compared as it is, shown without it.
    case url(EndpointURL)

    package struct Member: Sendable, Hashable {
        package let name: String
        package let value: SettingValue
    }

    /// As TOML. Secrets are masked.
    package var toml: String {
        switch self {
        case .string(let text): SettingValue.quote(text)
        case .integer(let value): String(value)
        case .double(let value): String(value)
        case .boolean(let value): String(value)
        case .array(let values): "[" + values.map(\.toml).joined(separator: ", ") + "]"
        case .table(let members):
            members.isEmpty
                ? "{}"
                : "{ " + members.map { "\(SettingValue.key($0.name)) = \($0.value.toml)" }.joined(separator: ", ")
                    + " }"
        case .secret: SettingValue.quote(Secret.mask)
        case .url(let url): SettingValue.quote(url.description)
        }
    }

    /// As JSON. Secrets are masked.
    package var json: JSONValue {
        switch self {
        case .string(let text): .string(text)
        case .integer(let value): .integer(Int(value))
        case .double(let value): .double(value)
        case .boolean(let value): .bool(value)
        case .array(let values): .array(values.map(\.json))
        case .table(let members): .object(members.map { JSONValue.Member($0.name, $0.value.json) })
        case .secret: .string(Secret.mask)
        case .url(let url): .string(url.description)
        }
    }

    /// What in it, or itself, holds no other values.
    private var leaves: [SettingValue] {
        switch self {
        case .array(let elements): elements.flatMap(\.leaves)
        case .table(let members): members.flatMap(\.value.leaves)
        default: [self]
        }
    }

    package var secrets: [Secret] { leaves.compactMap { if case .secret(let secret) = $0 { secret } else { nil } } }

    /// Whether something in it must not be shown, not even in part.
    var holdsSecret: Bool { leaves.contains { if case .url = $0 { true } else { !$0.secrets.isEmpty } } }

    /// A key as TOML writes it: bare where it may be.
    static func key(_ name: String) -> String {
        !name.isEmpty && name.hasOnlyLettersDigits(and: "-_") ? name : quote(name)
    }

    /// A string in quotation marks, by the escapes that TOML and JSON share. TOML wants U+007F escaped too.
    package static func quote(_ text: String) -> String {
        JSONValue.string(text).description.replacingAll("\u{7F}", with: "\\u007f")
    }
}
