internal import Configuration
internal import Containers
internal import EventLoops
internal import Logs
internal import Metrics
internal import Model

/// The functions of the configuration, to be asked from any thread; they run on the reader's loop.
final class FunctionDesk: Sendable {
    /// Used on its loop's thread only, but for its figures, and made before that runs.
    nonisolated(unsafe) let runner: FunctionRunner
    /// How long the programs ran, for metrics.
    let durations = HistogramSet(\.functionSeconds)
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

    /// Takes other definitions; calls that run end as they began.
    func configure(_ settings: Settings) {
        let definitions = settings.functions
        loop.post { self.runner.configure(definitions) }
    }

    /// Asks a function, or gives what was cached.
    func ask(_ call: FunctionCall, answer: @escaping @Sendable (JSONValue) -> Void) {
        loop.post {
            if let known = self.runner.cachedResult(of: call) { return answer(known) }
            self.runner.call(call, for: "", answer: answer)
        }
    }

    func stop() { loop.post { self.runner.stop() } }
}

/// One log line for each function that fails, at most every ten seconds, with how often it did since the last one.
private final class FailureReport {
    private let log: Log
    private let time: any TimeSource
    /// Of each function, when its next line may be written, and how often it failed since the last one.
    private var known: [String: (next: BootInstant, count: Int)] = [:]

    init(_ log: Log, _ time: any TimeSource) {
        self.log = log
        self.time = time
    }

    func note(_ failure: FunctionFailure) {
        let name = failure.function
        let now = time.bootTime
        let (next, count) = known[name] ?? (now, 0)
        guard now >= next else { return known[name] = (next, count + 1) }
        known[name] = (now + .seconds(10), 0)
        log.warning(
            "function failed",
            [
                "function": name, "reason": failure.result.rawValue, "code": failure.code.map { "\($0)" } ?? "none",
                "said": failure.complaint, "count": count + 1,
            ])
    }
}
