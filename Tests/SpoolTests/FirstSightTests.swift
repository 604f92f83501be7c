import EventLoops
import Glibc
import Logs
import Model
import TestKit
import Testing

@testable import Spool

/// `since`: what is read of files that are there when the agent sees their pattern for the first time.
@Suite("The first sight of a pattern", .timeLimit(.minutes(5)))
struct FirstSightTests {
    private func place(_ patterns: [String] = ["/l/*.log"]) throws -> ReadPlace {
        try #require(ReadPlace.of(app: "web", patterns)?.first)
    }

    private func time(_ seconds: Int64) -> Timestamp { Timestamp(seconds: Int(seconds), nanoseconds: 0) }

    @Test("what was there is passed over until all of it was looked at; what was made since is not")
    func passesOver() throws {
        let place = try place()
        var sight = FirstSight(place, .now, memory: [:])
        let patterns = place.patterns
        #expect(!sight.passesOver(patterns, born: time(1), modified: time(1)))
        sight.begin(at: time(100))
        #expect(sight.passesOver(patterns, born: time(99), modified: time(200)))
        #expect(sight.passesOver(patterns, born: nil, modified: time(200)))
        #expect(!sight.passesOver(patterns, born: time(101), modified: time(101)))
        sight.passedOver(7)
        let (passed, again) = (sight.end(), sight.end())
        #expect(passed?.files == 1 && passed?.bytes == 7 && again == nil)
        #expect(!sight.passesOver(patterns, born: time(99), modified: time(99)))
    }

