import EventLoops
import Glibc
import Logs
import Model
import TestKit
import Testing

@testable import Journal

/// Journals of several sequences: of several machines, and of boots when journald could not go on with the last file.
@Suite("Journal sequences", .serialized, .timeLimit(.minutes(3)))
struct JournalSequenceTests {
    private let loop: EventLoop
    private let log = KeptLog()
    private let directory: TemporaryDirectory

    init() throws {
        loop = try EventLoop(name: "journal")
        try loop.start()
        directory = try TemporaryDirectory()
    }

    private func path(_ name: String) -> String { "\(directory.path)/\(name)" }

    private func reader(
        since: JournalStart = .beginning, from place: JournalPlace? = nil, in path: String? = nil,
        look: Duration = .seconds(10), units: [String] = []
    ) -> JournalReader {
        let options = JournalOptions(
            directory: path ?? directory.path, units: units, priority: 7, since: since, fields: [],
            maxEventSize: 65_536)
        return JournalReader(options, from: place, on: loop, log: Log(log), look: look)
    }

    private func messages(_ piece: JournalPiece) throws -> [String] {
        try piece.lines.split(separator: 0x0A).compactMap {
            try JSONValue(parsing: Array($0))["message"]?.string
        }
    }

    /// Reads until so many messages have come; the place after them.
    private func read(_ count: Int, _ reader: JournalReader) async throws -> (
        messages: [String], place: JournalPlace
    ) {
        var found: [String] = []
        while true {
            let piece = try #require(await reader.next())
            found += try messages(piece)
            if found.count >= count { return (found, piece.place) }
        }
    }

    /// The place as the queue gives it back.
    private func kept(_ place: JournalPlace) throws -> JournalPlace {
        try #require(JournalPlace(place.memory(under: "journal/a"), under: "journal/a"))
    }

    @Test(
        "entries of two machines are each read once, whatever their clocks, at run time and after a restart"
    )
    func twoMachines() async throws {
        try JournalDaemon.makeFile(path("a.journal"), [(43_200, "a0"), (43_201, "a1")])
        let first = reader()
        #expect(try await read(2, first).messages == ["a0", "a1"])
        // It was cut off, and catches up an hour.
        try JournalDaemon.makeFile(path("b.journal"), [(39_600, "b0"), (39_601, "b1")], boot: "3c")
        #expect(try await read(2, first).messages == ["b0", "b1"])
        try JournalDaemon.makeFile(path("a.journal"), [(43_300, "a2")], uptime: 10)
        #expect(try await read(1, first).messages == ["a2"])
        // Both clocks are right, but its entries come later.
        try JournalDaemon.makeFile(path("b.journal"), [(43_250, "b2")], boot: "3c", uptime: 10)
        let (found, place) = try await read(1, first)
        #expect(found == ["b2"])
        await first.stop()
        try JournalDaemon.makeFile(path("b.journal"), [(43_251, "b3")], boot: "3c", uptime: 20)
        try JournalDaemon.makeFile(path("a.journal"), [(43_301, "a3")], uptime: 20)
        try JournalDaemon.makeFile(path("c.journal"), [(100, "c0")], boot: "4d")
        let next = reader(from: try kept(place))
        #expect(try await read(3, next).messages.sorted() == ["a3", "b3", "c0"])
        #expect(first.figures.gaps == 0 && next.figures.gaps == 0)
        await next.stop()
    }

    @Test("a position that the matches hide is found in the open files, even after a rotation")
    func hiddenPlaceAndRotation() async throws {
        let daemon = try JournalDaemon()
        func write(_ message: String, hidden: Bool = false) throws {
            let unit = [("OBJECT_SYSTEMD_UNIT", Array("a.service".utf8))]
            try daemon.write([[("MESSAGE", Array(message.utf8))] + (hidden ? [] : unit)])
        }
        try write("1")
        try daemon.ask("--rotate")
        try write("2")
        try write("hidden", hidden: true)
        var options = JournalOptions(
            directory: daemon.directory, units: [], priority: 7, since: .beginning, fields: [],
            maxEventSize: 1000)
        let all = try #require(try JournalSequence.all(options).sequences.first)
        let isThere = try all.handle.goToLast()
        try #require(isThere)
        let position = all.handle.position
        let place = try #require(position)
        try write("3")
        options.units = ["a.service"]
        let matching = try JournalSequence(all.id, all.files, options)
        try daemon.ask("--rotate")
        try write("4")
        try matching.go(to: place)
        let hasNext = try matching.handle.next()
        try #require(hasNext)
        var entry = JournalEntry(options)
        entry.begin()
        matching.handle.forEachField { entry.addField($0) }
        var line: [UInt8] = []
        _ = entry.write(into: &line, time: place.seenUntil, limit: 1000)
        let message = try JSONValue(parsing: line)["message"]?.string
        #expect(message == "3")
    }

