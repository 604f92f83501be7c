internal import Agent
internal import CLinux
internal import Configuration
internal import Control
internal import EventLoops
internal import Glibc
internal import Model
internal import Spool

/// Rehearses the start of the agent and changes nothing: directories, permissions, free space, sockets,
/// files.
///
/// What would stop the agent is an error, what would harm it later is a warning. Each is reported with the
/// line of the configuration that it is about. The checks run with the rights of the agent's user
/// (`AgentUser`) and take the service's sandbox into account, because root's own view says little about
/// either.
struct StartupCheck {
    /// The configuration with its places, for the problems.
    let loaded: LoadedSettings
    /// What the current user may do.
    let access = FileAccess.own
    /// What the service allows the agent; nil if another program starts the agent with this configuration.
    let sandbox: UnitSandbox?
    /// The problems so far, in the order in which they were found.
    private(set) var problems: [Problem] = []
    /// Whether the spool is on a file system that does not answer: then nothing in it is looked at.
    private var isSpoolSilent = false

    /// The settings that are checked.
    var settings: Settings { loaded.settings }

    /// The problems that the text alone shows, whatever machine it is for.
    static func problemsOfText(of loaded: LoadedSettings) -> [Problem] {
        StartupRehearsal(loaded.settings, version: Build.version).refusalsOfText.map {
            loaded.problem(.environment, $0.message, about: $0.setting)
        }
    }

    /// All problems, in the order of the steps of a start.
    ///
    /// - Parameters:
    ///   - sandbox: what the service allows the agent.
    ///   - clock: what the agent has to do without because this machine's clock is not synchronised; nil if
    ///     it is.
    static func problems(
        of loaded: LoadedSettings, sandbox: UnitSandbox? = nil,
        clock: String? = StartupRehearsal.clockComplaint
    ) -> [Problem] {
        var check = StartupCheck(loaded: loaded, sandbox: sandbox)
        // A file system that does not answer blocks each system call on it. All are asked before, with a time
        // limit, and files on silent ones are not touched below.
        SilentFiles.askMounts(
            of: loaded.settings.destinations.flatMap(\.files)
                + loaded.settings.containers.flatMap { [$0.hashKeyFile, $0.defaultFile].compactMap(\.self) }
                + loaded.settings.apps.values.compactMap(\.journal.directory))
        check.askSpool()
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
        check.checkRules()
        check.checkNamedFiles()
        check.checkOrphans()
        if let mistake = sandbox?.userMistake(exists: { UInt32($0) != nil || getpwnam($0) != nil }) {
            check.problems.append(Problem(.environment, mistake))
        }
        // Only if the agent may ask the kernel. With `ProtectClock=` it judges by the machine's uptime
        // instead.
        if sandbox?.mayAskClock == true, let clock {
            check.problems.append(Problem(.environment, clock, severity: .warning))
        }
        return check.problems
    }

    /// How many problems are errors, not warnings.
    var mistakes: Int { problems.count { $0.severity == .error } }

    /// Adds a problem about a setting, at the setting's line in the configuration.
    mutating func add(_ path: String, _ message: String, severity: Problem.Severity = .error) {
        problems.append(loaded.problem(.environment, message, about: path, severity: severity))
    }

    /// Warns of events in the queue for destinations that are no longer configured: they are kept and never
    /// sent.
    private mutating func checkOrphans() {
        for (name, events) in StartupRehearsal(settings, version: Build.version).orphans {
            let warning = OrphanText.warning(
                destination: name, events: events, configured: settings.destinations.map(\.name))
            problems.append(Problem(.environment, warning, severity: .warning))
        }
    }

    // MARK: Directories

