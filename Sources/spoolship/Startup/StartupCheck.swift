internal import Agent
internal import CLinux
internal import Configuration
internal import Control
internal import EventLoops
internal import Glibc
internal import Model
internal import Spool

/// Walks the way that a start takes, and changes nothing: directories, permissions, space, sockets, files.
///
/// What would stop the agent is an error, what would hurt it later a warning; each is reported with the line of the
/// configuration that it is about.
struct StartupCheck {
    let loaded: LoadedSettings
    let access = FileAccess.own
    /// What the service lets the agent use; nil where it is not what starts the agent with this configuration.
    let sandbox: UnitSandbox?
    private(set) var problems: [Problem] = []

    var settings: Settings { loaded.settings }

    /// All that was found, in the order of the start; `clock` is what this machine's clock keeps the agent from.
    static func problems(
        of loaded: LoadedSettings, sandbox: UnitSandbox? = nil, clock: String? = StartupRehearsal.clockComplaint
    ) -> [Problem] {
        var check = StartupCheck(loaded: loaded, sandbox: sandbox)
        SilentFiles.askMounts(
            of: loaded.settings.destinations.flatMap(\.files)
                + loaded.settings.containers.flatMap { [$0.hashKeyFile, $0.defaultFile].compactMap(\.self) }
                + loaded.settings.apps.values.compactMap(\.journalDirectory))
        for refusal in StartupRehearsal(check.settings, version: Build.version).refusals {
            check.add(refusal.setting, refusal.message, severity: refusal.endsStart ? .error : .warning)
        }
        check.checkStateDirectory()
        check.checkRuntimeDirectory()
        check.checkOwner()
        check.checkSpool()
        check.checkSockets()
        for destination in loaded.settings.destinations { check.checkFiles(of: destination) }
        for container in loaded.settings.containers { check.checkFiles(of: container) }
        check.checkNamedFiles()
        check.checkOrphans()
        if sandbox?.mayAskClock == true, let clock {
            check.problems.append(Problem(.environment, clock, severity: .warning))
        }
        return check.problems
    }

    /// How many were found that are no warnings.
    var mistakes: Int { problems.count { $0.severity == .error } }

    mutating func add(_ path: String, _ message: String, severity: Problem.Severity = .error) {
        problems.append(loaded.problem(.environment, message, about: path, severity: severity))
    }

    /// What waits in the queue for destinations that the configuration does not name.
    private mutating func checkOrphans() {
        for (name, events) in StartupRehearsal(settings, version: Build.version).orphans {
            let warning = OrphanText.warning(
                destination: name, events: events, configured: settings.destinations.map(\.name))
            problems.append(Problem(.environment, warning, severity: .warning))
        }
    }

    // MARK: Directories

    private mutating func checkStateDirectory() {
        let setting = "agent.state_directory"
        let path = settings.agent.stateDirectory
        guard let status = checkDirectory(path, setting, R_OK | W_OK | X_OK) else { return }
        if status.isWritableByOthers {
            add(setting, "\(path) can be written by others (mode \(status.shownMode)); run chmod go-w \(path)")
        }
        guard access.refusal(path, R_OK | W_OK | X_OK) == nil else {
            guard access.user != AgentUser.name else { return }
            return add(setting, "\(path): its files can only be checked as the agent's user: run check as root")
        }
        // A restore by root, say.
        for name in ["queue.sqlite", "queue.sqlite-wal", "queue.sqlite-shm", "lock", "ballast"] {
            guard let refusal = access.refusal("\(path)/\(name)", R_OK | W_OK) else { continue }
            add(setting, "\(path)/\(name) \(refusal); run chown -h --reference=\(path) \(path)/\(name)")
        }
        guard let free = FileSystemRoom(path)?.freeBytes else { return }
        let bounds = settings.queue.maxSize + settings.deadLetters.maxSize + settings.spool.quarantineMaxSize
        let needed = bounds + bounds / 2 + 4 << 20
        let used = Int(FileStatus("\(path)/queue.sqlite")?.size ?? 0)
        if free < needed - used {
            add(
                "queue.max_size",
                "lets \(path) grow to \(HumanText.bytes(needed)), and only \(HumanText.bytes(free)) are free"
                    + " there; make room or lower it",
                severity: .warning)
        }
        var kind = statfs()
        // NFS and CIFS; the log of the database needs memory that processes share.
        if statfs(path, &kind) == 0,
            [0x6969, 0xFF53_4D42, 0xFE53_4D42].contains(UInt32(truncatingIfNeeded: kind.f_type))
        {
            add(setting, "\(path) is on a network file system; SQLite needs a local one")
        }
    }

