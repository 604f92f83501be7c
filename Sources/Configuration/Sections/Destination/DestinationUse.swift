public import Model

/// What a destination's setting is for: declared in the table, beside the setting.
public struct DestinationUse: Sendable, Equatable {
    enum Scope: Sendable, Equatable {
        case all
        /// Those that are reached over the network.
        case servers
        /// Those that are reached over the network and may have a user.
        case requests
        case types([DestinationSettings.Kind])
        /// Those of type `http` with one of some formats.
        case formats([DestinationSettings.Format])
    }

    var scope = Scope.all
    /// Whether another value can make the destination answer otherwise.
    ///
    /// Where it can, what was learned with the old value ("it acknowledges what we send") counts no more. Unless a setting
    /// declares that it cannot, it can: a wrong guess holds the destination for a moment, the opposite one turns events
    /// into dead letters.
    public internal(set) var changesAnswers = true

    func inside(_ section: DestinationUse) -> DestinationUse {
        DestinationUse(
            scope: scope == .all ? section.scope : scope, changesAnswers: changesAnswers && section.changesAnswers)
    }
}

extension DestinationUse.Scope {
    func includes(_ destination: DestinationSettings) -> Bool {
        switch self {
        case .all: true
        case .servers: destination.kind.isServer
        case .requests: destination.kind.takesUser
        case .types(let kinds): kinds.contains(destination.kind)
        case .formats(let formats): destination.kind == .http && formats.contains(destination.format)
        }
    }

    /// Whether it is for several types that are reached over the network, or all of them.
    var isOfServers: Bool {
        switch self {
        case .servers, .requests: true
        case .types(let kinds): kinds.count > 1
        case .all, .formats: false
        }
    }

    /// For a message: `format loki`.
    var text: String {
        switch self {
        case .all: "all types"
        case .servers: Self.text(DestinationSettings.Kind.allCases.filter(\.isServer))
        case .requests: Self.text(DestinationSettings.Kind.allCases.filter(\.takesUser))
        case .types(let kinds): "type \(kinds.map(\.rawValue).joined(separator: " or "))"
        case .formats(let formats): "format \(formats.map(\.rawValue).joined(separator: " or "))"
        }
    }

    /// `type http, nats or kafka`.
    private static func text(_ kinds: [DestinationSettings.Kind]) -> String {
        let names = kinds.map(\.rawValue)
        let last = names.suffix(2).joined(separator: " or ")
        return "type \((names.dropLast(2) + [last]).joined(separator: ", "))"
    }
}

extension DestinationSettings {
    /// Changes with each setting that can change answers; `hash` gets the configuration's secrets in clear.
    public func fingerprint(_ hash: ([UInt8]) -> String) -> String {
        var text = ""
        for setting in effective(in: .root) where setting.use.changesAnswers {
            text += "\(setting.path)=\(setting.value?.revealed ?? "")\n"
        }
        return hash(Array(text.utf8))
    }
}

extension SettingValue {
    /// One text for one value, secrets in clear.
    fileprivate var revealed: String {
        switch self {
        case .secret(let secret): SettingValue.quote(secret.revealed)
        case .url(let url): SettingValue.quote(url.text)
        case .array(let values): "[\(values.map(\.revealed).joined(separator: ","))]"
        case .table(let members):
            "{\(members.map { "\(SettingValue.quote($0.name))=\($0.value.revealed)" }.joined(separator: ","))}"
        case .string, .integer, .double, .boolean: toml
        }
    }
}
