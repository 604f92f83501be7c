import EventLoops
import Frames
import Glibc
import Model
import TestKit
import Testing

@testable import Spool

/// Compressed files where files are read in place: those that rotation makes, and those that a pattern names.
@Suite("Compressed files in place", .timeLimit(.minutes(5)))
struct PlaceArchiveTests {
    private func start(
        _ spool: SpoolHarness, _ patterns: [String] = ["*.log"], since: ReadStart = .beginning,
        settleTime: Duration = .milliseconds(60), secondTry: Duration = .milliseconds(100)
    ) async throws -> SpoolReader {
        let place = try #require(ReadPlace.of(app: "web", patterns.map { "\(spool.path)/\($0)" })?.first)
        return try await spool.start {
            ($0.place, $0.directory, $0.afterRead, $0.since) = (place, place.root, .keep, since)
            ($0.settleTime, $0.secondTry) = (settleTime, secondTry)
        }
    }

    private func untilListed(_ spool: SpoolHarness) async {
        await spool.until("the patterns were seen") {
            spool.queue.with { $0.memory.values.allSatisfy { $0.last == 1 } && !$0.memory.isEmpty }
        }
    }

    private func pack(_ text: String, _ compression: Compression = .gzip) throws -> [UInt8] {
        try FrameCompressor(compression).compress(Array(text.utf8))
    }

    @Test(
        "a file compressed before it was read to its end is read once from its archive",
        arguments: [Compression.gzip, .zstd])
    func rotatedWhileStopped(compression: Compression) async throws {
        let spool = try SpoolHarness()
        let end = compression == .gzip ? "gz" : "zst"
        let lines = (0..<300).map { "line \($0)" }
        spool.write(lines[..<200].map { $0 + "\n" }.joined(), to: "app.log")
        var reader = try await start(spool)
        await spool.untilLines(Array(lines[..<200]))
        await untilListed(spool)
        await reader.stop()
        // Rotated twice while the agent is stopped: of the second file nothing was read.
        spool.write(try pack(lines.map { $0 + "\n" }.joined(), compression), to: "app.log.2.\(end)")
        spool.write(try pack("second\n", compression), to: "app.log.1.\(end)")
        spool.remove("app.log")
        spool.write("third\n", to: "app.log")
        reader = try await start(spool)
        let expected = lines + ["second", "third"]
        await spool.untilLines(expected)
        await reader.stop()
        // Shifted by the next rotation, and compressed with nothing left to read.
        spool.rename("app.log.2.\(end)", to: "app.log.3.\(end)")
        spool.rename("app.log.1.\(end)", to: "app.log.2.\(end)")
        spool.write(try pack("third\n", compression), to: "app.log.1.\(end)")
        spool.write("fourth\n", to: "app.log")
        reader = try await start(spool)
        await spool.untilLines(expected + ["fourth"])
        await spool.pause(.milliseconds(500))
        #expect(Set(spool.queue.lines).count == spool.queue.lines.count)
        #expect(spool.queue.quarantined.isEmpty)
        await reader.stop()
    }

