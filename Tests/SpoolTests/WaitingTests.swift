import EventLoops
import Glibc
import Logs
import Model
@testable import Spool
import TestKit
import Testing

/// What the reader knows of its files while it does not read: the queue is full, or an app waits for its container.
@Suite("While reading waits", .timeLimit(.minutes(5)))
struct WaitingTests {
    /// How long after the last change the figures may be wrong.
    private static let limit = Duration.seconds(10)

    private func lines(_ name: String, _ count: Int) -> [String] { (0..<count).map { "\(name) line \($0)" } }

    private func text(_ lines: [String]) -> String { lines.map { $0 + "\n" }.joined() }

    private func expectUnread(
        _ bytes: Int, of reader: SpoolReader, in spool: SpoolHarness, _ what: Comment,
        at location: SourceLocation = #_sourceLocation
    ) async {
        let isTrue = await spool.holds(within: Self.limit) {
            reader.figures.unreadBytes.value == Int64(bytes)
        }
        #expect(isTrue, what, sourceLocation: location)
        #expect(reader.figures.unreadBytes.value == Int64(bytes), sourceLocation: location)
    }

    /// A reader with two commits that wait for room; the second began while changes of the kernel gathered.
    private func heldBack(_ spool: SpoolHarness) async throws -> SpoolReader {
        let reader = try await spool.start {
            $0.linger = .milliseconds(500)
            $0.afterRead = .keep
        }
        spool.append("1\n", to: "x.jsonl")
        await spool.untilLines(["1"])
        spool.queue.with { ($0.isFull, $0.room) = (true, 1) }
        // Lines that come slowly: what comes next is gathered for the commit with the second one.
        spool.append("2\n", to: "x.jsonl")
        await spool.pause(.milliseconds(50))
        spool.append("3\n4\n", to: "x.jsonl")
        await spool.until("reading waits") { reader.figures.isHeldBack }
        return reader
    }

    @Test("the unread figure follows renamed, new and deleted files while the queue is full")
    func namesAreSeenWhileTheQueueIsFull() async throws {
        let spool = try SpoolHarness()
        let reader = try await heldBack(spool)
        let (current, new, deleted) = (lines("current", 3000), lines("new", 3000), lines("deleted", 100))
        spool.rename("x.jsonl", to: "x.jsonl.1")
        spool.append(text(current), to: "x.jsonl")
        spool.append(text(new), to: "y.jsonl")
        spool.append(text(deleted), to: "z.jsonl")
        let waiting = 6 + text(current + new + deleted).utf8.count
        await expectUnread(waiting, of: reader, in: spool, "all that was written is counted")
        spool.remove("z.jsonl")
        // A listing of a directory that appeared meanwhile, too.
        spool.makeDirectory("shop")
        spool.append("late\n", to: "shop/a.jsonl")
        await expectUnread(waiting + 5, of: reader, in: spool, "a file in a new directory is counted")
        spool.queue.with { ($0.isFull, $0.room) = (false, .max) }
        await spool.untilLines(["1", "2", "3", "4", "late"] + current + new + deleted)
        await expectUnread(0, of: reader, in: spool, "nothing waits")
        #expect(reader.figures.bytesGivenUp == 0)
        await reader.stop()
    }

    @Test("bytes written to a file without a name while the queue is full are counted")
    func namelessFilesAreCounted() async throws {
        let spool = try SpoolHarness()
        let reader = try await heldBack(spool)
        let outside = try TemporaryDirectory()
        spool.rename("x.jsonl", to: "../\(outside.path.split(separator: "/").last ?? "")/x")
        let writer = open("\(outside.path)/x", O_WRONLY | O_APPEND)
        #expect(Glibc.write(writer, "more\n", 5) == 5)
        close(writer)
        await expectUnread(6 + 5, of: reader, in: spool, "what was added after the move is counted")
        spool.queue.with { ($0.isFull, $0.room) = (false, .max) }
        await spool.untilLines(["1", "2", "3", "4", "more"])
        await reader.stop()
    }

