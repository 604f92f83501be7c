import EventLoops
import Glibc
import Logs
import Model
@testable import Spool
import Synchronization
import TestKit
import Testing

/// What a queue keeps, in memory: what is in here survives a restart of the reader, and nothing else does.
final class KeptQueue: Sendable {
    struct Line: Equatable {
        var app: String
        var path: String
        var offset: Int64
        var text: String
    }

    struct State {
        var lines: [Line] = []
        var quarantined: [QuarantineRecord] = []
        var checkpoints: [[UInt8]: Checkpoint] = [:]
        var done: [DoneRecord] = []
        var commits = 0
        /// Commits wait while it is set.
        var isFull = false
        /// Commits wait once so many have been made.
        var holdsAfter: Int?
        var memory: [String: [UInt8]] = [:]
        /// What is committed survives a power cut only while it is set.
        var isPersistent = true
        /// Commits fail once so many have been made.
        var failsAfter: Int?
        /// How many bytes `take` accepts between commits.
        var room = Int.max
        /// Apps whose lines wait for something else than a commit, as for a container that is required.
        var parkedApps: Set<String> = []
        var wasMayBeCritical: [String: Bool] = [:]
        /// Files whose bad lines could not be kept.
        var staying: Set<[UInt8]> = []
        var isClockTrusted = true
        /// The last line of each block that was offered.
        var lastOffered: [String] = []
    }

    private let state = Mutex(State())

    /// Looks at what is kept, or changes it.
    func with<Value: Sendable>(_ body: (inout State) -> Value) -> Value { state.withLock { body(&$0) } }

    var lines: [String] { state.withLock { $0.lines.map(\.text) } }
    var quarantined: [QuarantineRecord] { state.withLock { $0.quarantined } }

    var start: SpoolStart {
        state.withLock {
            SpoolStart(checkpoints: Array($0.checkpoints.values), done: $0.done, memory: $0.memory)
        }
    }
}

/// Takes lines for a `KeptQueue`: they get into it with the commit, or not at all.
final class KeepingSink: SpoolSink {
    struct Stopped: Error {}

    private let queue: KeptQueue
    private let loop: EventLoop
    private var lines: [KeptQueue.Line] = []
    private var quarantined: [QuarantineRecord] = []
    private var bytes = 0
    // Commits are made in the order of the calls.
    private var nextTicket = 0
    private var served = 0
    /// The app whose lines `take` has refused because it waits; `park` comes next.
    private var refusedApp: String?

    init(_ queue: KeptQueue, on loop: EventLoop) {
        self.queue = queue
        self.loop = loop
    }

    func take(_ block: UnsafeRawBufferPointer, from source: SpoolSource, at offset: Int64) -> Int {
        precondition(block.last == 0x0A, "a block ends with a line feed")
        var taken = 0
        refusedApp = queue.with { $0.parkedApps.contains(source.app) } ? source.app : nil
        guard refusedApp == nil else { return 0 }
        let room = queue.with { $0.room }
        while taken < block.count {
            guard bytes == 0 || bytes < room else { break }
            guard let feed = block[taken...].firstIndex(of: 0x0A) else { break }
            let text = String(decoding: block[taken..<feed], as: UTF8.self)
            lines.append(.init(app: source.app, path: source.path, offset: offset + Int64(taken), text: text))
            bytes += feed + 1 - taken
            taken = feed + 1
        }
        let last = block.dropLast().lastIndex(of: 0x0A).map { $0 + 1 } ?? block.startIndex
        queue.with {
            $0.wasMayBeCritical[source.app] = source.mayBeCritical
            $0.lastOffered.append(String(decoding: block[last...].dropLast(), as: UTF8.self))
        }
        return taken
    }

    func quarantine(_ record: QuarantineRecord) { quarantined.append(record) }

    func park(_ resume: @escaping () -> Void) -> Bool {
        guard let app = refusedApp else { return false }
        resumeLater(app, resume)
        return true
    }

