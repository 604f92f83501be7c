internal import Containers
internal import EventLoops
internal import Model

/// Calls of functions that tags ask for. They are made once their events are durable, and at least once: a
/// call is stored with its event until a commit after its answer removes it.
///
/// There is one for each intake, because what an intake remembers belongs to its own commits. It belongs to
/// the reader's loop.
final class TagCalls {
    /// Runs functions; nil: no call is made or remembered.
    private let functions: (any FunctionCaller)?
    /// Key of the row with the calls in the queue's memory.
    private let memoryName: String
    /// Most calls that may wait.
    private let most: Int
    /// Most calls that are handed to the functions at a time: the places where calls wait are few and shared
    /// by all intakes.
    private let atOnce: Int
    /// Number of calls without an answer so far.
    private var running = 0
    /// Numbers of the calls that may be made, in order.
    private var due: [Int] = []
    /// All calls without an answer, by number.
    private var calls: [Int: (call: FunctionCall, app: String)] = [:]
    /// Number of calls by holder, which bounds each app's share.
    private var holdings = Holdings()
    /// Calls that no commit holds yet.
    private var newCalls: [Int] = []
    /// Number of the last call.
    private var last = 0
    /// Whether the row has changed since it was last stored.
    private var isChanged = false
    /// Called once there is room for more calls.
    private var roomWaiters: [() -> Void] = []

    /// - Parameters:
    ///   - functions: runs functions; without it no call is made or remembered.
    ///   - name: name of an intake beside the spool's, for its row; nil for the spool's. The others have
    ///     fewer calls, because they wait at the same functions.
    ///   - most: most calls that may wait, half of them of one app. While an app has more, none of its events
    ///     that may call is read. A piece of an old file is read as a whole, however many calls it causes.
    init(_ functions: (any FunctionCaller)?, aside name: String?, most: Int? = nil) {
        self.functions = functions
        self.most = most ?? (name == nil ? 512 : 64)
        atOnce = name == nil ? 512 : 16
        memoryName = name.map { "calls/\($0)" } ?? "calls"
    }

    var count: Int { calls.count }

    /// Whether too many calls wait to take another event of an app.
    func isFull(for app: String) -> Bool {
        !calls.isEmpty && !holdings.hasFairRoom(for: Holdings.holder(of: app), of: most)
    }

    /// Whether the next commit will hold calls.
    var hasNew: Bool { !newCalls.isEmpty }

    /// Adds the calls that tags of an event ask for.
    func add(_ wanted: [FunctionCall], of app: String) {
        guard !wanted.isEmpty, functions != nil else { return }
        for call in wanted {
            note(call, app)
            newCalls.append(last)
        }
        isChanged = true
    }

    private func note(_ call: FunctionCall, _ app: String) {
        last += 1
        calls[last] = (call, app)
        holdings.add(Holdings.holder(of: app))
    }

    /// Calls `body` once there is room again, never before this returns.
    func whenRoom(_ body: @escaping () -> Void) { roomWaiters.append(body) }

    /// The calls that the next commit makes durable. `start` them once it is durable, `forget` them if it
    /// never will be.
    func takeNew() -> [Int] {
        defer { newCalls = [] }
        return newCalls
    }

    /// Makes calls whose events are durable.
    func start(_ numbers: [Int]) {
        due += numbers
        startDue()
    }

    /// Makes calls that an earlier process has left. Posted to the loop, because the initialisers that call
    /// it run on the main loop.
    func start(_ left: [Int], on loop: EventLoop) {
        let own = LoopBound(self, to: loop)
        loop.post { own.assumeOnLoop { $0.start(left) } }
    }

    /// Hands due calls to the functions as far as `atOnce` allows.
    private func startDue() {
        while running < atOnce, !due.isEmpty {
            let number = due.removeFirst()
            guard let (call, app) = calls[number] else { continue }
            running += 1
            functions?.call(call, for: app) { [self] _ in
                running -= 1
                forget([number])
                startDue()
            }
        }
    }

    /// Forgets calls that were answered, or whose events were not stored.
    func forget(_ numbers: [Int]) {
        for number in numbers {
            guard let (_, app) = calls.removeValue(forKey: number) else { continue }
            isChanged = true
            holdings.release(Holdings.holder(of: app))
        }
        guard calls.count < most else { return }
        let waiters = roomWaiters
        roomWaiters = []
        for waiter in waiters { waiter() }
    }

    /// The row that must be durable with the events that were taken; empty if it has not changed.
    func takeMemory() -> [String: [UInt8]?] {
        guard isChanged else { return [:] }
        isChanged = false
        let waiting = calls.sorted { $0.key < $1.key }.map { _, waiting in
            JSONValue.object(
                (waiting.call.request.members ?? []) + [JSONValue.Member("app", .string(waiting.app))])
        }
        let bytes: [UInt8]? = waiting.isEmpty ? nil : Array(JSONValue.array(waiting).description.utf8)
        return [memoryName: bytes]
    }

    /// Takes over calls that an earlier process has not seen answered. Returns their numbers, for `start`.
    func restore(_ memory: [String: [UInt8]]) -> [Int] {
        guard functions != nil, let bytes = memory[memoryName],
            case .array(let requests)? = try? JSONValue(parsing: bytes)
        else { return [] }
        for request in requests {
            guard let name = request["function"]?.string, let parameters = request["parameters"] else {
                continue
            }
            note(FunctionCall(function: name, parameters: parameters), request["app"]?.string ?? "")
        }
        return calls.keys.sorted()
    }
}
