internal import Configuration
internal import Containers
internal import Control
internal import Model

/// A configuration that was read again and may take effect: everything that can be wrong with it by itself
/// was found before anything changes.
struct ReloadPlan {
    /// The new configuration.
    let new: Settings
    /// Keys that tags hash with, by container.
    let hashKeys: [String: HashKey]
    /// Rules of the configuration.
    let rules: ConfiguredRules
    /// Whether reading begins: the spool was not read while there was no destination.
    let startsReading: Bool
    /// What differs from the configuration before.
    private let changes: [SettingsChange]
    /// Settings that are allowed but probably not meant.
    private let warnings: [String]

    /// Reads and judges the configuration at a path.
    ///
    /// - Parameters:
    ///   - configured: the configuration before.
    ///   - settings: the settings in force, with what containers have set.
    ///   - readsSpool: whether the agent reads the spool at all: not if it has a task.
    init(
        path: String, replacing configured: Settings, inForce settings: Settings, readsSpool: Bool,
        facts: AgentFacts
    ) throws(ControlRefusal) {
        let loaded = try relaying(try Settings.loadWithRules(path: path)) {
            (error: ConfigurationError) in
            ControlRefusal(400, "configuration", error.summary)
        }
        let new = loaded.settings
        guard !new.destinations.isEmpty || settings.destinations.isEmpty else {
            throw ControlRefusal(
                400, "configuration", "no destination would be left; to stop shipping, stop the agent")
        }
        // The same check as at the start: a configuration that a reload accepts must not end the next start.
        if readsSpool, let mistake = new.readingMistake {
            throw ControlRefusal(400, "configuration", "\(mistake.setting) \(mistake.message)")
        }
        self.new = new
        hashKeys = try relaying(try new.hashKeys(), ControlRefusal.init(settings:))
        rules = try relaying(try new.configuredRules(facts), ControlRefusal.init(settings:))
        startsReading = readsSpool && settings.destinations.isEmpty && !new.destinations.isEmpty
        changes = SettingsChange.all(from: configured, to: new)
        warnings = loaded.warnings.filter { $0.severity != .note }.map(\.message)
    }

    /// What the reload has changed, for a person.
    ///
    /// - Parameters:
    ///   - started: the settings of the start.
    ///   - others: changes of containers and of the queue, as texts.
    ///   - more: further warnings.
    func result(since started: Settings, others: [String], warnings more: [String]) -> ReloadResult {
        let changed = changes.filter { !$0.needsRestart }.map(\.description)
        let paths = Set(changes.map(\.path))
        let waiting = SettingsChange.all(from: started, to: new).filter(\.needsRestart).map(\.path)
            .filter(paths.contains)
        return (changed + others, waiting, warnings + more)
    }
}