    @Test(
        "an archive made while the agent was stopped is read, although the pattern is spelled anew",
        arguments: [["{app,other}.log"], ["app.log", "new/*.log"], ["app.lo?"], ["**/*.log"]])
    func spelledAnew(patterns: [String]) async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory("new")
        spool.write(try pack("ancient\n"), to: "app.log-1.gz")
        spool.write(try pack("elsewhere\n"), to: "new/x.log-1.gz")
        spool.write("1\n2\n3\n", to: "app.log")
        await spool.pause(.milliseconds(50))
        var reader = try await start(spool)
        await spool.untilLines(["1", "2", "3"])
        await untilListed(spool)
        await reader.stop()
        // Two rotations while the agent is stopped; nothing was read of the second file.
        spool.write(try pack("1\n2\n3\n4\n"), to: "app.log-2.gz")
        spool.write(try pack("5\n"), to: "app.log-3.gz")
        spool.remove("app.log")
        spool.write("6\n", to: "app.log")
        reader = try await start(spool, patterns)
        await spool.untilLines(["1", "2", "3", "4", "5", "6"])
        await untilListed(spool)
        await spool.pause(.milliseconds(300))
        #expect(spool.queue.lines.sorted() == ["1", "2", "3", "4", "5", "6"])
        await reader.stop()
    }

    @Test("existing archives are left alone, unless a pattern names them, and nothing is changed")
    func history() async throws {
        let spool = try SpoolHarness()
        spool.write(try pack("old\n"), to: "app.log.1.gz")
        spool.write("1\n", to: "app.log")
        await spool.pause(.milliseconds(50))
        var reader = try await start(spool)
        await spool.untilLines(["1"])
        await untilListed(spool)
        await spool.pause(.milliseconds(300))
        #expect(spool.queue.lines == ["1"])
        await reader.stop()
        spool.rename("app.log.1.gz", to: "app.log.2.gz")
        reader = try await start(spool)
        spool.append("2\n", to: "app.log")
        await spool.untilLines(["1", "2"])
        await spool.pause(.milliseconds(300))
        #expect(spool.queue.lines == ["1", "2"])
        await reader.stop()
    }

    @Test(
        "an existing archive is left alone, even if it is so new that it must settle first",
        arguments: [["*.log"], ["*.log", "*.log.*.gz"]])
    func newHistory(patterns: [String]) async throws {
        let spool = try SpoolHarness()
        spool.write(try pack("old\n"), to: "app.log.1.gz")
        // A file that is born in the tick of the first sight counts as new.
        await spool.pause(.milliseconds(50))
        var reader = try await start(spool, patterns, since: .now, settleTime: .milliseconds(500))
        await untilListed(spool)
        spool.write("1\n", to: "app.log")
        await spool.untilLines(["1"])
        await reader.stop()
        reader = try await start(spool, patterns, since: .now, settleTime: .milliseconds(500))
        spool.append("2\n", to: "app.log")
        await spool.pause(.milliseconds(1200))
        await spool.untilLines(["1", "2"])
        await reader.stop()
    }

    @Test("a gzip file that a pattern names is read once, under its full path, unless `since` skips it")
    func named() async throws {
        let spool = try SpoolHarness()
        spool.write(try pack("a\nb\n"), to: "export.json.gz")
        await spool.pause(.milliseconds(50))
        var reader = try await start(spool, ["*.gz"])
        await spool.untilLines(["a", "b"])
        #expect(
            spool.queue.with {
                $0.lines.allSatisfy { $0.path == "\(spool.path)/export.json.gz" && $0.app == "web" }
            })
        await untilListed(spool)
        await reader.stop()
        reader = try await start(spool, ["*.gz"])
        spool.write(try pack("c\n"), to: "next.json.gz")
        await spool.untilLines(["a", "b", "c"])
        await spool.pause(.milliseconds(300))
        #expect(spool.queue.lines == ["a", "b", "c"])
        await reader.stop()
        let other = try SpoolHarness()
        other.write(try pack("a\n"), to: "export.gz")
        await other.pause(.milliseconds(50))
        reader = try await start(other, ["*.gz"], since: .now)
        await untilListed(other)
        other.write(try pack("b\n"), to: "new.gz")
        await other.untilLines(["b"])
        await reader.stop()
    }

    /// Lines whose archive is long enough to be cut between them.
    private func lines(_ name: String, _ count: Int) -> [String] {
        (0..<count).map { "\(name) \($0) \($0 &* 2_654_435_761 % 1_000_003)" }
    }

    /// Waits until the agent has committed that all of a file was read.
    private func untilDone(_ spool: SpoolHarness, _ name: String) async {
        let key = spool.handle(of: name)
        await spool.until("\(name) counts as read") {
            spool.queue.with { $0.checkpoints[key].flatMap { FileTrace($0.state) }?.doneVersion != nil }
        }
    }

    @Test("an archive that is complete only at its second try is read once, after a restart too")
    func completeAtSecondTry() async throws {
        let spool = try SpoolHarness()
        var reader = try await start(spool, ["*.gz"], secondTry: .seconds(6))
        await untilListed(spool)
        let lines = lines("line", 20_000)
        let packed = try pack(lines.map { $0 + "\n" }.joined())
        let cut = packed.count / 4 * 3
        // Renamed to its name, so that it is read at once.
        spool.write(Array(packed[..<cut]), to: ".new")
        spool.rename(".new", to: "a.gz")
        await spool.until("its beginning arrives") { !spool.queue.lines.isEmpty }
        #expect(spool.queue.lines.count < lines.count)
        spool.write(Array(packed[cut...]), to: "a.gz", mode: O_APPEND)
        await spool.untilLines(lines)
        await untilDone(spool, "a.gz")
        await reader.stop()
        reader = try await start(spool, ["*.gz"])
        spool.write(try pack("next\n"), to: "b.gz")
        await spool.until("the next one arrives") { spool.queue.lines.contains("next") }
        await spool.pause(.milliseconds(500))
        #expect(spool.queue.lines.count == lines.count + 1)
        #expect(spool.queue.quarantined.isEmpty)
        await reader.stop()
    }

    @Test("an archive that was rewritten between its two tries loses no line")
    func rewrittenBetweenTries() async throws {
        let spool = try SpoolHarness()
        var reader = try await start(spool, ["*.gz"], secondTry: .seconds(6))
        await untilListed(spool)
        let packed = try pack(lines("old", 20_000).map { $0 + "\n" }.joined())
        spool.write(Array(packed[..<(packed.count / 4 * 3)]), to: ".new")
        spool.rename(".new", to: "a.gz")
        await spool.until("its beginning arrives") { !spool.queue.lines.isEmpty }
        let lines = lines("new", 40_000)
        spool.write(try pack(lines.map { $0 + "\n" }.joined()), to: "a.gz")
        await spool.until("its end arrives") { spool.queue.lines.contains(lines[lines.count - 1]) }
        await untilDone(spool, "a.gz")
        await reader.stop()
        reader = try await start(spool, ["*.gz"])
        await spool.until("all of it arrives") { Set(spool.queue.lines).isSuperset(of: lines) }
        await reader.stop()
    }

    /// The times that a line arrived, if more than one.
    private func repeated(_ spool: SpoolHarness) -> [String: Int] {
        Dictionary(spool.queue.lines.map { ($0, 1) }, uniquingKeysWith: +).filter { $0.value > 1 }
    }

    @Test("an archive that grows after its second try, or is only touched, gives each line once")
    func growsOn() async throws {
        let spool = try SpoolHarness()
        var reader = try await start(spool, ["*.gz"])
        await untilListed(spool)
        let lines = lines("line", 30_000)
        let packed = try pack(lines.map { $0 + "\n" }.joined())
        let cuts = [0, packed.count / 3, packed.count / 3 * 2, packed.count]
        for round in 1..<cuts.count {
            let before = spool.queue.quarantined.count
            spool.write(Array(packed[cuts[round - 1]..<cuts[round]]), to: "a.gz", mode: O_APPEND)
            if round < cuts.count - 1 {
                await spool.until("it is incomplete") { spool.queue.quarantined.count > before }
            } else {
                await spool.untilLines(lines)
            }
            await untilDone(spool, "a.gz")
            if round == 2 {
                await reader.stop()
                reader = try await start(spool, ["*.gz"])
            }
        }
        #expect(repeated(spool).isEmpty)
        // Its times change, while the agent runs and while it does not.
        let count = spool.queue.quarantined.count
        for isRunning in [true, false] {
            if !isRunning { await reader.stop() }
            var times = [timespec(tv_sec: 1_700_000_000, tv_nsec: isRunning ? 1 : 2), timespec()]
            times[1] = times[0]
            #expect(utimensat(AT_FDCWD, "\(spool.path)/a.gz", times, 0) == 0)
            if !isRunning { reader = try await start(spool, ["*.gz"]) }
            spool.write(try pack("next \(isRunning)\n"), to: "\(isRunning).gz")
            await spool.until("the next one arrives") { spool.queue.lines.contains("next \(isRunning)") }
            await spool.pause(.milliseconds(400))
        }
        #expect(repeated(spool).isEmpty && spool.queue.lines.count == lines.count + 2)
        #expect(spool.queue.quarantined.count == count)
        await reader.stop()
    }

    @Test("an archive whose last line has no line feed loses no byte of what is added to it")
    func growsAfterSealedLine() async throws {
        let spool = try SpoolHarness()
        let reader = try await start(spool, ["*.gz"])
        await untilListed(spool)
        spool.write(try pack("first\nsecond"), to: "a.gz")
        await spool.untilLines(["first", "second"])
        await untilDone(spool, "a.gz")
        spool.write(try pack("third\n"), to: "a.gz", mode: O_APPEND)
        await spool.untilLines(["first", "second", "third"])
        #expect(repeated(spool).isEmpty && spool.queue.quarantined.isEmpty)
        await reader.stop()
    }

    @Test("an archive that is replaced after it was read, by a longer or a shorter one, is read whole")
    func replaced() async throws {
        let spool = try SpoolHarness()
        let reader = try await start(spool, ["*.gz"])
        await untilListed(spool)
        var expected: [String] = []
        for (round, count) in [2_000, 4_000, 1_000].enumerated() {
            // In place: the file keeps its identity.
            let lines = lines("content \(round)", count)
            spool.write(try pack(lines.map { $0 + "\n" }.joined()), to: "a.gz")
            expected += lines
            await spool.until("content \(round) arrives") {
                Set(spool.queue.lines).isSuperset(of: expected)
            }
            await untilDone(spool, "a.gz")
        }
        #expect(repeated(spool).isEmpty)
        await reader.stop()
    }

    @Test("a file has settled once it is unchanged for a time, however often it was looked at")
    func settling() throws {
        let spool = try SpoolHarness()
        spool.write("1", to: "a")
        let first = try #require(FileStatus("\(spool.path)/a"))
        spool.append("2", to: "a")
        let second = try #require(FileStatus("\(spool.path)/a"))
        var stamp = DropStamp.unknown
        func settles(_ status: FileStatus, at milliseconds: Int64) -> Bool {
            stamp.see(
                status, for: .seconds(1), at: BootInstant(nanoseconds: 1_000_000 * milliseconds))
        }
        // The writer has appended and closed the file; the look that follows was planned at the first one.
        let early = [(first, 0), (second, 800), (second, 1000), (second, 1700)]
        for (status, time) in early { #expect(!settles(status, at: Int64(time)), "\(time)") }
        #expect(settles(second, at: 1800))
        #expect(settles(second, at: 2500))
        #expect(!settles(first, at: 2600))
    }
}
