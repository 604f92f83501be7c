internal import EventLoops
internal import Glibc

/// The user that the agent runs as, which root becomes: to look at everything with this user's own rights, and where what it makes must be
/// the agent's.
enum AgentUser {
    /// The user that the package makes.
    static let name = "spoolship"

    /// Makes this process the agent's user's, for good; only for root, others stay who they are.
    ///
    /// - Parameters:
    ///   - wanted: another user's name, `root` to stay root; nil means the package's, if there is one.
    ///   - unit: what the service adds to the package's user: groups, variables.
    /// - Throws: `CommandFailure`: 64 for an unknown user, 77 if the caller may not become that user.
    static func become(_ wanted: String?, by unit: UnitSandbox?) throws(CommandFailure) {
        guard let entry = getpwnam(wanted ?? name) else {
            guard let wanted else { return }
            throw CommandFailure(.usage, "there is no user \(wanted)")
        }
        let user = entry.pointee.pw_uid
        if let wanted, ![0, user].contains(geteuid()) {
            throw CommandFailure(.noPermission, "only root can check with the rights of \(wanted)")
        }
        try become(user, entry.pointee.pw_gid, by: unit)
    }

    /// Makes this process the owner's of the state directory, in the same way.
    static func becomeOwner(of directory: String, by unit: UnitSandbox?) throws(CommandFailure) {
        guard let status = FileStatus(directory) else { return }
        // The directory's group may be any, and is not what the agent runs with.
        try become(status.owner, getpwuid(status.owner)?.pointee.pw_gid ?? status.group, by: unit)
    }

    private static func become(_ user: uid_t, _ group: gid_t, by unit: UnitSandbox?) throws(CommandFailure) {
        let userName = FileStatus.name(ofUser: user)
        let unit = userName == name ? unit : nil
        for (name, value) in unit?.environment ?? [:] { setenv(name, value, 1) }
        guard geteuid() == 0, user != 0 else { return }
        // As root these set the saved ids too: there is no way back.
        guard initgroups(userName, group) == 0, AgentUser.add(unit?.groups ?? []), setgid(group) == 0,
            setuid(user) == 0
        else {
            throw CommandFailure(.software, "cannot become \(userName) (\(SystemError("setuid")))")
        }
    }

    /// Adds groups to those that this process has; a name that no group has is left to the service manager.
    private static func add(_ names: [String]) -> Bool {
        var groups = [gid_t](repeating: 0, count: Int(getgroups(0, nil)))
        groups.removeLast(groups.count - Int(getgroups(Int32(groups.count), &groups)))
        groups += names.compactMap { UInt32($0) ?? getgrnam($0)?.pointee.gr_gid }
        return setgroups(groups.count, groups) == 0
    }
}
