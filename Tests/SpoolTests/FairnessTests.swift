import EventLoops
import Glibc
import Model
@testable import Spool
import TestKit
import Testing

/// What one app can do to have all of the reader's time.
enum Greed: CaseIterable {
    case sparseLines, sparseObjects, oneBacklog, manyNames, manyFiles, manyDirectories, emptyArchive,
        manyLargeDrops

    /// Does it, in a directory.
    func act(in directory: String, _ spool: SpoolHarness, scale: Int) {
        func write(_ bytes: [UInt8], to name: String) { spool.write(bytes, to: "\(directory)/\(name)") }
        func repeated(_ piece: [UInt8], _ size: Int) -> [UInt8] {
            // By doubling: to join so many pieces takes seconds in a build for debugging.
            let count = max(1, size / piece.count) * piece.count
            var bytes = piece
            while bytes.count < count { bytes += bytes.prefix(count - bytes.count) }
            return bytes
        }
        let line = Array(("{\"greedy\":\"" + String(repeating: "x", count: 900) + "\"}\n").utf8)
        switch self {
        case .sparseLines, .sparseObjects:
            let name = self == .sparseLines ? "sparse.jsonl" : "sparse.json"
            write([], to: name)
            let isLong = [15_000_000_000_000, 1 << 40].contains {
                truncate("\(spool.path)/\(directory)/\(name)", $0) == 0
            }
            #expect(isLong)
        case .oneBacklog: write(repeated(line, scale << 20), to: "backlog.jsonl")
        case .manyNames: for number in 0..<(scale * 400) { write(Array("{}".utf8), to: "n\(number).json") }
        case .manyFiles:
            let block = repeated(line, 20_000)
            for number in 0..<(scale * 20) { write(block, to: "f\(number).jsonl") }
        case .manyDirectories:
            for number in 0..<(scale * 10) {
                var path = directory
                for _ in 0..<5 {
                    path += "/d\(number)"
                    spool.makeDirectory(path)
                }
                spool.write(line, to: "\(path)/x.jsonl")
            }
        case .emptyArchive:
            // Frames that hold nothing, one after the other.
            write(
                repeated([0x28, 0xB5, 0x2F, 0xFD, 0x20, 0x00, 0x01, 0x00, 0x00], scale << 20),
                to: "empty.jsonl.zst")
        case .manyLargeDrops:
            let block = repeated(line, scale << 16)
            for number in 0..<24 { write(block, to: "large\(number).json") }
        }
    }
}

@Suite("Fairness between apps", .serialized, .timeLimit(.minutes(30)))
struct FairnessTests {
    private static let apps = 20
    /// `SPOOL_GREED=100` for the sizes of a bad day.
    private static let scale = getenv("SPOOL_GREED").flatMap { Int(String(cString: $0)) } ?? 12

    /// What the process has used of the processor.
    private var processorTime: Duration {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    /// Events of honest apps: lines and drop files, in an order that the seed gives.
    private func writeHonest(_ label: String, _ spool: SpoolHarness, _ random: inout SplitMix64) -> [String] {
        var lines: [String] = []
        for app in (0..<Self.apps).shuffled(using: &random) {
            if !spool.exists("honest\(app)") { spool.makeDirectory("honest\(app)") }
            let (line, drop) = ("{\"line\":\"\(label) \(app)\"}", "{\"drop\":\"\(label) \(app)\"}")
            spool.append(line + "\n", to: "honest\(app)/x.jsonl")
            spool.write(drop, to: "honest\(app)/.new")
            spool.rename("honest\(app)/.new", to: "honest\(app)/\(label).json")
            lines += [line, drop]
        }
        return lines
    }

    @Test(
        "whatever one app does, events of twenty others are read first", arguments: Greed.allCases)
    func oneIsGreedy(_ greed: Greed) async throws {
        let seed = Seeds.one(1)
        var random = SplitMix64(seed: seed)
        let spool = try SpoolHarness()
        spool.makeDirectory("greedy")
        greed.act(in: "greedy", spool, scale: Self.scale)
        var lines = writeHonest("early", spool, &random)
        var (looked, read) = (0, Set<String>())
        func haveCome() -> Bool {
            let fresh = spool.queue.with { Array($0.lines[looked...]) }
            looked += fresh.count
            for line in fresh where line.app.hasPrefix("honest") { read.insert(line.text) }
            return read.isSuperset(of: lines)
        }
        let start = processorTime
        let reader = try await spool.start()
        await spool.until("\(greed), seed \(seed): the honest are read", haveCome)
        let early = processorTime - start
        lines += writeHonest("late", spool, &random)
        await spool.until("\(greed), seed \(seed): so is what comes later", haveCome)
        let late = processorTime - start - early
        // Of a build for debugging, the test's own work included; one that is not fair takes minutes.
        #expect(early < .seconds(20) && late < .seconds(20), "\(greed), seed \(seed): \(early), \(late)")
        print("fairness: \(greed): \(early), then \(late) of processor time")
        await reader.stop()
    }

    @Test(
        "in the drop box a file waits for its owner's files, not for thousands of another user's",
        .enabled(if: geteuid() == 0, "files of several users take root"))
    func ownersTakeTurns() async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory("incoming")
        func drop(_ text: String, of owner: UInt32) {
            spool.write("{\"text\":\"\(text)\"}", to: "incoming/.\(text)")
            chown("\(spool.path)/incoming/.\(text)", owner, owner)
            spool.rename("incoming/.\(text)", to: "incoming/\(text).json")
        }
        for number in 0..<4_000 { drop("greedy\(number)", of: 65_001) }
        spool.queue.with { $0.holdsAfter = 1 }
        let reader = try await spool.start()
        await spool.until("reading is held back") { reader.figures.isHeldBack && reader.figures.commits == 1 }
        for number in 0..<5 { drop("honest\(number)", of: 65_002) }
        let before = reader.figures.dropFilesRead
        spool.queue.with { $0.holdsAfter = nil }
        await spool.until("all are read") { spool.queue.lines.count == 4_005 }
        let last = spool.queue.with { $0.lines.lastIndex { $0.app == "uid-65002" } }
        let place = try #require(last)
        #expect(place < before + 600, "read at place \(place), after \(before) were read")
        await reader.stop()
    }

