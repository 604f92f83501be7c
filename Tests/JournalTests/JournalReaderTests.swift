import EventLoops
import Glibc
import Logs
import Model
import TestKit
import Testing

@testable import Journal

/// Real journals, written by journald.
@Suite("Journal reader", .serialized, .timeLimit(.minutes(3)))
struct JournalReaderTests {
    private let loop: EventLoop
    private let log = KeptLog()

    init() throws {
        loop = try EventLoop(name: "journal")
        try loop.start()
    }

    private func reader(
        _ directory: String, since: JournalStart = .beginning, from place: JournalPlace? = nil,
        look: Duration = .seconds(10), _ change: (inout JournalOptions) -> Void = { _ in }
    ) -> JournalReader {
        var options = JournalOptions(
            directory: directory, units: [], priority: 7, since: since, fields: [], maxEventSize: 65_536)
        change(&options)
        return JournalReader(options, from: place, on: loop, log: Log(log), look: look)
    }

    /// The messages of a piece that the tests wrote, not journald itself.
    private func messages(_ piece: JournalPiece) throws -> [String] {
        try piece.lines.split(separator: 0x0A).compactMap { line in
            let members = try JSONValue(parsing: Array(line))
            return members["SYSLOG_IDENTIFIER"] == .string("systemd-journald")
                ? nil : members["message"]?.string
        }
    }

    /// Reads until so many messages have come; the places on the way.
    private func read(_ count: Int, _ reader: JournalReader) async throws -> (
        messages: [String], places: [JournalPlace]
    ) {
        var (found, places): ([String], [JournalPlace]) = ([], [])
        while found.count < count {
            let piece = try #require(await reader.next())
            found += try messages(piece)
            places.append(piece.place)
        }
        return (found, places)
    }

