internal import Model
internal import Synchronization

/// Shows what happens to containers to whoever watches (`container watch`). From any thread.
final class ContainerWatch: Sendable {
    private let watchers = Mutex<[(id: UInt64, watcher: AsyncStream<JSONValue>.Continuation)]>([])

    /// Notifies all watchers; one that is too slow misses the oldest.
    func offer(_ line: JSONValue) {
        for (_, watcher) in watchers.withLock({ $0 }) { watcher.yield(line) }
    }

    /// What happens from now on, until the task that reads it ends.
    func lines() -> AsyncStream<JSONValue> {
        let (stream, watcher) = AsyncStream.makeStream(of: JSONValue.self, bufferingPolicy: .bufferingNewest(1000))
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
