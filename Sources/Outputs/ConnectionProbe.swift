internal import EventLoops
internal import Model
internal import Synchronization

/// Tries a connection on a loop of its own, which runs on the calling thread for as long.
enum ConnectionProbe {
    /// - Parameter make: makes what connects, on that loop.
    /// - Returns: what failed; nil when nothing did.
    static func run(
        _ make: (EventLoop) throws(OutputError) -> @Sendable () async -> Failure?
    ) throws(OutputError) -> Failure? {
        let loop: EventLoop
        do throws(SystemError) { loop = try EventLoop(name: "check") } catch {
            throw OutputError(.library, "no event loop: \(error.description)")
        }
        let connect = try make(loop)
        final class Found: Sendable { let failure = Mutex<Failure?>(nil) }
        let found = Found()
        Task(executorPreference: loop) {
            let failure = await connect()
            found.failure.withLock { $0 = failure }
            loop.stop()
        }
        // Until the task ends it: this thread is the loop's.
        loop.run()
        return found.failure.withLock { $0 }
    }
}