    @Test("if a boot begins a new sequence, entries written while its clock is behind are read too")
    func clockBehindAfterBoot() async throws {
        try JournalDaemon.makeFile(path("system.journal"), [(43_200, "before the start")])
        let first = reader(since: .now)
        var (place, found) = (try #require(await first.next()).place, [String]())
        try JournalDaemon.makeFile(path("system.journal"), [(43_210, "unread")], uptime: 10)
        #expect(rename(path("system.journal"), path("system@1.journal~")) == 0)
        try JournalDaemon.makeFile(
            path("system.journal"), [(42_600, "behind"), (42_601, "still")], boot: "3c")
        (found, place) = try await read(3, first)
        #expect(found.sorted() == ["behind", "still", "unread"] && first.figures.gaps == 0)
        await first.stop()
        try JournalDaemon.makeFile(path("system.journal"), [(43_300, "set")], boot: "3c", uptime: 10)
        let next = reader(since: .now, from: try kept(place))
        #expect(try await read(1, next).messages == ["set"])
        #expect(next.figures.gaps == 0)
        await next.stop()
    }

    @Test("a position of an older version applies to all sequences; an older version resumes at the newest")
    func olderVersion() async throws {
        try JournalDaemon.makeFile(path("a.journal"), [(100, "a0"), (200, "a1"), (300, "a2")])
        try JournalDaemon.makeFile(
            path("b.journal"), [(50, "b0"), (150, "b1"), (250, "b2"), (350, "b3")], boot: "3c")
        // Of the boot of the place, which ended here before it.
        try JournalDaemon.makeFile(path("c.journal"), [(110, "c0")])
        try JournalDaemon.makeFile(path("c.journal"), [(310, "c1")], boot: "3c", uptime: 20)
        let old = try JournalHandle([path("a.journal")])
        try old.seekHead()
        let isThere = (try old.next(), try old.next())
        #expect(isThere == (true, true))
        let second = old.position
        let bytes = try #require(second).bytes
        let updated = try #require(JournalPlace(["journal/a": bytes], under: "journal/a"))
        let first = reader(from: updated)
        let begun = try #require(await first.next()).place
        #expect(try await read(4, first).messages.sorted() == ["a2", "b2", "b3", "c1"])
        await first.stop()
        // A kill before the first entries.
        let again = reader(from: try kept(begun))
        let (found, place) = try await read(4, again)
        #expect(found.sorted() == ["a2", "b2", "b3", "c1"])
        await again.stop()
        #expect(try kept(place) == place)
        // The older version, which has gone on for a while.
        var memory = place.memory(under: "journal/a")
        #expect(memory["journal/a"] == place.last.bytes)
        memory["journal/a"] = bytes
        #expect(JournalPlace(memory, under: "journal/a") == updated)
    }

    @Test("a piece with several sequences can be committed up to any of its entries")
    func partOfAPiece() async throws {
        try JournalDaemon.makeFile(path("a.journal"), (0..<3).map { (100 + $0, "a\($0)") })
        try JournalDaemon.makeFile(path("b.journal"), (0..<4).map { (50 + $0, "b\($0)") }, boot: "3c")
        let first = reader()
        _ = try #require(await first.next())
        let piece = try #require(await first.next())
        let all = try messages(piece)
        #expect(all.sorted() == ["a0", "a1", "a2", "b0", "b1", "b2", "b3"])
        for count in 1..<7 {
            let place = await first.place(after: count, of: piece)
            let next = reader(from: try kept(place))
            #expect(
                try await read(7 - count, next).messages.sorted() == all.dropFirst(count).sorted(), "\(count)"
            )
            await next.stop()
        }
        #expect(await first.place(after: 7, of: piece) == piece.place)
        await first.stop()
    }

