import EventLoops
import Glibc
import Model
import Synchronization
import TestKit
import Testing

@testable import Spool

@Suite("Copies of files that were read", .timeLimit(.minutes(5)))
struct KnownContentTests {
    @Test("the name before rotation and compression is found, whatever they added")
    func stems() {
        for name in [
            "x.jsonl", "x.jsonl.1", "x.jsonl-20261120", "x.jsonl.2.gz", "x.jsonl-20261120.zst", "x.jsonl.old",
            ".spoolship.0123456789abcdef.x.jsonl.1",
        ] {
            #expect(FileName(name).stem == FileName("x.jsonl"), "\(name)")
        }
        #expect(FileName("y.log.3").stem == FileName("y.log"))
        #expect(FileName("z.json").stem == FileName("z.json"))
    }

    @Test("fault03: the beginning of a torn line is no copy's mark: files that begin with it are read whole")
    func fault03_tornLinesAreNoFingerprint() async throws {
        let spool = try SpoolHarness()
        // What a power cut left of a line, closed and quiet: it counts as a line.
        spool.write("{\"", to: "x.jsonl")
        let reader = try await spool.start { $0.afterRead = .keep }
        await spool.untilLines(["{\""])
        spool.write("{\"n\":1}\n{\"n\":2}\n", to: "x.jsonl.1")
        await spool.untilLines(["{\"", "{\"n\":1}", "{\"n\":2}"])
        await reader.stop()
    }

    @Test("fault03: a file of another name that begins like one that was read is another file, rotated or packed")
    func fault03_otherNamesAreOtherFiles() async throws {
        let spool = try SpoolHarness()
        let reader = try await spool.start { $0.afterRead = .keep }
        spool.write("{\"started\":true}\n", to: "web.jsonl")
        await spool.untilLines(["{\"started\":true}"])
        spool.write("{\"started\":true}\n{\"n\":1}\n", to: "cron.jsonl.1")
        await spool.untilLines(["{\"started\":true}", "{\"started\":true}", "{\"n\":1}"])
        await reader.stop()
    }

    @Test("fault02: of all that is known of a copy the farthest place counts, though it began alike before")
    func fault02_theFarthestPlaceCounts() async throws {
        let spool = try SpoolHarness()
        let reader = try await spool.start { $0.afterRead = .keep }
        let start = "{\"started\":true}"
        spool.write(start + "\n", to: "x.jsonl")
        await spool.untilLines([start])
        // Truncated, and begun anew in the same way.
        spool.write("", to: "x.jsonl")
        await spool.until("the truncation is seen") { reader.figures.truncations == 1 }
        spool.append(start + "\n{\"n\":1}\n{\"n\":2}\n", to: "x.jsonl")
        await spool.untilLines([start, start, "{\"n\":1}", "{\"n\":2}"])
        // Rotation copies it before it truncates it.
        spool.write(start + "\n{\"n\":1}\n{\"n\":2}\n", to: "x.jsonl.1")
        await spool.pause(.milliseconds(300))
        spool.write("", to: "x.jsonl")
        spool.append("{\"n\":3}\n", to: "x.jsonl")
        await spool.untilLines([start, start, "{\"n\":1}", "{\"n\":2}", "{\"n\":3}"])
        await spool.pause(.milliseconds(200))
        #expect(spool.queue.lines.count == 5)
        await reader.stop()
    }

    @Test("an append file goes only after what was committed of it survives a power cut")
    func removalWaitsForDurability() async throws {
        let spool = try SpoolHarness()
        spool.queue.with { $0.isPersistent = false }
        spool.write("1\n", to: "x.jsonl.1")
        let reader = try await spool.start()
        await spool.until("it is about to go") { spool.names().contains { $0.hasPrefix(".spoolship") } }
        // Longer than its time of grace.
        await spool.pause(.milliseconds(400))
        #expect(!spool.names().isEmpty)
        spool.queue.with { $0.isPersistent = true }
        await spool.until("it goes") { spool.names().isEmpty }
        #expect(spool.queue.lines == ["1"])
        await reader.stop()
    }
}
