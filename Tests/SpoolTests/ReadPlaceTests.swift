import EventLoops
import Foundation
import Glibc
import Logs
import Model
import TestKit
import Testing

@testable import Spool

/// Files that are read where they lie: all that rotation does to them, and nothing that we do.
@Suite("Reading in place", .timeLimit(.minutes(5)))
struct ReadPlaceTests {
    private func start(
        _ spool: SpoolHarness, below directory: String? = nil, _ patterns: [String] = ["*.log"],
        isWatching: Bool = true
    ) async throws -> SpoolReader {
        let places = try #require(ReadPlace.of(app: "web", patterns.map { "\(spool.path)/\($0)" }))
        #expect(places.count == 1 && places[0].root == spool.path + (directory.map { "/\($0)" } ?? ""))
        return try await spool.start {
            $0.place = places[0]
            $0.afterRead = .keep
            $0.isWatching = isWatching
        }
    }

    /// What a directory holds: names, numbers, sizes, modes and times.
    private func look(_ path: String) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted().flatMap {
            name -> [String] in
            var status = stat()
            guard lstat("\(path)/\(name)", &status) == 0 else { return [] }
            let own =
                "\(name) \(status.st_ino) \(status.st_size) \(status.st_mode) \(status.st_mtim) \(status.st_ctim)"
            return [own] + (status.st_mode & S_IFMT == S_IFDIR ? look("\(path)/\(name)") : [])
        }
    }

    @Test("patterns: parts, stars, hidden and rotated names")
    func patterns() throws {
        let place = try #require(
            ReadPlace.of(app: "a", ["/var/log/shop/*.log", "/var/log/shop/*/x*y.json"])?.first)
        #expect(place.root == "/var/log/shop" && place.patterns.count == 2)
        for (directory, name, fits) in [
            ("", "app.log", true), ("", "app.log.1", true), ("", "app.log-20261120", true),
            ("", ".app.log", false),
            ("", "app.log.1.gz", false), ("", "app.txt", false), ("", "app.log.swp", false),
            ("a", "xy.json", true),
            ("a", "x.json.y.json", true), ("a", "xzy.json.2", true), ("a", "yx.json", false),
            ("a/b", "xy.json", false),
            (".h", "xy.json", false), ("a", "app.log", false),
        ] { #expect(place.fits(FileName(directory), FileName(name)) == fits, "\(directory)/\(name)") }
        let runit = try #require(ReadPlace.of(app: "a", ["/var/log/sv/*/current"])?.first)
        #expect(runit.fits(FileName("web"), FileName("current")))
        #expect(runit.fits(FileName("web"), FileName("@4000000068e0f1a20b3c4d5e.s")))
        #expect(!runit.fits(FileName("web"), FileName("lock")))
        #expect(ReadPlace.of(app: "a", ["/var/log/app.json"])?.first?.root == "/var/log")
        for wrong in ["var/log/*.log", "/var/log/", "/var/../x", "/", ""] {
            #expect(ReadPlace.of(app: "a", [wrong]) == nil, "\(wrong)")
        }
        let other = try #require(ReadPlace.of(app: "b", ["/var/log/*/app.log"])?.first)
        let third = try #require(ReadPlace.of(app: "c", ["/var/log/*.log"])?.first)
        #expect(place.meets(other) && other.meets(place) && !third.meets(place) && !third.meets(other))
        for (one, two, overlaps) in [
            ("a*", "*b", true), ("a*c", "*b", false), ("*", ".x", false), ("x*y*z", "*yy*", true),
            ("ab", "a*b*", true),
            ("a", "ab", false), ("a*", "b*", false), ("*.log", "*.log.*", true),
        ] {
            #expect(
                NamePattern(one).overlaps(NamePattern(two)) == overlaps
                    && NamePattern(two).overlaps(NamePattern(one)) == overlaps, "\(one) \(two)")
        }
        let rotated = try #require(ReadPlace.of(app: "d", ["/var/log/x.log.1"])?.first)
        #expect(rotated.meets(third))
        #expect(
            ReadPlace.of(app: "d", ["/l/*.log.xz"])?.first?.neverRead == "/l/*.log.xz"
                && third.neverRead == nil)
        // Patterns of one app that meet are one place, and those of a directory and one in it.
        let old = try #require(ReadPlace.of(app: "d", ["/l/old/*", "/l/*.log", "/l/a/b/*.log"]))
        #expect(old.map(\.root) == ["/l", "/l/a/b"] && old[0].patterns.map(\.text) == ["*.log", "old/*"])
        let joined = try #require(
            ReadPlace.of(app: "e", ["/l/web/*.log", "/l/*/*.log", "/l/x/y/*.log", "/l/web/a.log"]))
        #expect(
            joined.map(\.root) == ["/l/x/y", "/l"]
                && Set(joined[1].patterns.map(\.text)) == ["web/*.log", "*/*.log", "web/a.log"])
        #expect(
            other.reaches(into: "/var/log/x") && other.reaches(into: "/var")
                && !third.reaches(into: "/var/log/x"))
    }

    @Test(
        "lines of matching files are read as the app's, no others, and not a byte is changed",
        arguments: [true, false])
    func untouched(isWatching: Bool) async throws {
        let spool = try SpoolHarness()
        for name in ["a", "a/b", ".hidden"] { spool.makeDirectory(name) }
        for (name, text) in [
            ("one.log", "1\n2\n"), ("one.log.1", "0\n"), ("other.txt", "no\n"), ("one.json", "{}"),
            ("a/two.log", "no\n"),
            ("one.log.2.gz", "no\n"), (".spoolship.0123456789abcdef.one.log", "no\n"),
            (".hidden/x.log", "no\n"),
            ("late.log", "no line feed"),
        ] { spool.write(text, to: name) }
        symlink("\(spool.path)/other.txt", "\(spool.path)/link.log")
        mkfifo("\(spool.path)/pipe.log", 0o644)
        let before = look(spool.path)
        // An archive that is made in the tick of the first sight counts as new.
        await spool.pause(.milliseconds(50))
        let reader = try await start(spool, isWatching: isWatching)
        await spool.untilLines(["0", "1", "2"])
        await spool.pause(.milliseconds(1500))
        #expect(look(spool.path) == before)
        #expect(
            spool.queue.with {
                $0.lines.allSatisfy { $0.app == "web" && $0.path.hasPrefix(spool.path + "/one.log") }
            })
        spool.append("3\n", to: "one.log")
        await spool.untilLines(["0", "1", "2", "3"])
        await reader.stop()
        #expect(spool.queue.quarantined.isEmpty)
    }

    @Test(
        "hidden names are read if a pattern names them: files, directories, and those that come late",
        arguments: [true, false])
    func hiddenNames(isWatching: Bool) async throws {
        let spool = try SpoolHarness()
        for name in ["a", "a/.pm2", "a/.other"] { spool.makeDirectory(name) }
        for (name, text) in [
            (".app1.log", "1\n"), ("a/.pm2/x.log", "2\n"), ("a/.pm2/.x.log", "no\n"), ("a/x.log", "no\n"),
            ("a/.other/x.log", "no\n"), (".b.log", "no\n"), ("app.log", "no\n"),
        ] { spool.write(text, to: name) }
        let reader = try await start(spool, [".app*.log", "*/.pm2/*.log"], isWatching: isWatching)
        await spool.untilLines(["1", "2"])
        for name in ["b", "b/.pm2"] { spool.makeDirectory(name) }
        spool.write("3\n", to: "b/.pm2/x.log")
        spool.write("4\n", to: ".app2.log")
        spool.append("5\n", to: ".app1.log")
        await spool.untilLines(["1", "2", "3", "4", "5"])
        rename("\(spool.path)/.app1.log", "\(spool.path)/.app1.log.1")
        spool.append("6\n", to: ".app1.log.1")
        spool.write("7\n", to: ".app1.log")
        await spool.untilLines(["1", "2", "3", "4", "5", "6", "7"])
        await reader.stop()
    }

    @Test(
        "renamed, copied and truncated, dated, deleted, with restarts in between: each line once",
        arguments: [true, false])
    func rotations(isWatching: Bool) async throws {
        let spool = try SpoolHarness()
        var reader = try await start(spool, isWatching: isWatching)
        var expected: [String] = []
        for round in 0..<12 {
            for line in 0..<5 {
                spool.append("\(round) \(line)\n", to: "app.log")
                expected.append("\(round) \(line)")
            }
            if round % 4 != 1 { await spool.untilLines(expected) }
            if round % 5 == 4 {
                await reader.stop()
                reader = try await start(spool, isWatching: isWatching)
            }
            switch round % 4 {
            case 0, 1: spool.rename("app.log", to: "app.log-202611\(10 + round)")
            case 2:
                spool.write(
                    try String(contentsOfFile: "\(spool.path)/app.log", encoding: .utf8), to: "app.log.1")
                truncate("\(spool.path)/app.log", 0)
            default: spool.remove("app.log")
            }
        }
        await spool.untilLines(expected)
        await reader.stop()
        reader = try await start(spool, isWatching: isWatching)
        spool.append("end\n", to: "app.log")
        await spool.untilLines(expected + ["end"])
        await reader.stop()
        #expect(Set(spool.queue.lines).count == spool.queue.lines.count)
    }

    @Test("a file with a path longer than the queue stores is read once, across restarts")
    func longPath() async throws {
        let spool = try SpoolHarness()
        let part = String(repeating: "d", count: 200)
        var directory = ""
        for _ in 0..<4 {
            directory += directory.isEmpty ? part : "/\(part)"
            spool.makeDirectory(directory)
        }
        let name = "\(directory)/\(String(repeating: "n", count: 245)).log"
        let pattern = "\(directory)/*.log"
        spool.append("1\n", to: name)
        var reader = try await start(spool, below: directory, [pattern])
        await spool.untilLines(["1"])
        await reader.stop()
        spool.append("2\n", to: name)
        reader = try await start(spool, below: directory, [pattern])
        await spool.untilLines(["1", "2"])
        await reader.stop()
        // A copy that is made while the agent is off is known by its content, and by the name of what it is a copy of.
        spool.append("3\n", to: name)
        spool.write("1\n2\n3\n", to: "\(name).1")
        truncate("\(spool.path)/\(name)", 0)
        reader = try await start(spool, below: directory, [pattern])
        await spool.untilLines(["1", "2", "3"])
        spool.append("end\n", to: name)
        await spool.untilLines(["1", "2", "3", "end"])
        await reader.stop()
        #expect(spool.queue.with { $0.checkpoints.values.allSatisfy { $0.path.utf8.count <= 512 } })
    }

    @Test("a file copied into a matched directory and truncated is sent once, at run time and after restarts")
    func copiedToAnotherDirectory() async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory("old")
        let patterns = ["*.log", "old/*"]
        var reader = try await start(spool, patterns)
        var expected: [String] = []
        for round in 0..<6 {
            for line in 0..<100 {
                spool.append("\(round) \(line)\n", to: "app.log")
                expected.append("\(round) \(line)")
            }
            await spool.untilLines(expected)
            let stops = round % 3 == 2
            if stops { await reader.stop() }
            spool.write(
                try String(contentsOfFile: "\(spool.path)/app.log", encoding: .utf8),
                to: "old/app.log-2026112\(round)")
            truncate("\(spool.path)/app.log", 0)
            if stops { reader = try await start(spool, patterns) }
        }
        spool.append("end\n", to: "old/other.log")
        await spool.untilLines(expected + ["end"])
        await spool.pause(.milliseconds(1500))
        await reader.stop()
        #expect(Set(spool.queue.lines).count == spool.queue.lines.count)
    }

    @Test(
        "a file last seen under an intermediate name, as multilog and renamecopy use, is recognised at a start",
        arguments: [
            ("current", "previous", "@4000000068e0f1a20b3c4d5e.s"), ("app.log", "app.log.tmp", "app.log.1"),
        ], [true, false])
    func leftOnItsWay(_ names: (first: String, next: String, last: String), isCopied: Bool) async throws {
        let spool = try SpoolHarness()
        var reader = try await start(spool, ["current", "*.log"])
        spool.append("1\n", to: names.first)
        await spool.untilLines(["1"])
        spool.rename(names.first, to: names.next)
        // So that it is committed under this name.
        spool.append("2\n", to: names.next)
        await spool.untilLines(["1", "2"])
        await reader.stop()
        if isCopied {
            spool.write("1\n2\n", to: names.last)
            spool.remove(names.next)
        } else {
            spool.rename(names.next, to: names.last)
        }
        reader = try await start(spool, ["current", "*.log"])
        spool.append("3\n", to: names.first)
        await spool.untilLines(["1", "2", "3"])
        await spool.pause(.milliseconds(1500))
        await reader.stop()
        #expect(spool.queue.lines.count == 3)
    }

    @Test("blocks of text are handed over whole, half a second after the last line or before a JSON line")
    func text() async throws {
        let spool = try SpoolHarness()
        let places = try #require(ReadPlace.of(app: "web", ["\(spool.path)/*.log"]))
        let reader = try await spool.start {
            ($0.place, $0.afterRead, $0.joinsText) = (places[0], .keep, true)
        }
        var expected: [String] = []
        // On a busy machine a pause within a block may be one after which it is handed over.
        var lastBeforePause: Set<String> = []
        var written = ContinuousClock.now
        for block in 0..<6 {
            for line in 0..<4 {
                let text =
                    line == 0 && block % 2 == 1
                    ? "{}" : "\(block) \(line)" + String(repeating: "x", count: line * 2_000)
                if let last = expected.last, written.duration(to: .now) > .milliseconds(400) {
                    lastBeforePause.insert(last)
                }
                expected.append(text)
                spool.append(text + "\n", to: "app.log")
                written = .now
                await spool.pause(.milliseconds(100))
            }
            if block % 3 == 0 { await spool.untilLines(expected) }
        }
        await spool.untilLines(expected)
        await reader.stop()
        // What is offered ends with a JSON line or with the last of a block, never within one.
        let ends = spool.queue.with { $0.lastOffered }
        #expect(
            ends.allSatisfy { $0 == "{}" || $0.dropFirst().hasPrefix(" 3") || lastBeforePause.contains($0) },
            "\(ends.map { $0.prefix(5) })")
    }

    @Test(
        "a file rewritten under its name is read whole, and logged",
        arguments: [true, false])
    func writtenAnew(isWatching: Bool) async throws {
        let spool = try SpoolHarness()
        let old = (0..<3).map { "{\"a\":\($0)}" }
        spool.append(old.map { $0 + "\n" }.joined(), to: "app.jsonl")
        let reader = try await start(spool, ["*.jsonl"], isWatching: isWatching)
        await spool.untilLines(old)
        spool.write((old + ["{\"a\":3}"]).map { $0 + "\n" }.joined(), to: ".app.jsonl.Xy12")
        spool.rename(".app.jsonl.Xy12", to: "app.jsonl")
        await spool.untilLines(old + old + ["{\"a\":3}"])
        #expect(spool.log.messages.count { $0.text.contains("was replaced by one that begins with") } == 1)
        await reader.stop()
    }

    @Test(
        "a file that rotation moves to a directory of another pattern is read once", arguments: [true, false])
    func movedAside(isWatching: Bool) async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory("old")
        spool.write("1\n2\n", to: "app.log")
        let reader = try await start(spool, ["old/*", "*.log"], isWatching: isWatching)
        await spool.untilLines(["1", "2"])
        spool.append("3\n", to: "app.log")
        spool.rename("app.log", to: "old/app.log.1")
        spool.write("4\n", to: "app.log")
        await spool.untilLines(["1", "2", "3", "4"])
        await reader.stop()
        let again = try await start(spool, ["*.log", "old/*"], isWatching: isWatching)
        spool.append("5\n", to: "app.log")
        await spool.untilLines(["1", "2", "3", "4", "5"])
        await again.stop()
    }

    @Test("in place, a .json file that grows is read line by line")
    func growingJSON() async throws {
        let spool = try SpoolHarness()
        spool.write("{\"a\":1}\n", to: "eve.json")
        let reader = try await start(spool, ["*.json"])
        await spool.untilLines(["{\"a\":1}"])
        spool.append("{\"a\":2}\n{\"a\":", to: "eve.json")
        await spool.untilLines(["{\"a\":1}", "{\"a\":2}"])
        spool.append("3}\n", to: "eve.json")
        spool.rename("eve.json", to: "eve.json.1")
        spool.write("{\"a\":4}\n", to: "eve.json")
        await spool.untilLines((1...4).map { "{\"a\":\($0)}" })
        await reader.stop()
        #expect(spool.queue.quarantined.isEmpty)
    }

    @Test("a slow record of many lines, longer than an event may be, loses nothing")
    func slowRecord() async throws {
        let spool = try SpoolHarness()
        let place = try #require(ReadPlace.of(app: "web", ["\(spool.path)/*.log"])?.first)
        let reader = try await spool.start {
            ($0.place, $0.afterRead, $0.format, $0.maxEventSize) = (place, .keep, .cri, 20_000)
        }
        let lines = (0..<40).map { number in
            "2026-11-20T10:00:00Z stdout \(number == 39 ? "F" : "P") \(number)\(String(repeating: "x", count: 1000))"
        }
        for line in lines {
            spool.append(line + "\n", to: "app.log")
            await spool.pause(.milliseconds(20))
        }
        await spool.untilLines(lines)
        await reader.stop()
        #expect(spool.queue.quarantined.isEmpty)
    }

    @Test(
        "lines of one record are handed over together, however they arrive, across restarts",
        arguments: 1...6
    )
    func framed(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        let spool = try SpoolHarness()
        func start() async throws -> SpoolReader {
            let places = try #require(ReadPlace.of(app: "web", ["\(spool.path)/*.log"]))
            return try await spool.start {
                $0.place = places[0]
                $0.afterRead = .keep
                $0.format = seed % 2 == 0 ? .cri : .docker
                $0.maxEventSize = 20_000
            }
        }
        var reader = try await start()
        var expected: [String] = []
        var rest = ""
        for record in 0..<30 {
            let parts = Int.random(in: 1...5, using: &random)
            for part in 1...parts {
                let text =
                    "r\(record)-\(part)"
                    + String(repeating: "x", count: Int.random(in: 0...3000, using: &random))
                let isLast = part == parts
                let line =
                    seed % 2 == 0
                    ? "2026-11-20T10:00:00Z stdout \(isLast ? "F" : "P") \(text)"
                    : "{\"log\":\"\(text)\(isLast ? "\\n" : "\\\\n")\",\"stream\":\"stdout\",\"time\":\"2026-11-20T10:00:00Z\"}"
                expected.append(line)
                rest += line + "\n"
                // Written in pieces that end anywhere.
                let count = Int.random(in: 0...rest.utf8.count, using: &random)
                spool.append(String(rest.prefix(count)), to: "app.log")
                rest = String(rest.dropFirst(count))
            }
            if record % 10 == 9 {
                spool.append(rest, to: "app.log")
                rest = ""
                await spool.untilLines(expected)
                await reader.stop()
                reader = try await start()
            }
        }
        let ends = spool.queue.with { $0.lastOffered }
        #expect(
            ends.allSatisfy {
                $0.contains(" stdout F ") || $0.contains("x\\n\",") || $0.contains(/r\d+-\d+\\n",/)
            },
            "\(ends)")
        // What never gets its end is handed over when the file is rotated away.
        spool.append(
            "2026-11-20T10:00:00Z stdout P open\n{\"log\":\"open\",\"stream\":\"stdout\"}\n", to: "app.log")
        await spool.pause(.milliseconds(300))
        spool.rename("app.log", to: "app.log.1")
        await spool.until("the open record comes") {
            spool.queue.lines.filter { $0.contains("open") }.count == 2
        }
        await reader.stop()
        #expect(spool.queue.quarantined.isEmpty)
    }

    @Test("a copy over an older copy that is still known repeats no line", arguments: [true, false])
    func copyOverCopy(isWatching: Bool) async throws {
        let spool = try SpoolHarness()
        let reader = try await start(spool, isWatching: isWatching)
        var expected = ["old"]
        spool.write("old\n", to: "app.log.1")
        await spool.untilLines(expected)
        for round in 0..<5 {
            for line in 0...round {
                spool.append("\(round) \(line)\n", to: "app.log")
                expected.append("\(round) \(line)")
            }
            await spool.untilLines(expected)
            spool.write(try String(contentsOfFile: "\(spool.path)/app.log", encoding: .utf8), to: "app.log.1")
            truncate("\(spool.path)/app.log", 0)
            await spool.pause(.milliseconds(300))
            #expect(spool.queue.lines.sorted() == expected.sorted())
        }
        await reader.stop()
    }

    @Test(
        "a copy whose writer pauses before it fills the file repeats no line",
        arguments: [true, false], [true, false])
    func slowCopy(isWatching: Bool, isOverOlderCopy: Bool) async throws {
        let spool = try SpoolHarness()
        let reader = try await start(spool, isWatching: isWatching)
        var expected: [String] = []
        if isOverOlderCopy {
            spool.write("older\n", to: "app.log.1")
            expected.append("older")
        }
        spool.append("a line\nanother\n", to: "app.log")
        expected += ["a line", "another"]
        await spool.untilLines(expected)
        spool.write("", to: "app.log.1")
        // More than ten times what a copy takes to settle: it is not waited for any longer.
        await spool.pause(.milliseconds(1500))
        spool.append("a line\nanother\n", to: "app.log.1")
        await spool.pause(.milliseconds(300))
        truncate("\(spool.path)/app.log", 0)
        await spool.pause(.milliseconds(300))
        spool.append("new\n", to: "app.log")
        await spool.untilLines(expected + ["new"])
        await reader.stop()
    }

    @Test("directories below a star are found when they appear; places of one reader are not another's")
    func directories() async throws {
        let spool = try SpoolHarness()
        let reader = try await start(spool, ["*/logs/*.json"])
        spool.makeDirectory("one")
        spool.makeDirectory("one/logs")
        spool.makeDirectory("one/other")
        spool.write("{\"a\":1}\n", to: "one/logs/x.json")
        spool.write("no\n", to: "one/other/x.json")
        await spool.untilLines(["{\"a\":1}"])
        await reader.stop()
        let kept = spool.queue.start.checkpoints
        #expect(kept.map(\.path) == ["\(spool.path)/one/logs/x.json"])
        var options = SpoolOptions(directory: spool.path)
        #expect(options.ownCheckpoints(among: kept).isEmpty)
        options.place = ReadPlace.of(app: "web", ["\(spool.path)/*/logs/*.json"])?.first
        #expect(options.ownCheckpoints(among: kept).map(\.path) == ["one/logs/x.json"])
    }

    @Test("a path belongs to a place or not, rotated or not, also below non-ASCII directories")
    func paths() throws {
        let place = try #require(ReadPlace.of(app: "web", ["/srv/caf\u{E9}/*/app.log"])?.first)
        func holds(_ path: String) -> Bool { place.holds("/srv/caf\u{E9}/\(path)", root: place.root) }
        #expect(holds("one/app.log") && holds("one/app.log.1"))
        #expect(
            holds("one/app.log.2.gz") && !holds("one/app.log.xz") && !holds("app.log")
                && !holds("one/two/app.log")
                && !holds("one/.app.log"))
        #expect(!place.holds("/srv/cafe/one/app.log", root: place.root))
        #expect(place.holds("/data/one/app.log", root: "/data"))
        let kept = Checkpoint(key: [], path: "/srv/caf\u{E9}/one/app.log", offset: 0, state: [])
        var options = SpoolOptions(directory: "/srv")
        options.place = place
        #expect(options.ownCheckpoints(among: [kept]).map(\.path) == ["one/app.log"])
    }
}
