internal import Configuration
internal import Containers
internal import EventLoops
internal import Metrics
internal import Model

/// The functions of the configuration, to be asked from any thread; they run on the reader's loop.
final class FunctionDesk: Sendable {
    /// Used on its loop's thread only, and made before that runs.
    nonisolated(unsafe) let runner: FunctionRunner
    let figures: @Sendable () -> FunctionFigures
    /// How long the programs ran, for metrics.
    let durations = HistogramSet(.functionSeconds)
    private let loop: EventLoop

    init(_ settings: Settings, on loop: EventLoop) {
        self.loop = loop
        runner = FunctionRunner(settings.functionDefinitions, on: loop) { [durations] function, duration in
            durations.observe([function], duration)
        }
        figures = runner.figuresReader
    }

    /// Takes other definitions; calls that run end as they began.
    func configure(_ settings: Settings) {
        let definitions = settings.functionDefinitions
        loop.post { self.runner.configure(definitions) }
    }

    /// Asks a function, or gives what was cached.
    func ask(_ call: FunctionCall, answer: @escaping @Sendable (JSONValue) -> Void) {
        loop.post {
            if let known = self.runner.cachedResult(of: call) { return answer(known) }
            self.runner.call(call, answer: answer)
        }
    }

    /// Kills what runs.
    func stop() { loop.post { self.runner.stop() } }
}

extension Settings {
    /// `[functions.NAME]` as the runner has it.
    var functionDefinitions: [String: FunctionDefinition] {
        functions.mapValues { function in
            FunctionDefinition(
                command: function.command, timeout: function.timeout, parallel: function.parallel,
                cache: function.cache)
        }
    }
}
