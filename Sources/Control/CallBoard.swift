public import Model
internal import Synchronization

/// Gives calls of functions to the clients that listen for them: each call to one client, at most once. A
/// call for which nobody listens, or whose listeners read too slowly, is lost and counted. Thread-safe.
public final class CallBoard: Sendable {
    /// Bytes of calls that may wait for a client.
    private static let bufferSize = 256 << 10
    /// Most clients that listen at a time. A stream holds its connection until the client ends it, so without
    /// this bound listeners could take all places of the control socket.
    private static let mostListeners = 16
    /// Most bytes of a call, as for a program of the configuration.
    private static let largestCall = 64 << 10

    /// The clients that listen.
    private let listeners = Mutex<[Listener]>([])
    /// Calls that were given to a client and did not reach it, since the last `takeLost`.
    private let lost = Atomic<Int>(0)

    /// A board without listeners.
    public init() {}

    /// Whether another client may listen.
    package var hasRoom: Bool { listeners.withLock { $0.count } < CallBoard.mostListeners }

    /// Gives a call to one client; false if no client listens for it or has room.
    public func offer(function: String, parameters: JSONValue, container: String, app: String) -> Bool {
        let listeners = listeners.withLock { $0 }.filter { $0.wants(function, container, app) }
        guard !listeners.isEmpty else { return false }
        let call: JSONValue = [
            "app": .string(app), "container": .string(container), "function": .string(function),
            "parameters": parameters,
        ]
        let line = Array("\(call)\n".utf8)
        guard line.count <= CallBoard.largestCall else { return false }
        // The client with the least to do first, so that one that hangs does not get all.
        return listeners.map { ($0, $0.waitingBytes) }.sorted { $0.1 < $1.1 }
            .contains { listener, _ in listener.offer(line) }
    }

    /// The number of calls that did not reach their client, since this was last asked.
    public func takeLost() -> Int { lost.exchange(0, ordering: .relaxed) }

    /// Sends calls to a client until it disconnects: first a line `{"listening": true}`, then a line for each
    /// call.
    package func send(
        app: String, container: String, functions: Set<String>, to stream: ControlStream
    ) async {
        let listener = Listener(app: app, container: container, functions: functions)
        listeners.withLock { $0.append(listener) }
        defer {
            listeners.withLock { $0.removeAll { $0 === listener } }
            lost.add(listener.close(), ordering: .relaxed)
        }
        guard await stream.write(["listening": true]) else { return }
        while let (lines, count) = await listener.next() {
            if lines.isEmpty { continue }
            guard await stream.write(lines) else {
                lost.add(count, ordering: .relaxed)
                return
            }
        }
    }

    /// A client with the calls that wait for it.
    private final class Listener: Sendable {
        /// The calls that wait, as lines.
        private struct State {
            var bytes: [UInt8] = []
            var count = 0
            var isClosed = false
        }

        private let app: String
        private let container: String
        private let functions: Set<String>
        private let state = Mutex(State())
        /// Signals that calls wait; several signals count as one.
        private let (news, newsWriter) = AsyncStream.makeStream(
            of: Void.self, bufferingPolicy: .bufferingNewest(1))

        init(app: String, container: String, functions: Set<String>) {
            self.app = app
            self.container = container
            self.functions = functions
        }

        var waitingBytes: Int { state.withLock { $0.bytes.count } }

        func wants(_ function: String, _ container: String, _ app: String) -> Bool {
            self.app == app && self.container == container && functions.contains(function)
        }

        /// Keeps a call if there is room.
        func offer(_ line: [UInt8]) -> Bool {
            let isKept = state.withLock { state in
                guard !state.isClosed, state.bytes.count + line.count <= CallBoard.bufferSize else {
                    return false
                }
                state.bytes += line
                state.count += 1
                return true
            }
            newsWriter.yield()
            return isKept
        }

        /// Refuses further calls; returns the number of those that still wait.
        func close() -> Int {
            state.withLock { state in
                state.isClosed = true
                return state.count
            }
        }

        /// The calls that wait, as lines; nil when the task is cancelled.
        func next() async -> (lines: [UInt8], count: Int)? {
            guard await news.first(where: { true }) != nil else { return nil }
            return state.withLock { state in
                defer { state = State(isClosed: state.isClosed) }
                return (state.bytes, state.count)
            }
        }
    }
}
