internal import Glibc

/// Standard output and standard error, and whether a person is looking.
struct Console: Sendable {
    /// A colour or weight of a terminal.
    enum Style: String {
        case bold = "1"
        case red = "31"
        case green = "32"
        case yellow = "33"
        case dim = "2"
    }

    private let writeOut: @Sendable ([UInt8]) -> Bool
    private let writeError: @Sendable ([UInt8]) -> Bool
    /// Whether standard output is a terminal: progress, refreshing in place.
    let isTerminal: Bool
    /// Whether colours may be used on standard output.
    let hasColour: Bool
    /// Whether colours may be used on standard error.
    let errorHasColour: Bool

    /// The process's own.
    static let standard: Console = {
        let wantsColour = (environment("NO_COLOR") ?? "").isEmpty && environment("TERM") != "dumb"
        return Console(
            isTerminal: isatty(STDOUT_FILENO) == 1, hasColour: wantsColour && isatty(STDOUT_FILENO) == 1,
            errorHasColour: wantsColour && isatty(STDERR_FILENO) == 1,
            writeOut: { writeAll($0, to: STDOUT_FILENO) }, writeError: { writeAll($0, to: STDERR_FILENO) })
    }()

    init(
        isTerminal: Bool, hasColour: Bool, errorHasColour: Bool,
        writeOut: @escaping @Sendable ([UInt8]) -> Bool, writeError: @escaping @Sendable ([UInt8]) -> Bool
    ) {
        self.isTerminal = isTerminal
        self.hasColour = hasColour
        self.errorHasColour = errorHasColour
        self.writeOut = writeOut
        self.writeError = writeError
    }

    /// Writes a line to standard output.
    ///
    /// - Throws: `CommandFailure` when it cannot be written: a full disk must not look like success.
    func print(_ text: String) throws(CommandFailure) { try write(text + "\n") }

    /// Writes text to standard output as it is.
    func write(_ text: String) throws(CommandFailure) { try write(bytes: Array(text.utf8)) }

    /// Writes bytes to standard output as they are.
    func write(bytes: [UInt8]) throws(CommandFailure) {
        guard writeOut(bytes) else { throw CommandFailure(.inputOutput, "cannot write to standard output") }
    }

    /// Writes a line to standard error. There is nobody to tell when that fails.
    func printError(_ text: String) { _ = writeError(Array((text + "\n").utf8)) }

    /// The text in a style, where standard output shows styles.
    func styled(_ text: String, _ style: Style) -> String {
        hasColour ? "\u{1B}[\(style.rawValue)m\(text)\u{1B}[0m" : text
    }

    /// The text in a style, where standard error shows styles.
    func styledError(_ text: String, _ style: Style) -> String {
        errorHasColour ? "\u{1B}[\(style.rawValue)m\(text)\u{1B}[0m" : text
    }

    /// A variable of the environment.
    static func environment(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

    private static func writeAll(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                rest = rest.dropFirst(count)
            } else if errno == EAGAIN {
                // A terminal or pipe that somebody made non-blocking: wait for it.
                var waiting = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                poll(&waiting, 1, -1)
            } else if errno != EINTR {
                return false
            }
        }
        return true
    }
}
