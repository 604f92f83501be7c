internal import EventLoops
internal import Model
internal import Synchronization

/// Tries a connection on its own loop, which runs on the calling thread for as long.
enum ConnectionProbe {
    /// - Parameter make: makes what connects, on that loop.
    /// - Returns: what it found; nil only if the loop was stopped by somebody else.
    static func run<Found: Sendable>(
        _ make: (EventLoop) throws(OutputError) -> @Sendable () async -> Found
    ) throws(OutputError) -> Found? {
        let loop: EventLoop
        do throws(SystemError) { loop = try EventLoop(name: "check") } catch {
            throw OutputError(.library, "no event loop: \(error.description)")
        }
        let connect = try make(loop)
        let found = FoundOnce<Found>()
        Task(executorPreference: loop) {
            let result = await connect()
            found.value.withLock { $0 = result }
            loop.stop()
        }
        // Until the task ends it: this thread is the loop's.
        loop.run()
        return found.value.withLock { $0 }
    }

    private final class FoundOnce<Found: Sendable>: Sendable { let value = Mutex<Found?>(nil) }
}
