internal import EventLoops

/// Keeps a fault that repeats from filling the log: writes its beginning, then counts.
///
/// A pure value. Messages with the same level and text, of the same apps, are a kind. A message that equals its kind's last one is counted
/// instead of written; so is, of errors, warnings and changes of state, everything beyond `burst` in one `window`. When
/// the window ends, the last message that was not written is, with `repeated=N` if it stands for more than itself:
/// nothing disappears without a number.
struct MessageCollapser: Sendable {
    private struct Kind: Hashable {
        let level: LogLevel
        let text: String
        /// One of sixteen parts of all apps: the flood of one hides what is said of few others, however many there are.
        let apps: Int?
    }

    private struct Window {
        let end: BootInstant
        var written: Int
        var lastWritten: LogMessage
        var held: LogMessage?
        var heldCount = 0
    }

    /// How long a kind's count runs before it is written.
    static let window: Duration = .seconds(60)
    /// How many different messages of a kind are written in one window.
    static let burst = 20
    /// How many kinds are distinguished at a time; beyond it the window that ends first ends early.
    static let kinds = 128

    private var windows: [Kind: Window] = [:]

    init() {}

    /// When the next count is to be written; nil while nothing is held back.
    private(set) var nextDue: BootInstant?

    /// Takes a message and returns what is to be written now, in order.
    mutating func take(_ message: LogMessage, at now: BootInstant) -> [LogMessage] {
        var output = due(at: now)
        let app = message.fields.first { $0.key == "app" }
        let kind = Kind(level: message.level, text: message.text, apps: app.map { $0.value.hashValue & 15 })
        if var window = windows[kind], window.end > now {
            let limited = message.level <= .info && window.written >= MessageCollapser.burst
            if limited || window.lastWritten == message {
                window.held = message
                window.heldCount += 1
                nextDue = min(nextDue ?? window.end, window.end)
            } else {
                window.written += 1
                window.lastWritten = message
                output.append(message)
            }
            windows[kind] = window
            return output
        }
        if windows[kind] == nil, windows.count >= MessageCollapser.kinds { output += makeRoom() }
        windows[kind] = Window(end: now + MessageCollapser.window, written: 1, lastWritten: message)
        output.append(message)
        return output
    }

    /// What is to be written because its window has ended.
    mutating func due(at now: BootInstant) -> [LogMessage] {
        guard let nextDue, nextDue <= now else { return [] }
        return close { $0.end <= now }
    }

    /// Everything that is held back: at the end of the program.
    mutating func flush() -> [LogMessage] { close { _ in true } }

    private mutating func close(_ isOver: (Window) -> Bool) -> [LogMessage] {
        let over = windows.filter { isOver($0.value) }
        for kind in over.keys { windows[kind] = nil }
        nextDue = windows.values.filter { $0.held != nil }.map(\.end).min()
        return over.values.sorted { $0.end < $1.end }.compactMap(MessageCollapser.summary)
    }

    private mutating func makeRoom() -> [LogMessage] {
        guard let end = windows.values.map(\.end).min() else { return [] }
        return close { $0.end <= end }
    }

    private static func summary(_ window: Window) -> LogMessage? {
        guard let held = window.held else { return nil }
        guard window.heldCount > 1 || held == window.lastWritten else { return held }
        return LogMessage(
            level: held.level, text: held.text, fields: held.fields + [("repeated", "\(window.heldCount)")])
    }
}