    @Test("existing entries are read, then new ones; from a stored position only what follows")
    func followsAndGoesOn() async throws {
        let daemon = try JournalDaemon()
        try daemon.write((0..<500).map { "first \($0)" })
        let first = reader(daemon.directory)
        var (found, places) = try await read(500, first)
        #expect(found == (0..<500).map { "first \($0)" })
        async let more = read(20, first)
        try daemon.write((0..<20).map { "then \($0)" })
        let then = try await more
        #expect(then.messages == (0..<20).map { "then \($0)" })
        found += then.messages
        places += then.places
        await first.stop()
        #expect(await first.next() == nil)
        for place in [places[0], places[places.count / 2]] {
            let again = reader(daemon.directory, from: place)
            try daemon.write(["end"])
            var rest: [String] = []
            while rest.last != "end" { rest += try messages(try #require(await again.next())) }
            #expect(found.suffix(rest.count - 1) == rest.dropLast())
            found += ["end"]
            await again.stop()
        }
    }

    @Test("since now: existing entries are skipped, and a kill before the first entry loses none that follow")
    func sinceNow() async throws {
        let daemon = try JournalDaemon()
        try daemon.write(["old"])
        let killed = reader(daemon.directory, since: .now)
        let place = try #require(await killed.next()).place
        try daemon.write(["while nobody reads"])
        let next = reader(daemon.directory, since: .now, from: place)
        #expect(try await read(1, next).messages == ["while nobody reads"])
        await next.stop()
        await killed.stop()
        let boot = reader(daemon.directory, since: .boot)
        #expect(try await read(2, boot).messages == ["old", "while nobody reads"])
        await boot.stop()
    }

    @Test("rotation at any moment loses and repeats nothing", arguments: Seeds.list(1...3))
    func rotation(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        let daemon = try JournalDaemon()
        var current = reader(daemon.directory)
        var (written, found): ([String], [String]) = ([], [])
        var place: JournalPlace?
        for round in 0..<12 {
            let messages = (0..<Int.random(in: 1...300, using: &random)).map { "\(round) \($0)" }
            try daemon.write(messages)
            written += messages
            if Bool.random(using: &random) { try daemon.ask("--rotate") }
            while found.count < written.count, Int.random(in: 0...9, using: &random) > 1 || round == 11 {
                let piece = try #require(await current.next())
                found += try self.messages(piece)
                place = piece.place
            }
            if Bool.random(using: &random) {
                await current.stop()
                current = reader(daemon.directory, from: place)
            }
        }
        await current.stop()
        #expect(found == written, "\(Seeds.again(seed))")
        #expect(current.figures.gaps == 0)
    }

    @Test("rotation while rotated files are being opened loses nothing")
    func rotationsWithoutPause() async throws {
        // Small files, none of which journald removes to make room.
        let daemon = try JournalDaemon(
            "RuntimeMaxFiles=1000\nRuntimeMaxFileSize=512K\nRuntimeMaxUse=1G\nRuntimeKeepFree=1M")
        let current = reader(daemon.directory)
        let rounds = 120
        async let messages = read(until: "end", current)
        for round in 0..<rounds {
            try daemon.write(["\(round)"])
            try daemon.ask("--rotate")
        }
        try daemon.write(["end"])
        #expect(try await messages == (0..<rounds).map { "\($0)" } + ["end"])
        #expect(current.figures.gaps == 0)
        await current.stop()
    }

    private func read(until last: String, _ reader: JournalReader) async throws -> [String] {
        var found: [String] = []
        while found.last != last { found += try messages(try #require(await reader.next())) }
        return found
    }

    @Test("entries that journald removes unread are reported with times and number; the rest is read")
    func vacuum() async throws {
        let daemon = try JournalDaemon()
        try daemon.write((0..<100).map { "read \($0)" })
        let first = reader(daemon.directory)
        let place = try #require(try await read(100, first).places.last)
        await first.stop()
        for part in 0..<3 {
            try daemon.write((0..<50).map { "lost \(part) \($0)" })
            try daemon.ask("--rotate")
        }
        try daemon.ask("--vacuum-files=1")
        try daemon.write(["left"])
        let next = reader(daemon.directory, from: place)
        var gap: JournalGap?
        var found: [String] = []
        while !found.contains("left") {
            let piece = try #require(await next.next())
            gap = gap ?? piece.gaps.first
            found += try messages(piece)
        }
        let lost = try #require(gap?.atMost)
        #expect(found == ["left"] && lost >= 150 && lost < 170)
        #expect(
            next.figures.gaps == 1 && log.messages.contains { $0.text.contains("removed before it was read") }
        )
        await next.stop()
    }

    @Test("entries that are removed after they were read are no gap, at run time or between two starts")
    func vacuumOfWhatWasRead() async throws {
        let daemon = try JournalDaemon()
        try daemon.write(["a", "b"])
        let first = reader(daemon.directory)
        _ = try await read(2, first)
        try daemon.ask("--rotate")
        try daemon.ask("--vacuum-files=1")
        try daemon.write(["c"])
        let (found, places) = try await read(1, first)
        #expect(found == ["c"] && first.figures.gaps == 0)
        await first.stop()
        try daemon.ask("--rotate")
        try daemon.ask("--vacuum-files=1")
        try daemon.write(["d"])
        let next = reader(daemon.directory, from: places.last)
        #expect(try await read(1, next).messages == ["d"])
        #expect(next.figures.gaps == 0)
        await next.stop()
    }

    @Test("a piece can be committed in parts after its files were removed or rotated: the rest is read once")
    func partsOfWhatIsGone() async throws {
        let daemon = try JournalDaemon()
        try daemon.write((0..<3).map { "old \($0)" })
        try daemon.ask("--rotate")
        try daemon.write((0..<3).map { "new \($0)" })
        let first = reader(daemon.directory)
        _ = try #require(await first.next())
        let piece = try #require(await first.next())
        let lines = piece.lines.split(separator: 0x0A).map { String(decoding: $0, as: UTF8.self) }
        try daemon.write(["end"])
        for change in ["--sync", "--vacuum-files=1", "--rotate"] {
            try daemon.ask(change)
            for count in 1..<lines.count {
                let kept = await first.place(after: count, of: piece).memory(under: "journal/a")
                let next = reader(daemon.directory, from: JournalPlace(kept, under: "journal/a"))
                var found: [String] = []
                while found.last != "end" { found += try messages(try #require(await next.next())) }
                let left = (0..<3).flatMap { ["old \($0)", "new \($0)"] }.filter { message in
                    let isThere = change == "--sync" || message.hasPrefix("new")
                    return isThere && lines[count...].contains { $0.contains(message) }
                }
                #expect(found.sorted() == (left + ["end"]).sorted(), "\(change) \(count)")
                await next.stop()
            }
        }
        await first.stop()
    }

    @Test(
        "a journal that moves from memory to disk loses and repeats nothing",
        arguments: [true, false])
    func movesToDisk(isReading: Bool) async throws {
        let daemon = try JournalDaemon(isMachines: true)
        try daemon.write((0..<60).map { "in memory \($0)" })
        var reader = reader(daemon.directory)
        var (found, places) = try await read(40, reader)
        if !isReading {
            await reader.stop()
            // Others are unread yet, and the place is before the journal's end.
            try daemon.write((60..<80).map { "in memory \($0)" })
        }
        try daemon.moveToDisk()
        try daemon.write((0..<5).map { "on the disk \($0)" })
        if !isReading { reader = self.reader(daemon.directory, from: places.last) }
        while found.last != "on the disk 4" {
            let piece = try #require(await reader.next())
            found += try messages(piece)
            places.append(piece.place)
        }
        let all = (0..<(isReading ? 60 : 80)).map { "in memory \($0)" } + (0..<5).map { "on the disk \($0)" }
        #expect(found == all && reader.figures.gaps == 0)
        await reader.stop()
    }

    @Test("two boots are read in order, and since boot only the last one")
    func twoBoots() async throws {
        let daemon = try JournalDaemon()
        try daemon.write((0..<40).map { "first \($0)" })
        let first = reader(daemon.directory)
        let place = try #require(try await read(20, first).places.last)
        await first.stop()
        daemon.stop()
        try daemon.start(boot: String(repeating: "2b", count: 16))
        try daemon.write((0..<40).map { "second \($0)" })
        let all = ["first", "second"].flatMap { boot in (0..<40).map { "\(boot) \($0)" } }
        let whole = reader(daemon.directory)
        #expect(try await read(80, whole).messages == all)
        await whole.stop()
        let next = reader(daemon.directory, from: place)
        let found = try await read(40, next).messages
        #expect(found == all.suffix(found.count) && next.figures.gaps == 0)
        await next.stop()
        let boot = reader(daemon.directory, since: .boot)
        #expect(try await read(40, boot).messages == Array(all.suffix(40)))
        await boot.stop()
    }

    @Test("a clock that steps back loses and repeats nothing; entries removed unread meanwhile are a gap")
    func clockStepsBack() async throws {
        let directory = try TemporaryDirectory()
        let file = "\(directory.path)/a.journal"
        // Seconds of the day: noon, then the clock is set to eleven.
        try JournalDaemon.makeFile(file, [(43_200, "noon"), (39_600, "eleven"), (39_660, "a minute later")])
        let reader = reader(directory.path)
        let (found, places) = try await read(3, reader)
        #expect(found == ["noon", "eleven", "a minute later"] && reader.figures.gaps == 0)
        await reader.stop()
        #expect(unlink(file) == 0)
        try JournalDaemon.makeFile("\(directory.path)/b.journal", [(40_000, "left")])
        let next = self.reader(directory.path, from: places.last)
        #expect(try await read(1, next).messages == ["left"])
        #expect(next.figures.gaps == 1)
        await next.stop()
    }

    @Test("a file that is no longer a journal is reported, and the others are read")
    func corruptFile() async throws {
        let daemon = try JournalDaemon()
        try daemon.write(["in the file that is destroyed"])
        try daemon.ask("--rotate")
        try daemon.write(["whole"])
        let archived = try #require(JournalReaderTests.files(daemon.directory).first { $0.contains("@") })
        let file = try Descriptor(
            checking: open("\(daemon.directory)/\(archived)", O_WRONLY | O_CLOEXEC), "open")
        let zeros = [UInt8](repeating: 0, count: 4096)
        #expect(pwrite(file.raw, zeros, zeros.count, 0) == zeros.count)
        let reader = reader(daemon.directory)
        #expect(try await read(1, reader).messages == ["whole"])
        #expect(reader.figures.unreadableFiles == 1)
        #expect(log.messages.contains { "\($0)".contains(archived) })
        await reader.stop()
    }

    @Test(
        "a file that is truncated while it is read stops nothing, and the others are read",
        arguments: [0, 100_000])
    func cutOff(length: Int) async throws {
        let directory = try TemporaryDirectory()
        let (cut, other) = ("\(directory.path)/a.journal", "\(directory.path)/b.journal")
        let text = String(repeating: "x", count: 300)
        try JournalDaemon.makeFile(cut, (0..<2000).map { (100 + $0, "\(text) \($0)") })
        try JournalDaemon.makeFile(other, [(50, "first")], boot: "3c")
        let reader = reader(directory.path, look: .milliseconds(50)) { $0.pieceBytes = 10_000 }
        _ = try await read(100, reader)
        #expect(truncate(cut, length) == 0)
        try JournalDaemon.makeFile(other, [(60, "last")], boot: "3c", uptime: 10)
        var found: [String] = []
        while found.last != "last" { found += try messages(try #require(await reader.next())) }
        await reader.stop()
    }

    @Test(
        "a directory that is replaced, and a link that is redirected, are followed after the old one is read"
    )
    func followsThePath() async throws {
        let directory = try TemporaryDirectory()
        let (first, second, link) = ("\(directory.path)/1", "\(directory.path)/2", "\(directory.path)/link")
        for path in [first, second] { #expect(mkdir(path, 0o755) == 0) }
        #expect(symlink(first, link) == 0)
        try JournalDaemon.makeFile("\(first)/a.journal", [(43_200, "first")])
        let reader = reader(link, look: .milliseconds(50))
        #expect(try await read(1, reader).messages == ["first"])
        try JournalDaemon.makeFile("\(second)/b.journal", [(43_260, "second")])
        #expect(symlink(second, link + ".new") == 0 && rename(link + ".new", link) == 0)
        #expect(try await read(1, reader).messages == ["second"])
        // In place of the directory there is none for a while.
        #expect(rename(second, second + ".old") == 0)
        async let third = read(1, reader)
        #expect(await eventually { reader.figures.problem?.code == .missing })
        #expect(mkdir(second, 0o755) == 0)
        try JournalDaemon.makeFile("\(second)/c.journal", [(43_320, "third")])
        #expect(try await third.messages == ["third"])
        #expect(reader.figures.problem == nil && reader.figures.gaps == 0)
        await reader.stop()
    }

    @Test("a directory that is created later is read then; until then the reason is shown")
    func missing() async throws {
        let directory = try TemporaryDirectory()
        let reader = reader("\(directory.path)/none")
        async let piece = reader.next()
        #expect(await eventually { reader.figures.problem?.code == .missing })
        await reader.stop()
        #expect(await piece == nil)
    }

    @Test("an entry beyond the library's threshold is read up to it, and marked")
    func longEntries() async throws {
        let daemon = try JournalDaemon()
        try daemon.write([[("MESSAGE", Array(repeating: 0x61, count: 120_000))], [("MESSAGE", [0x62])]])
        let reader = reader(daemon.directory) { $0.maxEventSize = 10_000 }
        var lines: [String] = []
        while lines.count < 2 {
            let piece = try #require(await reader.next())
            lines += piece.lines.split(separator: 0x0A).map { String(decoding: $0, as: UTF8.self) }
                .filter { !$0.contains("systemd-journald") }
        }
        #expect(
            lines[0].utf8.count <= 10_000 && lines[0].contains("truncated_member")
                && lines[1].contains(#""message":"b""#))
        #expect(reader.figures.cut == 1)
        await reader.stop()
    }

    private static func files(_ directory: String) -> [String] {
        guard let stream = opendir(directory) else { return [] }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            names.append(
                withUnsafeBytes(of: &entry.pointee.d_name) {
                    String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
                })
        }
        return names
    }
}
