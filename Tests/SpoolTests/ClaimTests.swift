import EventLoops
import Glibc
import Model
import Spool
import TestKit
import Testing

@Suite("Invalid claims, and names that are not read", .timeLimit(.minutes(5)))
struct ClaimTests {
    private static let claim = ".spoolship.0123456789abcdef."

    @Test("claimed links and FIFOs get their names back, or are removed if those are taken")
    func noClaimStaysHidden() async throws {
        let spool = try SpoolHarness()
        symlink("/etc/passwd", "\(spool.path)/\(Self.claim)link.json")
        mkfifo("\(spool.path)/\(Self.claim)fifo.json", 0o660)
        mkfifo("\(spool.path)/\(Self.claim)fifo.jsonl", 0o660)
        spool.makeDirectory("\(Self.claim)folder.json")
        symlink("/etc/passwd", "\(spool.path)/\(Self.claim)taken.json")
        spool.makeDirectory("taken.json")
        spool.write("{\"n\":2}", to: "\(Self.claim)true.json")
        let reader = try await spool.start()
        await spool.untilLines(["{\"n\":2}"])
        let left = ["fifo.json", "fifo.jsonl", "link.json", "taken.json", "\(Self.claim)folder.json"].sorted()
        // A directory under such a name is nobody's claim: hidden directories are not looked at.
        await spool.until("no claim is hidden") { spool.names() == left }
        #expect(reader.figures.refused[.notRegular] == 2)
        #expect(reader.figures.refused[.symbolicLink] == 2)
        await reader.stop()
    }

    @Test("files with names that nobody reads are counted and listed as long as they exist")
    func passedOver() async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory("app")
        for name in ["app/events.txt", "notes", "x.json.tmp", ".hidden"] { spool.write("x\n", to: name) }
        let reader = try await spool.start()
        await spool.until("two are passed over") { reader.figures.passedOver == 2 }
        #expect(reader.figures.passedOverNames == ["app/events.txt", "notes"])
        spool.write("y\n", to: "app/later.csv")
        // A file that never has a name, as a probe makes it.
        let nameless = open("\(spool.path)/app", 0o20_000_000 | O_DIRECTORY | O_WRONLY | O_CLOEXEC, 0o600)
        try #require(nameless >= 0)
        close(nameless)
        await spool.until("and a later one") { reader.figures.passedOver == 3 }
        // Those of the directory with fewest come first.
        #expect(reader.figures.passedOverNames == ["notes", "app/events.txt", "app/later.csv"])
        spool.rename("app/later.csv", to: "app/later.jsonl")
        spool.remove("notes")
        await spool.untilLines(["y"])
        await spool.until("those that go are forgotten") {
            reader.figures.passedOverNames == ["app/events.txt"]
        }
        removeTree("\(spool.path)/app")
        await spool.until("with their directory too") { reader.figures.passedOver == 0 }
        await reader.stop()
    }
}
