import EventLoops
import Events
import Frames
import Glibc
import Logs
import Model
import Spool
import Synchronization
import TestKit
import Testing

@testable import Intake

/// A queue that stores, has no room or fails, by a seed; and what has become of every line.
private final class FlakyStore: CommitStore {
    struct State {
        var random: SplitMix64
        var isFlaky = true
        var memory: [String: [UInt8]]
        /// Names of events, where bad lines began, and what left the quarantine, in order.
        var events: [String] = []
        var lines: [String] = []
        var quarantined: [Int64] = []
        var requeued: [Int64] = []
        var destinations: Set<DestinationName> = []
        /// Where each event began, and chunks that are not what they should be.
        var offsets: [Int64] = []
        var badChunks: [String] = []
    }

    static let limits = ChunkLimits(batchEvents: 20, batchBytes: 3000, cap: 10 << 20)

    struct Broken: Error {}

    let state: Mutex<State>

    init(seed: UInt64, memory: [String: [UInt8]] = [:]) {
        state = Mutex(State(random: SplitMix64(seed: seed), memory: memory))
    }

    var storesNothing: Bool { false }
    func sync() async throws {}
    func mustStay(_ file: [UInt8]) -> Bool { false }

    func store(_ commit: Commit) async throws -> StoreResult {
        let decompressor = FrameDecompressor()
        return try state.withLock { state in
            if state.isFlaky {
                switch Int.random(in: 0..<6, using: &state.random) {
                case 0: throw Broken()
                case 1: return .wait(.full)
                default: break
                }
            }
            for chunk in commit.chunks {
                let bytes = try decompressor.decompress(chunk.frame, chunk.compression, limit: chunk.bytes)
                for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
                    state.lines.append(String(line))
                    state.events.append(
                        line.firstMatch(of: /"name":"(e\d+)"/).map { String($0.1) } ?? "no name")
                }
                state.destinations.formUnion(chunk.destinations)
                state.offsets += chunk.origins.flatMap(\.offsets)
                let limits = FlakyStore.limits
                if chunk.events > limits.events || chunk.bytes > limits.bytes && chunk.events > 1
                    || chunk.origins.reduce(0, { $0 + $1.offsets.count }) != chunk.events
                    || chunk.origins.reduce(0, { $0 + $1.bytes }) != chunk.bytes
                {
                    state.badChunks.append("\(chunk.events) events, \(chunk.bytes) bytes, \(chunk.origins)")
                }
            }
            state.quarantined += commit.quarantined.map(\.offset)
            state.requeued += commit.requeued
            for (name, value) in commit.memory { state.memory[name] = value }
            return .stored(refused: 0)
        }
    }
}

/// Counts who is inside.
private final class Inside: Sendable {
    private let count = Mutex(0)

    func enter() -> Int {
        count.withLock {
            $0 += 1
            return $0
        }
    }

    func leave() { count.withLock { $0 -= 1 } }
}

/// A file of events and of lines that are none, some too long to be kept whole.
private struct MixedFile {
    static let longest = 4500

    let path: String
    var lines: [(offset: Int64, length: Int64, event: String?)] = []

    init(in directory: TemporaryDirectory, lines count: Int, using random: inout SplitMix64) throws {
        path = "\(directory.path)/mixed.jsonl"
        var text = ""
        for number in 0..<count {
            let kind = Int.random(in: 0..<40, using: &random)
            let line =
                switch kind {
                case 0: String(repeating: "x", count: MixedFile.longest + 500)
                case 1..<15: "bad \(number)"
                default:
                    // Of many lengths: chunks end at their bytes as well as at their events.
                    #"{"name":"e\#(number)","x":"\#(String(repeating: "x", count: .random(in: 0..<600, using: &random)))"}"#
                }
            lines.append((Int64(text.utf8.count), Int64(line.utf8.count), kind < 15 ? nil : "e\(number)"))
            text += line + "\n"
        }
        let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        defer { close(file) }
        try #require(write(file, text, text.utf8.count) == text.utf8.count)
    }
}

@Suite("Lines from outside the spool")
struct AsideTests {
    private let directory: TemporaryDirectory
    private let log = Log(KeptLog())

    init() throws { directory = try TemporaryDirectory() }

