import Glibc
import Logs
import TestKit
import Testing

@testable import Spool

/// What lies in the spool's tree by its name, and is not the spool.
@Suite("The limits of the spool", .timeLimit(.minutes(5)))
struct BoundaryTests {
    /// Mounts a file system of its own; false where only root may, or a container forbids it.
    private func mountMemory(at path: String) -> Bool {
        mount("tmpfs", path, "tmpfs", 0, "size=1m,mode=0777") == 0
    }

    @Test(
        "a directory hidden by a mount at the start is read once it is unmounted",
        .enabled(if: getuid() == 0, "mounting takes root"))
    func mountedAtTheStart() async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory("app")
        spool.write("1\n", to: "app/x.jsonl")
        try #require(mountMemory(at: "\(spool.path)/app"))
        let reader = try await spool.start { $0.pathInterval = .milliseconds(50) }
        await spool.until("it is refused") { reader.figures.refused[.otherFileSystem] == 1 }
        try #require(umount2("\(spool.path)/app", 0) == 0)
        await spool.untilLines(["1"])
        await spool.until("all is well") {
            reader.figures.complaints.isEmpty && reader.figures.refusedFiles == 0
        }
        await reader.stop()
    }

    @Test(
        "another file system in the tree is not entered, whether mounted before the start or later, and is reported"
    )
    func fault26_otherFileSystemsAreNotEntered() async throws {
        let spool = try SpoolHarness()
        for name in ["before", "app", "later"] { spool.makeDirectory(name) }
        let mounted = "\(spool.path)/before"
        guard mountMemory(at: mounted) else { return }
        defer { umount2(mounted, Int32(MNT_DETACH)) }
        spool.write("elsewhere\n", to: "before/x.jsonl")
        spool.write("{\"n\":0}", to: "before/y.json")
        spool.write("1\n", to: "app/x.jsonl")
        let reader = try await spool.start()
        await spool.untilLines(["1"])
        await spool.until("it is refused") { reader.figures.refused[.otherFileSystem] == 1 }
        #expect(
            spool.log.messages.contains {
                $0.text == "file refused" && "\($0.fields)".contains("before")
                    && "\($0.fields)".contains("other_file_system")
            })
        // Beside it all goes on; a single file that is mounted over one of the spool's is another file system's too.
        spool.write("2\n", to: "app/hidden.jsonl")
        await spool.untilLines(["1", "2"])
        spool.write("", to: "app/target.jsonl")
        try #require(
            mount("\(mounted)/x.jsonl", "\(spool.path)/app/target.jsonl", nil, UInt(MS_BIND), nil) == 0)
        defer { umount2("\(spool.path)/app/target.jsonl", Int32(MNT_DETACH)) }
        await reader.stop()
        let second = try await spool.start { $0.pollInterval = .seconds(3600) }
        await spool.until("both are refused") { second.figures.refused[.otherFileSystem] == 2 }
        spool.append("3\n", to: "app/x.jsonl")
        await spool.untilLines(["1", "2", "3"])
        #expect(second.figures.directories == 3)
        // Mounted over a directory that is being read: what comes into it is another file system's, until it is gone.
        try #require(mountMemory(at: "\(spool.path)/later"))
        spool.write("elsewhere\n", to: "later/x.jsonl")
        spool.write("4\n", to: "app/y.jsonl")
        await spool.untilLines(["1", "2", "3", "4"])
        umount2("\(spool.path)/later", 0)
        spool.write("5\n", to: "later/x.jsonl")
        await spool.untilLines(["1", "2", "3", "4", "5"])
        await second.stop()
    }

    @Test(
        "a mount in the tree that does not answer delays nothing, also at the start, over directories and files",
        .enabled(if: SilentFileSystem.isPossible), arguments: [true, false])
    func silentMounts(isPlace: Bool) async throws {
        let spool = try SpoolHarness()
        for name in ["app", "bad", "incoming"] { spool.makeDirectory(name) }
        for name in ["incoming/x.json", "app/b.log", "app/y.json"] { spool.write("{}", to: name) }
        let paths = ["bad", "incoming/x.json", "app/b.log", "app/y.json"].map { "\(spool.path)/\($0)" }
        let mounts = try paths.map { try #require(SilentFileSystem(over: $0)) }
        defer { for mount in mounts { mount.end() } }
        spool.write("1\n", to: "app/a.log")
        let reader = try await spool.start {
            if isPlace {
                ($0.place, $0.afterRead) = (ReadPlace.of(app: "a", ["\(spool.path)/*/*.log"])?.first, .keep)
            }
        }
        await spool.untilLines(["1"])
        await spool.until("all are refused") { reader.figures.refused[.otherFileSystem] == (isPlace ? 2 : 4) }
        #expect(
            reader.figures.complaints.contains {
                $0.path.hasSuffix("bad") && $0.advice.contains("is mounted here")
            })
        let waiting = SpoolBacklog.measure(in: spool.path)
        #expect(waiting.files <= 1)
        spool.append("2\n", to: "app/a.log")
        await spool.untilLines(["1", "2"])
        await reader.stop()
    }

    @Test("directories deeper than sixteen levels are reported and not entered")
    func depthIsBounded() async throws {
        let spool = try SpoolHarness()
        var path = "d1"
        spool.makeDirectory(path)
        for level in 2...17 {
            path += "/d\(level)"
            spool.makeDirectory(path)
        }
        let sixteenth = String(path.prefix(upTo: path.lastIndex(of: "/") ?? path.endIndex))
        spool.write("too deep\n", to: "\(path)/x.jsonl")
        spool.write("1\n", to: "\(sixteenth)/x.jsonl")
        // What waits without an agent is counted as far down as an agent reads.
        #expect(SpoolBacklog.measure(in: spool.path).files == 1)
        let reader = try await spool.start()
        await spool.untilLines(["1"])
        await spool.until("the next is refused") { reader.figures.refused[.tooDeep] == 1 }
        #expect(reader.figures.directories == 17)
        await reader.stop()
        #expect(spool.queue.lines == ["1"])
    }
}
