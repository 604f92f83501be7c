import EventLoops
import Glibc
import Testing

/// A program under test: started without a shell, its output kept in a file, killed when its owner goes.
final class RunningProgram {
    let process: pid_t
    let output: String
    private var status: Int32?

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - path: looked for on the PATH if it holds no slash.
    ///   - output: the file that standard output and error are appended to.
    ///   - input: a file for standard input; default none.
    init(
        _ path: String, _ arguments: [String], output: String, input: String = "/dev/null",
        environment: [String] = []
    )
        throws
    {
        self.output = output
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, input, O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_APPEND, 0o644)
        posix_spawn_file_actions_adddup2(&actions, 1, 2)
        // Signals that the test runner has blocked must not be blocked in the program.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))

        var words: [UnsafeMutablePointer<CChar>?] = ([path] + arguments).map { strdup($0) } + [nil]
        defer { words.forEach { free($0) } }
        let names = ["PATH", "HOME", "LANG", "TZ"]
        let inherited: [String] = names.compactMap { (name: String) -> String? in
            getenv(name).map { "\(name)=\(String(cString: $0))" }
        }
        var variables: [UnsafeMutablePointer<CChar>?] = (inherited + environment).map { strdup($0) } + [nil]
        defer { variables.forEach { free($0) } }
        var process: pid_t = 0
        let result = posix_spawnp(&process, path, &actions, &attributes, &words, &variables)
        guard result == 0 else { throw SystemError("posix_spawnp", number: result) }
        self.process = process
    }

    deinit {
        guard exitStatus() == nil else { return }
        kill(process, SIGKILL)
        waitpid(process, nil, 0)
    }

    /// What the program has printed so far.
    var printed: String { (try? contents(of: output)) ?? "" }

    func send(_ signal: Int32) { kill(process, signal) }

    /// How the program ended: its exit code, or 128 and the signal that killed it; nil while it runs.
    func exitStatus() -> Int32? {
        if let status { return status }
        var raw: Int32 = 0
        guard waitpid(process, &raw, WNOHANG) == process else { return nil }
        status = raw & 0x7F == 0 ? raw >> 8 & 0xFF : 128 + (raw & 0x7F)
        return status
    }

    /// Waits for the program's end.
    func exit(within limit: Duration = .seconds(30), sourceLocation: SourceLocation = #_sourceLocation) throws
        -> Int32
    {
        try wait(limit, "\(output): the program to end", sourceLocation: sourceLocation) {
            exitStatus() != nil
        }
        return try #require(exitStatus())
    }

    /// Kills the program as a crash of the machine's memory would: nothing of it runs any more.
    func kill9() {
        send(SIGKILL)
        if status == nil {
            var raw: Int32 = 0
            waitpid(process, &raw, 0)
            status = 128 + SIGKILL
        }
    }
}

/// Runs a program to its end.
///
/// - Returns: its exit code and all that it printed.
func run(
    _ path: String, _ arguments: [String], within limit: Duration = .seconds(60),
    sourceLocation: SourceLocation = #_sourceLocation
) throws -> (code: Int32, text: String) {
    var template = Array("/tmp/spoolship-output-XXXXXX".utf8CString)
    let descriptor = Descriptor(mkstemp(&template))
    let output = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    defer { unlink(output) }
    _ = descriptor.raw
    let program = try RunningProgram(path, arguments, output: output)
    let code = try program.exit(within: limit, sourceLocation: sourceLocation)
    return (code, program.printed)
}

/// Waits until something holds; fails the test, with what was waited for, when it does not in time.
func wait(
    _ limit: Duration, _ what: @autoclosure () -> String, sourceLocation: SourceLocation = #_sourceLocation,
    every pause: Duration = .milliseconds(20), until condition: () throws -> Bool
) throws {
    let deadline = SystemTime().bootTime + limit
    while true {
        if try condition() { return }
        guard SystemTime().bootTime < deadline else {
            struct GaveUp: Error {}
            Issue.record("gave up after \(limit) waiting for \(what())", sourceLocation: sourceLocation)
            throw GaveUp()
        }
        usleep(UInt32(pause / .microseconds(1)))
    }
}

/// A file's text.
func contents(of path: String) throws -> String {
    String(decoding: try bytes(of: path), as: UTF8.self)
}

/// A file's bytes.
func bytes(of path: String) throws -> [UInt8] {
    let file = try Descriptor(checking: open(path, O_RDONLY | O_CLOEXEC), "open")
    var bytes: [UInt8] = []
    var block = [UInt8](repeating: 0, count: 1 << 16)
    while true {
        let count = read(file.raw, &block, block.count)
        guard count > 0 else { break }
        bytes += block[..<count]
    }
    return bytes
}

/// Writes a file, in place of an older one.
func write(_ text: String, to path: String) throws {
    try write(Array(text.utf8), to: path)
}

/// Writes a file, in place of an older one.
func write(_ bytes: [UInt8], to path: String) throws {
    let file = try Descriptor(checking: open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644), "open")
    var written = 0
    while written < bytes.count {
        let count = bytes[written...].withUnsafeBytes { Glibc.write(file.raw, $0.baseAddress, $0.count) }
        guard count > 0 else { throw SystemError("write") }
        written += count
    }
}
