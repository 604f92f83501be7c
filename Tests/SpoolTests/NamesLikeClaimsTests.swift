import EventLoops
import Glibc
import Logs
import Model
@testable import Spool
import TestKit
import Testing

/// Any user can give a file a name like those that the agent gives. It must be of no use.
@Suite("Spool: names like the agent's claims give no advantage", .timeLimit(.minutes(5)))
struct NamesLikeClaimsTests {
    private func claim(_ number: UInt64, _ name: String) -> String { FileName(name).claim(number).text }

    @Test(
        "drop files with such names count among those that stay: others wait, are reported, and are read later"
    )
    func bounded() async throws {
        let spool = try SpoolHarness()
        for app in ["bad", "good"] { spool.makeDirectory(app) }
        let count = 4_000
        for number in 0..<count {
            let name = "bad/\(claim(UInt64(number), "x.json"))"
            spool.write("{\"bad\":\(number)}\n", to: name)
            spool.queue.with { [file = spool.handle(of: name)] in _ = $0.staying.insert(file) }
        }
        // Half of the bound, and what three commits hold, which are read before their files have to stay.
        let most = 512 + 3 * 512
        var reader = try await spool.start { $0.mostStayingDrops = 1024 }
        for start in 1...2 {
            await spool.until("the rest waits") {
                reader.figures.complaints.contains { $0.path == "bad/*.json" }
            }
            #expect(
                reader.figures.complaints.contains {
                    $0.path.hasPrefix("bad/.spoolship.") || $0.path == "bad/x.json"
                })
            spool.write("{\"good\":\(start)}\n", to: "good/.new")
            spool.rename("good/.new", to: "good/\(start).json")
            await spool.until("the other app's is read") { spool.queue.lines.contains("{\"good\":\(start)}") }
            await spool.until("its record goes") {
                spool.queue.with { state in state.done.count < state.lines.count - start + 1 }
            }
            let records = spool.queue.with { $0.done.count }
            #expect(spool.queue.lines.count <= most && records <= most)
            await reader.stop()
            // What the reader before this one has read stays, is known, and is not read again.
            reader = try await spool.start { $0.mostStayingDrops = 1024 }
        }
        spool.queue.with { $0.staying = [] }
        await reader.removeReleased()
        await spool.until("all are read and go") {
            spool.queue.lines.count >= count + 2 && spool.names(in: "bad").isEmpty
        }
        #expect(Set(spool.queue.lines).count == count + 2 && spool.queue.lines.count == count + 2)
        await reader.stop()
    }

    @Test("the names of claims are unpredictable: nobody can occupy the next ones")
    func unpredictable() async throws {
        let spool = try SpoolHarness()
        spool.write("{\"n\":1}\n", to: ".own")
        let own = open("\(spool.path)/.own", O_RDONLY | O_CLOEXEC)
        defer { close(own) }
        let reader = try await spool.start()
        spool.rename(".own", to: "own.json")
        await spool.untilLines(["{\"n\":1}"])
        let link = try #require(RealPath.target(of: FileSystem.selfPath(own)))
        let name = FileName(
            link.split(separator: "/").last.map { $0.split(separator: " ")[0] }.map { String($0) } ?? "")
        let digits = try #require(name.claimed != nil ? name.text.split(separator: ".")[1] : nil)
        let number = try #require(UInt64(digits, radix: 16))
        for next in 1...2_000 { spool.makeDirectory(claim(number &+ UInt64(next), "report.json")) }
        spool.write("{\"n\":2}\n", to: ".report")
        spool.rename(".report", to: "report.json")
        await spool.untilLines(["{\"n\":1}", "{\"n\":2}"])
        await reader.stop()
    }

    /// Draws one number again and again.
    private struct Constant: RandomNumberGenerator {
        func next() -> UInt64 { 7 }
    }

    @Test("a file that cannot be claimed because names are taken is reported; others are read")
    func namesTaken() async throws {
        let spool = try SpoolHarness()
        for name in ["taken.json", "taken.jsonl.1"] { spool.makeDirectory(claim(7, name)) }
        spool.write("{\"n\":1}\n", to: "taken.json")
        spool.write("{\"n\":2}\n", to: "taken.jsonl.1")
        spool.write("{\"n\":3}\n", to: "other.json")
        let reader = try await spool.start(random: Constant())
        await spool.until("the others are read") { spool.queue.lines.sorted() == ["{\"n\":2}", "{\"n\":3}"] }
        await spool.until("both are named") {
            Set(reader.figures.complaints.map(\.path)).isSuperset(of: ["taken.json", "taken.jsonl.1"])
        }
        await spool.until("both are tried again") { reader.figures.secondTries == [.nameTaken: 2] }
        #expect(
            reader.figures.secondTryPaths == ["taken.json", "taken.jsonl.1"].map { "\(spool.path)/\($0)" })
        #expect(SpoolObstacle.nameTaken.isOwners)
        for name in ["taken.json", "taken.jsonl.1"] { rmdir("\(spool.path)/\(claim(7, name))") }
        await spool.until("both go") { spool.names().isEmpty }
        await spool.until("nothing is reported any more") { reader.figures.complaints.isEmpty }
        await spool.untilLines(["{\"n\":1}", "{\"n\":2}", "{\"n\":3}"])
        await reader.stop()
    }

    @Test("obstacles by entries of users are theirs, and shortages of the machine are the agent's")
    func obstacles() {
        for number in [EEXIST, EISDIR, ELOOP, ENOENT, ENOTDIR, EACCES, EPERM] {
            #expect(SpoolObstacle(SystemError("unlinkat", number: number)).isOwners)
        }
        for number in [EMFILE, ENOMEM, EROFS, ENOSPC, EIO] {
            #expect(!SpoolObstacle(SystemError("unlinkat", number: number)).isOwners)
        }
    }

    @Test("a file that an earlier reader claimed and did not commit is read once, however that reader ended")
    func earlierClaims() async throws {
        let spool = try SpoolHarness()
        spool.write("{\"n\":1}\n", to: claim(1, "a.json"))
        spool.write("{\"n\":2}\n", to: claim(2, "b.jsonl"))
        // Its record is in the queue under this name, and its file is still there.
        spool.write("{\"n\":3}\n", to: claim(3, "c.json"))
        let record = DoneRecord(
            claim: Array(claim(3, "c.json").utf8), handle: spool.handle(of: claim(3, "c.json")))
        spool.queue.with { $0.done = [record] }
        let reader = try await spool.start { $0.giveUpTime = .milliseconds(80) }
        await spool.untilLines(["{\"n\":1}", "{\"n\":2}"])
        await spool.until("all go") { spool.names().isEmpty }
        await spool.until("their records go") { spool.queue.with { $0.done.isEmpty } }
        #expect(spool.queue.lines.count == 2)
        await reader.stop()
    }
}
