internal import Configuration
internal import Containers
internal import EventLoops
internal import Logs
internal import Metrics
internal import Model

/// Lets code on any thread call the functions of the configuration, whose programs run on the reader's loop.
final class FunctionDesk: Sendable {
    /// Runs the programs. Used on its loop's thread only, except for its figures, and made before that thread
    /// runs.
    nonisolated(unsafe) let runner: FunctionRunner
    /// How long the programs ran, for metrics.
    let durations = HistogramSet(\.functionSeconds)
    /// The reader's loop, on which the programs' answers arrive.
    private let loop: EventLoop

    init(_ settings: Settings, on loop: EventLoop, time: any TimeSource, log: Log) {
        self.loop = loop
        let failures = FailureReport(log, time)
        runner = FunctionRunner(settings.functions, on: loop, time: time) { [durations] function, duration in
            durations.observe([function], duration)
        } failed: {
            failures.note($0)
        }
    }

    /// Applies other definitions; calls under way end as they began.
    func configure(_ settings: Settings) {
        let definitions = settings.functions
        loop.post { self.runner.configure(definitions) }
    }

    /// Calls a function, or gives the cached result; `answer` is called on the reader's loop.
    func ask(_ call: FunctionCall, answer: @escaping @Sendable (JSONValue) -> Void) {
        loop.post {
            if let known = self.runner.cachedResult(of: call) { return answer(known) }
            self.runner.call(call, for: "", answer: answer)
        }
    }

    /// Ends all programs.
    func stop() { loop.post { self.runner.stop() } }
}

/// Logs failures of functions: one line for each function in ten seconds, with the number of failures since
/// the line before. A function that fails for each event would otherwise flood the log.
private final class FailureReport {
    private let log: Log
    private let time: any TimeSource
    /// When the next line of a function may be written, and its failures since the last line.
    private var known: [String: (next: BootInstant, count: Int)] = [:]

    init(_ log: Log, _ time: any TimeSource) {
        self.log = log
        self.time = time
    }

    /// Counts a failure, and logs it if the function's last line is old enough.
    func note(_ failure: FunctionFailure) {
        let name = failure.function
        let now = time.bootTime
        let (next, count) = known[name] ?? (now, 0)
        guard now >= next else { return known[name] = (next, count + 1) }
        known[name] = (now + .seconds(10), 0)
        log.warning(
            "function failed",
            [
                "function": name, "reason": failure.result.rawValue,
                "code": failure.code.map { "\($0)" } ?? "none",
                "said": failure.complaint, "count": count + 1,
            ])
    }
}