    @Test(
        "an entry copied into another sequence is read once, whether the original exists or not",
        arguments: [true, false])
    func copies(isThere: Bool) async throws {
        let entries = (0..<4).map { (second: 1000 + $0, message: "\($0)") }
        try JournalDaemon.makeFile(path("disk.journal"), [(10, "boot before")], boot: "1a")
        try JournalDaemon.makeFile(path("memory.journal"), Array(entries.prefix(3)))
        let first = reader()
        _ = try #require(await first.next())
        let piece = try #require(await first.next())
        #expect(try messages(piece) == ["boot before", "0", "1", "2"])
        let place = await first.place(after: 3, of: piece)
        await first.stop()
        try JournalDaemon.makeFile(path("disk.journal"), Array(entries.prefix(isThere ? 2 : 4)))
        if !isThere { #expect(unlink(path("memory.journal")) == 0) }
        let next = reader(from: try kept(place))
        var found = try await read(isThere ? 1 : 2, next)
        if isThere {
            #expect(found.messages == ["2"])
            try JournalDaemon.makeFile(path("disk.journal"), Array(entries.suffix(2)), uptime: 2)
            #expect(unlink(path("memory.journal")) == 0)
            found = try await read(1, next)
        }
        #expect(found.messages == (isThere ? ["3"] : ["2", "3"]))
        await next.stop()
        try JournalDaemon.makeFile(path("disk.journal"), [(1010, "end")], uptime: 10)
        let last = reader(from: try kept(found.place))
        #expect(try await read(1, last).messages == ["end"])
        #expect(next.figures.gaps == 0 && last.figures.gaps == 0)
        await last.stop()
    }

    @Test("in files that share a sequence, as since systemd 255, numbers below the last one are read too")
    func sharedSequence() async throws {
        let (system, memory) = (path("system.journal"), path("memory.journal"))
        try JournalDaemon.makeFile(system, [(10, "0")])
        try JournalDaemon.makeFile(
            path("user-1000@1.journal"), (0..<5).map { (11 + $0, "u\($0)") }, uptime: 10)
        try share(system, path("user-1000@1.journal"))
        let first = reader()
        #expect(try await read(6, first).messages == ["0", "u0", "u1", "u2", "u3", "u4"])
        // Numbers 2 to 4: what the next boot had in memory, after a power cut or a kill.
        try JournalDaemon.makeFile(system, [(20, "1"), (21, "2"), (22, "3")], boot: "3c")
        var (found, place) = try await read(3, first)
        #expect(found == ["1", "2", "3"])
        // After --relinquish-var journald writes to memory in the same sequence. A flush copies those entries to the system's file, with its next numbers.
        try JournalDaemon.makeFile(memory, (0..<6).map { (30 + $0, "m\($0)") }, boot: "3c", uptime: 30)
        try share(system, memory)
        (found, place) = try await read(6, first)
        await first.stop()
        try JournalDaemon.makeFile(system, (3..<7).map { (30 + $0, "m\($0)") }, boot: "3c", uptime: 33)
        #expect(unlink(memory) == 0)
        let next = reader(from: try kept(place))
        #expect(try await read(1, next).messages == ["m6"])
        try JournalDaemon.makeFile(system, [(50, "end")], boot: "3c", uptime: 50)
        #expect(try await read(1, next).messages == ["end"])
        #expect(first.figures.gaps == 0 && next.figures.gaps == 0)
        await next.stop()
    }

    @Test(
        "entries lost in a power cut were read already; the next boot reuses their numbers and is read whole",
        arguments: [1, 9])
    func numbersUsedAgain(count: Int) async throws {
        let (file, saved) = (path("system.journal"), path("saved"))
        try JournalDaemon.makeFile(file, (0..<3).map { (43_200 + $0, "\($0)") })
        try WholeFile.replace(
            saved, with: #require(try WholeFile.bytes(of: file, atMost: 16 << 20)), mode: 0o644)
        try JournalDaemon.makeFile(file, (3..<8).map { (43_200 + $0, "\($0)") }, uptime: 3)
        let first = reader()
        let (found, place) = try await read(8, first)
        #expect(found == (0..<8).map { "\($0)" })
        await first.stop()
        #expect(rename(saved, file) == 0)
        // Its clock is behind as well.
        try JournalDaemon.makeFile(file, (0..<count).map { (39_600 + $0, "new \($0)") }, boot: "3c")
        let next = reader(from: try kept(place))
        #expect(try await read(count, next).messages == (0..<count).map { "new \($0)" })
        try JournalDaemon.makeFile(file, [(43_300, "end")], boot: "3c", uptime: 100)
        #expect(try await read(1, next).messages == ["end"])
        await next.stop()
    }

    /// Gives a file the sequence of another.
    private func share(_ file: String, _ other: String) throws {
        let from = try Descriptor(checking: open(file, O_RDONLY | O_CLOEXEC), "open")
        let to = try Descriptor(checking: open(other, O_WRONLY | O_CLOEXEC), "open")
        // Source: https://systemd.io/JOURNAL_FILE_FORMAT, "Header".
        var id = [UInt8](repeating: 0, count: 16)
        #expect(
            pread(from.raw, &id, id.count, 72) == id.count && pwrite(to.raw, id, id.count, 72) == id.count)
    }

    @Test("entries of one machine that are removed unread are a gap, even if another machine's are older")
    func gapOfOne() async throws {
        let daemon = try JournalDaemon()
        try JournalDaemon.makeFile("\(daemon.directory)/other.journal", [(10, "other")], boot: "3c")
        try daemon.write(["read"])
        let first = reader(in: daemon.directory)
        var (found, place) = ([String](), nil as JournalPlace?)
        while !found.contains("read") || !found.contains("other") {
            let piece = try #require(await first.next())
            found += try messages(piece)
            place = piece.place
        }
        await first.stop()
        try daemon.write(["lost"])
        try daemon.ask("--rotate")
        try daemon.ask("--vacuum-files=1")
        try daemon.write(["left"])
        let next = reader(from: place, in: daemon.directory)
        found = []
        while !found.contains("left") { found += try messages(try #require(await next.next())) }
        #expect(!found.contains("lost") && !found.contains("other") && next.figures.gaps == 1)
        await next.stop()
    }

    @Test("since now: old entries in a directory that replaces another are skipped")
    func otherDirectory() async throws {
        let (old, new, link) = (path("1"), path("2"), path("link"))
        for path in [old, new] { #expect(mkdir(path, 0o755) == 0) }
        try JournalDaemon.makeFile("\(old)/a.journal", [(43_200, "old")])
        try JournalDaemon.makeFile("\(new)/b.journal", [(39_600, "older"), (43_260, "new")], boot: "3c")
        #expect(symlink(old, link) == 0)
        let reader = reader(since: .now, in: link, look: .milliseconds(50))
        _ = try #require(await reader.next())
        #expect(symlink(new, link + ".new") == 0 && rename(link + ".new", link) == 0)
        #expect(try await read(1, reader).messages == ["new"])
        #expect(reader.figures.gaps == 0)
        await reader.stop()
    }

    @Test("names that are not files, and garbage files, block nothing; valid files are read")
    func hostileFiles() async throws {
        #expect(mkfifo(path("fifo.journal"), 0o644) == 0 && mkdir(path("directory.journal"), 0o755) == 0)
        #expect(
            symlink("/dev/zero", path("zero.journal")) == 0 && symlink("nowhere", path("none.journal")) == 0)
        try WholeFile.replace(path("text.journal"), with: Array(repeating: 0x41, count: 10_000), mode: 0o644)
        try WholeFile.replace(path("empty.journal"), with: [], mode: 0o644)
        try JournalDaemon.makeFile(path("whole.journal"), [(100, "whole")])
        let reader = reader()
        #expect(try await read(1, reader).messages == ["whole"])
        #expect(reader.figures.unreadableFiles == 4 && reader.figures.problem == nil)
        await reader.stop()
    }

    @Test("of sequences without files the newest are remembered")
    func bounded() throws {
        let positions = (0..<10).map { number in
            JournalPosition("s=\(number);i=1", seenUntil: Timestamp(nanoseconds: Int64(number)))
        }
        var place = JournalPlace(last: positions[9])
        place.sequences = Dictionary(uniqueKeysWithValues: positions.map { ($0.sequence, $0) })
        place.forget(allBut: [], most: 3)
        #expect(place.sequences?.count == 10)
        place.forget(allBut: ["0", "1", "nowhere"], most: 3)
        #expect(place.sequences?.keys.sorted() == ["0", "1", "7", "8", "9"])
    }

    @Test("a file that cannot be examined is not skipped: it is searched again")
    func notFound() throws {
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/system.journal"
        try #require(symlink("\(directory.path)/not there", path) == 0)
        let files = try JournalFiles(of: directory.path)
        #expect(files.empty.map(\.path) == [path] && files.bad.isEmpty && files.sequences.isEmpty)
    }
}
