internal import Control
internal import EventLoops
internal import Glibc
internal import Model

enum TopCommand {
    /// Shows `status` again and again. The agent makes the text, so that `top`, `status` and the page agree;
    /// this command adds only rates and plots.
    static let top = Command(
        name: "top", summary: "shows `status` continuously, with rates and small plots",
        details: "Ends with q or Ctrl-C.",
        options: [
            Command.Option("interval DURATION", "how often; default 2s"),
            Command.Option("count N", "exit after N times; works without a terminal too"),
        ]
    ) { invocation in
        let interval = try invocation.duration("interval") ?? .seconds(2)
        // Each report costs the agent some work, so it is not asked more often.
        guard interval >= .milliseconds(100) else {
            throw CommandFailure(.usage, "--interval must be at least 100ms")
        }
        var left = try invocation.number("count")
        guard left != nil || (invocation.console.isTerminal && isatty(STDIN_FILENO) == 1) else {
            throw CommandFailure(.usage, "top needs a terminal; `spoolship status` prints once")
        }
        var rates = TopRates()
        // Restored on each way out, otherwise the shell would get a terminal without echo.
        let terminal = TerminalKeys()
        defer { terminal?.restore() }
        while true {
            let status = try invocation.status(in: "screen")
            rates.add(status)
            let screen = "\(rates.text)\n\(status["text"]?.string ?? "")"
            if invocation.console.canMove {
                try invocation.console.draw(screen: screen)
            } else {
                try invocation.console.write(screen)
            }
            if let count = left {
                left = count - 1
                if count == 1 { return }
            }
            if TerminalKeys.pressedQuit(within: interval) { return }
        }
    }
}

/// The rates between two reports, and the last 30 of them as plots.
struct TopRates {
    /// How many rates are kept: the width of a plot.
    private static let width = 30
    /// The report before; nil at first.
    private var last: JSONValue?
    /// The rates, per second, and how many deliveries wait.
    private var points: [(accepted: Double, acknowledged: Double, waiting: Int)] = []

    /// Adds a report. A report of another process starts a new series, because its counters began with 0.
    mutating func add(_ report: JSONValue) {
        defer { last = report }
        guard let last else { return }
        let seconds = ((report["now_ms"]?.number ?? 0) - (last["now_ms"]?.number ?? 0)) / 1000
        guard seconds > 0, last["process_id"] == report["process_id"] else {
            points = []
            return
        }
        // Counters can fall when a destination is removed by a reload.
        func rate(_ figure: String) -> Double {
            max(0, Double(report.sum(figure) - last.sum(figure)) / seconds)
        }
        points.append((rate("accepted"), rate("acknowledged"), report.sum("queued")))
        points.removeFirst(max(0, points.count - TopRates.width))
    }

    /// Three lines with plots: in, out, waiting.
    var text: String {
        /// A plot with its name and the current value, aligned on the right.
        func line(_ name: String, _ values: [Double], _ now: String) -> String {
            let padding = String(repeating: " ", count: TopRates.width - values.count)
            return "\(name)  \(padding)\(TopRates.sparkline(values))  \(now)\n"
        }
        let now = points.last
        return line("in     ", points.map(\.accepted), now.map { HumanText.rate($0.accepted) } ?? "")
            + line("out    ", points.map(\.acknowledged), now.map { HumanText.rate($0.acknowledged) } ?? "")
            + line(
                "waiting", points.map { Double($0.waiting) }, now.map { HumanText.count($0.waiting) } ?? "")
    }

    /// Values as bars of eight heights, relative to the greatest.
    static func sparkline(_ values: [Double]) -> String {
        let bars = Array("▁▂▃▄▅▆▇█")
        let top = values.max() ?? 0
        // 7.999, so that the greatest value is the eighth bar and not a ninth.
        return String(values.map { top > 0 ? bars[min(7, Int($0 / top * 7.999))] : bars[0] })
    }
}

/// The terminal in a mode in which one key is enough to end the program (termios(3)).
private struct TerminalKeys {
    /// The settings to restore.
    private let saved: termios

    /// Changes the mode; nil if standard input is not a terminal.
    init?() {
        var settings = termios()
        guard tcgetattr(STDIN_FILENO, &settings) == 0 else { return nil }
        saved = settings
        // Ctrl-C arrives as a byte and not as SIGINT, so that the terminal is restored on each way out.
        settings.c_lflag &= ~tcflag_t(ICANON | ECHO | ISIG)
        tcsetattr(STDIN_FILENO, TCSANOW, &settings)
    }

    func restore() {
        var settings = saved
        tcsetattr(STDIN_FILENO, TCSANOW, &settings)
    }

    /// Waits for a time; true if q or Ctrl-C was pressed meanwhile.
    static func pressedQuit(within time: Duration) -> Bool {
        let deadline = SystemTime().bootTime + time
        while true {
            let left = (deadline - SystemTime().bootTime).wholeMilliseconds
            guard left > 0 else { return false }
            // poll(2) ignores a negative descriptor: without a terminal only the time passes.
            let keys = isatty(STDIN_FILENO) == 1 ? STDIN_FILENO : -1
            var waiting = pollfd(fd: keys, events: Int16(POLLIN), revents: 0)
            guard poll(&waiting, 1, Int32(clamping: left)) == 1 else { continue }
            var key: UInt8 = 0
            // The terminal is gone: no other key will follow.
            guard read(STDIN_FILENO, &key, 1) == 1 else { return true }
            // 3 is Ctrl-C.
            if key == UInt8(ascii: "q") || key == 3 { return true }
        }
    }
}
