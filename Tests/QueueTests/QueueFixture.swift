import EventLoops
import Logs
import Model
import Synchronization
import TestKit

@testable import Queue

/// A queue on a loop of its own in a scratch directory, which can be closed and opened again.
final class QueueFixture: Sendable {
    let directory: TemporaryDirectory
    let loop: EventLoop
    let time = ManualTime()
    let log = KeptLog()
    /// Each process draws other ids.
    private let opened: Atomic<UInt64>
    let seen = Mutex<[QueueSnapshot]>([])

    /// - Parameters:
    ///   - parent: where to make the scratch directory; `/dev/shm` for what need not survive anything.
    ///   - processes: how many have drawn ids for the queue already, where it comes from another fixture.
    init(in parent: String = "/tmp", after processes: UInt64 = 0) throws {
        opened = Atomic(processes)
        directory = try TemporaryDirectory(in: parent)
        loop = try EventLoop(name: "store")
        try loop.start()
    }

    deinit { loop.stop() }

    var options: QueueOptions {
        QueueOptions(stateDirectory: "\(directory.path)/state", destinations: ["main"])
    }

    func open(
        _ change: (inout QueueOptions) -> Void = { _ in }, eventTime: QueueStore.EventTimes? = nil,
        clock: sending QueueStore.ClockCheck? = nil
    ) throws -> QueueStore {
        var options = options
        change(&options)
        return try QueueStore(
            options, on: loop, time: time, clock: clock,
            random: SplitMix64(seed: opened.add(1, ordering: .relaxed).newValue),
            log: Log(log), observer: { [weak self] snapshot in self?.seen.withLock { $0.append(snapshot) } },
            eventTime: eventTime)
    }
}

/// Makes chunks whose lines can be told apart.
struct ChunkMaker {
    var next = 0
    var time = Timestamp(milliseconds: 1_795_168_800_000)

    /// A chunk of `events` lines, each of the text "<number>" padded to `size` bytes, line feed included.
    mutating func chunk(
        _ events: Int, priority: Priority = .normal, to destinations: [DestinationName] = ["main"],
        size: Int = 16,
        full: Bool = false, deadlines: DeadlineNames? = nil
    ) -> NewChunk {
        var frame: [UInt8] = []
        for _ in 0..<events {
            let text = Array("\(next)".utf8)
            frame += text + Array(repeating: UInt8(ascii: " "), count: max(0, size - 1 - text.count))
            frame.append(UInt8(ascii: "\n"))
            next += 1
        }
        return NewChunk(
            priority: priority, destinations: destinations, events: events, bytes: frame.count,
            eventTimes: time...time, acceptedAt: time, compression: .none, frame: frame, isFull: full,
            deadlines: deadlines)
    }

    /// A chunk of events of several apps: for each run whose they are, and how many.
    mutating func chunk(
        of runs: [(app: String, events: Int)], priority: Priority = .normal,
        to destinations: [DestinationName] = ["main"],
        size: Int = 16, full: Bool = false
    ) -> NewChunk {
        var mixed = chunk(
            runs.reduce(0) { $0 + $1.events }, priority: priority, to: destinations, size: size, full: full)
        mixed.origins = runs.map { run in
            EventOrigin(
                app: run.app, path: "", offsets: Array(repeating: 0, count: run.events),
                bytes: run.events * size)
        }
        return mixed
    }

    mutating func commit(
        _ events: Int, priority: Priority = .normal, to destinations: [DestinationName] = ["main"],
        size: Int = 16,
        full: Bool = false
    ) -> Commit {
        var commit = Commit()
        commit.chunks = [chunk(events, priority: priority, to: destinations, size: size, full: full)]
        commit.read = events
        return commit
    }
}

/// A commit of a chunk and of the position after it: the number of events before it.
func positioned(_ maker: inout ChunkMaker, _ events: Int) -> Commit {
    var commit = maker.commit(events, size: 60, full: events == 50)
    commit.progress.checkpoints = [Checkpoint(key: [1], path: "a", offset: Int64(maker.next), state: [])]
    return commit
}

/// The position that a start would go on from, and the events that are there; both are the same number.
func standing(_ store: QueueStore) async throws -> (position: Int, events: [Int]) {
    let position = Int(try await store.restore().checkpoints.first?.offset ?? 0)
    var events: [Int] = []
    while let batch = try await store.leaseNext(request(events: 1_000)) {
        events += numbers(batch)
        _ = try await store.settle(.acknowledged(batch.header))
    }
    return (position, events)
}

/// The numbers of a batch's events, in order.
func numbers(_ batch: Batch) -> [Int] {
    batch.parts.flatMap { part in
        let lines = Lines(part.frame)
        return part.events.map { line in
            let digits = lines.slice(line..<line + 1).filter { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
            return Int(String(decoding: digits, as: UTF8.self)) ?? -1
        }
    }
}

func request(
    _ destination: DestinationName = "main", _ priority: Priority = .normal, events: Int = 50,
    bytes: Int = 1 << 20
) -> LeaseRequest {
    LeaseRequest(destination: destination, priority: priority, maxEvents: events, maxBytes: bytes)
}