    @Test("an age passes over files that were changed before; the default passes over nothing")
    func ages() throws {
        let place = try place()
        var sight = FirstSight(place, .age(.seconds(10)), memory: [:])
        sight.begin(at: time(100))
        for (modified, isPassed) in [(80, true), (89, true), (90, false), (99, false)] {
            #expect(
                sight.passesOver(place.patterns, born: time(1), modified: time(Int64(modified))) == isPassed)
        }
        var usual = FirstSight(place, .beginning, memory: [:])
        usual.begin(at: time(100))
        #expect(!usual.passesOver(place.patterns, born: time(1), modified: time(1)))
    }

    @Test(
        "it is remembered by pattern: a restart in the middle goes on, one after it does not ask again, a new pattern is seen anew"
    )
    func memory() throws {
        let one = try place()
        var sight = FirstSight(one, .now, memory: [:])
        sight.begin(at: time(100))
        var memory = sight.takeChanges()
        #expect(memory.count == 1 && !sight.hasChanges)
        var again = FirstSight(one, .now, memory: memory)
        again.begin(at: time(200))
        #expect(!again.hasChanges && !again.passesOver(one.patterns, born: time(150), modified: time(150)))
        #expect(again.passesOver(one.patterns, born: time(50), modified: time(150)))
        _ = again.end()
        memory.merge(again.takeChanges()) { _, new in new }
        var third = FirstSight(one, .now, memory: memory)
        third.begin(at: time(300))
        #expect(!third.hasChanges && !third.passesOver(one.patterns, born: time(50), modified: time(50)))
        // Beside the known pattern another one, which is of the same place.
        let both = try place(["/l/*.log", "/l/*.txt"])
        var more = FirstSight(both, .now, memory: memory)
        more.begin(at: time(400))
        func patterns(_ name: String) -> [PathPattern] { both.patterns(of: FileName(""), FileName(name)) }
        #expect(more.passesOver(patterns("a.txt"), born: time(50), modified: time(50)))
        #expect(!more.passesOver(patterns("a.log"), born: time(50), modified: time(50)))
        // Read before patterns were remembered.
        var updated = FirstSight(one, .now, hasRead: true, memory: [:])
        updated.begin(at: time(500))
        #expect(!updated.passesOver(one.patterns, born: time(50), modified: time(50)))
        var damaged = FirstSight(one, .now, memory: memory.mapValues { $0 + [1] })
        damaged.begin(at: time(500))
        #expect(damaged.hasChanges)
    }

    private func start(_ spool: SpoolHarness, _ since: ReadStart, isWatching: Bool = true) async throws
        -> SpoolReader
    {
        let place = try #require(ReadPlace.of(app: "web", ["\(spool.path)/**/*.log"])?.first)
        return try await spool.start {
            ($0.place, $0.directory, $0.afterRead, $0.since) = (place, place.root, .keep, since)
            $0.isWatching = isWatching
        }
    }

    private func untilPassedOver(_ spool: SpoolHarness, files: Int) async {
        await spool.until("it is reported") {
            spool.log.messages.contains {
                $0.text.hasPrefix("existing files passed over")
                    && $0.fields.contains { $0.key == "files" && $0.value == "\(files)" }
            }
        }
    }

    @Test(
        "now: what is written after the first sight is read, each line once, through rotations and restarts",
        arguments: [true, false])
    func now(isWatching: Bool) async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory("old")
        spool.write("1\n2\nhalf", to: "app.log")
        spool.write("0\n", to: "app.log.1")
        spool.write("x\n", to: "old/x.log")
        await spool.pause(.milliseconds(50))
        var reader = try await start(spool, .now, isWatching: isWatching)
        await untilPassedOver(spool, files: 3)
        spool.append(" done\n3\n", to: "app.log")
        spool.write("new\n", to: "new.log")
        var expected = ["half done", "3", "new"]
        await spool.untilLines(expected)
        // Copied and truncated: the copy holds what was passed over, and what was read.
        spool.write("1\n2\nhalf done\n3\n", to: "app.log.2")
        truncate("\(spool.path)/app.log", 0)
        spool.append("4\n", to: "app.log")
        expected.append("4")
        await spool.untilLines(expected)
        await reader.stop()
        spool.append("5\n", to: "app.log")
        spool.append("y\n", to: "old/x.log")
        spool.write("late\n", to: "late.log")
        spool.rename("app.log.1", to: "app.log.3")
        reader = try await start(spool, .now, isWatching: isWatching)
        expected += ["5", "y", "late"]
        await spool.untilLines(expected)
        await spool.pause(.milliseconds(300))
        #expect(spool.queue.lines.sorted() == expected.sorted())
        await reader.stop()
    }

    @Test("what was passed over stays passed over when the file is cut at its end")
    func cutBehindHistory() async throws {
        let spool = try SpoolHarness()
        spool.write("1\n2\n", to: "app.log")
        await spool.pause(.milliseconds(50))
        let reader = try await start(spool, .now)
        await untilPassedOver(spool, files: 1)
        await spool.until("its end is durable") { spool.queue.start.checkpoints.contains { $0.offset == 4 } }
        spool.append("3\n4\n", to: "app.log")
        await spool.untilLines(["3", "4"])
        truncate("\(spool.path)/app.log", 4)
        await spool.until("it is seen to be shorter") { reader.figures.truncations == 1 }
        spool.append("5\n", to: "app.log")
        await spool.untilLines(["3", "4", "5"])
        await reader.stop()
    }

    @Test("an age: files that were changed within it are read whole, others from their ends")
    func age() async throws {
        let spool = try SpoolHarness()
        let day = timespec(tv_sec: Glibc.time(nil) - 86_400, tv_nsec: 0)
        spool.write("old\n", to: "a.log", dated: day)
        spool.write("young\n", to: "b.log")
        // A file that was made in the tick of the first sight counts as new.
        await spool.pause(.milliseconds(50))
        let reader = try await start(spool, .age(.seconds(3600)))
        await spool.untilLines(["young"])
        await untilPassedOver(spool, files: 1)
        spool.append("more\n", to: "a.log")
        await spool.untilLines(["young", "more"])
        await reader.stop()
    }

    @Test(
        "a file with several names is read once, under one of them, whatever becomes of the others",
        arguments: [true, false])
    func hardLinks(isWatching: Bool) async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory("backup")
        spool.write("1\n", to: "access.2026.log")
        link("\(spool.path)/access.2026.log", "\(spool.path)/current.log")
        link("\(spool.path)/access.2026.log", "\(spool.path)/backup/access.log")
        let reader = try await start(spool, .beginning, isWatching: isWatching)
        await spool.untilLines(["1"])
        spool.append("2\n", to: "current.log")
        await spool.untilLines(["1", "2"])
        // As rotatelogs -L does.
        spool.write("3\n", to: "access.2027.log")
        spool.remove("current.log")
        link("\(spool.path)/access.2027.log", "\(spool.path)/current.log")
        await spool.untilLines(["1", "2", "3"])
        spool.append("4\n", to: "access.2026.log")
        spool.append("5\n", to: "current.log")
        await spool.untilLines(["1", "2", "3", "4", "5"])
        spool.remove("access.2026.log")
        spool.append("6\n", to: "backup/access.log")
        await spool.untilLines(["1", "2", "3", "4", "5", "6"])
        #expect(reader.figures.refused.isEmpty)
        await reader.stop()
    }
}
