import EventLoops
import Glibc
import Spool
import Synchronization
import TestKit
import Testing

/// The reader's thread as the agent's would be that was started as another user, without the unit's capability.
@Suite("Without CAP_LEASE", .enabled(if: getuid() == 0), .timeLimit(.minutes(5)))
struct CapabilityTests {
    /// A spool whose reader runs as `nobody` and without any capability; the files are root's.
    private func spool() async throws -> SpoolHarness {
        let spool = try SpoolHarness()
        chmod(spool.path, 0o777)
        let isDone = Atomic<Bool>(false)
        spool.loop.post { isDone.store(ThreadRights.giveUp(), ordering: .releasing) }
        await spool.until("the thread has no capability") { isDone.load(ordering: .acquiring) }
        return spool
    }

    private func write(_ spool: SpoolHarness, _ text: String, to name: String) {
        spool.append(text, to: name)
        chmod("\(spool.path)/\(name)", 0o666)
    }

    @Test("append files are read and kept; a last line without LF counts once its file is closed and quiet")
    func appendFilesAreKept() async throws {
        let spool = try await spool()
        write(spool, "1\n", to: "x.jsonl")
        let reader = try await spool.start { $0.giveUpTime = .milliseconds(50) }
        await spool.untilLines(["1"])
        write(spool, "2", to: "x.jsonl")
        await spool.untilLines(["1", "2"])
        spool.rename("x.jsonl", to: "x.jsonl.1")
        write(spool, "3\n", to: "x.jsonl")
        await spool.untilLines(["1", "2", "3"])
        // Nobody can tell whether somebody still writes: longer than all waits is not long enough.
        await spool.pause(.milliseconds(500))
        #expect(spool.names() == ["x.jsonl", "x.jsonl.1"])
        #expect(reader.figures.errors == 0 && reader.figures.complaints.isEmpty)
        await reader.stop()
        let again = try await spool.start()
        write(spool, "4\n", to: "x.jsonl")
        await spool.untilLines(["1", "2", "3", "4"])
        await again.stop()
    }

    @Test(
        "a deleted file whose writer may still have it open is released after the give-up time",
        arguments: [true, false])
    func deletedFilesAreLetGo(isWatching: Bool) async throws {
        let spool = try await spool()
        write(spool, "1\n", to: "x.jsonl")
        let reader = try await spool.start {
            $0.giveUpTime = .milliseconds(600)
            $0.isWatching = isWatching
            // Where directories are polled no close is seen: the last line waits for the long silence.
            if !isWatching { $0.unclosedTime = .milliseconds(600) }
        }
        await spool.untilLines(["1"])
        let held = open("\(spool.path)/x.jsonl", O_WRONLY | O_APPEND)
        spool.remove("x.jsonl")
        // Longer than a file is quiet whose writers are known to be gone.
        await spool.pause(.milliseconds(300))
        Glibc.write(held, "2\nlast", 6)
        close(held)
        await spool.untilLines(["1", "2", "last"])
        await spool.until("it is let go") { reader.figures.appendFiles == 0 && reader.figures.openFiles == 0 }
        await reader.stop()
    }

    @Test("drop files are removed, also those written in place once they are quiet")
    func dropFilesGo() async throws {
        let spool = try await spool()
        let reader = try await spool.start()
        write(spool, "{\"n\":1}", to: ".one")
        spool.rename(".one", to: "one.json")
        write(spool, "{\"n\":2}", to: "two.json")
        await spool.untilLines(["{\"n\":1}", "{\"n\":2}"])
        await spool.until("both go") { spool.names().isEmpty }
        await reader.stop()
    }
}
