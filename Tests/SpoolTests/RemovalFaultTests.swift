import EventLoops
import Glibc
import Model
import Spool
import TestKit
import Testing

@Suite("Failing removals, and files that return", .timeLimit(.minutes(5)))
struct RemovalFaultTests {
    /// Today and tomorrow, should midnight be near.
    private var days: [String] {
        [0, 86_400].map { later in
            var seconds = time(nil) + later
            var day = tm()
            gmtime_r(&seconds, &day)
            func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
            return "\(1900 + day.tm_year)-\(two(day.tm_mon + 1))-\(two(day.tm_mday))"
        }
    }

    private func drop(_ text: String, to name: String, _ spool: SpoolHarness) {
        spool.write(text, to: ".new")
        spool.rename(".new", to: name)
    }

    @Test("invariant 1: a commit of a file's content before a truncation does not remove the file")
    func truncatedUnderACommit() async throws {
        let spool = try SpoolHarness()
        let old = (0..<500).map { "old line \($0)" }
        spool.write(old.map { $0 + "\n" }.joined(), to: "x.jsonl")
        spool.queue.with { $0.holdsAfter = 0 }
        let reader = try await spool.start()
        await spool.until("the old lines are being committed") { reader.figures.bytesRead > 5000 }
        spool.write("new 1\nnew 2\n", to: "x.jsonl")
        await spool.until("the new lines are read") { reader.figures.truncations == 1 }
        spool.queue.with { $0.holdsAfter = 1 }
        await spool.until("the first commit is made") { spool.queue.lines.count == old.count }
        spool.rename("x.jsonl", to: "x.jsonl.1")
        // Many times as long as a rotated file stays when all of it is durable.
        let isGone = await spool.holds(within: .seconds(2)) { spool.names().isEmpty }
        #expect(!isGone, "the file is gone, and its lines are not in the queue")
        spool.queue.with { $0.holdsAfter = nil }
        await spool.untilLines(old + ["new 1", "new 2"])
        await spool.until("then it goes") { spool.names().isEmpty }
        await reader.stop()
    }

