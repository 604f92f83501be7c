internal import EventLoops
internal import Glibc

/// The user that the agent runs as. Root becomes this user to check files with exactly its rights, and to
/// make files that the agent can use.
enum AgentUser {
    /// The user that the package creates.
    static let name = "spoolship"

    /// Changes the user of this process to the agent's for good. Only root can; other users keep their own.
    ///
    /// - Parameters:
    ///   - wanted: the name of another user, `root` to stay root; nil for the package's user, if it exists.
    ///   - unit: what the service adds to the package's user: groups and environment variables.
    /// - Throws: `CommandFailure` with code 64 for an unknown user, and 77 if the caller is not allowed to
    ///   become that user.
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

    /// Changes the user of this process to the owner of a directory for good, in the same way. A directory
    /// that does not exist changes nothing.
    static func becomeOwner(of directory: String, by unit: UnitSandbox?) throws(CommandFailure) {
        guard let status = FileStatus(directory) else { return }
        // The group of the directory can be any; the agent runs with its user's primary group.
        try become(status.owner, getpwuid(status.owner)?.pointee.pw_gid ?? status.group, by: unit)
    }

    /// Changes user and groups for good, and sets the variables of the unit.
    private static func become(_ user: uid_t, _ group: gid_t, by unit: UnitSandbox?) throws(CommandFailure) {
        let userName = FileStatus.name(ofUser: user)
        // Another user than the service's does not get what the service adds.
        let unit = userName == name ? unit : nil
        for (name, value) in unit?.environment ?? [:] { setenv(name, value, 1) }
        guard geteuid() == 0, user != 0 else { return }
        // The order is that of dropping privileges: groups first, because setuid takes the right to change
        // them. As root the calls also set the saved ids (setuid(2)): there is no way back to root.
        guard initgroups(userName, group) == 0, AgentUser.add(unit?.groups ?? []), setgid(group) == 0,
            setuid(user) == 0
        else {
            throw CommandFailure(.software, "cannot become \(userName) (\(SystemError("setuid")))")
        }
    }

    /// Adds groups to the supplementary groups of this process. A name that no group has is skipped: the
    /// service manager reports it.
    private static func add(_ names: [String]) -> Bool {
        var groups = [gid_t](repeating: 0, count: Int(getgroups(0, nil)))
        // The list can be shorter than the first call said.
        groups.removeLast(groups.count - Int(getgroups(Int32(groups.count), &groups)))
        groups += names.compactMap { UInt32($0) ?? getgrnam($0)?.pointee.gr_gid }
        return setgroups(groups.count, groups) == 0
    }
}