    /// Checks the state directory: rights, files inside, free space, and the kind of file system.
    private mutating func checkStateDirectory() {
        let setting = "agent.state_directory"
        let path = settings.agent.stateDirectory
        guard let status = checkDirectory(path, setting, R_OK | W_OK | X_OK) else { return }
        // A user who can write there can replace the queue, or give the agent a link to follow.
        if status.isWritableByOthers {
            add(
                setting, "\(path) can be written by others (mode \(status.shownMode)); run chmod go-w \(path)"
            )
        }
        // Without the rights the files inside cannot be judged. If this is the agent's user, the problem is
        // reported already; otherwise the message says how to check.
        guard access.refusal(path, R_OK | W_OK | X_OK) == nil else {
            guard access.user != AgentUser.name else { return }
            return add(
                setting, "\(path): its files can only be checked as the agent's user: run check as root")
        }
        // Files of root are left by a restore from a backup, or by a run as root.
        for name in ["queue.sqlite", "queue.sqlite-wal", "queue.sqlite-shm", "lock", "ballast"] {
            guard let refusal = access.refusal("\(path)/\(name)", R_OK | W_OK) else { continue }
            add(setting, "\(path)/\(name) \(refusal); run chown -h --reference=\(path) \(path)/\(name)")
        }
        guard let free = FileSystemRoom(path)?.freeBytes else { return }
        let bounds = settings.queue.maxSize + settings.deadLetters.maxSize + settings.spool.quarantineMaxSize
        // SQLite's file and its write-ahead log: half as much again for the log and free pages, and 4 MiB for
        // the rest.
        let needed = bounds + bounds / 2 + 4 << 20
        // What the queue's file has already is not needed again.
        let used = Int(FileStatus("\(path)/queue.sqlite")?.size ?? 0)
        if free < needed - used {
            add(
                "queue.max_size",
                "lets \(path) grow to \(HumanText.bytes(needed)), and only \(HumanText.bytes(free)) are free"
                    + " there; make room or lower it",
                severity: .warning)
        }
        var kind = statfs()
        // The magic numbers of NFS, CIFS and SMB2 (statfs(2)). SQLite's write-ahead log needs memory that
        // processes share, which these do not have.
        if statfs(path, &kind) == 0,
            [0x6969, 0xFF53_4D42, 0xFE53_4D42].contains(UInt32(truncatingIfNeeded: kind.f_type))
        {
            add(setting, "\(path) is on a network file system; SQLite needs a local one")
        }
        if let memory = VolatileStorage.name(of: path) {
            add(setting, VolatileStorage.warning(path, on: memory), severity: .warning)
        }
    }

    /// Checks the directory in which values of containers are published for apps. Without it a start
    /// continues, so its problems are warnings.
    private mutating func checkRuntimeDirectory() {
        let path = settings.agent.runtimeDirectory
        // Below /run the service manager creates the directory at the start (`RuntimeDirectory=`).
        guard !settings.containers.isEmpty, !path.hasPrefix("/run/") else { return }
        let setting = "agent.runtime_directory"
        guard let status = FileStatus(path), status.isDirectory else {
            add(
                setting, "\(path) is not a directory; container values are not published for apps",
                severity: .warning)
            return
        }
        if let refusal = access.refusal(path, W_OK | X_OK) {
            add(
                setting, "\(path) \(refusal); container values are not published for apps", severity: .warning
            )
        }
    }

    /// Warns if another process holds the lock of the state directory or of the spool. The kernel's list of
    /// locks is read instead of taking the lock: a lock of our own, even for a moment, could stop an agent
    /// that is just starting.
    private mutating func checkOwner() {
        // If an agent answers, it is the one that is configured, and holds the locks rightly.
        guard !StartupCheck.answers(settings.control.socket) else { return }
        let state = settings.agent.stateDirectory
        let spool = settings.spool.directory
        checkOwner(of: state, lock: state, "agent.state_directory")
        guard !isSpoolSilent else { return }
        checkOwner(of: spool, lock: "\(spool)/.spoolship/lock", "spool.directory")
    }

