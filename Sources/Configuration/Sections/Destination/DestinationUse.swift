public import Model

/// What a setting of destinations is for; declared in its row.
public struct DestinationUse: Sendable, Equatable {
    /// The destinations that a setting is for.
    enum Scope: Sendable, Equatable {
        /// All types.
        case all
        /// Types that are reached over the network.
        case servers
        /// Types that are reached over the network and may have a user.
        case requests
        /// Some types.
        case types([DestinationSettings.Kind])
        /// Type `http` with one of some formats.
        case formats([HTTPSettings.Format])
    }

    /// The destinations that the setting is for.
    var scope = Scope.all
    /// Whether another value can make the destination answer differently.
    ///
    /// If it can, what was learned with the old value ("it acknowledges what we send") is forgotten. A
    /// setting can, unless its row says that it cannot: a wrong guess in this direction holds the destination
    /// for a moment, in the other it makes dead letters of events.
    public internal(set) var changesAnswers = true

    /// The use of a setting that is in a section with a use of its own.
    func inside(_ section: DestinationUse) -> DestinationUse {
        DestinationUse(
            scope: scope == .all ? section.scope : scope,
            changesAnswers: changesAnswers && section.changesAnswers)
    }
}

extension DestinationUse.Scope {
    /// Whether the setting is for a destination.
    func includes(_ destination: DestinationSettings) -> Bool {
        switch self {
        case .all: true
        case .servers: destination.kind.isServer
        case .requests: destination.kind.takesUser
        case .types(let kinds): kinds.contains(destination.kind)
        case .formats(let formats): destination.format.map(formats.contains) == true
        }
    }

    /// Whether the setting is for several types that are reached over the network, or for all of them.
    var isOfServers: Bool {
        switch self {
        case .servers, .requests: true
        case .types(let kinds): kinds.count > 1
        case .all, .formats: false
        }
    }

    /// For messages: `format loki`.
    var text: String {
        switch self {
        case .all: "all types"
        case .servers: Self.text(DestinationSettings.Kind.allCases.filter(\.isServer))
        case .requests: Self.text(DestinationSettings.Kind.allCases.filter(\.takesUser))
        case .types(let kinds): "type \(kinds.map(\.rawValue).joined(separator: " or "))"
        case .formats(let formats): "format \(formats.map(\.rawValue).joined(separator: " or "))"
        }
    }

    /// A list of types for messages: `type http, nats or kafka`.
    private static func text(_ kinds: [DestinationSettings.Kind]) -> String {
        let names = kinds.map(\.rawValue)
        let last = names.suffix(2).joined(separator: " or ")
        return "type \((names.dropLast(2) + [last]).joined(separator: ", "))"
    }
}

extension DestinationSettings {
    /// A text that changes with each setting that can change answers. `hash` gets secrets in clear, so its
    /// result must not reveal them.
    public func fingerprint(_ hash: ([UInt8]) -> String) -> String {
        var text = ""
        // Settings of other types and formats have their defaults. Their values are not asked for, because
        // each costs a start tens of thousands of instructions (`Entry.Place`).
        let settings = effective(in: .root) { $0.changesAnswers && $0.scope.includes(self) }
        for setting in settings where setting.use.changesAnswers {
            text += "\(setting.path)=\(setting.value?.revealed ?? "")\n"
        }
        return hash(Array(text.utf8))
    }
}

extension SettingValue {
    /// One text for each value, with secrets in clear.
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