    private func resumeLater(_ app: String, _ resume: @escaping () -> Void) {
        nonisolated(unsafe) let (sink, resume) = (self, resume)
        loop.after(.milliseconds(5)) {
            sink.queue.with { $0.parkedApps.contains(app) } ? sink.resumeLater(app, resume) : resume()
        }
    }

    var isUrgent: Bool { lines.contains { $0.text.hasPrefix("urgent") } }

    func mustStay(_ file: [UInt8]) -> Bool { queue.with { $0.staying.contains(file) } }

    func isClockTrusted() -> Bool { queue.with { $0.isClockTrusted } }

    func commit(_ progress: SpoolProgress) async throws {
        let (newLines, newQuarantined) = (lines, quarantined)
        lines = []
        quarantined = []
        bytes = 0
        let ticket = nextTicket
        nextTicket += 1
        while queue.with({ $0.isFull || $0.commits >= $0.holdsAfter ?? .max }) || ticket != served {
            await pause(.milliseconds(1))
        }
        defer { served += 1 }
        let isStored = queue.with { state in
            if let limit = state.failsAfter, state.commits >= limit { return false }
            state.commits += 1
            state.lines += newLines
            state.quarantined += newQuarantined
            for var checkpoint in progress.checkpoints {
                checkpoint.path = checkpoint.shownPath
                state.checkpoints[checkpoint.key] = checkpoint
            }
            for key in progress.forgotten { state.checkpoints[key] = nil }
            state.done += progress.done
            state.memory.merge(progress.memory) { _, new in new }
            state.done.removeAll { progress.unlinked.contains($0) }
            return true
        }
        guard isStored else { throw Stopped() }
        // As a queue does: the answer comes later.
        await pause(.zero)
    }

    func persist() async throws {
        while !queue.with({ $0.isPersistent }) { await pause(.milliseconds(1)) }
    }

    private func pause(_ wait: Duration) async {
        await withCheckedContinuation { continuation in loop.after(wait) { continuation.resume() } }
    }
}

/// A spool of one test, its queue, and readers one after another.
final class SpoolHarness: Sendable {
    let directory: TemporaryDirectory
    let queue = KeptQueue()
    let log = KeptLog()
    let loop: EventLoop
    /// Whether a wait of this test has ended without what it waited for.
    private let hasWaitedInVain = Atomic(false)

    init(in parent: String = "/tmp") throws {
        directory = try TemporaryDirectory(in: parent)
        loop = try EventLoop(name: "spool-test")
        try loop.start()
    }

    deinit { loop.stop() }

    var path: String { directory.path }

    /// A reader that has started, with short waits.
    ///
    /// - Parameters:
    ///   - random: draws the names of claims.
    ///   - shared: what several readers of a test share.
    func start(
        random: sending any RandomNumberGenerator = SystemRandomNumberGenerator(),
        sharing shared: LoopBound<SharedReading>? = nil, _ change: (inout SpoolOptions) -> Void = { _ in }
    ) async throws -> SpoolReader {
        let reader = try makeReader(random: random, sharing: shared, change)
        await reader.start()
        return reader
    }

    /// - Parameter findUser: finds out users' names in place of the system.
    func startAsking(_ findUser: @escaping @Sendable (UInt32) -> String) async throws -> SpoolReader {
        let reader = try makeReader(findUser: findUser) { _ in }
        await reader.start()
        return reader
    }

    private func makeReader(
        random: sending any RandomNumberGenerator = SystemRandomNumberGenerator(),
        sharing shared: LoopBound<SharedReading>? = nil, findUser: (@Sendable (UInt32) -> String)? = nil,
        _ change: (inout SpoolOptions) -> Void
    ) throws -> SpoolReader {
        var options = SpoolOptions(directory: path)
        options.settleTime = .milliseconds(60)
        options.secondTry = .milliseconds(100)
        options.sealTime = .milliseconds(80)
        options.giveUpTime = .seconds(3600)
        options.graceTime = .milliseconds(60)
        options.pollInterval = .milliseconds(30)
        change(&options)
        return try SpoolReader(
            options, start: queue.start, sink: KeepingSink(queue, on: loop), on: loop, log: Log(log),
            random: random, sharing: shared, findUser: findUser)
    }

