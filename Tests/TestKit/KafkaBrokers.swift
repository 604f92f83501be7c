internal import EventLoops
internal import Glibc

/// A mock cluster of librdkafka's with a consumer, in a process of its own: see Tests/OutputsTests/Fixtures/kafka_broker.py.
public final class KafkaBrokers {
    /// `host:port` of each.
    public let addresses: [String]
    private let directory: TemporaryDirectory
    private let process: pid_t
    private let commands: Descriptor
    private var answers = 1

    /// Starts a cluster.
    ///
    /// - Parameter brokers: how many.
    public init(_ brokers: Int = 3) throws {
        directory = try TemporaryDirectory()
        let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        let pipe = "\(directory.path)/commands"
        guard mkfifo(pipe, 0o600) == 0 else { throw SystemError("mkfifo") }
        // Both ways, so that opening waits for nobody.
        commands = try Descriptor(checking: open(pipe, O_RDWR | O_CLOEXEC), "open")
        let words = [
            "python3", "/\(root)/Tests/OutputsTests/Fixtures/kafka_broker.py", pipe,
            "\(directory.path)/answers",
            "\(brokers)",
        ]
        var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        var process = pid_t()
        let result = posix_spawnp(&process, "python3", nil, nil, &arguments, environ)
        guard result == 0 else { throw SystemError("posix_spawnp", number: result) }
        self.process = process
        let answers = "\(directory.path)/answers"
        addresses = try KafkaBrokers.line(1, of: answers).split(separator: ",").map(String.init)
    }

    deinit {
        kill(process, SIGKILL)
        waitpid(process, nil, 0)
    }

    /// The addresses as TOML writes a list.
    public var list: String { "[" + addresses.map { "\"\($0)\"" }.joined(separator: ", ") + "]" }

    /// Says one of the script's commands, and waits for its answer.
    @discardableResult public func say(_ command: String) throws -> String {
        let bytes = Array("\(command)\n".utf8)
        guard write(commands.raw, bytes, bytes.count) == bytes.count else { throw SystemError("write") }
        answers += 1
        return try KafkaBrokers.line(answers, of: "\(directory.path)/answers")
    }

    /// All that was stored until now, a JSON line a record.
    public func records() throws -> [String] {
        let file = "\(directory.path)/records"
        try say("read \(file)")
        return try KafkaBrokers.text(of: file).split(separator: "\n").map(String.init)
    }

    /// A line that a file will have within half a minute.
    private static func line(_ number: Int, of file: String) throws -> String {
        let time = SystemTime()
        let end = time.bootTime + .seconds(30)
        while time.bootTime < end {
            let lines = (try? text(of: file))?.split(separator: "\n", omittingEmptySubsequences: false) ?? []
            // What comes after the last line feed is no line yet.
            if lines.count > number { return String(lines[number - 1]) }
            usleep(2000)
        }
        throw SystemError("the Kafka brokers", number: ETIMEDOUT)
    }

    private static func text(of path: String) throws -> String {
        let file = try Descriptor(checking: open(path, O_RDONLY | O_CLOEXEC), "open")
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(file.raw, &buffer, buffer.count)
            guard count >= 0 else { throw SystemError("read") }
            if count == 0 { return String(decoding: bytes, as: UTF8.self) }
            bytes.append(contentsOf: buffer[..<count])
        }
    }
}
