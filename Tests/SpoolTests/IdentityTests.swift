import CLinux
import EventLoops
import Glibc
import Model
import TestKit
import Testing

@testable import Spool

@Suite("File identity", .timeLimit(.minutes(5)))
struct IdentityTests {
    private func inode(_ path: String) -> UInt64 {
        var status = stat()
        return stat(path, &status) == 0 ? UInt64(status.st_ino) : 0
    }

    @Test("a file with a reused inode number is new, even if its beginning is the same")
    func fault03_reusedInodesAreNewFiles() async throws {
        let spool = try SpoolHarness()
        var expected: [String] = []
        var reused = 0
        var last: UInt64 = 0
        for round in 0..<12 {
            // The same beginning each time, and more of it each time: an old checkpoint would fit.
            let lines = (0...round).map { "line \($0) \(String(repeating: "-", count: 300))" }
            spool.write(lines.map { $0 + "\n" }.joined(), to: "x.jsonl")
            let number = inode("\(spool.path)/x.jsonl")
            if number == last { reused += 1 }
            last = number
            expected += lines
            let reader = try await spool.start()
            await spool.untilLines(expected)
            if round.isMultiple(of: 2) {
                // It goes while the reader looks; else while no reader runs.
                spool.remove("x.jsonl")
                await spool.until("it is missed") { reader.figures.appendFiles == 0 }
            }
            await reader.stop()
            spool.remove("x.jsonl")
        }
        // ext4 gives a number out again at once; where none comes back there is nothing to confuse.
        var kind = statfs()
        if statfs(spool.path, &kind) == 0, kind.f_type == 0xEF53 { #expect(reused > 0) }
    }

    @Test("an identity is an inode with its generation, and a hard link has the same")
    func handlesTellGenerations() throws {
        let spool = try SpoolHarness()
        spool.write("a", to: "a")
        link("\(spool.path)/a", "\(spool.path)/b")
        let first = spool.handle(of: "a")
        #expect(first == spool.handle(of: "b") && !first.isEmpty)
        spool.remove("a")
        spool.remove("b")
        var seen: Set<[UInt8]> = [first]
        for _ in 0..<20 {
            spool.write("a", to: "a")
            #expect(seen.insert(spool.handle(of: "a")).inserted)
            spool.remove("a")
        }
    }

    @Test(
        "a file whose identity had another form at the last stop is recognised by number and content",
        arguments: [[2], [3]] as [[UInt8]])
    func identitiesOfAnotherForm(form: [UInt8]) async throws {
        let spool = try SpoolHarness()
        let lines = (0..<50).map { "line \($0) of those that are read" }
        spool.write(lines.map { $0 + "\n" }.joined(), to: "x.jsonl")
        spool.write("other\n", to: "y.jsonl")
        var reader = try await spool.start { $0.afterRead = .keep }
        await spool.untilLines(lines + ["other"])
        await reader.stop()
        // As if the file system had had no handles then: the inode, and the time of birth where there is one.
        let number = inode("\(spool.path)/x.jsonl")
        let key =
            form + withUnsafeBytes(of: number.littleEndian) { Array($0) }
            + (form == [2] ? [1, 2, 3, 4, 5, 6, 7, 8] : [])
        let handle = spool.handle(of: "x.jsonl")
        spool.queue.with { queue in
            var kept = queue.checkpoints.removeValue(forKey: handle)
            kept?.key = key
            queue.checkpoints[key] = kept
        }
        spool.append("more\n", to: "x.jsonl")
        reader = try await spool.start { $0.afterRead = .keep }
        await spool.untilLines(lines + ["other", "more"])
        await reader.stop()
        #expect(spool.queue.with { $0.checkpoints.count } == 2, "the old identity goes")
        reader = try await spool.start { $0.afterRead = .keep }
        spool.append("last\n", to: "x.jsonl")
        await spool.untilLines(lines + ["other", "more", "last"])
        await reader.stop()
    }

    @Test("on a file system without handles nothing is lost or repeated")
    func fileSystemsWithoutHandles() async throws {
        let base = try TemporaryDirectory()
        // Only root may mount, and not in every container: there is then no such file system to try.
        guard mount("ramfs", base.path, "ramfs", 0, nil) == 0 else { return }
        defer { umount2(base.path, Int32(MNT_DETACH)) }
        let spool = try SpoolHarness(in: base.path)
        spool.write("1\n2\n", to: "x.jsonl")
        let form = spool.handle(of: "x.jsonl").first
        #expect(form == 2 || form == 3, "this one has handles")
        var reader = try await spool.start()
        await spool.untilLines(["1", "2"])
        spool.rename("x.jsonl", to: "x.jsonl.1")
        spool.append("3\n", to: "x.jsonl.1")
        spool.write("4\n", to: "x.jsonl")
        spool.write("{\"n\":5}", to: ".d")
        spool.rename(".d", to: "d.json")
        await spool.untilLines(["1", "2", "3", "4", "{\"n\":5}"])
        await spool.until("the drop file goes") { !spool.names().contains { $0.hasSuffix("d.json") } }
        await reader.stop()
        spool.remove("x.jsonl")
        spool.write("4\n6\n", to: "x.jsonl")
        reader = try await spool.start()
        await spool.untilLines(["1", "2", "3", "4", "{\"n\":5}", "4", "6"])
        await reader.stop()
    }
}
