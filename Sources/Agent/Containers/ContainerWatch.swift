internal import Model
internal import Synchronization

/// Shows what happens to the containers to clients that watch (`container watch`). From any thread.
final class ContainerWatch: Sendable {
    /// The clients, each with a number by which it is removed when its connection ends.
    private let watchers = Mutex<[(id: UInt64, watcher: AsyncStream<JSONValue>.Continuation)]>([])

    /// Sends a line to all watchers. A watcher that is more than 1000 lines behind misses the oldest.
    func offer(_ line: JSONValue) {
        for (_, watcher) in watchers.withLock({ $0 }) { watcher.yield(line) }
    }

    /// Lines of events from now on, until the task that reads the stream ends.
    func lines() -> AsyncStream<JSONValue> {
        let (stream, watcher) = AsyncStream.makeStream(
            of: JSONValue.self, bufferingPolicy: .bufferingNewest(1000))
        let id = watchers.withLock { watchers in
            let id = (watchers.last?.id ?? 0) + 1
            watchers.append((id, watcher))
            return id
        }
        watcher.onTermination = { [weak self] _ in
            self?.watchers.withLock { $0.removeAll { $0.id == id } }
        }
        return stream
    }
}
