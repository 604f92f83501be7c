import EventLoops
import Glibc
import Logs
import Model
import Synchronization
import TestKit
import Testing

@testable import Spool

/// A last line without a line feed, of a file that is rotated or deleted while its writer has it open. The reader cannot
/// ask who has it open: it reads in place, or has no CAP_LEASE.
@Suite("Unfinished lines", .enabled(if: getuid() == 0), .timeLimit(.minutes(5)))
struct UnfinishedLineTests {
    enum Way: CaseIterable {
        case renamed, renamedAndReplaced, removed, removedAndReplaced, movedOut, renamedTwice
    }

    /// A reader in place, or one of a spool without any capability.
    private func start(
        _ spool: SpoolHarness, inPlace: Bool, _ change: @escaping (inout SpoolOptions) -> Void = { _ in }
    ) async throws -> SpoolReader {
        if !inPlace {
            chmod(spool.path, 0o777)
            let isDone = Atomic<Bool>(false)
            spool.loop.post { isDone.store(ThreadRights.giveUp(), ordering: .releasing) }
            await spool.until("the thread has no capability") { isDone.load(ordering: .acquiring) }
        }
        let place = ReadPlace.of(app: "web", ["\(spool.path)/*.log"])?.first
        return try await spool.start {
            if inPlace { ($0.place, $0.afterRead) = (place, .keep) }
            change(&$0)
        }
    }

    /// A writer that has written a whole line and the beginning of another.
    private func beginLine(_ spool: SpoolHarness, _ reader: SpoolReader) async -> Int32 {
        let writer = open("\(spool.path)/x.log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o666)
        chmod("\(spool.path)/x.log", 0o666)
        write(writer, "first\nhalf of ")
        await spool.untilLines(["first"])
        await spool.until("the beginning is seen") { reader.figures.unreadBytes == 8 }
        return writer
    }

    private func write(_ writer: Int32, _ text: String) {
        #expect(Glibc.write(writer, text, text.utf8.count) == text.utf8.count)
    }

    private func rotate(_ spool: SpoolHarness, _ way: Way, outside: TemporaryDirectory) {
        switch way {
        case .renamed, .renamedAndReplaced, .renamedTwice: spool.rename("x.log", to: "x.log.1")
        case .removed, .removedAndReplaced: spool.remove("x.log")
        case .movedOut: rename("\(spool.path)/x.log", "\(outside.path)/x.log")
        }
        if way == .renamedTwice { spool.rename("x.log.1", to: "x.log.2") }
        guard way == .renamedAndReplaced || way == .removedAndReplaced else { return }
        spool.append("new\n", to: "x.log")
        chmod("\(spool.path)/x.log", 0o666)
    }

    @Test(
        "a half-written line of a rotated or deleted file arrives whole",
        arguments: Way.allCases,
        [true, false])
    func linesArriveWhole(way: Way, inPlace: Bool) async throws {
        let spool = try SpoolHarness()
        let outside = try TemporaryDirectory()
        let reader = try await start(spool, inPlace: inPlace) { $0.giveUpTime = .milliseconds(600) }
        let writer = await beginLine(spool, reader)
        rotate(spool, way, outside: outside)
        // Longer than a rotated file whose writers are known to be gone has to be quiet.
        await spool.pause(.milliseconds(700))
        #expect(!spool.queue.lines.contains("half of "))
        write(writer, "a line\nlast")
        await spool.until("the line arrives") { spool.queue.lines.contains("half of a line") }
        await spool.pause(.milliseconds(300))
        #expect(!spool.queue.lines.contains("last"))
        close(writer)
        let new = way == .renamedAndReplaced || way == .removedAndReplaced ? ["new"] : []
        await spool.untilLines(["first", "half of a line", "last"] + new)
        #expect(reader.figures.unclosedLines == 0)
        await reader.stop()
    }

    @Test("a line without its end is named with its app, file and bytes, until it has one")
    func isNamed() async throws {
        let spool = try SpoolHarness()
        let reader = try await spool.start()
        let writer = open("\(spool.path)/x.log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o666)
        defer { close(writer) }
        write(writer, "first\nhalf of ")
        await spool.untilLines(["first"])
        await spool.until("the line is named") { reader.figures.unfinishedLines.count == 1 }
        let line = try #require(reader.figures.unfinishedLines.first)
        #expect(line.app == "default" && line.path == "\(spool.path)/x.log" && line.bytes == 8)
        #expect(line.since == reader.figures.oldestUnread)
        write(writer, "a line\n")
        await spool.untilLines(["first", "half of a line"])
        await spool.until("no line is named") { reader.figures.unfinishedLines.isEmpty }
        await reader.stop()
    }

    @Test(
        "after a long silence an unfinished line counts as whole, and is counted and logged",
        arguments: [true, false])
    func silenceIsBounded(inPlace: Bool) async throws {
        let spool = try SpoolHarness()
        let reader = try await start(spool, inPlace: inPlace) { $0.unclosedTime = .milliseconds(500) }
        let writer = await beginLine(spool, reader)
        defer { close(writer) }
        spool.rename("x.log", to: "x.log.1")
        await spool.untilLines(["first", "half of "])
        await spool.until("it is counted") { reader.figures.unclosedLines == 1 }
        let messages = spool.log.messages.filter {
            $0.text
                == "a last line without a line feed counts as whole: no writer has closed its rotated file"
        }
        #expect(messages.count == 1)
        await reader.stop()
    }

    @Test("without inotify a close is not noticed: a rotated file's last line waits for the long silence")
    func polledFilesWait() async throws {
        let spool = try SpoolHarness()
        let reader = try await start(spool, inPlace: true) {
            $0.isWatching = false
            $0.unclosedTime = .milliseconds(900)
        }
        let writer = await beginLine(spool, reader)
        spool.rename("x.log", to: "x.log.1")
        await spool.pause(.milliseconds(400))
        write(writer, "a line\nlast")
        close(writer)
        await spool.untilLines(["first", "half of a line", "last"])
        #expect(reader.figures.unclosedLines == 1)
        await reader.stop()
    }
}
