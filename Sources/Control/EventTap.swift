public import Model
internal import Synchronization

/// Shows passing events to watchers without disturbing them: a slow watcher misses events and learns how many; without
/// watchers it costs one load of a number.
///
/// Events go to the watchers only, never to the log. Isolation: from any thread.
public final class EventTap: Sendable {
    /// Which events a watcher wants; nil means any.
    struct Filter: Sendable, Equatable {
        var app: String?
        var priority: Priority?
        var name: String?
    }

    /// How many bytes may wait for a watcher.
    private static let bufferSize = 1 << 20
    private let count = Atomic<Int>(0)
    private let watchers = Mutex<[Watcher]>([])

    /// A tap that nobody watches.
    public init() {}

    /// Whether anybody watches: to be asked before anything is prepared for `offer`.
    public var isWatched: Bool { count.load(ordering: .relaxed) > 0 }

    /// Shows an event to its watchers: its line as it is queued, with or without its line feed.
    public func offer(app: String, priority: Priority, line: UnsafeRawBufferPointer) {
        guard isWatched else { return }
        for watcher in watchers.withLock({ $0 }) { watcher.offer(app, priority, line) }
    }

    func add(_ filter: Filter) -> Watcher {
        let watcher = Watcher(filter)
        watchers.withLock { $0.append(watcher) }
        count.add(1, ordering: .relaxed)
        return watcher
    }

    func remove(_ watcher: Watcher) {
        watchers.withLock { $0.removeAll { $0 === watcher } }
        count.subtract(1, ordering: .relaxed)
    }

    /// Sends events to a client until it goes away: those of an app, of a priority, of a name; nil means any.
    package func send(app: String?, priority: Priority?, name: String?, to stream: ControlStream) async {
        let watcher = add(Filter(app: app, priority: priority, name: name))
        defer { remove(watcher) }
        while let (lines, missed) = await watcher.next() {
            if !lines.isEmpty { guard await stream.write(lines) else { return } }
            if missed > 0 { guard await stream.write(["tap": ["missed": .integer(missed)]]) else { return } }
        }
    }

    final class Watcher: Sendable {
        private struct State {
            var bytes: [UInt8] = []
            var missed = 0
        }

        private let filter: Filter
        private let state = Mutex(State())
        /// Says that there is something; several times is once.
        private let (news, newsWriter) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

        init(_ filter: Filter) { self.filter = filter }

        func offer(_ app: String, _ priority: Priority, _ line: UnsafeRawBufferPointer) {
            guard filter.app.map({ $0 == app }) ?? true, filter.priority.map({ $0 == priority }) ?? true else { return }
            if let name = filter.name {
                guard let event = try? JSONValue(parsing: Array(line)), event["name"]?.string == name else { return }
            }
            state.withLock { state in
                if state.bytes.count + line.count < EventTap.bufferSize {
                    state.bytes.append(contentsOf: line)
                    if line.last != UInt8(ascii: "\n") { state.bytes.append(UInt8(ascii: "\n")) }
                } else {
                    state.missed += 1
                }
            }
            newsWriter.yield()
        }

        /// The next events, as lines, and how many were missed after them, or nothing; nil when the task is cancelled.
        func next() async -> (lines: [UInt8], missed: Int)? {
            guard await news.first(where: { true }) != nil else { return nil }
            return state.withLock { state in
                defer { state = State() }
                return (state.bytes, state.missed)
            }
        }
    }
}
