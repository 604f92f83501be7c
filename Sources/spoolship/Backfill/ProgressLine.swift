internal import EventLoops

/// Shows progress: on a terminal one line that is overwritten, elsewhere a line of its own every 10 seconds.
struct ProgressLine {
    /// Where the line is shown.
    private let console: Console
    /// When a line was shown last; nil before the first.
    private var last: BootInstant?
    /// Whether a line is on the terminal that has to be cleared before other output.
    private var isShown = false

    init(_ console: Console) { self.console = console }

    /// Shows a text, unless one was shown within the pause: 200 ms on a terminal, 10 s elsewhere. The text is
    /// not made if it is not shown.
    mutating func show(_ text: @autoclosure () -> String, at now: BootInstant) throws(CommandFailure) {
        let pause: Duration = console.isTerminal ? .milliseconds(200) : .seconds(10)
        // In a log the first line is due after the pause: a run that ends before has its last line only.
        if last == nil, !console.isTerminal {
            last = now
        }
        if let last, now - last < pause { return }
        last = now
        guard console.isTerminal else { return try console.print(text()) }
        isShown = true
        try console.draw(line: text())
    }

    /// Prints a line that stays, in place of the progress.
    mutating func end(with text: String) throws(CommandFailure) {
        try clear()
        try console.print(text)
    }

    /// Removes the progress from the terminal.
    mutating func clear() throws(CommandFailure) {
        if isShown {
            try console.draw(line: "")
        }
        isShown = false
    }
}
