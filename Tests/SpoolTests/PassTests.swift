import Glibc
import Model
@testable import Spool
import TestKit
import Testing

@Suite("One commit's changes to files", .timeLimit(.minutes(5)))
struct PassTests {
    private let id = FileID(bytes: [1, 2, 3])
    private let place = Checkpoint(key: [1, 2, 3], path: "x.jsonl", offset: 7, state: [])

    @Test("the last of a file's changes in a pass counts: removed, back, or read")
    func lastWord() {
        var pass = Pass()
        pass.forget(id)
        pass.keep(place, of: id)
        #expect(pass.checkpoints == [id: place] && pass.forgotten.isEmpty)
        pass.forget(id)
        #expect(pass.checkpoints.isEmpty && pass.forgotten == [id])
        pass.keep(place, of: id)
        pass.supersede(id)
        #expect(pass.isEmpty)
        pass.forget(id)
        pass.supersede(id)
        #expect(pass.isEmpty)
    }

    @Test(
        "lines that drip are committed at most once per linger time, and the reader does not wake in between"
    )
    func dripLingers() async throws {
        let spool = try SpoolHarness()
        let linger = Duration.milliseconds(250)
        let reader = try await spool.start { $0.linger = linger }
        let clock = ContinuousClock()
        let begin = clock.now
        var (count, listened, last, steady) = (0, 0, begin, 0)
        while clock.now - begin < linger * 6 {
            // The first lines show that it drips, and those after a gap, as it may be on a busy machine.
            steady = clock.now - last < linger ? steady + 1 : 0
            if steady > 5, await reader.isListening { listened += 1 }
            last = clock.now
            spool.append("\(count)\n", to: "drip.jsonl")
            count += 1
            await spool.pause(.milliseconds(10))
        }
        #expect(listened == 0)
        await spool.until("all is read") { spool.queue.lines.count == count }
        let rounds = Int((clock.now - begin) / linger)
        #expect(reader.figures.commits <= rounds + 2, "\(rounds) rounds")
        await reader.stop()
    }

    @Test("lines that are not urgent are read soon, and committed with the next urgent one")
    func urgentGoesSoon() async throws {
        let spool = try SpoolHarness()
        let reader = try await spool.start {
            $0.linger = .milliseconds(20)
            $0.patience = .seconds(600)
        }
        spool.append("urgent 1\n", to: "drip.jsonl")
        await spool.untilLines(["urgent 1"])
        for word in ["calm 1", "calm 2"] {
            spool.append("\(word)\n", to: "drip.jsonl")
            await spool.until("it is read") { spool.queue.with { $0.lastOffered.last == word } }
        }
        await spool.pause(.milliseconds(200))
        #expect(spool.queue.lines == ["urgent 1"])
        spool.append("urgent 2\n", to: "drip.jsonl")
        await spool.untilLines(["urgent 1", "calm 1", "calm 2", "urgent 2"])
        spool.append("calm 3\n", to: "drip.jsonl")
        await spool.until("it is read") { spool.queue.with { $0.lastOffered.last == "calm 3" } }
        await reader.stop()
        #expect(spool.queue.lines.last == "calm 3")
    }

    @Test("lines that drip are committed once in the time of patience")
    func dripIsPatient() async throws {
        let spool = try SpoolHarness()
        let patience = Duration.milliseconds(500)
        let reader = try await spool.start {
            $0.linger = .milliseconds(50)
            $0.patience = patience
        }
        let clock = ContinuousClock()
        let begin = clock.now
        var count = 0
        while clock.now - begin < patience * 4 {
            spool.append("\(count)\n", to: "drip.jsonl")
            count += 1
            await spool.pause(.milliseconds(10))
        }
        await spool.until("all is read") { spool.queue.lines.count == count }
        let rounds = Int((clock.now - begin) / patience)
        #expect(reader.figures.commits <= rounds + 2, "\(rounds) rounds")
        await reader.stop()
    }

    @Test("while a drip's commit waits for room, a file that appears and disappears is read")
    func dripIsHeldBack() async throws {
        let spool = try SpoolHarness()
        let reader = try await spool.start { $0.linger = .milliseconds(200) }
        func drip(_ word: String) async {
            for number in 0..<50 {
                spool.append("\(word) \(number)\n", to: "drip.jsonl")
                await spool.pause(.milliseconds(10))
            }
        }
        await drip("before")
        spool.queue.with { $0.isFull = true }
        await drip("after")
        await spool.pause(.milliseconds(400))
        spool.write("short\n", to: "short.jsonl")
        await spool.until("it is seen") { reader.figures.appendFiles == 2 }
        spool.remove("short.jsonl")
        spool.queue.with { $0.isFull = false }
        await spool.until("all is read") { spool.queue.lines.count == 101 }
        #expect(spool.queue.lines.contains("short"))
        await reader.stop()
    }

    /// What is in one commit is a matter of milliseconds: one of the rounds meets it.
    @Test(
        "a file that leaves, returns and is read in one pass keeps its position",
        arguments: ["", "before\n"])
    func awayAndBack(before: String) async throws {
        let spool = try SpoolHarness()
        let outside = try TemporaryDirectory()
        let reader = try await spool.start {
            $0.settleTime = .milliseconds(1)
            $0.linger = .milliseconds(60)
        }
        var written: [String] = []
        for round in 0..<40 {
            let name = "x\(round).jsonl"
            spool.write(before, to: name)
            if !before.isEmpty { written.append("before") }
            // The commit of this line begins the time in which nothing is committed.
            spool.write("\(round) a\n", to: "y\(round).jsonl")
            written.append("\(round) a")
            await spool.until("it is read") { spool.queue.lines.count == written.count }
            let known = reader.figures.appendFiles
            spool.rename(name, to: "../\(outside.path.split(separator: "/").last ?? "")/\(name)")
            _ = await spool.holds(within: .milliseconds(20)) { reader.figures.appendFiles < known }
            let file = open("\(outside.path)/\(name)", O_WRONLY | O_APPEND)
            let line = "\(round) b\n"
            #expect(Glibc.write(file, line, line.utf8.count) == line.utf8.count)
            close(file)
            try #require(Glibc.rename("\(outside.path)/\(name)", "\(spool.path)/\(name)") == 0)
            written.append("\(round) b")
            await spool.until("the rest is read") { spool.queue.lines.count >= written.count }
        }
        // What a start after a kill would go by.
        let places = Dictionary(
            spool.queue.start.checkpoints.map { ($0.path, $0.offset) }, uniquingKeysWith: { max($0, $1) })
        for round in 0..<40 {
            #expect(places["x\(round).jsonl"] == Int64("\(before)\(round) b\n".utf8.count), "round \(round)")
        }
        await reader.stop()
        #expect(spool.queue.lines.sorted() == written.sorted())
    }
}

extension SpoolReader {
    fileprivate var isListening: Bool { if case .paused = watching.attention { false } else { true } }
}
