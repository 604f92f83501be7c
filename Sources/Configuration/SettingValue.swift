package import Model

/// The value of a setting as it is written: in TOML for people, in JSON for programs.
package indirect enum SettingValue: Sendable, Hashable {
    /// Text, and what is written as text: durations, sizes, choices.
    case string(String)
    /// A whole number; TOML has those of 64 bits.
    case integer(Int64)
    case double(Double)
    case boolean(Bool)
    /// Values in their order.
    case array([SettingValue])
    /// Names and values, sorted by name.
    case table([Member])
    /// A secret: compared as it is, printed masked.
    case secret(Secret)
    /// A URL that contains a secret: compared as it is, printed without it.
    case url(EndpointURL)

    /// A member of a table.
    package struct Member: Sendable, Hashable {
        package let name: String
        package let value: SettingValue
    }

    /// The value in TOML. Secrets are masked.
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
                : "{ "
                    + members.map { "\(SettingValue.key($0.name)) = \($0.value.toml)" }.joined(
                        separator: ", ")
                    + " }"
        case .secret: SettingValue.quote(Secret.mask)
        case .url(let url): SettingValue.quote(url.description)
        }
    }

    /// The value as JSON. Secrets are masked.
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

    /// All values inside that contain no further values; the value itself if it is neither a list nor a
    /// table.
    private var leaves: [SettingValue] {
        switch self {
        case .array(let elements): elements.flatMap(\.leaves)
        case .table(let members): members.flatMap(\.value.leaves)
        default: [self]
        }
    }

    /// The secrets in it.
    package var secrets: [Secret] {
        leaves.compactMap { if case .secret(let secret) = $0 { secret } else { nil } }
    }

    /// Whether a part of the value must not be shown, not even as a URL without its credentials.
    var holdsSecret: Bool { leaves.contains { if case .url = $0 { true } else { !$0.secrets.isEmpty } } }

    /// A key as TOML writes it: bare if possible.
    package static func key(_ name: String) -> String {
        !name.isEmpty && name.hasOnlyLettersDigits(and: "-_") ? name : quote(name)
    }

    /// A string in quotation marks, with the escapes that TOML and JSON share. TOML requires one for U+007F
    /// too.
    package static func quote(_ text: String) -> String {
        JSONValue.string(text).description.replacingAll("\u{7F}", with: "\\u007f")
    }
}
