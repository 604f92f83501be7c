import Glibc
import Model
import Spool
import TestKit
import Testing

@Suite("Append files", .timeLimit(.minutes(5)))
struct AppendFileTests {
    @Test("lines are read as written, in order, with app, path and offset")
    func linesArriveInOrder() async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory("shop")
        spool.write("{\"n\":1}\n{\"n\":2}\r\n", to: "shop/a.jsonl")
        let reader = try await spool.start()
        await spool.untilLines(["{\"n\":1}", "{\"n\":2}\r"])
        spool.append("{\"n\":3}\n", to: "shop/a.jsonl")
        await spool.until("the third line arrives") { spool.queue.lines.count == 3 }
        let last = try #require(spool.queue.with { $0.lines.last })
        #expect(last == .init(app: "shop", path: "shop/a.jsonl", offset: 17, text: "{\"n\":3}"))
        await reader.stop()
        #expect(spool.queue.lines == ["{\"n\":1}", "{\"n\":2}\r", "{\"n\":3}"])
    }

    @Test("reading continues at the checkpoint after a restart")
    func restartsGoOnAtTheCheckpoint() async throws {
        let spool = try SpoolHarness()
        spool.write("a\nb\n", to: "x.log")
        var reader = try await spool.start()
        await spool.untilLines(["a", "b"])
        await reader.stop()
        spool.append("c\n", to: "x.log")
        spool.write("d\n", to: "y.ndjson")
        reader = try await spool.start()
        await spool.untilLines(["a", "b", "c", "d"])
        await reader.stop()
    }

    @Test("the unread tail of a renamed or deleted file is read to its end")
    func fault01_tailsOfRenamedAndDeletedFilesAreRead() async throws {
        let spool = try SpoolHarness()
        spool.write("1\n", to: "x.jsonl")
        spool.write("one\n", to: "y.jsonl")
        let reader = try await spool.start()
        await spool.untilLines(["1", "one"])
        // Nothing is read while the queue is full; the files go meanwhile.
        spool.queue.with { $0.isFull = true }
        for line in 2...4 {
            spool.append("\(line)\n", to: "x.jsonl")
            await spool.pause(.milliseconds(20))
        }
        spool.rename("x.jsonl", to: "x.jsonl.1")
        spool.write("5\n", to: "x.jsonl")
        let held = open("\(spool.path)/y.jsonl", O_WRONLY | O_APPEND)
        defer { close(held) }
        spool.remove("y.jsonl")
        write(held, "two\n", 4)
        spool.queue.with { $0.isFull = false }
        await spool.untilLines(["1", "2", "3", "4", "5", "one", "two"])
        // Its writer goes on after it was deleted.
        write(held, "three\n", 6)
        await spool.untilLines(["1", "2", "3", "4", "5", "one", "two", "three"])
        await reader.stop()
    }

    @Test("a truncated file is read from its start, and only once")
    func fault02_truncationStartsAnew() async throws {
        let spool = try SpoolHarness()
        spool.write("first line\nsecond line\n", to: "x.jsonl")
        let reader = try await spool.start()
        await spool.untilLines(["first line", "second line"])
        spool.write("new\n", to: "x.jsonl")
        await spool.untilLines(["first line", "second line", "new"])
        spool.append("more\n", to: "x.jsonl")
        await spool.untilLines(["first line", "second line", "new", "more"])
        await reader.stop()
    }

    @Test("a tail lost in a power cut repeats at most the bytes between two marks")
    func fault02_lostTailGoesOnAtAMark() async throws {
        let spool = try SpoolHarness()
        var reader = try await spool.start()
        for line in 0..<20 {
            spool.append("line \(line)\n", to: "x.jsonl")
            await spool.until("line \(line) arrives") { spool.queue.lines.count == line + 1 }
        }
        await reader.stop()
        // The last three and a half lines are gone after the power cut; other ones follow.
        #expect(truncate("\(spool.path)/x.jsonl", 10 * 7 + 6 * 8 + 4) == 0)
        spool.append("...\nafter\n", to: "x.jsonl")
        reader = try await spool.start()
        let expected = (0..<20).map { "line \($0)" } + ["line...", "after"]
        await spool.untilLines(expected)
        await reader.stop()
    }

    @Test("a log that restarts with the same banner and equal line ends is read from the first difference")
    func fault02_equalBeginningsAndEndsProveNothing() async throws {
        let spool = try SpoolHarness()
        let banner = String(repeating: "b", count: 1300)
        func line(_ number: Int) -> String { "\(10_000 + number) \(String(repeating: "e", count: 325))" }
        var reader = try await spool.start()
        var expected: [String] = []
        for next in [banner] + (0..<30).map(line) {
            spool.append(next + "\n", to: "x.log")
            expected.append(next)
            await spool.until("line \(expected.count) arrives") { spool.queue.lines.count == expected.count }
        }
        await reader.stop()
        spool.write(([banner] + (100..<120).map(line)).joined(separator: "\n") + "\n", to: "x.log")
        reader = try await spool.start()
        await spool.untilLines(expected + (100..<120).map(line))
        await reader.stop()
    }

    @Test("a proof over a long file takes several turns, and only bytes after its last mark are repeated")
    func fault02_longProofs() async throws {
        let spool = try SpoolHarness()
        let lines = (0..<6_000).map { "\($0) \(String(repeating: "x", count: 1000))" }
        spool.write(lines.joined(separator: "\n") + "\n", to: "x.log")
        var reader = try await spool.start { $0.commitBytes = 1 << 20 }
        await spool.untilLines(lines)
        await reader.stop()
        let size = lines.reduce(0) { $0 + $1.utf8.count + 1 }
        #expect(truncate("\(spool.path)/x.log", size - 1500) == 0)
        spool.append("\nafter\n", to: "x.log")
        reader = try await spool.start()
        await spool.until("the last line arrives") { spool.queue.lines.contains("after") }
        #expect(spool.queue.lines.count > lines.count && spool.queue.lines.count < lines.count + 2_500)
        await reader.stop()
    }

    @Test("files with equal beginnings are different files; a new file under an old name is new")
    func fault03_identityIsNotTheBeginning() async throws {
        let spool = try SpoolHarness()
        let header = String(repeating: "h", count: 2000)
        spool.write("\(header)\na\n", to: "a.jsonl")
        spool.write("\(header)\nb\n", to: "b.jsonl")
        let reader = try await spool.start()
        await spool.untilLines([header, "a", header, "b"])
        spool.remove("a.jsonl")
        spool.write("\(header)\nc\n", to: "a.jsonl")
        await spool.untilLines([header, "a", header, "b", header, "c"])
        await reader.stop()
    }

    @Test("a partial last line waits for its line feed, also across a restart")
    func fault18_partialLastLineWaits() async throws {
        let spool = try SpoolHarness()
        let held = open("\(spool.path)/x.jsonl", O_WRONLY | O_CREAT | O_APPEND, 0o660)
        write(held, "whole\nhal", 9)
        var reader = try await spool.start()
        await spool.untilLines(["whole"])
        await reader.stop()
        reader = try await spool.start()
        // Its writer has it open: longer than the time to seal is not long enough.
        await spool.pause(.milliseconds(300))
        #expect(spool.queue.lines == ["whole"])
        write(held, "f\nnext", 6)
        await spool.untilLines(["whole", "half"])
        close(held)
        await spool.untilLines(["whole", "half", "next"])
        await reader.stop()
    }

    @Test("a line that is too long is quarantined with its beginning, and its neighbours are whole")
    func fault19_longLinesAreSkipped() async throws {
        let spool = try SpoolHarness()
        let long = String(repeating: "x", count: 3_000_000)
        let medium = String(repeating: "y", count: 6000)
        spool.write("before\n\(medium)\nbetween\n\(long)\nafter\n", to: "x.jsonl")
        let reader = try await spool.start { $0.maxEventSize = 5000 }
        await spool.untilLines(["before", "between", "after"])
        let records = spool.queue.quarantined
        #expect(records.map(\.reason) == [.tooLong, .tooLong])
        #expect(records.map(\.offset) == [7, 7 + 6001 + 8] as [Int64])
        #expect(records.map(\.length) == [6000, 3_000_000])
        #expect(records.map(\.content.count) == [4096, 4096])
        await reader.stop()
    }

    @Test("a long line that arrives in pieces is read as a whole")
    func longLinesInPieces() async throws {
        let spool = try SpoolHarness()
        let reader = try await spool.start()
        let piece = String(repeating: "p", count: 5000)
        let held = open("\(spool.path)/x.jsonl", O_WRONLY | O_CREAT | O_APPEND, 0o660)
        defer { close(held) }
        for _ in 0..<20 {
            write(held, piece, piece.utf8.count)
            await spool.pause(.milliseconds(2))
        }
        write(held, "\nlast\n", 6)
        await spool.untilLines([String(repeating: piece, count: 20), "last"])
        await reader.stop()
    }

    @Test("while commits wait nothing is read; then reading continues, and nothing is lost or repeated")
    func waitingCommitsHoldReadingBack() async throws {
        let spool = try SpoolHarness()
        let reader = try await spool.start {
            $0.commitBytes = 1000
            $0.linger = .zero
        }
        spool.queue.with {
            $0.isFull = true
            $0.room = 500
        }
        let lines = (0..<20_000).map { "line number \($0)" }
        spool.write(lines.joined(separator: "\n") + "\n", to: "x.jsonl")
        await spool.until("reading is held back") { reader.figures.isHeldBack }
        #expect(reader.figures.bytesRead < 3000)
        spool.queue.with { $0.isFull = false }
        await spool.until("all lines arrive") { spool.queue.lines.count >= lines.count }
        #expect(spool.queue.lines == lines)
        await reader.stop()
    }

    @Test("a commit that fails ends reading; the next start repeats nothing and loses nothing")
    func failedCommitsEndReading() async throws {
        let spool = try SpoolHarness()
        spool.queue.with { $0.failsAfter = 3 }
        let lines = (0..<5000).map { "line number \($0)" }
        spool.write(lines.joined(separator: "\n") + "\n", to: "x.jsonl")
        var reader = try await spool.start {
            $0.commitBytes = 10_000
            $0.linger = .zero
        }
        spool.queue.with { $0.room = 10_000 }
        await reader.stop()
        #expect(spool.queue.with { $0.commits } <= 3)
        spool.queue.with { $0.failsAfter = nil }
        reader = try await spool.start()
        await spool.until("all lines arrive") { spool.queue.lines.count >= lines.count }
        #expect(spool.queue.lines == lines)
        await reader.stop()
    }

    @Test(
        "an emptied file with other lines and equal line ends is new, at run time and at a start",
        arguments: [300, 1000], [true, false])
    func equalEnds(length: Int, stops: Bool) async throws {
        let spool = try SpoolHarness()
        var reader = try await spool.start()
        func line(_ number: Int) -> String { "\(number) \(String(repeating: "x", count: length))" }
        let old = (100..<140).map(line)
        for part in 0..<8 {
            spool.append(old[part * 5..<part * 5 + 5].map { $0 + "\n" }.joined(), to: "x.jsonl")
            await spool.untilLines(Array(old[..<(part * 5 + 5)]))
        }
        for (round, count) in [10, 4, 1].enumerated() {
            if stops { await reader.stop() }
            let new = (0..<count).map { line(200 + 100 * round + $0) }
            truncate("\(spool.path)/x.jsonl", 0)
            spool.append(new.map { $0 + "\n" }.joined(), to: "x.jsonl")
            if stops { reader = try await spool.start() }
            await spool.untilLines(
                old
                    + (0...round).flatMap { done in
                        (0..<[10, 4, 1][done]).map { line(200 + 100 * done + $0) }
                    })
        }
        await reader.stop()
    }
}
