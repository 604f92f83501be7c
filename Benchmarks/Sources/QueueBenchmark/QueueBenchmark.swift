//  What storing and removing an event costs the queue alone: CPU seconds, bytes written, memory.
//
//  SPOOLSHIP_BENCHMARKS=1 swift run -c release QueueBenchmark DIRECTORY [events=5000000] [chunk=50] [frame=3700] [commit=64] [queued=0] [durability=power_loss]
//  [loops=3]
//
//  The frames are random bytes, as compressed ones look to SQLite. Three loops, as in the agent: one stores, one lives off
//  the other end with three batches in flight, the queue has its own; with loops=1 all of it shares one thread, and what
//  waking threads costs is left out.

import EventLoops
import Glibc
import Logs
import Model
import Queue
import TestKit

struct Quiet: LogSink {
    var level: LogLevel { .error }
    func write(_ message: LogMessage) { print(message) }
}

struct Plan: Sendable {
    var events = 5_000_000
    var chunk = 50
    var frame = 3_700
    var commit = 64
    var queued = 0
    var durability = Durability.powerLoss
    var loops = 3
    /// The batch size that the queue is told, which decides its page size; 0: that of the chunks.
    var batch = 0

    init(_ arguments: some Sequence<String>) {
        for argument in arguments {
            let parts = argument.split(separator: "=")
            guard parts.count == 2 else { continue }
            let number = Int(parts[1]) ?? 0
            switch parts[0] {
            case "events": events = number
            case "chunk": chunk = number
            case "frame": frame = number
            case "commit": commit = number
            case "queued": queued = number
            case "loops": loops = number
            case "batch": batch = number
            case "durability": durability = .init(rawValue: String(parts[1])) ?? .powerLoss
            default: print("unknown argument \(argument)")
            }
        }
    }

    func makeCommit(_ frames: [[UInt8]], _ from: Int, _ now: Timestamp) -> Commit {
        var result = Commit()
        for index in 0..<commit {
            result.chunks.append(
                NewChunk(
                    priority: .normal, destinations: ["main"], events: chunk, bytes: chunk * 320,
                    eventTimes: now...now, acceptedAt: now, compression: .zstd,
                    frame: frames[(from + index) % frames.count], isFull: true))
        }
        result.read = commit * chunk
        result.progress.checkpoints = [
            Checkpoint(key: [1], path: "app/a.jsonl", offset: Int64(from), state: [0])
        ]
        return result
    }
}

func cpuSeconds() -> Double {
    var usage = rusage()
    getrusage(0, &usage)  // RUSAGE_SELF, whose type Swift imports wrongly
    func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
    return seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

func field(_ file: String, _ name: String) -> Int {
    guard let stream = fopen(file, "r") else { return 0 }
    defer { fclose(stream) }
    var line = [CChar](repeating: 0, count: 256)
    while fgets(&line, 256, stream) != nil {
        let text = String(decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        if text.hasPrefix(name) { return Int(text.filter(\.isNumber)) ?? 0 }
    }
    return 0
}

func feed(_ store: QueueStore, _ plan: Plan, _ frames: [[UInt8]], _ events: Int) async throws {
    for chunks in stride(from: 0, to: events / plan.chunk, by: plan.commit) {
        guard case .stored = try await store.store(plan.makeCommit(frames, chunks, SystemTime().wallTime))
        else {
            return print("the queue is full")
        }
    }
}

/// Takes batches until so many events are settled, with three in flight.
func take(_ store: QueueStore, _ plan: Plan, _ events: Int) async throws {
    var flight: [BatchHeader] = []
    var taken = 0
    let request = LeaseRequest(
        destination: "main", priority: .normal, maxEvents: plan.chunk, maxBytes: 1 << 24)
    while taken < events, let batch = try await store.leaseNext(request) {
        taken += batch.header.events
        flight.append(batch.header)
        if flight.count == 3 { _ = try await store.settle(.acknowledged(flight.removeFirst())) }
    }
    for header in flight { _ = try await store.settle(.acknowledged(header)) }
}

/// Stores a commit while the batches of the one before are taken.
func flow(_ store: QueueStore, _ plan: Plan, _ frames: [[UInt8]], _ reader: EventLoop) async throws {
    let each = plan.commit * plan.chunk
    try await feed(store, plan, frames, each)
    for _ in 1..<plan.events / each {
        let next = Task(executorPreference: reader) { try await feed(store, plan, frames, each) }
        try await take(store, plan, each)
        try await next.value
    }
    try await take(store, plan, each)
}

func run(_ directory: String, _ plan: Plan) async throws {
    let loop = try EventLoop(name: "store")
    try loop.start()
    let reader = plan.loops == 1 ? loop : try EventLoop(name: "reader")
    if reader !== loop { try reader.start() }
    var options = QueueOptions(stateDirectory: directory, destinations: ["main"])
    options.maxSize = 100_000_000_000
    options.batchEvents = plan.batch > 0 ? plan.batch : plan.chunk
    options.batchBytes = max(1 << 20, options.batchEvents * 320)
    options.durability = plan.durability
    let store = try QueueStore(options, on: loop, time: SystemTime(), log: Log(Quiet()))
    var random = SystemRandomNumberGenerator()
    let frames = (0..<64).map { _ in
        (0..<plan.frame / 8 + 1).flatMap { _ in withUnsafeBytes(of: random.next() as UInt64) { Array($0) } }
    }
    if plan.queued > 0 {
        let before = cpuSeconds()
        try await feed(store, plan, frames, plan.queued)
        print("filled with \(plan.queued) events in \(cpuSeconds() - before) CPU s")
    }
    let transactions = store.snapshot.health.transactions
    let before = cpuSeconds()
    let written = field("/proc/self/io", "write_bytes")
    let start = SystemTime().bootTime
    if reader === loop {
        try await Task(executorPreference: loop) { try await flow(store, plan, frames, loop) }.value
    } else {
        try await flow(store, plan, frames, reader)
    }
    let cpu = cpuSeconds() - before
    let wall = Double((SystemTime().bootTime - start).nanosecondsClamped) / 1e9
    let bytes = field("/proc/self/io", "write_bytes") - written
    let chunks = plan.events / plan.chunk
    print(
        """
        events=\(plan.events) chunk=\(plan.chunk) frame=\(plan.frame) queued=\(plan.queued) \
        durability=\(plan.durability.rawValue)
          CPU s: \(cpu)  wall s: \(wall)  events per CPU s: \(Int(Double(plan.events) / cpu))
          CPU us per chunk: \(cpu / Double(chunks) * 1e6)
          written per event: \(bytes / plan.events) bytes  (\(Double(bytes) / Double(chunks * plan.frame)) of the frames)
          transactions: \(store.snapshot.health.transactions - transactions)
          RSS: \(field("/proc/self/status", "VmRSS")) KiB, anonymous: \(field("/proc/self/status", "RssAnon")) KiB
          balances: \(store.snapshot.lanes[0].ledger.balances)
        """)
    await store.close()
    print("  balances after closing: \(store.snapshot.lanes[0].ledger)")
}

@main
enum Main {
    static func main() throws {
        let arguments = CommandLine.arguments.dropFirst()
        guard let directory = arguments.first else { return print("give a directory on a real disk") }
        let plan = Plan(arguments.dropFirst())
        let failure = try EventLoop.runProgram(name: "delivery", failure: { $0 as any Error }) {
            _ -> String? in
            do {
                try await run(directory, plan)
                return nil
            } catch {
                return "\(error)"
            }
        }
        if let failure { print(failure) }
    }
}