    @Test("the unread figure follows an app that waits for its container")
    func parkedAppsAreCounted() async throws {
        let spool = try SpoolHarness()
        let reader = try await spool.start { $0.afterRead = .keep }
        spool.queue.with { $0.parkedApps = ["shop"] }
        spool.makeDirectory("shop")
        spool.append("1\n", to: "shop/a.jsonl")
        await expectUnread(2, of: reader, in: spool, "the first line waits")
        spool.append("2\n3\n", to: "shop/a.jsonl")
        await expectUnread(6, of: reader, in: spool, "what is added is counted")
        spool.rename("shop/a.jsonl", to: "shop/a.jsonl.1")
        spool.append("4\n", to: "shop/a.jsonl")
        spool.append("5\n", to: "shop/a.jsonl.1")
        await expectUnread(10, of: reader, in: spool, "both are counted after a rotation")
        spool.remove("shop/a.jsonl.1")
        spool.queue.with { $0.parkedApps = [] }
        await spool.untilLines(["1", "2", "3", "4", "5"])
        await reader.stop()
    }

    @Test("files that cannot be held while the queue is full are counted and logged when they are deleted")
    func whatCannotBeHeldIsCounted() async throws {
        let spool = try SpoolHarness()
        let reader = try await spool.start {
            $0.linger = .milliseconds(50)
            $0.afterRead = .keep
            $0.maxOpenFiles = 4
        }
        spool.append("1\n", to: "x.jsonl")
        await spool.untilLines(["1"])
        spool.queue.with { ($0.isFull, $0.room) = (true, 1) }
        spool.append("2\n3\n4\n", to: "x.jsonl")
        await spool.until("reading waits") { reader.figures.isHeldBack }
        // One after the other, so that each is seen and opened before it goes.
        for number in 0..<12 {
            spool.append("line of \(10 + number)\n", to: "f\(number).jsonl")
            await expectUnread(
                6 + min(number, 4) * 11 + 11, of: reader, in: spool, "file \(number) is counted")
            spool.remove("f\(number).jsonl")
            await spool.until("its descriptor is held, or another's is given up") {
                reader.figures.openFiles <= 4
            }
        }
        spool.queue.with { ($0.isFull, $0.room) = (false, .max) }
        await spool.until("what was held is read") { spool.queue.lines.count >= 7 }
        await spool.until("what was not held is counted") {
            reader.figures.bytesGivenUp.value == Int64((12 + 4 - spool.queue.lines.count) * 11)
        }
        #expect(spool.log.messages.contains { $0.text == "file vanished before it was read" })
        await reader.stop()
    }

    @Test(
        "with random writers and rotations the unread figure is right once all is quiet",
        arguments: 1...12)
    func unreadIsTrue(seed: UInt64) async throws {
        let spool = try SpoolHarness()
        var random = SplitMix64(seed: seed)
        let isKept = Bool.random(using: &random)
        let linger = Duration.milliseconds(Int.random(in: 1...40, using: &random))
        let reader = try await spool.start {
            $0.afterRead = isKept ? .keep : .delete
            $0.linger = linger
            $0.lookInterval = .milliseconds(100)
        }
        var (written, names, old): ([String], [String], [String]) = ([], [], [])
        func bytesUnread() -> Int { text(written).utf8.count - text(spool.queue.lines).utf8.count }
        for round in 0..<12 {
            for step in 0..<Int.random(in: 1...20, using: &random) {
                let name = "f\(Int.random(in: 0..<3, using: &random)).jsonl"
                switch Int.random(in: 0..<10, using: &random) {
                case 0..<5:
                    let new = lines("\(round).\(step)", Int.random(in: 1...40, using: &random))
                    written += new
                    spool.append(text(new), to: name)
                case 5 where spool.exists(name):
                    let rotated = "\(name).\(round)\(step)"
                    spool.rename(name, to: rotated)
                    names.append(rotated)
                case 6: spool.queue.with { $0.isFull = true }
                case 7: spool.queue.with { $0.isFull = false }
                case 8: spool.queue.with { $0.room = $0.room == 1 ? 2000 : 1 }
                default: await spool.pause(.milliseconds(Int.random(in: 0...50, using: &random)))
                }
                // Only what the reader has seen: it cannot know what is gone before it looked.
                if let gone = old.popLast() { spool.remove(gone) }
            }
            // What the reader takes in this moment is in neither figure: first all comes to rest.
            await spool.pause(.milliseconds(100))
            let isTrue = await spool.holds(within: Self.limit) {
                reader.figures.unreadBytes.value == Int64(bytesUnread())
            }
            #expect(
                isTrue,
                "seed \(seed), round \(round): \(reader.figures.unreadBytes.value), in truth \(bytesUnread())"
            )
            (old, names) = (names, [])
        }
        spool.queue.with { ($0.isFull, $0.room) = (false, .max) }
        await spool.untilLines(written)
        #expect(reader.figures.bytesGivenUp == 0)
        await reader.stop()
    }
}
