internal import Configuration
internal import Containers
internal import EventLoops
internal import Model

extension Settings {
    /// Settings that containers have set, for `status`.
    var overrides: [StatusReport.Override] {
        // Most often there is no such setting, and listing all settings costs as much as 200 events.
        let isSetByContainer = origins.values.contains { if case .container = $0 { true } else { false } }
        guard isSetByContainer else { return [] }
        return effective.compactMap { setting in
            guard case .container = origin(of: setting.path), let value = setting.value else { return nil }
            return (setting.path, value.toml, origin(of: setting.path).description)
        }
    }

    /// The keys that tags hash with now, by container; throws if a key cannot be used, because nothing could
    /// be hashed.
    func hashKeys() throws(AgentError) -> [String: HashKey] {
        var keys: [String: HashKey] = [:]
        for container in containers {
            guard let path = container.hashKeyPath(credentials: environment("CREDENTIALS_DIRECTORY")) else {
                continue
            }
            keys[container.id] = try relaying(try HashKey(reading: path)) { (error: ContainerError) in
                AgentError(
                    .configuration, "container.\(container.id): the key for hash tags: \(error.message)")
            }
        }
        return keys
    }
}
