internal import EventLoops

/// A line that is written over and over on a terminal; plain lines, now and then, elsewhere.
struct ProgressLine {
    private let console: Console
    private var last: BootInstant?
    private var isShown = false

    init(_ console: Console) { self.console = console }

    /// Shows a text, unless one was shown just before.
    mutating func show(_ text: @autoclosure () -> String, at now: BootInstant) throws(CommandFailure) {
        let pause: Duration = console.isTerminal ? .milliseconds(200) : .seconds(10)
        // Elsewhere than on a terminal the first line is due after the pause: what ends before has its own last line.
        if last == nil, !console.isTerminal { last = now }
        if let last, now - last < pause { return }
        last = now
        guard console.isTerminal else { return try console.print(text()) }
        isShown = true
        try console.draw(line: text())
    }

    /// Prints a line that stays, in place of the one that is shown.
    mutating func end(with text: String) throws(CommandFailure) {
        try clear()
        try console.print(text)
    }

    mutating func clear() throws(CommandFailure) {
        if isShown { try console.draw(line: "") }
        isShown = false
    }
}