    private func settings(to destinations: [DestinationName] = ["main"]) -> IntakeSettings {
        let route = Route(destinations: destinations, compression: .none, chunks: FlakyStore.limits)
        return IntakeSettings(
            events: .withoutSessions, routes: [route], table: RouteTable(standard: FlakyStore.limits),
            cap: 10 << 20)
    }

    private func withLoop(_ body: (EventLoop) async throws -> Void) async throws {
        let loop = try EventLoop(name: "reader")
        try loop.start()
        defer { loop.stop() }
        try await body(loop)
    }

    private func rereader(_ loop: EventLoop, _ store: FlakyStore) -> Rereader {
        let settings = settings()
        return Rereader(on: loop, store: store, time: ManualTime(), clock: ClockTrust(), log: log) {
            settings
        }
    }

    @Test("lines stay in the quarantine while collection is disabled, or no destination takes their events")
    func notWanted() async throws {
        let content = Array(#"{"name":"e1"}"#.utf8)
        let record = QuarantineRecord(
            reason: .notJSON, detail: "", app: "shop", path: "shop/a.jsonl", offset: 0,
            length: Int64(content.count),
            content: content, time: Timestamp(milliseconds: 0))
        for isCollecting in [false, true] {
            let store = FlakyStore(seed: 1)
            store.state.withLock { $0.isFlaky = false }
            var settings = settings()
            settings.isCollecting = isCollecting
            if isCollecting {
                settings.routes = [
                    Route(destinations: [], compression: .gzip, chunks: settings.routes[0].chunks)
                ]
            }
            try await withLoop { [settings] loop in
                let rereader = Rereader(
                    on: loop, store: store, time: ManualTime(), clock: ClockTrust(), log: log
                ) {
                    settings
                }
                let error = await #expect(throws: IntakeError.self) {
                    try await rereader.read([(id: 1, record: record)])
                }
                #expect(error?.code == (isCollecting ? .noDestination : .disabled))
            }
            #expect(store.state.withLock { $0.requeued.isEmpty && $0.events.isEmpty })
        }
    }

