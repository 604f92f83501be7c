internal import CLinux
internal import Configuration
internal import EventLoops
internal import Glibc
internal import Model

/// The apps' directories in the spool. These commands need no running agent: it finds a new directory by itself.
extension Command {
    static let appAdd = Command(
        name: "app add", summary: "creates an app's directory in the spool", arguments: "NAME", argumentCount: 1...1,
        details: """
            The directory belongs to the app's user and to the agent's group (mode 2770): no other user can write as this app,
            and the agent can read its files, whatever the user's umask. Needs root, unless the user is you.

            Run again, it corrects mode and access control list; a directory of another user is not touched.
            """,
        options: [Option("user USER", "who writes there; default the user with the app's name")]
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
                "spoolship: \(spool) is on a file system without access control lists: let \(app.user) write with"
                    + " umask 0027 or 0007, so that the group may read")
        }
    }

    static let appList = Command(
        name: "app list", summary: "lists the apps' directories in the spool, and their problems",
        options: [.json]
    ) { invocation in
        if invocation.ownsProcess { try AgentUser.become(nil, by: nil) }
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
        let width = max(3, entries.map(\.name.count).max() ?? 0) + 2
        let userWidth = max(4, entries.map(\.status.ownerName.count).max() ?? 0) + 2
        func row(_ app: String, _ user: String, _ rest: String) -> String {
            HelpText.pad(app, to: width) + HelpText.pad(user, to: userWidth) + rest
        }
        let rows = entries.map { entry in
            let note =
                entry.problem ?? (entry.name == AppDirectory.shared ? "anyone; the app is the file's owner" : "")
            let rest = entry.status.shownMode + (note.isEmpty ? "" : "  \(note)")
            return row(entry.name, entry.status.ownerName, rest) + "\n"
        }
        let title = invocation.console.styled(row("app", "user", "mode"), .bold)
        try invocation.show(.array(values), or: "\(title)\n" + rows.joined())
    }
}

struct AppDirectory {
    /// The drop box for users without their own directory.
    static let shared = "incoming"
    private static let mode: mode_t = 0o2770

    let name: String
    let spool: String
    let user: String
    fileprivate let userID: uid_t
    private let groupID: gid_t

    var path: String { "\(spool)/\(name)" }

    init(_ name: String, in spool: String, user wanted: String?) throws(CommandFailure) {
        guard name.hasOnlyLettersDigits(and: "-_."), !name.isEmpty, !name.hasPrefix("."), name.utf8.count <= 64 else {
            throw CommandFailure(.usage, "an app's name has at most 64 letters, digits, dots, - and _, no dot in front")
        }
        guard name != AppDirectory.shared, name != "default" else {
            throw CommandFailure(
                .usage,
                name == "default"
                    ? "default is the app of files at the top of the spool" : "\(name) is the drop box for everyone")
        }
        self.name = name
        self.spool = spool
        user = wanted ?? name
        guard let entry = getpwnam(user) else {
            let hint = wanted == nil ? "name the writing user: --user USER" : "create it first, or name another"
            throw CommandFailure(.usage, "there is no user \(user); \(hint)")
        }
        userID = entry.pointee.pw_uid
        // Where the package is not installed the agent is run by whoever tries it out.
        groupID = getgrnam("spoolship").map(\.pointee.gr_gid) ?? getegid()
    }

    /// Makes the directory, or corrects the one that is there; gives whether the file system has access control lists.
    func make() throws(CommandFailure) -> Bool {
        do throws(SystemError) {
            let root = try Descriptor(checking: open(spool, O_RDONLY | O_DIRECTORY | O_CLOEXEC), "open")
            if let there = try? AppDirectory.folder(name, in: root.raw) {
                guard try FileStatus(of: there.raw).owner == userID else { throw SystemError("mkdir", number: EEXIST) }
                return try prepare(there)
            }
            // The agent must not find it before it is finished: it passes over hidden names.
            let hidden = ".\(name).new-\(getpid())"
            guard mkdirat(root.raw, hidden, 0o700) == 0 else { throw SystemError("mkdir") }
            do throws(SystemError) {
                let made = try AppDirectory.folder(hidden, in: root.raw)
                let hasLists = try prepare(made)
                guard clinux_rename_new(root.raw, hidden, root.raw, name) == 0 else { throw SystemError("rename") }
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

    /// Gives the directory its owner, mode and default access control list.
    private func prepare(_ directory: borrowing Descriptor) throws(SystemError) -> Bool {
        guard fchown(directory.raw, userID, groupID) == 0 else { throw SystemError("chown") }
        guard fchmod(directory.raw, AppDirectory.mode) == 0 else { throw SystemError("chmod") }
        let list = AppDirectory.accessList
        if fsetxattr(directory.raw, "system.posix_acl_default", list, list.count, 0) == 0 { return true }
        guard errno == EOPNOTSUPP else { throw SystemError("setxattr") }
        return false
    }

    private static func folder(_ name: String, in directory: Int32) throws(SystemError) -> Descriptor {
        try Descriptor(checking: openat(directory, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW), "open")
    }

    private func failure(_ error: SystemError) -> CommandFailure {
        switch error.number {
        case EPERM, EACCES: CommandFailure(.noPermission, "cannot make \(path) for \(user): run it as root")
        case EEXIST:
            CommandFailure(
                .cannotCreate,
                "\(path) exists and belongs to \(FileStatus(path)?.ownerName ?? "another user"); change its owner"
                    + " (chown) if \(user) is to write there")
        case ENOENT:
            CommandFailure(.cannotCreate, "there is no spool \(spool); make it, or set spool.directory")
        default: CommandFailure(.cannotCreate, "cannot make \(path): \(error)")
        }
    }

    /// What new files get whatever their writer's umask is: all to the user and the group, nothing to others.
    ///
    /// Source: the kernel's posix_acl_xattr.h: a version, then tag, permissions and id of each entry, little-endian.
    private static var accessList: [UInt8] {
        func bytes(_ value: some FixedWidthInteger) -> [UInt8] {
            withUnsafeBytes(of: value.littleEndian) { Array($0) }
        }
        let nobody = UInt32.max
        let entries: [(tag: UInt16, permissions: UInt16)] = [(0x01, 7), (0x04, 7), (0x20, 0)]
        return bytes(UInt32(2)) + entries.flatMap { bytes($0.tag) + bytes($0.permissions) + bytes(nobody) }
    }

    /// What becomes of the events of a user who has the name of an app that is not that user's; nil where nobody has it.
    static func namesake(of app: String, ownedBy user: uid_t?) -> String? {
        guard let other = getpwnam(app)?.pointee.pw_uid, other != user else { return nil }
        return "the user \(app) is not the app \(app): what that user drops into \(shared)/ is of the app uid-\(other)"
    }

    /// A directory that is there, and what is wrong with it; nil when nothing is.
    typealias Found = (name: String, status: FileStatus, problem: String?)

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
            guard !name.hasPrefix("."), let status = FileStatus(link: "\(spool)/\(name)"), status.isDirectory else {
                continue
            }
            // Only the agent's user can tell what the agent may do; root has become it.
            let isJudged = agent.user == AgentUser.name
            let refusal =
                name != shared && status.mode & 0o002 != 0
                ? "can be written by anyone, who can then write as this app"
                : isJudged ? agent.refusal("\(spool)/\(name)", R_OK | W_OK | X_OK) : nil
            let problem = refusal.map { "\($0): spoolship app add \(name) --user \(status.ownerName) corrects it" }
            found.append((name, status, problem))
        }
        return found.sorted { $0.name < $1.name }
    }
}
