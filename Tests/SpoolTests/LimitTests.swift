import EventLoops
import Glibc
import Model
import Spool
import Synchronization
import TestKit
import Testing

@Suite("System limits", .timeLimit(.minutes(5)))
struct LimitTests {
    @Test("the least recently used descriptors are closed, and directories are watched instead of files")
    func fault17_descriptorsAreBounded() async throws {
        let spool = try SpoolHarness()
        let names = (0..<300).map { "file\($0).jsonl" }
        for name in names { spool.write("1 \(name)\n", to: name) }
        let reader = try await spool.start { $0.maxOpenFiles = 10 }
        await spool.untilLines(names.map { "1 \($0)" })
        #expect(reader.figures.openFiles <= 10)
        #expect(reader.figures.directories == 1)
        for name in names { spool.append("2 \(name)\n", to: name) }
        await spool.untilLines(names.flatMap { ["1 \($0)", "2 \($0)"] })
        await spool.until("few are open") { reader.figures.openFiles <= 10 }
        await reader.stop()
    }

    @Test("if nothing can be watched, directories are polled, and the figures say so")
    func fault17_pollingWorks() async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory("app")
        spool.write("1\n", to: "app/x.jsonl")
        let reader = try await spool.start { $0.isWatching = false }
        await spool.untilLines(["1"])
        await spool.until("the figures to say so") {
            reader.figures.polledDirectories == 2 && reader.figures.pollReason != nil
        }
        spool.append("2\n", to: "app/x.jsonl")
        await spool.untilLines(["1", "2"])
        spool.rename("app/x.jsonl", to: "app/x.jsonl.1")
        spool.append("3\n", to: "app/x.jsonl.1")
        spool.write("4\n", to: "app/x.jsonl")
        spool.makeDirectory("late")
        spool.write("{\"n\":5}", to: "late/.y")
        spool.rename("late/.y", to: "late/y.json")
        await spool.untilLines(["1", "2", "3", "4", "{\"n\":5}"])
        await spool.until("the drop file goes") { spool.names(in: "late").isEmpty }
        spool.write("6\n", to: "app/x.jsonl")
        await spool.untilLines(["1", "2", "3", "4", "{\"n\":5}", "6"])
        await reader.stop()
    }

    @Test("without inotify a rotated file is removed and a last line counts once its writer is gone")
    func fault17_writersArePolledToo() async throws {
        let spool = try SpoolHarness()
        let rotated = open("\(spool.path)/x.jsonl.1", O_WRONLY | O_CREAT | O_APPEND, 0o660)
        let current = open("\(spool.path)/x.jsonl", O_WRONLY | O_CREAT | O_APPEND, 0o660)
        write(rotated, "1\n", 2)
        write(current, "2\nlast", 6)
        let reader = try await spool.start { $0.isWatching = false }
        await spool.untilLines(["1", "2"])
        // Longer than any wait: both were looked at, and had their writers.
        await spool.pause(.milliseconds(300))
        #expect(spool.exists("x.jsonl.1") && spool.queue.lines.count == 2)
        close(rotated)
        close(current)
        await spool.untilLines(["1", "2", "last"])
        await spool.until("the rotated one goes") { spool.names() == ["x.jsonl"] }
        await reader.stop()
    }

    @Test("bytes that are not text pass unchanged, and their neighbours are whole")
    func fault20_badBytesPassUntouched() async throws {
        let spool = try SpoolHarness()
        spool.write([0xFF, 0xFE, 0x00, 0x0A] + Array("good\n".utf8) + [0xC3, 0x0A], to: "x.jsonl")
        let reader = try await spool.start()
        await spool.untilLines(["\u{FFFD}\u{FFFD}\0", "good", "\u{FFFD}"])
        await reader.stop()
    }

    @Test("after an overflow of the kernel's queue everything is listed again")
    func overflowsAreMadeGood() async throws {
        let spool = try SpoolHarness()
        let reader = try await spool.start { $0.settleTime = .milliseconds(5) }
        // The reader's thread is kept busy meanwhile.
        let isFree = Atomic<Bool>(false)
        spool.loop.post { while !isFree.load(ordering: .acquiring) { usleep(1000) } }
        for number in 0..<9000 {
            spool.write("{\"n\":\(number)}", to: "\(number).json")
            // Different names, so that the kernel cannot join the changes: about three of them for each file.
        }
        isFree.store(true, ordering: .releasing)
        await spool.until("all arrive") { spool.queue.lines.count >= 9000 }
        #expect(Set(spool.queue.lines).count == 9000)
        #expect(spool.queue.lines.count == 9000)
        #expect(reader.figures.overflows > 0)
        await reader.stop()
    }

    @Test("a spool directory that is removed is reported once, and read again when it is back")
    func removedSpoolsComeBack() async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory("app")
        spool.write("1\n", to: "app/x.jsonl")
        let reader = try await spool.start()
        await spool.untilLines(["1"])
        removeTree(spool.path)
        await spool.until("it is told") { !reader.figures.complaints.isEmpty }
        mkdir(spool.path, 0o770)
        spool.makeDirectory("app")
        spool.write("2\n", to: "app/x.jsonl")
        await spool.untilLines(["1", "2"])
        #expect(reader.figures.complaints.isEmpty)
        // Moved away, and made anew.
        Glibc.rename(spool.path, spool.path + "-moved")
        defer { removeTree(spool.path + "-moved") }
        mkdir(spool.path, 0o770)
        spool.write("3\n", to: "y.jsonl")
        await spool.untilLines(["1", "2", "3"])
        await reader.stop()
    }

    @Test("the backlog is measured in bytes and time, also while nothing is read")
    func lagIsCounted() async throws {
        let spool = try SpoolHarness()
        let reader = try await spool.start { $0.linger = .zero }
        spool.queue.with { $0.isFull = true }
        for number in 0..<3 {
            spool.append("12345678\n", to: "x.jsonl")
            await spool.pause(.milliseconds(20 + Int64(number)))
        }
        await spool.until("reading is held back") { reader.figures.isHeldBack }
        spool.append(String(repeating: "later\n", count: 1000), to: "x.jsonl")
        for number in 0..<50 { spool.write("{\"number\":\(10 + number)}", to: "\(number).json") }
        await spool.until("all of it is counted") { reader.figures.unreadBytes.value == 6677 }
        #expect(reader.figures.waitingDropFiles >= 50)
        #expect(reader.figures.oldestUnread != nil)
        spool.queue.with { $0.isFull = false }
        await spool.until("all is read") { spool.queue.lines.count == 3 + 1000 + 50 }
        await spool.until("nothing waits") {
            reader.figures.unreadBytes == 0 && reader.figures.oldestUnread == nil
                && !reader.figures.isHeldBack
        }
        await reader.stop()
    }
}
