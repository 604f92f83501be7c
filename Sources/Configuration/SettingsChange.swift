public import Model

/// A setting that differs between two configurations.
public struct SettingsChange: Sendable, Equatable, CustomStringConvertible {
    /// Path: `queue.max_size`.
    public let path: String
    /// The value before; nil if it was not set.
    package let before: SettingValue?
    /// The value now; nil if it is not set.
    package let after: SettingValue?
    /// Whether a reload cannot apply it.
    public let needsRestart: Bool

    /// For people: `queue.max_size "10MiB" -> "20MiB"`. For a secret it only says that it has changed.
    public var description: String {
        let holdsSecret = [before, after].contains { $0?.holdsSecret == true }
        let values = holdsSecret ? "(a secret)" : "\(before?.toml ?? "unset") -> \(after?.toml ?? "unset")"
        return "\(path) \(values)\(needsRestart ? " (needs a restart)" : "")"
    }
}

extension Settings {
    /// What differs in `new`, in the order of the shipped file; what was removed comes last.
    ///
    /// Secrets are compared as the configuration says them; files of secrets are not read.
    public func changes(to new: Settings) -> [SettingsChange] {
        let before = Dictionary(effective.map { ($0.path, $0) }, uniquingKeysWith: { first, _ in first })
        let newSettings = new.effective
        let after = Set(newSettings.map(\.path))
        let changed = newSettings.compactMap { setting -> SettingsChange? in
            let old = before[setting.path]?.value
            guard old != setting.value else { return nil }
            return SettingsChange(
                path: setting.path, before: old, after: setting.value, needsRestart: setting.needsRestart)
        }
        let gone = effective.filter { !after.contains($0.path) && $0.value != nil }.map { setting in
            SettingsChange(
                path: setting.path, before: setting.value, after: nil, needsRestart: setting.needsRestart)
        }
        return changed + gone
    }

    /// The same settings with another value for one of them.
    ///
    /// The value is checked as one in a file, also against the other settings: a container (`may_set`) or a
    /// command cannot set what a file could not.
    ///
    /// - Throws: `ConfigurationError` with what is wrong with the value.
    public func setting(
        _ path: String, to value: JSONValue, origin: Origin
    ) throws(ConfigurationError) -> Settings {
        let listed = Settings.listedPath(of: path)
        guard let setting = effective.first(where: { $0.path == listed }),
            !setting.section.path.contains(".")
        else {
            throw ConfigurationError(problems: [
                Problem(.unknownKey, "no setting \(path) that can be set at run time")
            ])
        }
        guard let node = TOMLNode(value) else {
            throw ConfigurationError(problems: [
                Problem(.wrongType, "\(path) has a value that no setting can have")
            ])
        }
        var context = ReadContext(origins: origins, origin: origin)
        let key = String(path.dropFirst(setting.section.path.count + 1))
        let section = TOMLNode(value: .table([.init(key: key, node: node)]))
        let root = TOMLNode(value: .table([.init(key: setting.section.path, node: section)]))
        var changed = self
        changed.read(root, path: "", context: &context)
        if context.problems.allSatisfy({ $0.severity != .error }) {
            context.checkConsistency(of: changed)
        }
        let errors = context.problems.filter { $0.severity == .error }
        guard errors.isEmpty else { throw ConfigurationError(problems: errors) }
        changed.origins = context.origins
        changed.applyTypeDefaults()
        return changed
    }
}

extension Settings {
    /// The path under which a setting is listed: that of its new key, if the path has an old one.
    package static func listedPath(of path: String) -> String {
        let parts = path.split(separator: ".", maxSplits: 1)
        guard parts.count == 2, let section = description.first(where: { $0.name == parts[0] }),
            let old = section.oldKeys.first(where: { $0.name == parts[1] })
        else { return path }
        // What is behind a dot is a part of the value: `name_length.beyond`.
        return "\(section.name).\(old.now.prefix { $0 != "." })"
    }

    /// These settings as they are in force until a restart: with the values of `started` for settings that a
    /// reload cannot apply.
    package func untilRestart(since started: Settings) -> Settings { keeping(started) }
}