    @Test("commands on the quarantine run one at a time")
    func inTurn() async throws {
        try await withLoop { loop in
            let rereader = rereader(loop, FlakyStore(seed: 1))
            let inside = Inside()
            try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<20 {
                    group.addTask {
                        try await rereader.inTurn {
                            #expect(inside.enter() == 1)
                            for _ in 0..<10 { await Task.yield() }
                            inside.leave()
                            return 1
                        }
                    }
                }
                let count = try await group.reduce(0, +)
                #expect(count == 20)
            }
        }
    }

    @Test(
        "a quarantined line of a file that is read in place is parsed again, and becomes a record as others there"
    )
    func linesOfPlaces() async throws {
        let store = FlakyStore(seed: 1)
        store.state.withLock { $0.isFlaky = false }
        var settings = settings()
        settings.events.apps["web"] = AppOptions()
        try await withLoop { loop in
            let rereader = Rereader(
                on: loop, store: store, time: ManualTime(), clock: ClockTrust(), log: log,
                ofPlaces: { settings in
                    var settings = settings
                    settings.events.apps["web"]?.kind = .log
                    settings.events.apps["web"]?.text = .lines
                    return settings
                }
            ) { [settings] in settings }
            let lines = [
                ("/var/log/web/a.log", "plain text"), ("web/b.jsonl", #"{"name":"bought"}"#),
                ("/var/log/web/a.log", #"{"name":"data","msg":"m"}"#),
            ]
            let records = lines.enumerated().map { index, line in
                let content = Array((line.1 + "\n").utf8)
                let record = QuarantineRecord(
                    reason: .notJSON, detail: "", app: "web", path: line.0, offset: 0,
                    length: Int64(content.count), content: content, time: Timestamp(milliseconds: 0))
                return (id: Int64(index), record: record)
            }
            let count = try await rereader.read(records)
            #expect(count == 3)
        }
        let texts = store.state.withLock { $0.lines }
        #expect(texts.count == 3, "\(texts)")
        #expect(texts.contains { $0.hasPrefix(#"{"message":"plain text""#) })
        #expect(texts.contains { $0.hasPrefix(#"{"name":"bought","app":"web""#) })
        #expect(texts.contains { $0.hasPrefix(#"{"name":"data","msg":"m","app":"web""#) })
    }

    @Test(
        "lines that the quarantine could not hold are read again once each, whatever fails meanwhile; no others are",
        arguments: Seeds.list(0..<24))
    func unkeptLines(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        let file = try MixedFile(in: directory, lines: seed % 8 == 0 ? 3000 : 200, using: &random)
        let key = try BackfillFile(path: file.path, maxEventSize: MixedFile.longest).key
        let id = Hexadecimal.bytes(key)
        // The rows of several commits, each with the lines of its own part of the file.
        var (rows, meant) = ([UnkeptLines(app: "shop", path: "shop/mixed.jsonl")], file.lines)
        meant.removeAll { _ in Int.random(in: 0..<3, using: &random) == 0 }
        for (offset, length, _) in meant {
            if Int.random(in: 0..<100, using: &random) == 0 {
                rows.append(UnkeptLines(app: "shop", path: rows[0].path))
            }
            // Of a line that was too long or bad, with its line feed or without.
            let whole = length + (Bool.random(using: &random) ? 1 : 0)
            rows[rows.count - 1].add(
                QuarantineRecord(
                    reason: .notJSON, detail: "", app: "shop", path: rows[0].path, offset: offset,
                    length: whole,
                    content: [], time: Timestamp(milliseconds: 0)))
        }
        let memory = rows.filter { !$0.ranges.isEmpty }.map { ($0.name(of: id), $0.encoded) }
        let store = FlakyStore(seed: seed, memory: Dictionary(uniqueKeysWithValues: memory))
        try await withLoop { loop in
            let rereader = rereader(loop, store)
            var tries = 0
            while tries < 300 {
                tries += 1
                let left = store.state.withLock { $0.memory }.compactMap { name, value in
                    UnkeptLines(value).map { (name: name, lines: $0) }
                }
                guard !left.isEmpty else { break }
                _ = try? await rereader.read(file.path, key, left, maxEventSize: MixedFile.longest)
            }
        }
        let again = Seeds.again(seed)
        let state = store.state.withLock { $0 }
        #expect(state.memory.isEmpty, "\(again)")
        #expect(state.events.sorted() == meant.compactMap(\.event).sorted(), "\(again)")
        #expect(state.quarantined.sorted() == meant.filter { $0.event == nil }.map(\.offset), "\(again)")
        #expect(state.offsets.sorted() == meant.filter { $0.event != nil }.map(\.offset), "\(again)")
        #expect(state.badChunks.isEmpty, "\(again)")
    }

    @Test(
        "a piece that does not fit into one transaction is neither stored, counted nor reported; smaller ones are"
    )
    func piecesOfManyBadLines() async throws {
        let store = FlakyStore(seed: 1)
        store.state.withLock { $0.isFlaky = false }
        let kept = KeptLog()
        let figures = IntakeFigures()
        try await withLoop { [settings = settings()] loop in
            let backfill = Backfill(
                on: loop, store: store, memory: [:], figures: figures, time: ManualTime(), log: Log(kept)
            ) { Backfill.Options(intake: settings, maxEventSize: 1000) { _ in nil } }
            func piece(lines: Int, from: String?, to end: String) -> BackfillPiece {
                let bytes = Array(String(repeating: "-\n", count: lines).utf8)
                return BackfillPiece(
                    key: "1", file: "old.jsonl", app: "shop", from: from,
                    content: FilePiece(bytes: bytes, offset: 0, end: end))
            }
            let error = await #expect(throws: IntakeError.self) {
                try await backfill.take(piece(lines: 100_000, from: nil, to: "a"))
            }
            #expect(error?.code == .tooLarge && error?.message.contains("queue.max_size") == true)
            #expect(kept.messages.allSatisfy { $0.level == .info })
            let taken = try await backfill.take(piece(lines: 500, from: nil, to: "b"))
            #expect(taken.quarantined == 500)
        }
        #expect(store.state.withLock { $0.quarantined.count } == 500)
        let counts = figures.counts
        #expect(counts.quarantined.values.reduce(0, +) == 500)
        #expect(counts.apps["shop"]?.quarantined == 500)
        #expect(kept.messages.contains { "\($0.fields)".contains("500") })
    }

    @Test("a file that was replaced or removed is not reread; an unreadable one is an error")
    func otherFiles() async throws {
        var random = SplitMix64(seed: 1)
        let file = try MixedFile(in: directory, lines: 10, using: &random)
        var lines = UnkeptLines(app: "shop", path: "shop/mixed.jsonl")
        lines.add(
            QuarantineRecord(
                reason: .notJSON, detail: "", app: "shop", path: lines.path, offset: 0, length: 1,
                content: [],
                time: Timestamp(milliseconds: 0)))
        let store = FlakyStore(seed: 1)
        try await withLoop { loop in
            let rereader = rereader(loop, store)
            let rows = [(name: "unkept/00/0", lines: lines)]
            for path in [file.path, "\(file.path).gone"] {
                let count = try await rereader.read(path, "00", rows, maxEventSize: 1000)
                #expect(count == nil)
            }
            let error = await #expect(throws: IntakeError.self) {
                try await rereader.read(directory.path, "00", rows, maxEventSize: 1000)
            }
            #expect(error?.code == .store)
        }
        #expect(store.state.withLock { $0.events.isEmpty && $0.quarantined.isEmpty })
    }

    @Test("quarantined lines leave with their result, once each; lines that were not stored whole stay")
    func keptLines() async throws {
        for seed in UInt64(0)..<20 {
            let records = (0..<40).map { number in
                let isCut = number % 5 == 0
                let text = number % 3 == 0 ? "bad \(number)" : #"{"name":"e\#(number)"}"#
                return (
                    id: Int64(number),
                    record: QuarantineRecord(
                        reason: .notJSON, detail: "", app: "shop", path: "shop/a.jsonl",
                        offset: Int64(number),
                        length: Int64(text.utf8.count) + (isCut ? 1 : 0), content: Array(text.utf8),
                        time: Timestamp(milliseconds: 0))
                )
            }
            let store = FlakyStore(seed: seed)
            try await withLoop { loop in
                let rereader = rereader(loop, store)
                for _ in 0..<100 {
                    let gone = Set(store.state.withLock { $0.requeued })
                    _ = try? await rereader.read(records.filter { !gone.contains($0.id) })
                }
            }
            let state = store.state.withLock { $0 }
            let whole = (0..<40).filter { $0 % 5 != 0 }
            #expect(state.requeued.sorted() == whole.map(Int64.init), "seed \(seed)")
            #expect(
                state.events.sorted() == whole.filter { $0 % 3 != 0 }.map { "e\($0)" }.sorted(),
                "seed \(seed)")
            #expect(
                state.quarantined.sorted() == whole.filter { $0 % 3 == 0 }.map(Int64.init), "seed \(seed)")
        }
    }

    /// What a backfill is told, changed by a test as it goes.
    private final class Told: Sendable {
        let options: Mutex<(intake: IntakeSettings, obstacles: Int)>

        init(_ settings: IntakeSettings) { options = Mutex((settings, 0)) }

        var asked: Backfill.Options {
            Backfill.Options(intake: options.withLock { $0.intake }, maxEventSize: MixedFile.longest) { _ in
                self.options.withLock { options in
                    guard options.obstacles > 0 else { return nil }
                    options.obstacles -= 1
                    return "other events go first"
                }
            }
        }
    }

    private func backfill(_ loop: EventLoop, _ store: FlakyStore, _ told: Told) -> Backfill {
        Backfill(
            on: loop, store: store, memory: store.state.withLock { $0.memory }, figures: IntakeFigures(),
            time: ManualTime(), log: log
        ) { told.asked }
    }

    @Test(
        "an old file is read once, through failures and restarts; bad lines go to the quarantine",
        arguments: Seeds.list(0..<16))
    func backfill(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        let file = try MixedFile(in: directory, lines: 300, using: &random)
        let store = FlakyStore(seed: seed)
        let told = Told(settings())
        var isDone = false
        try await withLoop { loop in
            for _ in 0..<200 where !isDone {
                let backfill = backfill(loop, store, told)
                let old = try BackfillFile(path: file.path, maxEventSize: MixedFile.longest)
                var place = await backfill.state(of: old.key).place
                let goesOn = try old.begin(at: place)
                #expect(goesOn)
                do {
                    while let content = try old.next(atMost: Int.random(in: 1...2000, using: &random)) {
                        told.options.withLock { $0.obstacles = Int.random(in: 0...3, using: &random) }
                        let piece = BackfillPiece(
                            key: old.key, file: file.path, app: "shop", from: place, content: content)
                        let ledger = try await backfill.take(piece)
                        #expect(ledger.read == ledger.accepted + ledger.quarantined)
                        place = content.end
                    }
                    isDone = true
                } catch is IntakeError {}
            }
        }
        let again = Seeds.again(seed)
        let state = store.state.withLock { $0 }
        #expect(isDone, "\(again)")
        #expect(state.events == file.lines.compactMap(\.event), "\(again)")
        #expect(state.quarantined == file.lines.filter { $0.event == nil }.map(\.offset), "\(again)")
        #expect(state.offsets == file.lines.filter { $0.event != nil }.map(\.offset), "\(again)")
        #expect(state.badChunks.isEmpty, "\(again)")
    }

    @Test(
        "a piece at another position, or at a wrong time, is refused with its reason, and nothing is stored"
    )
    func refusedPieces() async throws {
        let store = FlakyStore(seed: 1)
        store.state.withLock { $0.isFlaky = false }
        let told = Told(settings())
        func piece(_ number: Int, from place: String?) -> BackfillPiece {
            let content = FilePiece(
                bytes: Array("{\"name\":\"e\(number)\"}\n".utf8), offset: 0, end: "end \(number)")
            return BackfillPiece(key: "aa", file: "old.jsonl", app: "shop", from: place, content: content)
        }
        try await withLoop { loop in
            let backfill = backfill(loop, store, told)
            func code(_ number: Int, from place: String?) async -> IntakeError.Code? {
                do throws(IntakeError) {
                    _ = try await backfill.take(piece(number, from: place))
                    return nil
                } catch {
                    return error.code
                }
            }
            #expect(await code(1, from: nil) == nil)
            #expect(await code(1, from: nil) == .elsewhere)
            #expect(await code(2, from: "elsewhere") == .elsewhere)
            told.options.withLock { $0.intake.isCollecting = false }
            #expect(await code(2, from: "end 1") == .disabled)
            told.options.withLock { $0.intake = settings(to: []) }
            #expect(await code(2, from: "end 1") == .noDestination)
            // The settings in force at that moment count.
            told.options.withLock { $0.intake = settings(to: ["other"]) }
            told.options.withLock { $0.obstacles = .max }
            #expect(await code(2, from: "end 1") == .later)
            told.options.withLock { $0.obstacles = 3 }
            #expect(await code(2, from: "end 1") == nil)
            await backfill.stop()
            #expect(await code(3, from: "end 2") == .stopping)
        }
        let state = store.state.withLock { $0 }
        #expect(state.events == ["e1", "e2"] && state.destinations == ["main", "other"])
    }

    @Test("of too many old files the one begun longest ago is forgotten; a known file displaces none")
    func manyFiles() async throws {
        func place(_ second: Int) -> [UInt8] {
            withUnsafeBytes(of: Int64(second).littleEndian) { Array($0) } + Array("there".utf8)
        }
        let memory = (1...Backfill.mostFiles).map { ("backfill/\($0)", place($0)) }
        let store = FlakyStore(seed: 1, memory: Dictionary(uniqueKeysWithValues: memory))
        store.state.withLock { $0.isFlaky = false }
        try await withLoop { loop in
            let backfill = backfill(loop, store, Told(settings()))
            for (key, place) in [("77", "there"), ("new", nil)] {
                let content = FilePiece(bytes: Array("{\"name\":\"e1\"}\n".utf8), offset: 0, end: "end")
                _ = try await backfill.take(
                    BackfillPiece(key: key, file: "old.jsonl", app: "shop", from: place, content: content))
                #expect(await backfill.state(of: "1").place == (key == "77" ? "there" : nil))
            }
            #expect(await backfill.state(of: "2").place == "there")
        }
        let kept = store.state.withLock { $0.memory }
        #expect(kept.count == Backfill.mostFiles && kept["backfill/1"] == nil && kept["backfill/new"] != nil)
    }
}
