internal import CLinux
internal import Configuration
internal import EventLoops
internal import Glibc
internal import Model

/// Commands for the apps' directories in the spool. They need no running agent, which finds new directories
/// by itself.
enum AppCommands {
    /// Makes an app's directory with the one combination of owner, group, mode and access control list that
    /// keeps apps apart. By hand it takes four commands, and a forgotten one shows only when the agent cannot
    /// read.
    static let appAdd = Command(
        name: "app add", summary: "creates an app's directory in the spool", arguments: "NAME",
        argumentCount: 1...1,
        details: """
            The directory belongs to the app's user and to the agent's group (mode 2770): no other user can \
            write as this app,
            and the agent can read its files, whatever the user's umask. Needs root, unless the user is you.

            Run again, it corrects mode and access control list; a directory of another user is not touched.
            """,
        options: [Command.Option("user USER", "who writes there; default the user with the app's name")]
    ) { invocation in
        let spool = try invocation.loadSettings().settings.spool.directory
        let app = try AppDirectory(invocation.arguments[0], in: spool, user: invocation.value("user"))
        let hasLists = try app.make()
        try invocation.console.print("\(app.path): \(app.user) writes there as app \(app.name)")
        if let namesake = AppDirectory.namesake(of: app.name, ownedBy: app.userID) {
            invocation.console.printError("spoolship: \(namesake)")
        }
        if !hasLists {
            invocation.console.printError(
                "spoolship: \(spool) is on a file system without access control lists: let \(app.user) "
                    + "write with umask 0027 or 0007, so that the group may read")
        }
    }

    /// Lists the directories of the spool with problems of their permissions.
    static let appList = Command(
        name: "app list", summary: "lists the apps' directories in the spool, and their problems",
        options: [.json]
    ) { invocation in
        // As the agent's user, so that what it may do is judged by the kernel.
        if invocation.ownsProcess {
            try AgentUser.become(nil, by: nil)
        }
        let spool = try invocation.loadSettings().settings.spool.directory
        let entries = try AppDirectory.list(in: spool)
        guard !entries.isEmpty || invocation.has("json") else {
            return try invocation.console.print(
                "\(spool) has no directories; make one: spoolship app add NAME --user USER")
        }
        let values = entries.map { entry -> JSONValue in
            [
                "app": .string(entry.name), "user": .string(entry.status.ownerName),
                "mode": .string(entry.status.shownMode), "problem": .string(entry.problem ?? ""),
            ]
        }
        // The widest entry, but at least the heading.
        let width = max(3, entries.map(\.name.count).max() ?? 0) + 2
        let userWidth = max(4, entries.map(\.status.ownerName.count).max() ?? 0) + 2
        func row(_ app: String, _ user: String, _ rest: String) -> String {
            HelpText.pad(app, to: width) + HelpText.pad(user, to: userWidth) + rest
        }
        let rows = entries.map { entry in
            let note =
                entry.problem
                ?? (entry.name == AppDirectory.shared ? "anyone; the app is the file's owner" : "")
            let rest = entry.status.shownMode + (note.isEmpty ? "" : "  \(note)")
            return row(entry.name, entry.status.ownerName, rest) + "\n"
        }
        let title = invocation.console.styled(row("app", "user", "mode"), .bold)
        try invocation.show(.array(values), or: "\(title)\n" + rows.joined())
    }
}

/// The directory of an app in the spool. Its owner is the user who writes events as this app, its group the
/// agent's.
struct AppDirectory {
    /// The directory for users without one of their own: everyone can write there, and the app of an event is
    /// the owner of its file.
    static let shared = "incoming"
    /// Everything for the user and the group, nothing for others. Set-group-ID gives new files the
    /// directory's group, so that the agent can read them (inode(7)).
    private static let mode: mode_t = 0o2770

    /// The name of the app and of its directory.
    let name: String
    /// The directory of the spool.
    let spool: String
    /// The user who writes as this app.
    let user: String
    /// The user's number.
    fileprivate let userID: uid_t
    /// The agent's group, or this process's group if the package is not installed.
    private let groupID: gid_t

    /// Path of the app's directory.
    var path: String { "\(spool)/\(name)" }

    /// Checks the name and finds the user and the group.
    ///
    /// - Parameter wanted: the user who writes; nil for the user with the app's name.
    /// - Throws: `CommandFailure` with code 64 for a name that cannot be an app's, and for an unknown user.
    init(_ name: String, in spool: String, user wanted: String?) throws(CommandFailure) {
        guard name.hasOnlyLettersDigits(and: "-_."), !name.isEmpty, !name.hasPrefix("."),
            name.utf8.count <= 64
        else {
            throw CommandFailure(
                .usage, "an app's name has at most 64 letters, digits, dots, - and _, no dot in front")
        }
        guard name != AppDirectory.shared, name != "default" else {
            throw CommandFailure(
                .usage,
                name == "default"
                    ? "default is the app of files at the top of the spool"
                    : "\(name) is the drop box for everyone")
        }
        self.name = name
        self.spool = spool
        user = wanted ?? name
        guard let entry = getpwnam(user) else {
            let hint =
                wanted == nil ? "name the writing user: --user USER" : "create it first, or name another"
            throw CommandFailure(.usage, "there is no user \(user); \(hint)")
        }
        userID = entry.pointee.pw_uid
        // Without the package there is no group `spoolship`. A user who tries the agent out runs it under
        // their own account, with their own group.
        groupID = getgrnam("spoolship").map(\.pointee.gr_gid) ?? getegid()
    }