    /// Without containers nothing is published there. A start goes on without it.
    private mutating func checkRuntimeDirectory() {
        let path = settings.agent.runtimeDirectory
        // Below /run the service manager makes the directory at the start.
        guard !settings.containers.isEmpty, !path.hasPrefix("/run/") else { return }
        let setting = "agent.runtime_directory"
        guard let status = FileStatus(path), status.isDirectory else {
            add(setting, "\(path) is not a directory; container values are not published for apps", severity: .warning)
            return
        }
        if let refusal = access.refusal(path, W_OK | X_OK) {
            add(setting, "\(path) \(refusal); container values are not published for apps", severity: .warning)
        }
    }

    /// Looks whether another agent has the state directory, or the spool, in the kernel's list: a lock of our own, if only for a
    /// moment, could stop an agent that is just starting.
    private mutating func checkOwner() {
        guard !StartupCheck.answers(settings.control.socket) else { return }
        let (state, spool) = (settings.agent.stateDirectory, settings.spool.directory)
        checkOwner(of: state, lock: state, "agent.state_directory")
        checkOwner(of: spool, lock: "\(spool)/.spoolship/lock", "spool.directory")
    }

    private mutating func checkOwner(of path: String, lock: String, _ setting: String) {
        guard let status = FileStatus(lock), let locks = try? WholeFile.bytes(of: "/proc/locks", atMost: 1 << 20) else {
            return
        }
        // `1: FLOCK  ADVISORY  WRITE 4711 fe:00:262146 0 EOF`
        for line in locks.split(separator: UInt8(ascii: "\n")) {
            let words = String(decoding: line, as: UTF8.self).split(separator: " ")
            guard words.count > 5, words[1] == "FLOCK", words[3] == "WRITE",
                words[5] == status.lockName
            else { continue }
            add(
                setting,
                "\(path) is in use by process \(words[4]), which does not answer at \(settings.control.socket); stop it first",
                severity: .warning)
            return
        }
    }

    private mutating func checkSpool() {
        let spool = settings.spool
        // Beneath it files are claimed and removed, whoever owns it.
        if let refusal = sandbox?.refusal(spool.directory, writes: true) {
            add("spool.directory", "\(spool.directory) \(refusal)")
        }
        let status = checkDirectory(spool.directory, "spool.directory", R_OK | X_OK, isInSandbox: true)
        for (name, app) in settings.apps.sorted(by: { $0.key < $1.key }) {
            for pattern in app.read ?? [] {
                // What lies in a file system that may never answer is not looked at.
                let files = ReadPlace.of(app: name, [pattern])?.first?.files
                if let directory = StartupCheck.directory(of: String(pattern.prefix { $0 != "*" })),
                    let refusal = sandbox?.refusal(directory, writes: false)
                        ?? files.flatMap({ _ in access.refusal(directory, R_OK | X_OK) })
                {
                    add("apps.\(name).read", "\(directory) \(refusal)", severity: .warning)
                } else if files == [] {
                    let hint = pattern.contains { "?[{".contains($0) } ? ": only * stands for other characters" : " now"
                    add("apps.\(name).read", "\(pattern) fits no file\(hint)", severity: .warning)
                }
                let refused = (files ?? []).filter { access.refusal($0, R_OK) != nil }
                guard let first = refused.first, let refusal = access.refusal(first, R_OK) else { continue }
                let more = refused.count > 1 ? "; nor can \(refused.count - 1) more files" : ""
                add("apps.\(name).read", "\(first) \(refusal)\(more)", severity: .warning)
            }
        }
        if status != nil { checkApps(in: spool.directory) }
        let own = "\(spool.directory)/.spoolship"
        let isThere = FileStatus(own) != nil
        if status != nil, let refusal = access.refusal(isThere ? own : spool.directory, W_OK | X_OK) {
            add(
                "spool.directory",
                "\(own) \(isThere ? refusal : "is missing"): a second agent could read the spool, too, and apps are not told"
                    + " what the agent accepts; `install -d -o \(access.user) \(own)` makes it", severity: .warning)
        }
        var limit = rlimit()
        if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0, limit.rlim_max < spool.maxOpenFiles {
            add(
                "spool.max_open_files", "is more than this process may open (\(limit.rlim_max)); raise LimitNOFILE",
                severity: .warning)
        }
        guard spool.afterRead == .archive, let archive = spool.archiveDirectory,
            let found = checkDirectory(archive, "spool.archive_directory", W_OK | X_OK), let status
        else { return }
        if found.device != status.device {
            add(
                "spool.archive_directory",
                "\(archive) is on another file system than the spool; files are moved, not copied")
        }
    }

