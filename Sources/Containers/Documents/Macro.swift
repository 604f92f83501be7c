package import Model

/// A named value that is computed when an event needs it, as in Google Tag Manager. A value that is not known
/// is null.
public struct Macro: Sendable, Equatable {
    /// Name, unique in its document.
    public let name: String
    /// The value that the macro gives.
    package let kind: Kind

    /// The kinds of macros.
    package enum Kind: Sendable, Equatable {
        /// Always this value.
        case constant(JSONValue)
        /// The values of a collection while one of the rules holds, or always if it names no rules; otherwise
        /// null.
        case valueCollection(rules: [String], values: [Value])
        /// The container's value of a key, as `container get` shows it.
        case value(key: String)
        /// A value of the app's data layer.
        case dataLayer(path: MemberPath, default: JSONValue)
        /// A member of the event, by its path from the top.
        case member(path: MemberPath, default: JSONValue)
        /// The result of a function; `default` if it gives none.
        case functionCall(function: String, parameters: [Value], by: FunctionHome, default: JSONValue)
        /// A macro without parameters.
        case standard(StandardMacro)
    }
}

/// A key with its value, or with the macro that gives the value.
public struct Value: Sendable, Equatable {
    /// Key, unique in its list.
    public let key: String
    /// The value.
    package let operand: Operand
}

/// Macros without parameters. They need no definition: a document may use their names, unless it gives a name
/// to another macro.
package enum StandardMacro: String, Sendable, CaseIterable {
    /// The event's name.
    case event
    /// The app that wrote the event.
    case app
    /// The app's version (`device.app_version`).
    case appVersion = "app_version"
    /// Always `linux`.
    case platform
    /// The event's country.
    case country
    /// Severity as a word: `trace`, `debug`, `info`, `warn`, `error` or `fatal`, from the members that
    /// loggers use.
    case level
    /// Severity as a number that grows: 1, 5, 9, 13, 17 and 21, as in OpenTelemetry's data model for logs.
    case severity
    /// Text for people, from the members that loggers use: `message`, `msg` and others.
    case message
    /// Path of the file that the line comes from: relative for the spool's files, absolute for others.
    case file
    /// Time of the event, as RFC 3339.
    case timestamp
    /// Language by ISO 639-1, of the event's locale or else of the agent's.
    case language
    /// Version of the operating system.
    case osVersion = "os_version"
    case agentVersion = "agent_version"
    case hostName = "host_name"
    case containerID = "container_id"
    case containerVersion = "container_version"
    /// This machine's share in rollouts of the container, from 0 to below 100; always the same.
    case rolloutShare = "rollout_share"
    /// A whole number from 0 to 2147483647, drawn for each event.
    case randomNumber = "random_number"
}

extension Macro {
    /// Reads a macro of a document.
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
            case "event_property":
                kind = .member(path: MemberPath(names: ["properties"] + path.names), default: value)
            default: kind = .member(path: path, default: value)
            }
        case "device_property":
            let members = try read("name", "default")
            kind = .member(
                path: MemberPath(names: ["device", try members.required("name").name()]),
                default: try members.defaultValue())
        case "function_call":
            let members = try read("function", "parameters", "by", "default")
            kind = .functionCall(
                function: try members.required("function").name(),
                parameters: try members.optional("parameters")?.values(limit: DocumentLimits.parameters)
                    ?? [],
                by: try members.functionHome(), default: try members.defaultValue())
        default:
            guard let standard = StandardMacro(rawValue: word) else {
                throw node.error(
                    "there is no macro type \(quoted(word)); known are constant, value_collection, value, "
                        + "data_layer, event_property, event_member, device_property, function_call, "
                        + StandardMacro.allCases.map(\.rawValue).joined(separator: ", "))
            }
            _ = try read()
            kind = .standard(standard)
        }
    }
}

/// Who has a function that a document names.
public enum FunctionHome: String, Sendable, CaseIterable {
    /// The configuration: a program of `[functions.NAME]`.
    case agent
    /// The app whose values or events are evaluated: it answers over the control socket.
    case app
}

extension DocumentNode {
    /// The value of `by`; `agent` if it is missing.
    func functionHome() throws(ContainerError) -> FunctionHome {
        guard let node = optional("by") else { return .agent }
        guard let home = FunctionHome(rawValue: try node.text()) else {
            throw node.error("must be agent (a program of the configuration) or app")
        }
        return home
    }

    /// The value of `default`; null if it is missing.
    func defaultValue() throws(ContainerError) -> JSONValue { try optional("default")?.constant() ?? .null }

    /// The values of an object, by key.
    func values(limit: Int) throws(ContainerError) -> [Value] {
        var values: [Value] = []
        for (key, node) in try members(limit: limit).all {
            guard key.utf8.count <= 256, !key.isEmpty else {
                throw node.error("the key must have 1 to 256 bytes")
            }
            values.append(Value(key: key, operand: try node.operand()))
        }
        return values
    }
}
