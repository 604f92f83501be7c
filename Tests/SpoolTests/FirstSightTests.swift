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

    /// Whether the content of a log is passed over that was created, and changed last, at some times.
    private func passes(
        _ sight: FirstSight, _ path: String = "a.log", born: Int64?, modified: Int64? = nil
    ) -> Bool {
        let path = FileName(path)
        return sight.passesOver(
            path.last, in: path.parent, born: born.map(time), modified: time(modified ?? born ?? 0))
    }

    /// Whether an archive is left alone.
    private func leaves(_ sight: FirstSight, _ path: String = "a.log.1.gz", born: Int64) -> Bool {
        let path = FileName(path)
        return sight.leavesAlone(path.last, in: path.parent, born: time(born), modified: time(born))
    }

    @Test("what was there is passed over until all of it was looked at; what was made since is not")
    func passesOver() throws {
        var sight = FirstSight(try place(), .now, memory: [:])
        #expect(!passes(sight, born: 1))
        sight.begin(at: time(100))
        #expect(passes(sight, born: 99, modified: 200))
        #expect(passes(sight, born: nil, modified: 200))
        #expect(!passes(sight, born: 101))
        #expect(leaves(sight, born: 99) && !leaves(sight, born: 101))
        sight.passedOver(7)
        sight.leftAlone(5)
        let (passed, again) = (sight.end(), sight.end())
        #expect(passed == FirstSight.Passed(files: 1, bytes: 7, archives: 1, archiveBytes: 5) && again == nil)
        #expect(!passes(sight, born: 99) && !leaves(sight, born: 99))
    }

    @Test("an age passes over files that were changed before; the default passes over nothing")
    func ages() throws {
        let place = try place()
        var sight = FirstSight(place, .age(.seconds(10)), memory: [:])
        sight.begin(at: time(100))
        for (modified, isPassed) in [(80, true), (89, true), (90, false), (99, false)] {
            #expect(passes(sight, born: 1, modified: Int64(modified)) == isPassed)
        }
        var usual = FirstSight(place, .beginning, memory: [:])
        usual.begin(at: time(100))
        #expect(!passes(usual, born: 1))
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
        #expect(!again.hasChanges && !passes(again, born: 150))
        #expect(passes(again, born: 50, modified: 150))
        _ = again.end()
        memory.merge(again.takeChanges()) { _, new in new }
        var third = FirstSight(one, .now, memory: memory)
        third.begin(at: time(300))
        #expect(!third.hasChanges && !passes(third, born: 50))
        // Beside the known pattern another one, which is of the same place.
        var more = FirstSight(try place(["/l/*.log", "/l/*.txt"]), .now, memory: memory)
        more.begin(at: time(400))
        #expect(passes(more, "a.txt", born: 50) && !passes(more, born: 50))
        // Read before patterns were remembered.
        var updated = FirstSight(one, .now, hasRead: true, memory: [:])
        updated.begin(at: time(500))
        #expect(!passes(updated, born: 50))
        var damaged = FirstSight(one, .now, memory: memory.mapValues { $0 + [1] })
        damaged.begin(at: time(500))
        #expect(damaged.hasChanges)
    }

    /// What an agent remembers that has read patterns to their end, or was stopped before that.
    private func memory(
        _ app: String, _ patterns: [String], excluding excluded: [String] = [], isOver: Bool = true
    ) throws -> [String: [UInt8]] {
        let place = try #require(ReadPlace.of(app: app, patterns, excluding: excluded)?.first)
        var sight = FirstSight(place, .now, memory: ["journal/web": [1]])
        sight.begin(at: time(100))
        if isOver { _ = sight.end() }
        return sight.takeChanges()
    }

    /// A place that is read from 200 on, with what is remembered of other patterns.
    private func sight(
        _ app: String, _ patterns: [String], excluding excluded: [String] = [],
        after memory: [String: [UInt8]]
    ) throws -> FirstSight {
        let place = try #require(ReadPlace.of(app: app, patterns, excluding: excluded)?.first)
        var sight = FirstSight(place, .now, hasRead: true, memory: memory)
        sight.begin(at: time(200))
        return sight
    }

    @Test(
        "a file was seen if any pattern of an earlier run covered it, however the pattern is written now",
        arguments: [
            ["/l/{a,b}.log"], ["/l/a.log"], ["/l/?.log"], ["/l/*"], ["/l/**/*.log"], ["/**/*.log"],
            ["/l/a.log", "/l/new.txt"], ["/l/[a-z].log", "/l/old/*.log"],
        ])
    func spelledAnew(patterns: [String]) throws {
        let sight = try sight("web", patterns, after: try memory("web", ["/l/*.log"]))
        let path = patterns == ["/**/*.log"] ? "l/" : ""
        #expect(!leaves(sight, "\(path)a.log.1.gz", born: 150), "made while the agent was stopped")
        #expect(!passes(sight, "\(path)a.log", born: 150))
    }

    @Test("a file that only the new pattern covers is seen for the first time")
    func wider() throws {
        var wide = try sight("web", ["/l/*.log"], after: try memory("web", ["/l/a.log"]))
        #expect(!passes(wide, "a.log", born: 150) && !leaves(wide, "a.log.1.gz", born: 150))
        #expect(passes(wide, "b.log", born: 150) && leaves(wide, "b.log.1.gz", born: 150))
        _ = wide.end()
        #expect(!passes(wide, "b.log", born: 150), "from then on all of it was seen")
        let deep = try sight("web", ["/l/**/*.log"], after: try memory("web", ["/l/*.log"]))
        #expect(!passes(deep, "a.log", born: 150) && passes(deep, "new/a.log", born: 150))
        #expect(leaves(deep, "new/a.log.1.gz", born: 150))
        let moved = try sight("web", ["/m/*.log"], after: try memory("web", ["/l/*.log"]))
        #expect(passes(moved, born: 150) && leaves(moved, born: 150))
        let packed = try sight("web", ["/l/*.log", "/l/*.gz"], after: try memory("web", ["/l/*.log"]))
        #expect(!leaves(packed, "a.log.1.gz", born: 150) && leaves(packed, "export.gz", born: 150))
    }

    @Test("an app that is renamed, or gives files to another one, goes on")
    func otherApps() throws {
        let renamed = try sight("shop", ["/l/*.log"], after: try memory("web", ["/l/*.log"]))
        #expect(!passes(renamed, born: 150) && !leaves(renamed, born: 150))
        // Its files were web's until now.
        let parted = try sight("shop", ["/l/shop/*.log"], after: try memory("web", ["/l/**/*.log"]))
        #expect(!passes(parted, born: 150) && !leaves(parted, born: 150))
        let rest = try sight(
            "web", ["/l/**/*.log"], excluding: ["/l/shop/**"], after: try memory("web", ["/l/**/*.log"]))
        #expect(!passes(rest, born: 150))
    }

    @Test("what an app left out was not seen, also if it is no longer left out")
    func leftOut() throws {
        let memory = try memory("web", ["/l/**/*.log"], excluding: ["/l/shop/**", "debug*"])
        let other = try sight("shop", ["/l/shop/*.log"], after: memory)
        #expect(passes(other, born: 150) && leaves(other, born: 150))
        let all = try sight("web", ["/l/**/*.log"], after: memory)
        #expect(!passes(all, born: 150) && passes(all, "shop/a.log", born: 150))
        #expect(passes(all, "debug.log", born: 150) && leaves(all, "debug.log.1.gz", born: 150))
        let same = try sight("web", ["/l/**/*.log"], excluding: ["debug*", "/l/shop/**"], after: memory)
        #expect(!same.hasChanges && !passes(same, born: 150))
    }

    @Test("of a first look that was not finished only the files are old that were there when it began")
    func unfinished() throws {
        let sight = try sight("web", ["/l/{a,b}.log"], after: try memory("web", ["/l/*.log"], isOver: false))
        #expect(passes(sight, born: 50) && leaves(sight, born: 50))
        #expect(!passes(sight, born: 150) && !leaves(sight, born: 150))
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
