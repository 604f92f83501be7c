internal import EventLoops

/// Keeps a repeated fault from filling the log: writes its beginning, then counts.
///
/// A pure value. Messages with the same level and text, about the same group of apps, are a kind. Within a
/// window of 60 s, a message that equals the last one of its kind is counted instead of written; so is, for
/// levels up to info, every message beyond `burst`. When the window ends, the last message that was not
/// written is written, with `repeated=N` if it represents several: nothing disappears without a number.
struct MessageCollapser: Sendable {
    /// The key by which equal messages are counted.
    private struct Kind: Hashable {
        let level: LogLevel
        let text: String
        /// The group of the message's app, one of 16: a flood about one app hides messages about few
        /// others, and the number of kinds stays bounded however many apps there are. Nil without an app.
        let apps: Int?
    }

    /// The messages of a kind in the present window.
    private struct Window {
        /// When the window ends.
        let end: BootInstant
        /// Number of messages that were written.
        var written: Int
        /// The last of them; a message that equals it is counted.
        var lastWritten: LogMessage
        /// The last message that was counted instead of written.
        var held: LogMessage?
        /// Number of such messages.
        var heldCount = 0
    }

    /// Length of a window.
    static let window: Duration = .seconds(60)
    /// Different messages of a kind that are written in one window.
    static let burst = 20
    /// Most kinds at a time; beyond it the window that ends first is closed early.
    static let kinds = 128

    /// The open windows by kind.
    private var windows: [Kind: Window] = [:]

    init() {}

    /// When the next count must be written; nil if nothing was counted.
    private(set) var nextDue: BootInstant?

    /// Takes a message; returns the messages to write now, in order.
    mutating func add(_ message: LogMessage, at now: BootInstant) -> [LogMessage] {
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
        if windows[kind] == nil, windows.count >= MessageCollapser.kinds {
            output += makeRoom()
        }
        assert(windows.count <= MessageCollapser.kinds, "more kinds of messages than the limit")
        windows[kind] = Window(end: now + MessageCollapser.window, written: 1, lastWritten: message)
        output.append(message)
        return output
    }

    /// The messages to write because their window has ended.
    mutating func due(at now: BootInstant) -> [LogMessage] {
        guard let nextDue, nextDue <= now else { return [] }
        return close { $0.end <= now }
    }

    /// All messages that were counted and not written, for the end of the program.
    mutating func flush() -> [LogMessage] { close { _ in true } }

    /// Closes windows, and returns what they still have to say.
    private mutating func close(_ isOver: (Window) -> Bool) -> [LogMessage] {
        let over = windows.filter { isOver($0.value) }
        for kind in over.keys { windows[kind] = nil }
        nextDue = windows.values.filter { $0.held != nil }.map(\.end).min()
        return over.values.sorted { $0.end < $1.end }.compactMap(MessageCollapser.summary)
    }

    /// Closes the window that ends first.
    private mutating func makeRoom() -> [LogMessage] {
        guard let end = windows.values.map(\.end).min() else { return [] }
        return close { $0.end <= end }
    }

    /// What a window still has to say: the last counted message, with the number if it represents several.
    private static func summary(_ window: Window) -> LogMessage? {
        guard let held = window.held else { return nil }
        guard window.heldCount > 1 || held == window.lastWritten else { return held }
        return LogMessage(
            level: held.level, text: held.text, fields: held.fields + [("repeated", "\(window.heldCount)")])
    }
}