    // MARK: Files

    func write(_ text: String, to name: String, mode: Int32 = O_TRUNC, dated: timespec? = nil) {
        write(Array(text.utf8), to: name, mode: mode, dated: dated)
    }

    /// - Parameter dated: the time of its last change, set before it is closed: the reader sees no other one.
    func write(_ bytes: [UInt8], to name: String, mode: Int32 = O_TRUNC, dated: timespec? = nil) {
        let file = open("\(path)/\(name)", O_WRONLY | O_CREAT | O_CLOEXEC | mode, 0o660)
        guard file >= 0 else {
            Issue.record("open \(name): \(SystemError.message(errno))")
            return
        }
        defer { close(file) }
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
            guard count > 0 else {
                Issue.record("write \(name): \(SystemError.message(errno))")
                return
            }
            rest = rest.dropFirst(count)
        }
        if let dated, futimens(file, [dated, dated]) != 0 {
            Issue.record("futimens \(name): \(SystemError.message(errno))")
        }
    }

    func append(_ text: String, to name: String) { write(text, to: name, mode: O_APPEND) }

    func rename(_ old: String, to new: String) {
        if Glibc.rename("\(path)/\(old)", "\(path)/\(new)") != 0 {
            Issue.record("rename \(old): \(SystemError.message(errno))")
        }
    }

    func remove(_ name: String) { unlink("\(path)/\(name)") }
    func makeDirectory(_ name: String) { mkdir("\(path)/\(name)", 0o770) }
    func exists(_ name: String) -> Bool { access("\(path)/\(name)", F_OK) == 0 }

    /// The names in a directory of the spool, ours included.
    func names(in name: String = ".") -> [String] {
        guard let stream = opendir("\(path)/\(name)") else { return [] }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let text = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if text != "." && text != ".." { names.append(text) }
        }
        return names.sorted()
    }

    // MARK: Waiting

    /// Waits until the condition holds, at most a minute in which no line arrives: machines that build and test are slow.
    /// After a first wait in vain a test has failed, and the next waits are short: a loop of them must not hold up the
    /// whole run.
    func until(
        _ what: Comment, at location: SourceLocation = #_sourceLocation, _ condition: () -> Bool
    ) async {
        let limit: Duration = hasWaitedInVain.load(ordering: .relaxed) ? .seconds(1) : .seconds(60)
        var arrived: Int
        repeat {
            arrived = queue.lines.count
            if await holds(within: limit, condition) { return }
        } while queue.lines.count > arrived
        hasWaitedInVain.store(true, ordering: .relaxed)
        let waited = "waited too long: \(what)"
        Issue.record(
            "\(waited); lines: \(queue.lines.suffix(10).map { $0.prefix(40) }); files: \(names())",
            sourceLocation: location)
    }

    /// Whether the condition comes to hold within a time.
    func holds(within limit: Duration, _ condition: () -> Bool) async -> Bool {
        let end = SystemTime().bootTime + limit
        while SystemTime().bootTime < end {
            if condition() { return true }
            await pause(.milliseconds(2))
        }
        return condition()
    }

    /// Waits until these lines have arrived, in any order.
    func untilLines(_ lines: [String], at location: SourceLocation = #_sourceLocation) async {
        await until("\(lines.count) lines arrive", at: location) { queue.lines.count >= lines.count }
        #expect(queue.lines.sorted() == lines.sorted(), sourceLocation: location)
    }

    func pause(_ wait: Duration) async {
        await withCheckedContinuation { continuation in
            loop.post { self.loop.after(wait) { continuation.resume() } }
        }
    }
}

extension SpoolHarness {
    /// A file's identity as the reader sees it.
    func handle(of name: String) -> [UInt8] {
        let descriptor = Descriptor(open("\(path)/\(name)", O_RDONLY | O_CLOEXEC))
        guard let status = try? FileSystem.status(descriptor) else { return [] }
        return (try? FileID(descriptor, status))?.bytes ?? []
    }
}