    /// Looks at the directories of the apps: files in one that the agent may not read, or not remove, stay there.
    private mutating func checkApps(in spool: String) {
        let flags = CLINUX_O_PATH | O_DIRECTORY | O_CLOEXEC
        guard let root = try? Descriptor(checking: open(spool, flags), "open") else { return }
        for name in (try? WholeFile.names(in: spool)) ?? [] {
            let path = "\(spool)/\(name)"
            // What is mounted there is not read, and may never answer.
            guard !name.hasPrefix("."),
                let directory = try? Descriptor(checking: clinux_open_beneath(root.raw, name, flags), "openat2")
            else { continue }
            let owner = try? FileStatus(of: directory.raw).owner
            if name != AppDirectory.shared, let namesake = AppDirectory.namesake(of: name, ownedBy: owner) {
                add("spool.directory", namesake, severity: .warning)
            }
            guard let refusal = access.refusal(path, R_OK | W_OK | X_OK) else { continue }
            add("spool.directory", "\(path) \(refusal); its files are not shipped", severity: .warning)
        }
    }

    /// Looks at a directory; nil where it is none. `isInSandbox`: what the service may do there was looked at before.
    @discardableResult
    private mutating func checkDirectory(
        _ path: String, _ setting: String, _ purpose: Int32, isInSandbox: Bool = false
    ) -> FileStatus? {
        if !isInSandbox, let refusal = sandbox?.refusal(path, writes: purpose & W_OK != 0) {
            add(setting, "\(path) \(refusal)")
        }
        guard let status = FileStatus(path) else {
            let advice = "does not exist; create it: install -d -o \(access.user) -m 0750 \(path)"
            add(setting, errno == ENOENT ? "\(path) \(advice)" : "\(path): \(missing(path) ?? "")")
            return nil
        }
        guard status.isDirectory else {
            add(setting, "\(path) is not a directory")
            return nil
        }
        if let refusal = access.refusal(path, purpose) { add(setting, "\(path) \(refusal)") }
        return status
    }

    // MARK: Sockets

    private mutating func checkSockets() {
        let socketPath = settings.control.socket
        if let status = FileStatus(socketPath) {
            if !status.isSocket { add("control.socket", "\(socketPath) exists and is not a socket; remove it") }
        } else if let directory = StartupCheck.directory(of: socketPath), !directory.hasPrefix("/run/") {
            // Below /run the service manager makes the directory at the start.
            checkDirectory(directory, "control.socket", W_OK | X_OK)
        }
        // Without the package there is no such group, and the agent takes its own.
        if settings.origin(of: "control.group") != .standard, getgrnam(settings.control.group) == nil {
            add(
                "control.group",
                "is \"\(settings.control.group)\", and there is no such group; create it (groupadd --system"
                    + " \(settings.control.group)), or name another")
        }
        guard let address = settings.stats.listen, address.port != 0, let number = StartupCheck.bindFailure(address)
        else { return }
        if number == EADDRINUSE && StartupCheck.answers(socketPath) { return }
        let advice =
            switch number {
            case EADDRINUSE: "; another program has it: `ss -ltnp` says which"
            case EADDRNOTAVAIL: "; this machine has no such address"
            default: ""
            }
        add("stats.listen", "cannot listen on \(address): \(SystemError.message(number))\(advice)")
    }

    /// The error number that listening on an address fails with; nil when it works.
    private static func bindFailure(_ address: ListenAddress) -> Int32? {
        do throws(SystemError) {
            _ = try InternetSocket.listen(at: address.host, port: address.port)
            return nil
        } catch {
            return error.number
        }
    }

    /// Whether somebody listens on a Unix socket: an agent that runs already has its own port.
    private static func answers(_ path: String) -> Bool {
        path.utf8.count <= UnixSocket.longestPath && (UnixSocket.connect(to: path) != nil || errno == EACCES)
    }

    static func directory(of path: String) -> String? {
        path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) }
    }
}
