internal import Configuration

extension Settings {
    /// What the configuration knows and this version does not do yet: a setting without effect would be a promise that is
    /// not kept. Each with the setting that `check` points at, and its name for a person.
    var unsupported: [(setting: String, name: String)] {
        var found: [(String, String)] = []
        for destination in destinations where destination.kind == .kafka {
            found.append(("destination.\(destination.name).type", "type \"\(destination.kind.rawValue)\""))
        }
        return found
    }

    /// Refuses what is not supported.
    ///
    /// - Throws: `AgentError` with code `configuration` that names the first such setting.
    func refuseUnsupported() throws(AgentError) {
        guard let first = unsupported.first else { return }
        throw AgentError(.configuration, "\(first.name) is not in this version yet; take it out of the configuration")
    }
}
