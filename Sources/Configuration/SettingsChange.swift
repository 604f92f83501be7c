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

extension SettingsChange {
    /// What differs in `new` from `old`, in the order of the shipped file; what was removed comes last.
    ///
    /// Secrets are compared as the configuration says them; files of secrets are not read.
    public static func all(from old: Settings, to new: Settings) -> [SettingsChange] {
        let before = Dictionary(old.effective.map { ($0.path, $0) }, uniquingKeysWith: { first, _ in first })
        let newSettings = new.effective
        let after = Set(newSettings.map(\.path))
        let changed = newSettings.compactMap { setting -> SettingsChange? in
            let earlier = before[setting.path]?.value
            guard earlier != setting.value else { return nil }
            return SettingsChange(
                path: setting.path, before: earlier, after: setting.value, needsRestart: setting.needsRestart)
        }
        let gone = old.effective.filter { !after.contains($0.path) && $0.value != nil }.map { setting in
            SettingsChange(
                path: setting.path, before: setting.value, after: nil, needsRestart: setting.needsRestart)
        }
        return changed + gone
    }
}
