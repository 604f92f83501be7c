internal import Containers
internal import EventLoops
internal import Model

/// The calls of functions that tags ask for: made once their events are durable, and at least once, because they are durable
/// with these until a commit after the answer forgets them.
///
/// One for each intake, because what an intake remembers belongs to its own commits. It belongs to the reader's loop.
final class TagCalls {
    private let functions: (any FunctionCaller)?
    private let memoryName: String
    private let most: Int
    /// Calls that are handed to the functions at once: the places where they wait are few, and shared.
    private let atOnce: Int
    private var running = 0
    /// Calls that may be made, in their order.
    private var due: [Int] = []
    private var calls: [Int: (call: FunctionCall, app: String)] = [:]
    private var holdings = Holdings()
    /// Those of them that no commit holds yet.
    private var newCalls: [Int] = []
    private var last = 0
    private var isChanged = false
    private var roomWaiters: [() -> Void] = []

    /// - Parameters:
    ///   - functions: runs functions; without one no call is made or remembered.
    ///   - name: of an intake beside the spool's, in what is remembered; nil for the spool's. The others have fewer calls, because they
    ///     wait at the same functions.
    ///   - most: calls that may wait, half of them for one app; while there are more, no event of it that may call is read. A piece
    ///     of an old file is taken as a whole, however many calls it asks for.
    init(_ functions: (any FunctionCaller)?, aside name: String?, most: Int? = nil) {
        self.functions = functions
        self.most = most ?? (name == nil ? 512 : 64)
        atOnce = name == nil ? 512 : 16
        memoryName = name.map { "calls/\($0)" } ?? "calls"
    }

    var count: Int { calls.count }

    /// Whether so many calls wait that no event more of an app is to be taken.
    func isFull(for app: String) -> Bool {
        !calls.isEmpty && !holdings.hasFairRoom(for: Holdings.holder(of: app), of: most)
    }

    var hasNew: Bool { !newCalls.isEmpty }

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

    /// Calls `body` once there is room again; never before this returns.
    func whenRoom(_ body: @escaping () -> Void) { roomWaiters.append(body) }

    /// The calls that the next commit makes durable: `start` them when it is, `forget` them when it never will be.
    func takeNew() -> [Int] {
        defer { newCalls = [] }
        return newCalls
    }

    /// Makes calls whose events are durable.
    func start(_ numbers: [Int]) {
        due += numbers
        startDue()
    }

    /// Makes calls that an earlier process has left, on the loop.
    func start(_ left: [Int], on loop: EventLoop) {
        let own = LoopBound(self, to: loop)
        loop.post { own.assumeOnLoop { $0.start(left) } }
    }

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

    /// Forgets calls: they were made, or their events were not stored.
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

    /// What must be durable with the events that were taken.
    func takeMemory() -> [String: [UInt8]?] {
        guard isChanged else { return [:] }
        isChanged = false
        let waiting = calls.sorted { $0.key < $1.key }.map { _, waiting in
            JSONValue.object((waiting.call.request.members ?? []) + [JSONValue.Member("app", .string(waiting.app))])
        }
        let bytes: [UInt8]? = waiting.isEmpty ? nil : Array(JSONValue.array(waiting).description.utf8)
        return [memoryName: bytes]
    }

    /// Takes up the calls that an earlier process did not make to the end: what to `start`.
    func restore(_ memory: [String: [UInt8]]) -> [Int] {
        guard functions != nil, let bytes = memory[memoryName],
            case .array(let requests)? = try? JSONValue(parsing: bytes)
        else { return [] }
        for request in requests {
            guard let name = request["function"]?.string, let parameters = request["parameters"] else { continue }
            note(FunctionCall(function: name, parameters: parameters), request["app"]?.string ?? "")
        }
        return calls.keys.sorted()
    }
}
