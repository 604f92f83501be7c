internal import EventLoops
public import Logs
public import Model
internal import Synchronization

/// Connects to a NATS destination as sending would, shows who we are, and closes again. Publishes nothing.
public enum NATSProbe {
    /// One attempt. Blocks, for the options' `requestTimeout` at most.
    ///
    /// - Returns: what failed, in words that say what to do; nil when a server takes us.
    /// - Throws: `OutputError` for settings without meaning, and files that cannot be read.
    public static func attempt(_ options: NATSOptions, log: Log) throws(OutputError) -> Failure? {
        let loop: EventLoop
        do throws(SystemError) { loop = try EventLoop(name: "check") } catch {
            throw OutputError(.library, "no event loop: \(error.description)")
        }
        let output = try NATSOutput("check", options, on: loop, log: log)
        final class Found: Sendable { let failure = Mutex<Failure?>(nil) }
        let found = Found()
        Task(executorPreference: loop) {
            let failure = await output.connect()
            found.failure.withLock { $0 = failure }
            loop.stop()
        }
        // Until the task ends it: this thread is the loop's.
        loop.run()
        return found.failure.withLock { $0 }
    }
}
