internal import EventLoops
public import Logs
public import Model
internal import Synchronization

/// Connects to a Kafka destination as sending would, asks for the topic, and ends. Writes nothing.
public enum KafkaProbe {
    /// One attempt. Blocks, for the options' `connectTimeout` at most.
    ///
    /// - Returns: what failed, in words that say what to do; nil when the brokers take us and have the topic.
    /// - Throws: `OutputError` for settings without meaning, files that cannot be read, and a missing library.
    public static func attempt(_ options: KafkaOptions, log: Log) throws(OutputError) -> Failure? {
        let loop: EventLoop
        do throws(SystemError) { loop = try EventLoop(name: "check") } catch {
            throw OutputError(.library, "no event loop: \(error.description)")
        }
        let output = try KafkaOutput("check", options, on: loop, log: log)
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