    /// Finds out whether a spool answers whose file system may never do.
    private mutating func askSpool() {
        let path = settings.spool.directory
        guard DistantMount.onTheWay(of: path) != nil else { return }
        // Opened, because the kernel may still know the status of a directory.
        let isAnswering = SilentFiles.answer(about: path) {
            _ = try? Descriptor(checking: open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), "open")
            return true
        }
        isSpoolSilent = isAnswering == nil
        guard isSpoolSilent else { return }
        add(
            "spool.directory",
            "\(path): its file system does not answer; a start reads everything else, and this once it does",
            severity: .warning)
    }

    /// Warns if a process holds the lock of one of the two directories.
    private mutating func checkOwner(of path: String, lock: String, _ setting: String) {
        guard let status = FileStatus(lock),
            let locks = try? WholeFile.bytes(of: "/proc/locks", atMost: 1 << 20)
        else {
            return
        }
        // A line of /proc/locks (proc(5)): `1: FLOCK  ADVISORY  WRITE 4711 fe:00:262146 0 EOF`. The sixth
        // word is device and inode.
        for line in locks.split(separator: UInt8(ascii: "\n")) {
            let words = String(decoding: line, as: UTF8.self).split(separator: " ")
            guard words.count > 5, words[1] == "FLOCK", words[3] == "WRITE",
                words[5] == status.lockName
            else { continue }
            add(
                setting,
                "\(path) is in use by process \(words[4]), which does not answer at "
                    + "\(settings.control.socket); stop it first",
                severity: .warning)
            return
        }
    }

    /// The first of the directories of files to read that the agent cannot search, and why; nil if all can
    /// be.
    ///
    /// - Parameter mayAsk: whether the directories' file systems answer; otherwise only the sandbox is asked.
    private func refusal(of roots: [String], mayAsk: Bool) -> (directory: String, refusal: String)? {
        for root in roots {
            let directory = root
            if let refusal = sandbox?.refusal(directory, writes: false) { return (directory, refusal) }
            if mayAsk, let refusal = access.refusal(directory, R_OK | X_OK) { return (directory, refusal) }
        }
        return nil
    }

    /// Checks the spool: the directories of files to read, those of apps, the agent's own directory inside,
    /// the limit of open files, and the archive.
    private mutating func checkSpool() {
        let spool = settings.spool
        // Files beneath it are renamed and removed, so the sandbox must let the agent write, whatever their
        // owners.
        if let refusal = sandbox?.refusal(spool.directory, writes: true) {
            add("spool.directory", "\(spool.directory) \(refusal)")
        }
        let status =
            isSpoolSilent
            ? nil : checkDirectory(spool.directory, "spool.directory", R_OK | X_OK, isInSandbox: true)
        for (name, app) in settings.apps.sorted(by: { $0.key < $1.key }) {
            for pattern in app.read ?? [] {
                let places =
                    ReadPlace.of(
                        app: name, [pattern], excluding: app.exclude ?? [], following: app.follow ?? []) ?? []
                // On a file system that may not answer no file is looked at: `files` of such a place is nil.
                let found = places.compactMap(\.files)
                let files = found.count == places.count ? found.flatMap { $0 } : nil
                if let (directory, refusal) = refusal(of: places.map(\.root), mayAsk: files != nil) {
                    add("apps.\(name).read", "\(directory) \(refusal)", severity: .warning)
                } else if files == [] {
                    add("apps.\(name).read", "\(pattern) fits no file now", severity: .warning)
                }
                // One message for each pattern: the first file that cannot be read, and how many more.
                let refused = (files ?? []).filter { access.refusal($0, R_OK) != nil }
                guard let first = refused.first, let refusal = access.refusal(first, R_OK) else { continue }
                let more = refused.count > 1 ? "; nor can \(refused.count - 1) more files" : ""
                add("apps.\(name).read", "\(first) \(refusal)\(more)", severity: .warning)
            }
        }
        if status != nil {
            checkApps(in: spool.directory)
        }
        // The agent's directory has its lock and its state for apps. Where the agent can create it, nothing
        // is wrong.
        let own = "\(spool.directory)/.spoolship"
        let isThere = !isSpoolSilent && FileStatus(own) != nil
        if status != nil, let refusal = access.refusal(isThere ? own : spool.directory, W_OK | X_OK) {
            add(
                "spool.directory",
                "\(own) \(isThere ? refusal : "is missing"): a second agent could read the spool, too, and "
                    + "apps are not told what the agent accepts; `install -d -o \(access.user) \(own)` "
                    + "makes it",
                severity: .warning)
        }
        var limit = rlimit()
        if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0,
            limit.rlim_max < spool.maxOpenFiles
        {
            add(
                "spool.max_open_files",
                "is more than this process may open (\(limit.rlim_max)); raise LimitNOFILE",
                severity: .warning)
        }
        // The archive must be on the spool's file system, because files are moved by rename(2).
        guard !isSpoolSilent, spool.afterRead == .archive, let archive = spool.archiveDirectory,
            let found = checkDirectory(archive, "spool.archive_directory", W_OK | X_OK), let status
        else { return }
        if found.device != status.device {
            add(
                "spool.archive_directory",
                "\(archive) is on another file system than the spool; files are moved, not copied")
        }
    }

    /// Checks the directories of the apps: the files of a directory that the agent cannot read or change are
    /// never shipped, and nothing else would say so.
    private mutating func checkApps(in spool: String) {
        let flags = CLINUX_O_PATH | O_DIRECTORY | O_CLOEXEC
        guard let root = try? Descriptor(checking: open(spool, flags), "open") else { return }
        for name in (try? WholeFile.names(in: spool)) ?? [] {
            let path = "\(spool)/\(name)"
            // Does not cross mount points (RESOLVE_NO_XDEV of openat2(2)): the agent does not read what is
            // mounted there, and a file system that does not answer would block the check.
            guard !name.hasPrefix("."), name != "lost+found",
                let directory = try? Descriptor(
                    checking: clinux_open_beneath(root.raw, name, flags), "openat2")
            else { continue }
            let owner = try? FileStatus(of: directory.raw).owner
            if name != AppDirectory.shared, let namesake = AppDirectory.namesake(of: name, ownedBy: owner) {
                add("spool.directory", namesake, severity: .warning)
            }
            guard let refusal = access.refusal(path, R_OK | W_OK | X_OK) else { continue }
            add("spool.directory", "\(path) \(refusal); its files are not shipped", severity: .warning)
        }
    }

    /// Checks a directory and returns its status; nil if it does not exist or is not a directory.
    ///
    /// - Parameter isInSandbox: whether the sandbox was checked before.
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
        if let refusal = access.refusal(path, purpose) {
            add(setting, "\(path) \(refusal)")
        }
        return status
    }

    // MARK: Sockets

    /// Checks the control socket's place and group, and whether the statistics can listen on their address.
    private mutating func checkSockets() {
        let socketPath = settings.control.socket
        if let status = FileStatus(socketPath) {
            if !status.isSocket {
                add("control.socket", "\(socketPath) exists and is not a socket; remove it")
            }
        } else if let directory = StartupCheck.directory(of: socketPath), !directory.hasPrefix("/run/") {
            // Below /run the service manager creates the directory at the start.
            checkDirectory(directory, "control.socket", W_OK | X_OK)
        }
        // The default group exists only where the package is installed; elsewhere the agent uses its own
        // group.
        if settings.origin(of: "control.socket.group") != .standard, getgrnam(settings.control.group) == nil {
            add(
                "control.socket.group",
                "is \"\(settings.control.group)\", and there is no such group; create it (groupadd --system"
                    + " \(settings.control.group)), or name another")
        }
        // Port 0 means any free port and cannot be in use.
        guard let address = settings.stats.listen, address.port != 0,
            let number = StartupCheck.bindFailure(address)
        else { return }
        // The agent that runs already has the port; after a restart the next one gets it.
        if number == EADDRINUSE && StartupCheck.answers(socketPath) { return }
        let advice =
            switch number {
            case EADDRINUSE: "; another program has it: `ss -ltnp` says which"
            case EADDRNOTAVAIL: "; this machine has no such address"
            default: ""
            }
        add("stats.listen", "cannot listen on \(address): \(SystemError.message(number))\(advice)")
    }

    /// The error number that listening on an address fails with; nil if it works. The socket is closed at
    /// once.
    private static func bindFailure(_ address: ListenAddress) -> Int32? {
        do throws(SystemError) {
            _ = try InternetSocket.listen(at: address.host, port: address.port)
            return nil
        } catch {
            return error.number
        }
    }

    /// Whether a process listens on a Unix socket. Without permission to connect the answer is yes: the
    /// socket exists, and only its owner could tell more.
    private static func answers(_ path: String) -> Bool {
        path.utf8.count <= UnixSocket.longestPath && (UnixSocket.connect(to: path) != nil || errno == EACCES)
    }

    /// The directory that a path is in; nil for a name without a slash.
    static func directory(of path: String) -> String? {
        path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) }
    }
}
