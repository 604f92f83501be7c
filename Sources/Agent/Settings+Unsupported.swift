internal import Configuration

extension Settings {
    /// Refuses what the configuration knows and this version does not do yet: a setting without effect would be a promise
    /// that is not kept.
    ///
    /// - Throws: `AgentError` with code `configuration` that names the first such setting.
    func refuseUnsupported() throws(AgentError) {
        let found: String? =
            if !containers.isEmpty {
                "[[container]]"
            } else if spool.maxUnread > 0 {
                "spool.max_unread"
            } else if deadlines.contains(where: { !$0.apps.isEmpty }) {
                "deadline.apps"
            } else {
                nil
            }
        guard let found else { return }
        throw AgentError(.configuration, "\(found) is not in this version yet; take it out of the configuration")
    }
}