    @Test("files of one user beyond the limit in the drop box are all read")
    func crowdedBox() async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory("incoming")
        for number in 0..<1_500 { spool.write("{}", to: "incoming/n\(number).json") }
        let reader = try await spool.start { $0.mostWaitingDrops = 100 }
        await spool.until("all are read") { spool.queue.lines.count == 1_500 }
        await spool.until("and removed") { spool.names(in: "incoming").isEmpty }
        await reader.stop()
    }

    @Test(
        "an app that uses little waits for at most one piece of another app's work, however long pieces take")
    func littleGoesFirst() {
        for seed in Seeds.list(1...50) {
            var random = SplitMix64(seed: seed)
            var (queue, shares) = (FairQueue<Int>(), Shares())
            var isFirst = true
            for _ in 0..<20 { queue.append(0, to: "greedy") }
            for _ in 0..<2_000 {
                if random.next() % 3 == 0 { queue.append(1, to: "honest\(random.next() % 20)") }
                guard let (app, _) = queue.popFirst(shares) else { break }
                shares.begin(app)
                guard app == "greedy" else {
                    shares.charge(app, .milliseconds(Int(random.next() % 5)))
                    continue
                }
                #expect(
                    isFirst || queue.lineCount == 1, "seed \(seed): an honest app waits for a second piece")
                isFirst = false
                // A piece is longer than all that the others use.
                shares.charge(app, .seconds(10 + Int(random.next() % 100)))
                queue.append(0, to: app)
            }
        }
    }

    @Test("unused share is not saved up: an app that returns starts level with the others")
    func nothingIsSavedUp() {
        var shares = Shares()
        for _ in 0..<100 {
            shares.begin("busy")
            shares.charge("busy", .seconds(1))
        }
        #expect(shares.spent(by: "fresh") == 99_000_000_000)
        #expect(shares.spent(by: "busy") == 100_000_000_000)
        shares.charge("busy", .seconds(Int64.max))
        #expect(shares.spent(by: "busy") == .max)
    }

    @Test("queues take turns, whatever waits in each")
    func linesTakeTurns() {
        var queue = FairQueue<Int>()
        for number in 0..<100 { queue.append(number, to: "greedy") }
        queue.append(1000, to: "honest")
        queue.append(1001, to: "other")
        queue.append(1002, to: "honest")
        var order: [Int] = []
        while let next = queue.popFirst() {
            order.append(next.element)
            if next.element == 1 { queue.putBack(1, to: next.line) }
            if order.count == 7 { break }
        }
        #expect(order == [0, 1000, 1001, 1, 1002, 1, 1])
        #expect(queue.count(of: "greedy") == 99 && queue.lineCount == 1)
    }

    @Test("a large tree of directories that is removed at once is forgotten at once")
    func manyDirectoriesGo() async throws {
        let spool = try SpoolHarness()
        let reader = try await spool.start()
        spool.makeDirectory("app")
        for number in 0..<3000 { spool.makeDirectory("app/d\(number)") }
        await spool.until("all are known") { reader.figures.directories == 3002 }
        let start = processorTime
        removeTree("\(spool.path)/app")
        spool.write("good\n", to: "x.jsonl")
        await spool.untilLines(["good"])
        await spool.until("they are forgotten") { reader.figures.directories == 1 }
        #expect(processorTime - start < .seconds(5))
        await reader.stop()
    }
}
