internal import Control
internal import EventLoops
internal import Glibc

/// Standard output and standard error of a command.
///
/// All text goes through `shown`, which escapes control characters: names of events and answers of
/// destinations come from outside and must not control the terminal. Tests make a console whose closures
/// record the bytes.
struct Console: Sendable {
    /// A colour or weight, by its parameter of the escape sequence SGR (ECMA-48, section 8.3.117).
    enum Style: String {
        case bold = "1"
        case red = "31"
        case green = "32"
        case yellow = "33"
        case dim = "2"
    }

    /// Whether the cursor can be moved to overwrite what is on the screen. A `dumb` terminal cannot.
    var canMove: Bool { isTerminal && Console.environment("TERM") != "dumb" }

    /// Whether standard output is a terminal: progress and refreshing screens are for terminals only.
    let isTerminal: Bool
    /// Whether standard output gets colours: a terminal that is not `dumb`, and no `NO_COLOR` (no-color.org).
    let hasColour: Bool
    /// As `hasColour`, for standard error, which can be a terminal while standard output is a pipe.
    let errorHasColour: Bool
    /// Writes bytes to standard output; false if that failed.
    let writeOut: @Sendable ([UInt8]) -> Bool
    /// Writes bytes to standard error; false if that failed.
    let writeError: @Sendable ([UInt8]) -> Bool

    /// The process's own standard output and standard error.
    static let standard: Console = {
        let wantsColour = (environment("NO_COLOR") ?? "").isEmpty && environment("TERM") != "dumb"
        return Console(
            isTerminal: isatty(STDOUT_FILENO) == 1, hasColour: wantsColour && isatty(STDOUT_FILENO) == 1,
            errorHasColour: wantsColour && isatty(STDERR_FILENO) == 1,
            writeOut: { writeAll($0, to: STDOUT_FILENO) }, writeError: { writeAll($0, to: STDERR_FILENO) })
    }()

    /// Writes a line to standard output.
    ///
    /// - Throws: `CommandFailure` with code 74 if it cannot be written: a full disk must not look like
    ///   success.
    func print(_ text: String) throws(CommandFailure) { try write(text + "\n") }

    /// Writes text to standard output, control characters from outside escaped. Throws as `print`.
    func write(_ text: String) throws(CommandFailure) { try send(Array(shown(text).utf8)) }

    /// Writes bytes to standard output: unchanged into a file or pipe, with control characters escaped to a
    /// terminal. Throws as `print`.
    func write(bytes: [UInt8]) throws(CommandFailure) {
        try send(isTerminal ? Array(StyleMarks.harmless(String(decoding: bytes, as: UTF8.self)).utf8) : bytes)
    }

    /// Writes all bytes, or fails the command.
    private func send(_ bytes: [UInt8]) throws(CommandFailure) {
        guard writeOut(bytes) else { throw CommandFailure(.inputOutput, "cannot write to standard output") }
    }

    /// Writes a line to standard error. A failure is ignored: there is no other place to report it.
    func printError(_ text: String) { _ = writeError(Array((shown(text) + "\n").utf8)) }

    /// Replaces the screen: from the top left corner, each line cleared to its end, then everything below.
    /// Clearing the screen first would make it flicker.
    ///
    /// - Parameter size: what the terminal shows; nil if that is not known.
    func draw(
        screen: String, in size: TerminalScreen? = TerminalScreen(of: STDOUT_FILENO)
    ) throws(CommandFailure) {
        var text = shown(screen)
        if text.hasSuffix("\n") {
            text.removeLast()
        }
        let all = text.split(separator: "\n", omittingEmptySubsequences: false)
        let lines = size?.fitted(all) ?? all.map { String($0) }
        try send(Array("\u{1B}[H\(lines.joined(separator: "\u{1B}[K\n"))\u{1B}[J".utf8))
    }

    /// Replaces the line that the cursor is on, without a line feed.
    func draw(line: String) throws(CommandFailure) { try send(Array("\r\u{1B}[K\(shown(line))".utf8)) }

    /// The text in a style, if standard output (or standard error) shows styles; otherwise the plain text.
    func styled(_ text: String, _ style: Style, isError: Bool = false) -> String {
        (isError ? errorHasColour : hasColour) ? Console.marks.styled(text, style.rawValue) : text
    }

    /// Marks around styled text that `shown` turns into escape sequences. Their key is random for each
    /// process, so text from outside cannot contain them.
    static let marks = StyleMarks()

    /// The text with this program's styles as escape sequences, and every other control character escaped.
    private func shown(_ text: String) -> String { Console.marks.resolved(text) }

    /// The value of an environment variable; nil if it is not set.
    static func environment(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

    /// Writes all bytes to a descriptor; false after an error. write(2) can write a part only, and can be
    /// interrupted.
    private static func writeAll(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                rest = rest.dropFirst(count)
            } else if errno == EAGAIN {
                // Standard output can be non-blocking, because another process that shares the terminal or
                // pipe has set O_NONBLOCK, which belongs to the open file description. Waits until it can be
                // written.
                var waiting = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                poll(&waiting, 1, -1)
            } else if errno != EINTR {
                return false
            }
        }
        return true
    }
}
