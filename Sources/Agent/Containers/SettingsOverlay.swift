internal import Configuration
internal import Model

/// What the values of containers make of the configured settings (tm10): pure.
struct SettingsOverlay {
    /// A setting that a container sets.
    struct Wish: Equatable {
        let container: String
        let path: String
        let value: JSONValue
    }

    /// The settings that are wished for, in the order in which they apply: of the same setting the later one counts.
    private(set) var wishes: [Wish] = []
    /// Why wishes are not met, by container and setting.
    private(set) var refused: [String: [String: String]] = [:]
    /// The settings with all wishes that are right.
    private(set) var settings: Settings

    /// Applies the values of containers, in configuration order; each is checked as a file's would be.
    init(_ base: Settings, _ containers: [ContainerState]) {
        settings = base
        for container in containers {
            let id = container.id
            for path in container.settings.maySet {
                guard !container.needEvent.contains(path) else {
                    refused[id, default: [:]][path] = "\(path) depends on an event, which settings cannot"
                    continue
                }
                // null takes nothing back: it says nothing.
                guard let value = container.values.last(where: { $0.key == path })?.value, value != .null else {
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

    /// Takes a wish back that turned out to be impossible, for this reason.
    mutating func refuse(_ wish: Wish, _ message: String) {
        refused[wish.container, default: [:]][wish.path] = message
        wishes.removeAll { $0 == wish }
    }
}
