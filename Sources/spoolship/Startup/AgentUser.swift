internal import EventLoops
internal import Glibc

/// The user that the agent runs as: `check` looks at everything with this user's own rights, not with root's.
enum AgentUser {
    /// The user that the package makes.
    static let name = "spoolship"

    /// Makes this process the agent's user's, for good; only for root, others stay who they are.
    ///
    /// - Parameter wanted: another user's name, `root` to stay root; nil means the package's, if there is one.
    /// - Throws: `CommandFailure`: 64 for an unknown user, 77 if the caller may not become that user.
    static func become(_ wanted: String?) throws(CommandFailure) {
        guard let entry = getpwnam(wanted ?? name) else {
            guard let wanted else { return }
            throw CommandFailure(.usage, "there is no user \(wanted)")
        }
        let (user, group) = (entry.pointee.pw_uid, entry.pointee.pw_gid)
        guard geteuid() != user else { return }
        guard geteuid() == 0 else {
            guard let wanted else { return }
            throw CommandFailure(.noPermission, "only root can check with the rights of \(wanted)")
        }
        // As root these set the saved ids too: there is no way back.
        guard initgroups(entry.pointee.pw_name, group) == 0, setgid(group) == 0, setuid(user) == 0 else {
            throw CommandFailure(.software, "cannot become \(wanted ?? name) (\(SystemError("setuid")))")
        }
    }
}
