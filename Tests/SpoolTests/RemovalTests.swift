import Glibc
import Model
import Spool
import TestKit
import Testing

@Suite("Files after reading", .timeLimit(.minutes(5)))
struct RemovalTests {
    @Test("a rotated append file is removed when it is queued; the current one stays until the give-up time")
    func rotatedFilesGo() async throws {
        let spool = try SpoolHarness()
        spool.write("1\n2\nno line feed", to: "x.jsonl.1")
        spool.write("3\n", to: "x.jsonl")
        let reader = try await spool.start()
        await spool.untilLines(["1", "2", "no line feed", "3"])
        await spool.until("the rotated file goes") { spool.names() == ["x.jsonl"] }
        await reader.stop()
        let second = try await spool.start { $0.giveUpTime = .milliseconds(100) }
        await spool.until("the other is given up") { spool.names().isEmpty }
        spool.append("4\n", to: "x.jsonl")
        await spool.untilLines(["1", "2", "no line feed", "3", "4"])
        await second.stop()
    }

    @Test("a file rotated after it was read is removed as soon as its writer is gone")
    func filesRotatedLaterGoSoon() async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory("old")
        let held = open("\(spool.path)/held.jsonl", O_WRONLY | O_CREAT | O_APPEND, 0o660)
        write(held, "held\n", 5)
        for name in ["x.jsonl", "moved.jsonl"] { spool.write("\(name)\n", to: name) }
        // Files are given up after an hour: the test's patience is shorter.
        let reader = try await spool.start()
        await spool.untilLines(["held", "x.jsonl", "moved.jsonl"])
        await spool.pause(.milliseconds(200))
        spool.rename("x.jsonl", to: "x.jsonl.1")
        spool.rename("moved.jsonl", to: "old/moved.jsonl-20261121")
        spool.rename("held.jsonl", to: "held.jsonl.1")
        await spool.until("those without a writer go") {
            spool.names() == ["held.jsonl.1", "old"] && spool.names(in: "old").isEmpty
        }
        // Its writer has not been told yet, writes on, and closes it.
        write(held, "more\n", 5)
        await spool.untilLines(["held", "x.jsonl", "moved.jsonl", "more"])
        #expect(spool.exists("held.jsonl.1"))
        close(held)
        await spool.until("the other goes too") { spool.names() == ["old"] }
        // The name goes first, its count after it.
        await spool.until("all three are counted") { reader.figures.filesRemoved == 3 }
        await reader.stop()
    }

    @Test("a name that belongs to another file now is not claimed for the one that was read")
    func namesThatWerePassedOnStay() async throws {
        let spool = try SpoolHarness()
        spool.write("1\n", to: "x.jsonl.1")
        // Polled, and seldom: the file is to go before its new name is seen.
        let reader = try await spool.start {
            $0.isWatching = false
            $0.settleTime = .seconds(1)
            $0.pollInterval = .seconds(4)
        }
        await spool.untilLines(["1"])
        spool.rename("x.jsonl.1", to: "x.jsonl.2")
        spool.write("2\n", to: "x.jsonl.1")
        await spool.untilLines(["1", "2"])
        await spool.until("both go, once they are read") { spool.names().isEmpty }
        #expect(reader.figures.bytesGivenUp == 0)
        await reader.stop()
    }

    @Test("a file whose name is taken while it is returned is read under the hidden one")
    func namesThatAreTakenTwice() async throws {
        let spool = try SpoolHarness()
        for number in 1...40 { spool.write("\(number)\n", to: "x.jsonl.\(number)") }
        let reader = try await spool.start {
            $0.isWatching = false
            $0.settleTime = .milliseconds(20)
            $0.pollInterval = .milliseconds(200)
        }
        // A chain that is shifted as fast as it goes, while its files leave.
        var written = 40
        while written < 400 {
            for number in stride(from: 500, through: 1, by: -1) where spool.exists("x.jsonl.\(number)") {
                _ = Glibc.rename("\(spool.path)/x.jsonl.\(number)", "\(spool.path)/x.jsonl.\(number + 1)")
            }
            written += 1
            spool.write("\(written)\n", to: "x.jsonl.1")
            await spool.pause(.milliseconds(2))
        }
        await spool.until("all are read, each once") { spool.queue.lines.count >= written }
        #expect(spool.queue.lines.count == written)
        #expect(Set(1...written).subtracting(spool.queue.lines.compactMap { Int($0) }) == [])
        await reader.stop()
    }

    @Test("a file that a writer has open is never removed")
    func filesWithWritersStay() async throws {
        let spool = try SpoolHarness()
        let held = open("\(spool.path)/x.jsonl.1", O_WRONLY | O_CREAT | O_APPEND, 0o660)
        write(held, "1\n", 2)
        let reader = try await spool.start()
        await spool.untilLines(["1"])
        await spool.pause(.milliseconds(400))
        #expect(spool.exists("x.jsonl.1"))
        write(held, "2\n", 2)
        await spool.untilLines(["1", "2"])
        close(held)
        await spool.until("it goes when its writer is gone") { spool.names().isEmpty }
        await reader.stop()
    }

    @Test("a writer that opens a file during its removal loses nothing")
    func lateWritersLoseNothing() async throws {
        let spool = try SpoolHarness()
        let reader = try await spool.start {
            $0.giveUpTime = .milliseconds(1)
            $0.graceTime = .seconds(6)
        }
        spool.write("1\n", to: "x.jsonl")
        // In its time of grace it has a name of ours; a writer that opened it under its own just before comes now.
        await spool.until("it is about to go") { spool.names().contains { $0.hasPrefix(".spoolship") } }
        let hidden = try #require(spool.names().first { $0.hasPrefix(".spoolship") })
        let held = open("\(spool.path)/\(hidden)", O_WRONLY | O_APPEND)
        #expect(held >= 0)
        write(held, "2\n", 2)
        await spool.untilLines(["1", "2"])
        write(held, "3\n", 2)
        await spool.untilLines(["1", "2", "3"])
        #expect(spool.exists("x.jsonl"))
        close(held)
        await spool.until("it goes in the end") { spool.names().isEmpty }
        #expect(spool.queue.lines == ["1", "2", "3"])
        await reader.stop()
    }

    @Test("writers that repeatedly open, write and close lose nothing while their files are removed")
    func busyWritersLoseNothing() async throws {
        let spool = try SpoolHarness()
        let reader = try await spool.start {
            $0.giveUpTime = .milliseconds(1)
            $0.graceTime = .milliseconds(5)
        }
        var lines: [String] = []
        var random = SplitMix64(seed: 5)
        func write() {
            spool.append("line \(lines.count)\n", to: "x.jsonl")
            lines.append("line \(lines.count)")
        }
        for _ in 0..<400 {
            write()
            if random.next() % 4 == 0 { await spool.pause(.milliseconds(Int64(random.next() % 12))) }
        }
        // On a slow machine none may have gone yet.
        await spool.until("some have gone") {
            write()
            return reader.figures.filesRemoved > 1
        }
        await spool.untilLines(lines)
        await reader.stop()
    }

    @Test("an append file that was being removed at a stop is not read again")
    func removalGoesOnAfterARestart() async throws {
        let spool = try SpoolHarness()
        spool.write("1\n", to: "x.jsonl.1")
        var reader = try await spool.start { $0.graceTime = .seconds(60) }
        await spool.until("it is about to go") { spool.names().contains { $0.hasPrefix(".spoolship") } }
        await reader.stop()
        reader = try await spool.start()
        await spool.until("it goes") { spool.names().isEmpty }
        #expect(spool.queue.lines == ["1"])
        await reader.stop()
    }

    @Test("keep: files stay, and are not read again until a drop file's content changes")
    func keptFilesStay() async throws {
        let spool = try SpoolHarness()
        spool.write("1\n", to: "x.jsonl.1")
        spool.write("{\"n\":2}", to: ".y")
        spool.rename(".y", to: "y.json")
        var reader = try await spool.start { $0.afterRead = .keep }
        await spool.untilLines(["1", "{\"n\":2}"])
        await reader.stop()
        reader = try await spool.start { $0.afterRead = .keep }
        await spool.pause(.milliseconds(200))
        #expect(spool.names() == ["x.jsonl.1", "y.json"])
        spool.write("{\"n\":3,\"more\":true}", to: ".z")
        spool.rename(".z", to: "y.json")
        await spool.untilLines(["1", "{\"n\":2}", "{\"n\":3,\"more\":true}"])
        await reader.stop()
    }

    @Test("archive: files move to the folder of the day, and old days are removed")
    func archivedFilesMove() async throws {
        let spool = try SpoolHarness()
        for folder in [
            "shop", ".archive", ".archive/2020-01-01", ".archive/2020-01-01/shop", ".archive/other",
        ] {
            spool.makeDirectory(folder)
        }
        spool.write("old", to: ".archive/2020-01-01/shop/old.json")
        spool.write("1\n", to: "shop/x.jsonl.1")
        spool.write("{\"n\":2}", to: "shop/.y")
        spool.rename("shop/.y", to: "shop/y.json")
        let reader = try await spool.start {
            $0.afterRead = .archive(directory: ".archive", retention: .seconds(86_400 * 30))
        }
        await spool.untilLines(["1", "{\"n\":2}"])
        await spool.until("both have moved") {
            guard let day = spool.names(in: ".archive").first(where: { $0 > "2021" && $0 < "3" }) else {
                return false
            }
            return spool.names(in: ".archive/\(day)/shop") == ["x.jsonl.1", "y.json"]
        }
        #expect(spool.names(in: "shop").isEmpty)
        #expect(!spool.exists(".archive/2020-01-01"))
        #expect(spool.exists(".archive/other"))
        await reader.stop()
    }

    @Test("archive: an archive inside the spool is not read, whatever its name, even if it grows meanwhile")
    func archivesAreNotRead() async throws {
        for path in ["kept", ".spoolship/archive"] {
            let spool = try SpoolHarness()
            let reader = try await spool.start {
                $0.afterRead = .archive(directory: "\(spool.path)/\(path)", retention: nil)
            }
            for number in 0..<20 {
                spool.write("{\"n\":\(number)}", to: ".y")
                spool.rename(".y", to: "\(number).json")
            }
            await spool.until("all have moved") { spool.names().allSatisfy { !$0.hasSuffix(".json") } }
            // Made while the reader runs: what is hidden is none of its business.
            spool.makeDirectory(".later")
            spool.write("{\"n\":99}", to: ".later/z.json")
            spool.write("{\"n\":20}", to: ".y")
            spool.rename(".y", to: "20.json")
            await spool.untilLines((0...20).map { "{\"n\":\($0)}" })
            await spool.pause(.milliseconds(200))
            #expect(spool.queue.lines.count == 21)
            #expect(reader.figures.directories == 1)
            await reader.stop()
        }
    }

    @Test("archive: while the clock is not trusted nothing in it is too old")
    func archivesOfWrongClocks() async throws {
        let spool = try SpoolHarness()
        for folder in [".archive", ".archive/2020-01-01"] { spool.makeDirectory(folder) }
        for isTrusted in [false, true] {
            spool.queue.with { $0.isClockTrusted = isTrusted }
            let reader = try await spool.start {
                $0.afterRead = .archive(directory: ".archive", retention: .seconds(86_400 * 30))
            }
            spool.write("{\"n\":\(isTrusted)}", to: ".y")
            spool.rename(".y", to: "\(isTrusted).json")
            await spool.until("it is put away") { reader.figures.filesRemoved == 1 }
            #expect(spool.exists(".archive/2020-01-01") == !isTrusted)
            await reader.stop()
        }
    }

    @Test("archive: beyond its limit in bytes the oldest files are removed first")
    func archivesAreBounded() async throws {
        let spool = try SpoolHarness()
        for folder in [".archive", ".archive/2020-01-01", ".archive/2020-01-01/shop"] {
            spool.makeDirectory(folder)
        }
        for number in 0..<3 {
            spool.write(String(repeating: "o", count: 1000), to: ".archive/2020-01-01/shop/\(number).json")
        }
        let reader = try await spool.start {
            $0.afterRead = .archive(directory: ".archive", retention: nil, mostBytes: 10_000)
        }
        for number in 0..<30 {
            spool.write("{\"text\":\"\(String(repeating: "x", count: 988))\"}", to: ".y")
            spool.rename(".y", to: "\(number).json")
            await spool.until("\(number) is put away") { reader.figures.filesRemoved == number + 1 }
        }
        let day = try #require(spool.names(in: ".archive").first { $0 > "2021" })
        let left = spool.names(in: ".archive/\(day)/default")
        #expect(!spool.exists(".archive/2020-01-01"))
        #expect((8...10).contains(left.count), "\(left)")
        #expect(left.contains("29.json") && !left.contains("5.json"))
        await reader.stop()
    }
}
