#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// The files of one client in the spool. Only its writing thread uses it.
struct SpoolFiles {
    private let settings: ClientSettings
    private let stem: String
    private var number = 0
    private var descriptor: Int32 = -1
    private var path = ""
    private var size = 0

    /// Whether what is written is kept back under a name that the agent does not read.
    private(set) var isHolding = false
    /// The files that are kept back.
    private var held: [String] = []
    /// Whether the client takes events; what the next one of this name and user begins with.
    private(set) var isEnabled = true
    private let switchPath: String

    init(_ settings: ClientSettings) throws(AnalyticsError) {
        self.settings = settings
        let allowed = settings.name.utf8.allSatisfy {
            ($0 | 0x20 >= 0x61 && $0 | 0x20 <= 0x7A) || ($0 >= 0x30 && $0 <= 0x39) || $0 == 0x2D || $0 == 0x5F
        }
        guard allowed, !settings.name.isEmpty, settings.name.utf8.count <= 64 else {
            throw AnalyticsError(.invalidSetting, "the name \"\(settings.name)\" must be letters, digits, - and _")
        }
        var status = stat()
        guard stat(settings.directory, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
            throw AnalyticsError(
                .spoolMissing,
                "there is no directory \(settings.directory); create it with: spoolship app add NAME --user U")
        }
        guard access(settings.directory, W_OK | X_OK) == 0 else {
            throw AnalyticsError(.notWritable, "\(settings.directory) cannot be written to: \(systemMessage(errno))")
        }
        var random = SystemRandomNumberGenerator()
        stem = "\(settings.name)-\(processID())-\(String(random.next() as UInt64, radix: 36))"
        // Hidden from the agent. Its owner tells: in a drop box anybody may make a file of that name.
        switchPath = "\(settings.directory)/.\(settings.name)-\(geteuid()).disabled"
        isEnabled = lstat(switchPath, &status) != 0 || status.st_uid != geteuid()
        adoptLeftovers()
    }

    /// Begins or ends keeping back.
    mutating func hold(_ wanted: Bool) throws(AnalyticsError) {
        guard wanted != isHolding else { return }
        end()
        while let path = held.last {
            // What somebody has removed meanwhile cannot be released.
            guard rename(path, String(path.dropLast(5))) == 0 || errno == ENOENT else { throw failed("rename") }
            held.removeLast()
            if held.isEmpty { try syncDirectory() }
        }
        isHolding = wanted
    }

    /// Makes the switch outlive the process.
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

    mutating func append(_ lines: [UInt8]) throws(AnalyticsError) {
        if settings.style == .dropFiles, !isHolding { return try drop(lines) }
        if descriptor >= 0, size >= settings.fileSize || isGone() { end() }
        if descriptor < 0 { try begin() }
        do throws(AnalyticsError) {
            try put(lines, to: descriptor)
            try sync(descriptor)
        } catch {
            // Half a line would spoil the next one.
            if ftruncate(descriptor, off_t(size)) != 0 { end() }
            throw error
        }
        size += lines.count
    }

    mutating func end() {
        guard descriptor >= 0 else { return }
        close(descriptor)
        descriptor = -1
    }

    private mutating func begin() throws(AnalyticsError) {
        number += 1
        path = "\(settings.directory)/\(stem)-\(number).jsonl\(isHolding ? ".part" : "")"
        descriptor = try create(path)
        if isHolding { held.append(path) }
        size = 0
        try syncDirectory()
    }

    /// Each piece becomes its own file, complete at once.
    private mutating func drop(_ lines: [UInt8]) throws(AnalyticsError) {
        number += 1
        let temporary = "\(settings.directory)/.\(stem)-\(number).json.tmp"
        let final = "\(settings.directory)/\(stem)-\(number).json"
        descriptor = try create(temporary)
        defer { end() }
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

    private func create(_ path: String, orTake: Bool = false) throws(AnalyticsError) -> Int32 {
        let mode = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW
        let descriptor = open(path, orTake ? mode : mode | O_EXCL, 0o640)
        guard descriptor >= 0 else { throw failed("open") }
        // The agent reads as the directory's group, whatever this process's umask is.
        fchmod(descriptor, 0o640)
        return descriptor
    }

    private func put(_ bytes: [UInt8], to descriptor: Int32) throws(AnalyticsError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw failed("write") }
            rest = rest.dropFirst(count)
        }
    }

    private func sync(_ descriptor: Int32) throws(AnalyticsError) {
        guard settings.durability == .powerLoss else { return }
        guard syncContent(descriptor) else { throw failed("fsync") }
    }

    private func syncDirectory() throws(AnalyticsError) {
        guard settings.durability == .powerLoss else { return }
        let directory = open(settings.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        // A drop box that may not be listed cannot be opened either; its entries are the agent's care.
        guard directory >= 0 else { return }
        fsync(directory)
        close(directory)
    }

    /// Whether somebody has removed the file that is written to.
    private func isGone() -> Bool {
        var status = stat()
        return fstat(descriptor, &status) != 0 || status.st_nlink == 0
    }

    private func failed(_ call: String) -> AnalyticsError {
        let number = errno
        let message = "\(call) in \(settings.directory): \(systemMessage(number))"
        switch number {
        case ENOSPC, EDQUOT: return AnalyticsError(.diskFull, message)
        case ENOENT: return AnalyticsError(.spoolMissing, message)
        default: return AnalyticsError(.notWritable, message)
        }
    }

    /// Gives the agent what processes of this name kept back and did not live to release.
    private func adoptLeftovers() {
        guard let directory = opendir(settings.directory) else { return }
        defer { closedir(directory) }
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            guard name.hasPrefix(settings.name + "-"), name.hasSuffix(".jsonl.part"),
                let process = name.dropFirst(settings.name.count + 1).split(separator: "-").first.flatMap({ Int32($0) }
                ),
                process > 0, kill(process, 0) != 0, errno == ESRCH
            else { continue }
            // Another process may have been quicker: then there is nothing left to do.
            _ = rename("\(settings.directory)/\(name)", "\(settings.directory)/\(name.dropLast(5))")
        }
    }
}
