#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// Names of the files of one client; a value, so that other threads can look for them.
struct SpoolFileNames: Sendable {
    /// The spool directory.
    let directory: String
    /// Beginning of all names: NAME-PROCESS-RANDOM. The random part distinguishes clients of one process, and
    /// processes that got the same number.
    let stem: String

    /// Number of files that the agent has not removed, which it does when their events are in its queue; nil
    /// if this user may not list the directory. While the agent reads a claimed file, its name begins with
    /// `.spoolship.`, so the stem is searched anywhere in the name.
    func unread() -> Int? {
        directoryNames(directory)?.count {
            $0.contains(stem + "-") && !$0.hasSuffix(".part") && !$0.hasSuffix(".tmp")
        }
    }
}

/// The files of one client in the spool. Only its writing thread uses them, so calls may block.
struct SpoolFiles {
    /// The client's settings.
    private let settings: ClientSettings
    /// Names of the files.
    let names: SpoolFileNames
    /// Number of the last file, counted from 1.
    private var number = 0
    /// File descriptor of the append file; -1 if none is open.
    private var descriptor: Int32 = -1
    /// Path of the append file.
    private var path = ""
    /// Length of the append file up to the last complete write. After a failed write the file is truncated to
    /// it.
    private var size = 0

    /// Whether what is written is kept back under a name that the agent does not read.
    private(set) var isHolding = false
    /// Paths of the files that are kept back.
    private var held: [String] = []
    /// Whether the client accepts events, as on the disk.
    private(set) var isEnabled = true
    /// Path of the file that means "disabled".
    private let switchPath: String

    /// Checks the name and the directory, reads the switch, and releases files of ended processes.
    init(_ settings: ClientSettings) throws(AnalyticsError) {
        self.settings = settings
        let allowed = settings.name.utf8.allSatisfy {
            ($0 | 0x20 >= 0x61 && $0 | 0x20 <= 0x7A) || ($0 >= 0x30 && $0 <= 0x39) || $0 == 0x2D || $0 == 0x5F
        }
        guard allowed, !settings.name.isEmpty, settings.name.utf8.count <= 64 else {
            throw AnalyticsError(
                .invalidSetting, "the name \"\(settings.name)\" must be letters, digits, - and _")
        }
        var status = stat()
        guard stat(settings.directory, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
            throw AnalyticsError(
                .spoolMissing,
                "there is no directory \(settings.directory); create it with: spoolship app add NAME --user U"
            )
        }
        guard access(settings.directory, W_OK | X_OK) == 0 else {
            throw AnalyticsError(
                .notWritable, "\(settings.directory) cannot be written to: \(systemMessage(errno))")
        }
        var random = SystemRandomNumberGenerator()
        names = SpoolFileNames(
            directory: settings.directory,
            stem: "\(settings.name)-\(processID())-\(String(random.next() as UInt64, radix: 36))")
        // Hidden from the agent by its name. Only a file of this user counts: in the drop box anybody may
        // make one of that name.
        switchPath = "\(settings.directory)/.\(settings.name)-\(geteuid()).disabled"
        isEnabled = lstat(switchPath, &status) != 0 || status.st_uid != geteuid()
        adoptLeftovers()
    }

    /// Begins or ends keeping files back. At the end they get names that the agent reads, in a rename each.
    mutating func hold(_ wanted: Bool) throws(AnalyticsError) {
        guard wanted != isHolding else { return }
        finish()
        while let path = held.last {
            // A file that was removed meanwhile cannot be released.
            guard rename(path, SpoolFiles.finishedName(String(path.dropLast(5)))) == 0 || errno == ENOENT
            else {
                throw failed("rename")
            }
            held.removeLast()
            if held.isEmpty {
                try syncDirectory()
            }
        }
        isHolding = wanted
    }

    /// Writes the switch to the disk, so that it outlives the process.
    mutating func keep(isEnabled wanted: Bool) throws(AnalyticsError) {
        guard wanted != isEnabled else { return }
        if wanted {
            guard unlink(switchPath) == 0 || errno == ENOENT else { throw failed("unlink") }
        } else {
            close(try create(switchPath, orTake: true))
        }
        try syncDirectory()
        isEnabled = wanted
    }

    /// Writes lines and syncs them. On an error none of them is in the spool, so they may be written again.
    mutating func append(_ lines: [UInt8]) throws(AnalyticsError) {
        if settings.style == .dropFiles, !isHolding { return try drop(lines) }
        if descriptor >= 0, size >= settings.fileSize || isGone() {
            finish()
        }
        if descriptor < 0 {
            try begin()
        }
        do throws(AnalyticsError) {
            try put(lines, to: descriptor)
            try sync(descriptor)
        } catch {
            // Half a line would spoil the next one. If truncating fails too, begin another file.
            if ftruncate(descriptor, off_t(size)) != 0 {
                finish()
            }
            throw error
        }
        size += lines.count
    }

