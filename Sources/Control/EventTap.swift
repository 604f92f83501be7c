public import Model
internal import Synchronization

/// Shows passing events to watchers without slowing the reader: a slow watcher misses events, and learns
/// the number. Without watchers it costs one load of a number for each event.
///
/// Events go to watchers only, never to the log. Thread-safe.
public final class EventTap: Sendable {
    /// The events that a watcher wants; nil means any.
    struct Filter: Sendable, Equatable {
        var app: String?
        var priority: Priority?
        var name: String?
    }

    /// Bytes that may wait for a watcher; further events count as missed.
    private static let bufferSize = 1 << 20
    /// Number of watchers, so that `isWatched` needs no lock.
    private let count = Atomic<Int>(0)
    /// The watchers. They are copied out of the lock before they are offered an event, so that no lock is
    /// held while a filter parses it.
    private let watchers = Mutex<[Watcher]>([])

    /// A tap without watchers.
    public init() {}

    /// Whether there is a watcher. To be asked before an event is prepared for `offer`.
    public var isWatched: Bool { count.load(ordering: .relaxed) > 0 }

    /// Offers an event to the watchers.
    ///
    /// - Parameter line: the event as it is queued, with or without its line feed. Copied.
    public func offer(app: String, priority: Priority, line: UnsafeRawBufferPointer) {
        guard isWatched else { return }
        for watcher in watchers.withLock({ $0 }) { watcher.offer(app, priority, line) }
    }

    /// Adds a watcher.
    func add(_ filter: Filter) -> Watcher {
        let watcher = Watcher(filter)
        watchers.withLock { $0.append(watcher) }
        count.add(1, ordering: .relaxed)
        return watcher
    }

    /// Removes a watcher.
    func remove(_ watcher: Watcher) {
        watchers.withLock { $0.removeAll { $0 === watcher } }
        count.subtract(1, ordering: .relaxed)
    }

    /// Sends events to a client until it disconnects.
    ///
    /// - Parameters:
    ///   - app: only events of this app; nil for any. Likewise `priority` and `name`.
    ///   - stream: receives the lines, and `{"tap": {"missed": N}}` after events that were missed.
    package func send(app: String?, priority: Priority?, name: String?, to stream: ControlStream) async {
        let watcher = add(Filter(app: app, priority: priority, name: name))
        defer { remove(watcher) }
        while let (lines, missed) = await watcher.next() {
            if !lines.isEmpty { guard await stream.write(lines) else { return } }
            if missed > 0 { guard await stream.write(["tap": ["missed": .integer(missed)]]) else { return } }
        }
    }

    /// A watcher with the events that wait for it.
    final class Watcher: Sendable {
        /// The state that the lock guards.
        private struct State {
            var bytes: [UInt8] = []
            var missed = 0
        }

        private let filter: Filter
        private let state = Mutex(State())
        /// Signals that events wait; several signals count as one.
        private let (news, newsWriter) = AsyncStream.makeStream(
            of: Void.self, bufferingPolicy: .bufferingNewest(1))

        init(_ filter: Filter) { self.filter = filter }

        /// Keeps a copy of the event if the filter wants it and there is room. Only a filter by name parses
        /// the event.
        func offer(_ app: String, _ priority: Priority, _ line: UnsafeRawBufferPointer) {
            guard filter.app.map({ $0 == app }) ?? true, filter.priority.map({ $0 == priority }) ?? true
            else { return }
            if let name = filter.name {
                guard let event = try? JSONValue(parsing: Array(line)), event["name"]?.string == name else {
                    return
                }
            }
            state.withLock { state in
                if state.bytes.count + line.count < EventTap.bufferSize {
                    state.bytes.append(contentsOf: line)
                    if line.last != UInt8(ascii: "\n") {
                        state.bytes.append(UInt8(ascii: "\n"))
                    }
                } else {
                    state.missed += 1
                }
            }
            newsWriter.yield()
        }

        /// The next events as lines, and the number of events missed after them; nil when the task is
        /// cancelled.
        func next() async -> (lines: [UInt8], missed: Int)? {
            guard await news.first(where: { true }) != nil else { return nil }
            return state.withLock { state in
                defer { state = State() }
                return (state.bytes, state.missed)
            }
        }
    }
}
