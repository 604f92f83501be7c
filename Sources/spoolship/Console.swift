internal import EventLoops
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

    /// Whether the cursor can be sent back, to write over what is on the screen.
    var canMove: Bool { isTerminal && Console.environment("TERM") != "dumb" }

    /// Whether standard output is a terminal: progress, refreshing in place.
    let isTerminal: Bool
    /// Whether colours may be used on standard output.
    let hasColour: Bool
    /// Whether colours may be used on standard error.
    let errorHasColour: Bool
    let writeOut: @Sendable ([UInt8]) -> Bool
    let writeError: @Sendable ([UInt8]) -> Bool

    /// The process's own.
    static let standard: Console = {
        let wantsColour = (environment("NO_COLOR") ?? "").isEmpty && environment("TERM") != "dumb"
        return Console(
            isTerminal: isatty(STDOUT_FILENO) == 1, hasColour: wantsColour && isatty(STDOUT_FILENO) == 1,
            errorHasColour: wantsColour && isatty(STDERR_FILENO) == 1,
            writeOut: { writeAll($0, to: STDOUT_FILENO) }, writeError: { writeAll($0, to: STDERR_FILENO) })
    }()

    /// Writes a line to standard output; throws when it cannot be written: a full disk must not look like success.
    func print(_ text: String) throws(CommandFailure) { try write(text + "\n") }

    /// Writes text to standard output, control characters from outside escaped.
    func write(_ text: String) throws(CommandFailure) { try send(Array(Console.harmless(text).utf8)) }

    /// Writes bytes to standard output: as they are into a file or pipe, as harmless text to a terminal.
    func write(bytes: [UInt8]) throws(CommandFailure) {
        try send(isTerminal ? Array(Console.harmless(String(decoding: bytes, as: UTF8.self)).utf8) : bytes)
    }

    private func send(_ bytes: [UInt8]) throws(CommandFailure) {
        guard writeOut(bytes) else { throw CommandFailure(.inputOutput, "cannot write to standard output") }
    }

    /// Writes a line to standard error. There is nobody to tell when that fails.
    func printError(_ text: String) { _ = writeError(Array((Console.harmless(text) + "\n").utf8)) }

    /// The text with what would command a terminal, or turn its writing around, as `\u001b`. Names, paths and events come
    /// from outside. This program's own styles pass: colours deceive nobody.
    static func harmless(_ text: String) -> String {
        // Most text is plain; bytes above 7E are looked at closer.
        guard text.utf8.contains(where: { $0 < 0x20 && $0 != 0x0A && $0 != 0x09 || $0 >= 0x7F }) else { return text }
        var result = ""
        var rest = text.unicodeScalars[...]
        while let scalar = rest.first {
            if scalar == "\u{1B}", let own = ownSequences.first(where: { rest.starts(with: $0.unicodeScalars) }) {
                result += own
                rest = rest.dropFirst(own.unicodeScalars.count)
                continue
            }
            rest = rest.dropFirst()
            switch scalar.value {
            case 0x0A, 0x09: result.unicodeScalars.append(scalar)
            case 0..<0x20, 0x7F..<0xA0, 0x200E, 0x200F, 0x202A...0x202E, 0x2066...0x2069:
                result += "\\u" + scalar.value.digits(4, radix: 16)
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    private static let ownSequences =
        ["\u{1B}[0m"] + [Style.bold, .red, .green, .yellow, .dim].map { "\u{1B}[\($0.rawValue)m" }

    /// Writes a screen over the one before: from the top left corner, each line cleared to its end, then the rest.
    func draw(screen: String) throws(CommandFailure) {
        let lines = Console.harmless(screen).split(separator: "\n", omittingEmptySubsequences: false)
        try send(Array("\u{1B}[H\(lines.joined(separator: "\u{1B}[K\n"))\u{1B}[J".utf8))
    }

    /// Writes over the line that the cursor is on.
    func draw(line: String) throws(CommandFailure) { try send(Array("\r\u{1B}[K\(Console.harmless(line))".utf8)) }

    /// The text in a style, where standard output (or standard error) shows styles.
    func styled(_ text: String, _ style: Style, isError: Bool = false) -> String {
        (isError ? errorHasColour : hasColour) ? "\u{1B}[\(style.rawValue)m\(text)\u{1B}[0m" : text
    }

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