    /// Finishes the append file; the next line begins another one. A file that is kept back keeps its name.
    mutating func finish() {
        guard descriptor >= 0 else { return }
        close(descriptor)
        descriptor = -1
        guard !isHolding else { return }
        // The rename may fail because the agent has removed the file. All lines are read in any case: at
        // worst the file stays under its first name.
        _ = rename(path, SpoolFiles.finishedName(path))
    }

    /// Begins an append file. It is new (O_EXCL), so no other process writes to it.
    private mutating func begin() throws(AnalyticsError) {
        number += 1
        path = "\(settings.directory)/\(names.stem)-\(number).jsonl\(isHolding ? ".part" : "")"
        descriptor = try create(path)
        if isHolding {
            held.append(path)
        }
        size = 0
        try syncDirectory()
    }

    /// Writes lines as a file of their own, complete at once: a JSON array under a hidden name, synced and
    /// then renamed.
    private mutating func drop(_ lines: [UInt8]) throws(AnalyticsError) {
        number += 1
        let temporary = "\(settings.directory)/.\(names.stem)-\(number).json.tmp"
        let final = "\(settings.directory)/\(names.stem)-\(number).json"
        descriptor = try create(temporary)
        defer {
            close(descriptor)
            descriptor = -1
        }
        var array = lines
        // The line feeds between the objects become commas, the last one the closing bracket.
        for index in array.indices where array[index] == 0x0A { array[index] = UInt8(ascii: ",") }
        array[array.count - 1] = UInt8(ascii: "]")
        do throws(AnalyticsError) {
            try put([UInt8(ascii: "[")] + array, to: descriptor)
            try sync(descriptor)
            guard rename(temporary, final) == 0 else { throw failed("rename") }
        } catch {
            unlink(temporary)
            throw error
        }
        try syncDirectory()
    }

    /// Creates a file.
    ///
    /// - Parameter orTake: opens an existing file instead of failing; never through a symbolic link.
    private func create(_ path: String, orTake: Bool = false) throws(AnalyticsError) -> Int32 {
        let mode = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW
        let descriptor = open(path, orTake ? mode : mode | O_EXCL, 0o640)
        guard descriptor >= 0 else { throw failed("open") }
        // The agent reads as the directory's group, whatever this process's umask is.
        fchmod(descriptor, 0o640)
        return descriptor
    }

    /// Writes all bytes; write(2) may write fewer.
    private func put(_ bytes: [UInt8], to descriptor: Int32) throws(AnalyticsError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw failed("write") }
            rest = rest.dropFirst(count)
        }
    }

    /// Makes the content of a file durable, if the settings ask for it.
    private func sync(_ descriptor: Int32) throws(AnalyticsError) {
        guard settings.durability == .powerLoss else { return }
        guard syncContent(descriptor) else { throw failed("fsync") }
    }

    /// Makes names in the directory durable, if the settings ask for it.
    private func syncDirectory() throws(AnalyticsError) {
        guard settings.durability == .powerLoss else { return }
        let directory = open(settings.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        // A drop box that may not be listed cannot be opened for a sync; its entries are left to the agent.
        guard directory >= 0 else { return }
        fsync(directory)
        close(directory)
    }

    /// Whether the open file was removed: then lines must go to another one, or they would be lost.
    private func isGone() -> Bool {
        var status = stat()
        return fstat(descriptor, &status) != 0 || status.st_nlink == 0
    }

    /// The error of a failed call, by errno.
    private func failed(_ call: String) -> AnalyticsError {
        let number = errno
        let message = "\(call) in \(settings.directory): \(systemMessage(number))"
        switch number {
        case ENOSPC, EDQUOT: return AnalyticsError(.diskFull, message)
        case ENOENT: return AnalyticsError(.spoolMissing, message)
        default: return AnalyticsError(.notWritable, message)
        }
    }

    /// Gives the agent the files that ended processes of this name left behind: what they kept back, and
    /// append files that they did not finish.
    private func adoptLeftovers() {
        for name in directoryNames(settings.directory) ?? [] {
            let isHeld = name.hasSuffix(".jsonl.part")
            guard name.hasPrefix(settings.name + "-"), isHeld || name.hasSuffix(".jsonl") else { continue }
            // NAME-PROCESS-RANDOM-NUMBER: files of other programs are left alone, and those of processes that
            // run. A process of another user also counts as running (EPERM).
            let words = name.dropFirst(settings.name.count + 1).prefix { $0 != "." }.split(separator: "-")
            guard words.count == 3, Int(words[2]) != nil, let process = Int32(words[0]), process > 0,
                kill(process, 0) != 0, errno == ESRCH
            else { continue }
            // Another process may have renamed it first; then nothing is left to do.
            let path = "\(settings.directory)/\(name)"
            _ = rename(path, SpoolFiles.finishedName(isHeld ? String(path.dropLast(5)) : path))
        }
    }

    /// Name of a finished append file, the one that rotation gives. The agent removes a file of that name
    /// when it has read it; under its first name the file would stay.
    private static func finishedName(_ path: String) -> String { path + ".1" }
}
