internal import EventLoops
internal import Glibc

/// journald itself, in a namespace of its own: its journal, its sockets and its limits are nobody else's. Needs root.
public final class JournalDaemon {
    /// Where its journal lies, in memory.
    public let directory: String
    private let name: String
    /// Where a machine's own journald finds what else is the machine's; nil: it is a namespace's journald.
    private let machine: String?
    private var process: pid_t = -1

    /// Starts a daemon with an empty journal.
    ///
    /// - Parameters:
    ///   - settings: lines for a namespace's journald.conf; its limits on rates are off.
    ///   - isMachines: whether it is a machine's own journald, in a view of the files of its own: its journal is in memory until
    ///     `moveToDisk`, and `directory` has both places. A namespace's never moves.
    public init(_ settings: String = "", isMachines: Bool = false) throws {
        name = "spoolship\(getpid())-\(UInt32.random(in: 0 ... .max))"
        let id = try JournalDaemon.machineID()
        if isMachines {
            // journald removes what it has moved in memory only.
            let base = "/dev/shm/\(name)"
            machine = base
            directory = "\(base)/both"
            // libsystemd looks into directories that are named like machines.
            let script = #"""
                mkdir -p "$0/sockets" "$0/memory/$1" "$0/log" "$0/both" && cd "$0/both"
                ln -s "../memory/$1" "$1" && ln -s "../log/journal/$1" "$(echo "$1" | tr 0-9a-f 1-9a-f0)"
                printf '[Journal]\nStorage=auto\nRateLimitIntervalSec=0\nReadKMsg=no\nAudit=no\n' >"$0/conf"
                """#
            try JournalDaemon.finish(JournalDaemon.spawn(["sh", "-ec", script, base, id]), "sh")
        } else {
            machine = nil
            directory = "/run/log/journal/\(id).\(name)"
            let configuration = "[Journal]\nStorage=volatile\nRateLimitIntervalSec=0\n\(settings)\n"
            let file = try Descriptor(checking: open(conf, O_WRONLY | O_CREAT | O_CLOEXEC, 0o644), "open")
            guard Glibc.write(file.raw, configuration, configuration.utf8.count) == configuration.utf8.count
            else {
                throw SystemError("write")
            }
        }
        try start()
    }

    /// Moves the journal from memory to the disk, as `systemd-journal-flush` does while a machine starts.
    public func moveToDisk() throws {
        let id = try JournalDaemon.machineID()
        try JournalDaemon.finish(
            JournalDaemon.spawn(["mkdir", "-p", "\(machine ?? "")/log/journal/\(id)"]), "mkdir")
        try ask("--flush")
    }

    /// The words of a command that sees the machine of `base` in place of the real one.
    private static func inView(of base: String, _ words: [String]) -> [String] {
        let script = #"""
            mkdir -p /run/systemd/journal /run/log/journal /var/log
            mount --bind "$0/sockets" /run/systemd/journal && mount --bind "$0/memory" /run/log/journal
            mount --bind "$0/log" /var/log && mount --bind "$0/conf" /etc/systemd/journald.conf && exec "$@"
            """#
        return ["unshare", "--mount", "sh", "-ec", script, base] + words
    }

    deinit {
        stop()
        if let machine { removeTree(machine) }
        unlink(conf)
        unlink("\(directory).boot")
        removeTree(directory)
        removeTree(sockets)
    }

    private var conf: String { "/etc/systemd/journald@\(name).conf" }
    private var sockets: String { machine.map { "\($0)/sockets" } ?? "/run/systemd/journal.\(name)" }

    /// Starts journald, which ends by itself after half a minute without work.
    ///
    /// - Parameter boot: the id of the boot that it believes to run in, 32 hexadecimal digits; nil: the machine's.
    public func start(boot: String? = nil) throws {
        let daemon = "/lib/systemd/systemd-journald"
        var words = machine.map { JournalDaemon.inView(of: $0, [daemon]) } ?? [daemon, name]
        if let boot {
            // In a view of the files of its own.
            let script =
                #"printf '%s\n' "$0" >"$1" && mount --bind "$1" /proc/sys/kernel/random/boot_id && shift && exec "$@""#
            let digits = Array(boot)
            let text = [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { String(digits[$0]) }.joined(
                separator: "-")
            words = ["unshare", "--mount", "sh", "-c", script, text, "\(directory).boot"] + words
        }
        process = try JournalDaemon.spawn(words)
        let time = SystemTime()
        let end = time.bootTime + .seconds(30)
        while access("\(sockets)/io.systemd.journal", F_OK) != 0
            || machine == nil && !exists("system.journal")
        {
            guard time.bootTime < end else { throw SystemError("journald", number: ETIMEDOUT) }
            usleep(2000)
        }
    }

    /// Stops journald as systemd does.
    public func stop() {
        guard process > 0 else { return }
        kill(process, SIGTERM)
        waitpid(process, nil, 0)
        process = -1
        // Whoever starts it again waits for them.
        removeTree(sockets)
    }

    private func exists(_ file: String) -> Bool { access("\(directory)/\(file)", F_OK) == 0 }

    /// Asks journald for something, as `journalctl` does, and waits until it is done: `--rotate`, `--sync`, `--vacuum-files=1`.
    public func ask(_ words: String...) throws {
        let words =
            machine.map { JournalDaemon.inView(of: $0, ["journalctl", "--quiet"] + words) }
            ?? ["journalctl", "--namespace=\(name)", "--quiet"] + words
        try JournalDaemon.finish(JournalDaemon.spawn(words), "journalctl")
    }

    /// Writes entries by the native protocol, and waits until journald has them all.
    ///
    /// - Parameter entries: each its fields, in their order. Values may be any bytes.
    public func write(_ entries: [[(name: String, value: [UInt8])]]) throws {
        let socket = try Descriptor(
            checking: socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0), "socket")
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let path = Array("\(sockets)/socket".utf8)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
        let connected = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(socket.raw, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard connected == 0 else { throw SystemError("connect") }
        for entry in entries {
            var datagram: [UInt8] = []
            for (name, value) in entry {
                // With its length in front: so a value may have line feeds.
                datagram += Array(name.utf8) + [0x0A]
                withUnsafeBytes(of: UInt64(value.count).littleEndian) { datagram.append(contentsOf: $0) }
                datagram += value + [0x0A]
            }
            guard send(socket.raw, datagram, datagram.count, 0) == datagram.count else {
                throw SystemError("send")
            }
        }
        try ask("--sync")
    }

    /// Writes messages of one unit's program.
    public func write(_ messages: [String], priority: Int = 6) throws {
        try write(messages.map { [("MESSAGE", Array($0.utf8)), ("PRIORITY", Array("\(priority)".utf8))] })
    }

    /// Makes a journal of entries whose times are given, or adds to one, by systemd's own writer; no daemon runs.
    ///
    /// - Parameters:
    ///   - entries: each its second of one day, and its message.
    ///   - boot: two hexadecimal digits of the id of the boot that they are of.
    ///   - uptime: the second of that boot before the first entry.
    public static func makeFile(
        _ file: String, _ entries: [(second: Int, message: String)], boot: String = "2b", uptime: Int = 0
    ) throws {
        let text = entries.enumerated().map { number, entry in
            """
            __REALTIME_TIMESTAMP=\((1_760_000_000 + entry.second) * 1_000_000)
            __MONOTONIC_TIMESTAMP=\((uptime + number + 1) * 1_000_000)
            _BOOT_ID=\(String(repeating: boot, count: 16))
            PRIORITY=6
            MESSAGE=\(entry.message)


            """
        }.joined()
        let source = "\(file).export"
        let export = try Descriptor(
            checking: open(source, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600), "open")
        guard Glibc.write(export.raw, text, text.utf8.count) == text.utf8.count else {
            throw SystemError("write")
        }
        try finish(
            spawn(["/lib/systemd/systemd-journal-remote", "--output=\(file)", source]),
            "systemd-journal-remote")
    }

    private static func finish(_ process: pid_t, _ name: StaticString) throws {
        var status: Int32 = 0
        guard waitpid(process, &status, 0) == process, status == 0 else {
            throw SystemError(name, number: EIO)
        }
    }

    private static func spawn(_ words: [String]) throws -> pid_t {
        var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        var quiet = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&quiet)
        defer { posix_spawn_file_actions_destroy(&quiet) }
        posix_spawn_file_actions_addopen(&quiet, 2, "/dev/null", O_WRONLY, 0)
        var process = pid_t()
        let result = posix_spawnp(&process, words[0], &quiet, nil, &arguments, environ)
        guard result == 0 else { throw SystemError("posix_spawnp", number: result) }
        return process
    }

    private static func machineID() throws -> String {
        let file = try Descriptor(checking: open("/etc/machine-id", O_RDONLY | O_CLOEXEC), "open")
        var buffer = [UInt8](repeating: 0, count: 256)
        let count = read(file.raw, &buffer, buffer.count)
        guard count > 0 else { throw SystemError("read") }
        return String(decoding: buffer[..<count].prefix { $0 != 0x0A }, as: UTF8.self)
    }
}
