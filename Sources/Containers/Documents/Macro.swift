package import Model

/// A named value that is computed when it is needed (tm13). An unknown value is null.
public struct Macro: Sendable, Equatable {
    /// Its name, unique in its document.
    public let name: String
    package let kind: Kind

    package enum Kind: Sendable, Equatable {
        case constant(JSONValue)
        /// These values while one of the rules holds (always, where it names none), else null; `Operand`s by key, in order.
        case valueCollection(rules: [String], values: [Value])
        /// The container's value of a key, as `container get` gives it.
        case value(key: String)
        case dataLayer(path: MemberPath, default: JSONValue)
        /// What the event holds there, from its top.
        case member(path: MemberPath, default: JSONValue)
        case functionCall(function: String, parameters: [Value])
        case standard(StandardMacro)
    }
}

/// A key with its value, or with the macro that gives it.
public struct Value: Sendable, Equatable {
    /// The key, unique in its list.
    public let key: String
    package let operand: Operand
}

/// Macros without parameters. They need no definition: a document may use their names unless it gives them to others.
package enum StandardMacro: String, Sendable, CaseIterable {
    case event
    case app
    /// The app's version (`device.app_version`).
    case appVersion = "app_version"
    /// `linux`.
    case platform
    case country
    /// How serious it is: `trace`, `debug`, `info`, `warn`, `error` or `fatal`, from the members that loggers use.
    case level
    /// Its time, as RFC 3339.
    case timestamp
    /// ISO 639-1: of the event's locale, else of the agent's.
    case language
    case osVersion = "os_version"
    case agentVersion = "agent_version"
    case hostName = "host_name"
    case containerID = "container_id"
    case containerVersion = "container_version"
    /// A number from 0 to below 100: the machine's place in rollouts of this container, always the same one.
    case rolloutShare = "rollout_share"
    /// A whole number from 0 to 2147483647, drawn for each event.
    case randomNumber = "random_number"
}

extension Macro {
    init(name: String, reading node: DocumentNode) throws(ContainerError) {
        let word = try node.type()
        self.name = name
        func read(_ known: String...) throws(ContainerError) -> DocumentNode {
            try node.members(known: ["type", "description"] + known)
        }
        switch word {
        case "constant":
            kind = .constant(try read("value").required("value").constant())
        case "value_collection":
            let members = try read("rules", "values")
            kind = .valueCollection(
                rules: try members.optional("rules")?.names() ?? [],
                values: try members.required("values").values(limit: DocumentLimits.values))
        case "value":
            kind = .value(key: try read("key").required("key").text(limit: 256))
        case "data_layer", "event_property", "event_member":
            let members = try read("path", "default")
            let path = try members.required("path").memberPath()
            let value = try members.defaultValue()
            switch word {
            case "data_layer": kind = .dataLayer(path: path, default: value)
            case "event_property": kind = .member(path: MemberPath(names: ["properties"] + path.names), default: value)
            default: kind = .member(path: path, default: value)
            }
        case "device_property":
            let members = try read("name", "default")
            kind = .member(
                path: MemberPath(names: ["device", try members.required("name").name()]),
                default: try members.defaultValue())
        case "function_call":
            let members = try read("function", "parameters")
            kind = .functionCall(
                function: try members.required("function").name(),
                parameters: try members.optional("parameters")?.values(limit: DocumentLimits.parameters) ?? [])
        default:
            guard let standard = StandardMacro(rawValue: word) else {
                throw node.error(
                    "there is no macro type \(quoted(word)); known are constant, value_collection, value, data_layer, "
                        + "event_property, event_member, device_property, function_call, "
                        + StandardMacro.allCases.map(\.rawValue).joined(separator: ", "))
            }
            _ = try read()
            kind = .standard(standard)
        }
    }
}

extension DocumentNode {
    func defaultValue() throws(ContainerError) -> JSONValue { try optional("default")?.constant() ?? .null }

    func values(limit: Int) throws(ContainerError) -> [Value] {
        var values: [Value] = []
        for (key, node) in try members(limit: limit).all {
            guard key.utf8.count <= 256, !key.isEmpty else { throw node.error("the key must have 1 to 256 bytes") }
            values.append(Value(key: key, operand: try node.operand()))
        }
        return values
    }
}