    /// Creates the directory, or corrects the mode and the access control list of an existing one that
    /// belongs to the user.
    ///
    /// - Returns: whether the file system has access control lists.
    /// - Throws: `CommandFailure` with code 77 without permission, otherwise 73.
    func make() throws(CommandFailure) -> Bool {
        do throws(SystemError) {
            let root = try Descriptor(checking: open(spool, O_RDONLY | O_DIRECTORY | O_CLOEXEC), "open")
            // Opened without following a link, and changed through the descriptor: the path cannot be
            // exchanged meanwhile.
            if let there = try? AppDirectory.folder(name, in: root.raw) {
                guard try FileStatus(of: there.raw).owner == userID else {
                    throw SystemError("mkdir", number: EEXIST)
                }
                return try prepare(there)
            }
            // The agent ignores hidden names, so it does not find the directory before it is complete.
            let hidden = ".\(name).new-\(getpid())"
            guard mkdirat(root.raw, hidden, 0o700) == 0 else { throw SystemError("mkdir") }
            do throws(SystemError) {
                let made = try AppDirectory.folder(hidden, in: root.raw)
                let hasLists = try prepare(made)
                // Does not replace an existing directory (renameat2(2), RENAME_NOREPLACE).
                guard clinux_rename_new(root.raw, hidden, root.raw, name) == 0 else {
                    throw SystemError("rename")
                }
                guard fsync(root.raw) == 0 else { throw SystemError("fsync") }
                return hasLists
            } catch {
                unlinkat(root.raw, hidden, AT_REMOVEDIR)
                throw error
            }
        } catch {
            throw failure(error)
        }
    }

    /// Sets the owner, mode and default access control list of the directory; false if the file system has no
    /// such lists.
    private func prepare(_ directory: borrowing Descriptor) throws(SystemError) -> Bool {
        guard fchown(directory.raw, userID, groupID) == 0 else { throw SystemError("chown") }
        guard fchmod(directory.raw, AppDirectory.mode) == 0 else { throw SystemError("chmod") }
        let list = AppDirectory.accessList
        if fsetxattr(directory.raw, "system.posix_acl_default", list, list.count, 0) == 0 { return true }
        guard errno == EOPNOTSUPP else { throw SystemError("setxattr") }
        return false
    }

    /// Opens a directory, not through a link.
    private static func folder(_ name: String, in directory: Int32) throws(SystemError) -> Descriptor {
        try Descriptor(
            checking: openat(directory, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW), "open")
    }

    /// The failure that an error means, with what to do.
    private func failure(_ error: SystemError) -> CommandFailure {
        switch error.number {
        case EPERM, EACCES: CommandFailure(.noPermission, "cannot make \(path) for \(user): run it as root")
        case EEXIST:
            CommandFailure(
                .cannotCreate,
                "\(path) exists and belongs to \(FileStatus(path)?.ownerName ?? "another user"); change its "
                    + "owner (chown) if \(user) is to write there")
        case ENOENT:
            CommandFailure(.cannotCreate, "there is no spool \(spool); make it, or set spool.directory")
        default: CommandFailure(.cannotCreate, "cannot make \(path): \(error)")
        }
    }

    /// The default access control list: new files get all permissions for user and group and none for others,
    /// whatever the writer's umask is (acl(5)).
    ///
    /// The form is that of the kernel's posix_acl_xattr.h: a version, then tag, permissions and id of each
    /// entry, all little-endian. The tags are ACL_USER_OBJ, ACL_GROUP_OBJ and ACL_OTHER.
    private static var accessList: [UInt8] {
        func bytes(_ value: some FixedWidthInteger) -> [UInt8] {
            withUnsafeBytes(of: value.littleEndian) { Array($0) }
        }
        let nobody = UInt32.max
        let entries: [(tag: UInt16, permissions: UInt16)] = [(0x01, 7), (0x04, 7), (0x20, 0)]
        return bytes(UInt32(2)) + entries.flatMap { bytes($0.tag) + bytes($0.permissions) + bytes(nobody) }
    }

    /// A warning if a user has the name of an app that is not that user's: in the drop box that user's events
    /// get another app's name. nil if no other user has the name.
    static func namesake(of app: String, ownedBy user: uid_t?) -> String? {
        guard let other = getpwnam(app)?.pointee.pw_uid, other != user else { return nil }
        return
            "the user \(app) is not the app \(app): what that user drops into \(shared)/ is of the app "
            + "uid-\(other)"
    }

    /// A directory of the spool, and its problem; nil if it has none.
    typealias Found = (name: String, status: FileStatus, problem: String?)

    /// The directories of the spool sorted by name, without hidden ones and a file system's `lost+found`.
    ///
    /// - Throws: `CommandFailure` with code 77 or 74 if the spool cannot be listed.
    static func list(in spool: String) throws(CommandFailure) -> [Found] {
        let names: [String]
        do throws(SystemError) { names = try WholeFile.names(in: spool) } catch {
            throw CommandFailure(
                error.number == EACCES ? .noPermission : .inputOutput,
                "cannot list \(spool): \(SystemError.message(error.number))")
        }
        let agent = FileAccess.own
        var found: [Found] = []
        for name in names {
            guard !name.hasPrefix("."), name != "lost+found",
                let status = FileStatus(link: "\(spool)/\(name)"), status.isDirectory
            else {
                continue
            }
            // Access can be judged only with the rights of the agent's user; root has changed to that user
            // before.
            let isJudged = agent.user == AgentUser.name
            let refusal =
                name != shared && status.mode & 0o002 != 0
                ? "can be written by anyone, who can then write as this app"
                : isJudged ? agent.refusal("\(spool)/\(name)", R_OK | W_OK | X_OK) : nil
            let problem = refusal.map {
                "\($0): spoolship app add \(name) --user \(status.ownerName) corrects it"
            }
            found.append((name, status, problem))
        }
        return found.sorted { $0.name < $1.name }
    }
}