    @Test("a drop file that cannot be archived is not read again, and is archived when that works")
    func failedRemovalsRepeatNothing() async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory(".archive")
        for day in days { spool.write("in the way", to: ".archive/\(day)") }
        // Polled, so that the directory is listed again and again.
        let reader = try await spool.start {
            $0.afterRead = .archive(directory: ".archive", retention: nil)
            $0.isWatching = false
        }
        drop("{\"n\":1}", to: "a.json", spool)
        await spool.untilLines(["{\"n\":1}"])
        _ = await spool.holds(within: .seconds(1)) { spool.queue.lines.count > 1 }
        #expect(spool.queue.lines == ["{\"n\":1}"])
        for day in days { spool.remove(".archive/\(day)") }
        await spool.until("it is put away") { spool.names() == [".archive"] }
        await spool.until("its record goes") { spool.queue.with { $0.done.isEmpty } }
        #expect(spool.queue.lines == ["{\"n\":1}"])
        await reader.stop()
    }

    @Test("a directory that is renamed while its drop files are being committed is not read again")
    func renamedDirectoriesRepeatNothing() async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory("shop")
        spool.queue.with { $0.holdsAfter = 0 }
        let reader = try await spool.start()
        drop("{\"n\":1}", to: "shop/a.json", spool)
        await spool.until("it is read") { reader.figures.dropFilesRead == 1 }
        spool.rename("shop", to: "store")
        await spool.until("the new name is known") { reader.figures.directories == 2 }
        await spool.pause(.milliseconds(100))
        spool.queue.with { $0.holdsAfter = nil }
        await spool.untilLines(["{\"n\":1}"])
        // It is listed again.
        spool.rename("store", to: "shop")
        drop("{\"n\":2}", to: "shop/b.json", spool)
        await spool.until("the other is read") { spool.queue.lines.contains("{\"n\":2}") }
        await spool.until("both go") { spool.names(in: "shop").isEmpty }
        #expect(spool.queue.lines == ["{\"n\":1}", "{\"n\":2}"])
        await reader.stop()
    }

    @Test("archive: a removed folder is made again, and no file is read twice for it")
    func removedArchiveFoldersAreMadeAgain() async throws {
        let spool = try SpoolHarness()
        func archived() -> [String] {
            spool.names(in: ".archive").flatMap { spool.names(in: ".archive/\($0)/default") }.sorted()
        }
        var reader = try await spool.start { $0.afterRead = .archive(directory: ".archive", retention: nil) }
        drop("{\"n\":1}", to: "a.json", spool)
        await spool.until("the first is put away") { archived() == ["a.json"] }
        for day in spool.names(in: ".archive") {
            spool.remove(".archive/\(day)/default/a.json")
            rmdir("\(spool.path)/.archive/\(day)/default")
            rmdir("\(spool.path)/.archive/\(day)")
        }
        drop("{\"n\":2}", to: "b.json", spool)
        await spool.untilLines(["{\"n\":1}", "{\"n\":2}"])
        _ = await spool.holds(within: .seconds(5)) { archived() == ["b.json"] }
        #expect(archived() == ["b.json"])
        await reader.stop()
        reader = try await spool.start { $0.afterRead = .archive(directory: ".archive", retention: nil) }
        drop("{\"n\":3}", to: "c.json", spool)
        await spool.until("another is read") { spool.queue.lines.contains("{\"n\":3}") }
        #expect(spool.queue.lines == ["{\"n\":1}", "{\"n\":2}", "{\"n\":3}"])
        await reader.stop()
    }

    @Test("archive: if its files cannot be counted, an archived file still counts as archived")
    func uncountedArchives() async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory(".archive")
        for day in days {
            spool.makeDirectory(".archive/\(day)")
            spool.write("a note of somebody", to: ".archive/\(day)/README")
        }
        let reader = try await spool.start {
            $0.afterRead = .archive(directory: ".archive", retention: nil, mostBytes: 1000)
            $0.giveUpTime = .milliseconds(50)
        }
        drop("{\"n\":1}", to: "a.json", spool)
        spool.write("2\n", to: "x.jsonl")
        await spool.untilLines(["{\"n\":1}", "2"])
        await spool.until("both are put away") { reader.figures.filesRemoved == 2 }
        await spool.until("the record goes") { spool.queue.with { $0.done.isEmpty } }
        await reader.stop()
    }

    @Test(
        "without inotify, a drop file that disappears before it is quiet does not hide the next of its name"
    )
    func namesComeBack() async throws {
        let spool = try SpoolHarness()
        let reader = try await spool.start { $0.isWatching = false }
        // They are seen, and not quiet: somebody has them open for writing.
        let held = ["gone.json", "link.json"].map {
            open("\(spool.path)/\($0)", O_WRONLY | O_CREAT | O_CLOEXEC, 0o660)
        }
        for file in held { #expect(write(file, "{\"n\":1}", 7) == 7) }
        await spool.pause(.milliseconds(400))
        for name in ["gone.json", "link.json"] { spool.remove(name) }
        symlink("elsewhere", "\(spool.path)/link.json")
        for file in held { close(file) }
        await spool.pause(.milliseconds(400))
        spool.remove("link.json")
        for name in ["gone.json", "link.json"] { spool.write("{\"name\":\"\(name)\"}", to: name) }
        await spool.untilLines(["{\"name\":\"gone.json\"}", "{\"name\":\"link.json\"}"])
        await reader.stop()
    }

    @Test("an append file with the name of a drop file is not read again after a restart")
    func appendFilesUnderDropNames() async throws {
        let spool = try SpoolHarness()
        spool.write("1\n2\n", to: "x.jsonl")
        var reader = try await spool.start()
        await spool.untilLines(["1", "2"])
        await reader.stop()
        spool.append("3\n", to: "x.jsonl")
        spool.rename("x.jsonl", to: "x.json")
        reader = try await spool.start()
        await spool.until("its new line is read") { spool.queue.lines.contains("3") }
        drop("{\"n\":4}", to: "y.json", spool)
        await spool.until("others are read") { spool.queue.lines.contains("{\"n\":4}") }
        #expect(spool.queue.lines == ["1", "2", "3", "{\"n\":4}"])
        await reader.stop()
    }

    @Test(
        "a directory that is absent at a start is not read again when it returns, however many files it has"
    )
    func directoriesThatComeBack() async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory("shop")
        // More than are remembered of those that are gone for good.
        let count = 2100
        for number in 0..<count { spool.write("line \(number)\n", to: "shop/\(number).jsonl") }
        func lines() -> Int { spool.queue.with { $0.lines.count } }
        var reader = try await spool.start()
        await spool.until("all are read") { lines() == count }
        await reader.stop()
        spool.rename("shop", to: ".shop")
        reader = try await spool.start()
        spool.write("first\n", to: "x.jsonl")
        await spool.until("the rest of the spool is read") { lines() == count + 1 }
        await spool.pause(.milliseconds(200))
        spool.rename(".shop", to: "shop")
        await spool.until("all are known again") { reader.figures.appendFiles == count + 1 }
        spool.append("last\n", to: "x.jsonl")
        await spool.until("all that is to be read is read") {
            lines() >= count + 2 && reader.figures.unreadBytes == 0
        }
        #expect(lines() == count + 2)
        await reader.stop()
    }
}
