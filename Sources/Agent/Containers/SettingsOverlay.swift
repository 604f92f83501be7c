internal import Configuration
internal import Model

/// Applies the values of containers to the configured settings, as far as `may_set` permits it. A pure value.
struct SettingsOverlay {
    /// A value of a container for a setting.
    struct Wish: Equatable {
        /// The id of the container, which `status` names as the origin.
        let container: String
        /// The setting, such as `dispatch.interval`.
        let path: String
        let value: JSONValue
    }

    /// The values that are applied, in this order; of two values for one setting the later one counts.
    private(set) var wishes: [Wish] = []
    /// Why values are not applied, by container and setting.
    private(set) var refused: [String: [String: String]] = [:]
    /// The settings with all valid values applied.
    private(set) var settings: Settings

    /// Applies the values in the order of the configuration. Each is checked like a value in a configuration
    /// file.
    init(_ base: Settings, _ containers: [ContainerState]) {
        settings = base
        for container in containers {
            let id = container.id
            let granted = Set(container.settings.maySet.map(Settings.currentPath))
            for path in container.settings.maySet {
                guard !container.needEvent.contains(path) else {
                    refused[id, default: [:]][path] = "\(path) depends on an event, which settings cannot"
                    continue
                }
                // null is not a value: it does not undo the value of a container before this one.
                guard let value = container.values.last(where: { $0.key == path })?.value, value != .null
                else {
                    continue
                }
                if let second = Settings.secondValue(in: value, for: path), !granted.contains(second) {
                    refused[id, default: [:]][path] = "\(path) sets \(second), which may_set does not name"
                    continue
                }
                do throws(ConfigurationError) {
                    settings = try settings.setting(path, to: value, origin: .container(id))
                    wishes.append(Wish(container: id, path: path, value: value))
                } catch {
                    refused[id, default: [:]][path] = error.problems.first?.message ?? "\(path) cannot be set"
                }
            }
        }
    }

    /// Withdraws a value that turned out to be impossible when the settings were applied.
    mutating func refuse(_ wish: Wish, _ message: String) {
        refused[wish.container, default: [:]][wish.path] = message
        wishes.removeAll { $0 == wish }
    }
}
