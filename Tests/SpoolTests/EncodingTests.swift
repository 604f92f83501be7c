import EventLoops
import Frames
import Glibc
import Model
import TestKit
import Testing

@testable import Spool

/// Files in other encodings than UTF-8 that are read in place.
@Suite("Encodings", .timeLimit(.minutes(5)))
struct EncodingTests {
    private func start(
        _ spool: SpoolHarness, _ encoding: FileEncoding? = nil, longest: Int = 1_000_000,
        since: ReadStart = .beginning, _ change: (inout SpoolOptions) -> Void = { _ in }
    ) async throws -> SpoolReader {
        let place = try #require(ReadPlace.of(app: "web", ["\(spool.path)/*.log"])?.first)
        return try await spool.start {
            ($0.place, $0.directory, $0.afterRead, $0.since) = (place, place.root, .keep, since)
            ($0.encoding, $0.maxEventSize) = (encoding, longest)
            $0.unclosedTime = .milliseconds(200)
            change(&$0)
        }
    }

    private func bytes(_ text: String, _ encoding: FileEncoding, hasMark: Bool = false) -> [UInt8] {
        TestText.encoded(text, encoding, hasMark: hasMark)
    }

    /// The lines whose bytes differ most between encodings.
    private func lines(_ encoding: FileEncoding) -> [String] {
        encoding == .latin1
            ? ["plain", "Zürich ÿ\u{A0}\u{85}", "{\"a\":\"ä\"}"]
            : ["plain", "Zürich", "日本語 \u{A00}\u{D0A}\u{A0A}", "😀😀", "{\"a\":\"𐍈\"}", "\u{FFFD}\u{2028}x"]
    }

    @Test(
        "lines arrive as UTF-8, at their places in the file", arguments: FileEncoding.allCases, [true, false])
    func linesArrive(encoding: FileEncoding, hasMark: Bool) async throws {
        if encoding == .latin1, hasMark { return }
        let spool = try SpoolHarness()
        let lines = lines(encoding)
        spool.write(
            bytes(lines.map { $0 + "\n" }.joined(), encoding, hasMark: hasMark), to: "app.log")
        let reader = try await start(spool, encoding)
        await spool.untilLines(lines)
        var place: Int64 = 0
        for (line, kept) in zip(lines, spool.queue.with { $0.lines }) {
            #expect(kept.text == line && kept.offset == place)
            place += Int64(bytes(line + "\n", encoding, hasMark: hasMark && place == 0).count)
        }
        await spool.until("nothing is unread") { reader.figures.unreadBytes == 0 }
        await reader.stop()
    }

    @Test(
        "a file that begins with a byte order mark of UTF-16 is decoded without the setting, others are not touched",
        arguments: [FileEncoding.utf16le, .utf16be])
    func recognised(encoding: FileEncoding) async throws {
        let spool = try SpoolHarness()
        // The mark comes byte by byte.
        let all = bytes("one ä\ntwo\n", encoding, hasMark: true)
        spool.write(Array(all[..<1]), to: "app.log")
        spool.write("\u{FEFF}utf8 ä\n", to: "other.log")
        let reader = try await start(spool)
        await spool.untilLines(["\u{FEFF}utf8 ä"])
        for byte in all[1...] {
            spool.write([byte], to: "app.log", mode: O_APPEND)
            await spool.pause(.milliseconds(3))
        }
        await spool.untilLines(["\u{FEFF}utf8 ä", "one ä", "two"])
        await reader.stop()
    }

    @Test(
        "bytes that come one by one, with restarts between, arrive once", arguments: FileEncoding.allCases)
    func restarts(encoding: FileEncoding) async throws {
        let spool = try SpoolHarness()
        var expected: [String] = []
        var content: [UInt8] = []
        for round in 0..<60 {
            for line in lines(encoding) {
                expected.append("\(round) \(line)")
                content += bytes("\(round) \(line)\n", encoding)
            }
        }
        spool.write([], to: "app.log")
        var place = 0
        var random = SplitMix64(seed: 7)
        while place < content.count {
            let reader = try await start(spool, encoding)
            // Ends within units and pairs as often as between them.
            for _ in 0..<6 where place < content.count {
                let end = min(content.count, place + Int.random(in: 1...(content.count / 40), using: &random))
                spool.write(Array(content[place..<end]), to: "app.log", mode: O_APPEND)
                place = end
                await spool.pause(.milliseconds(Int.random(in: 0...4, using: &random)))
            }
            await reader.stop()
        }
        let reader = try await start(spool, encoding)
        await spool.untilLines(expected)
        await spool.pause(.milliseconds(200))
        #expect(spool.queue.lines == expected)
        let end = spool.queue.with { $0.checkpoints.values.map(\.offset) }
        #expect(end == [Int64(content.count)])
        await reader.stop()
    }

    @Test("a sink that takes little at a time gets each line once", arguments: FileEncoding.allCases)
    func smallCommits(encoding: FileEncoding) async throws {
        let spool = try SpoolHarness()
        let expected = (0..<300).map { "\($0) \(lines(encoding)[$0 % 3])" }
        spool.queue.with { $0.room = 50 }
        spool.write(bytes(expected.map { $0 + "\n" }.joined(), encoding), to: "app.log")
        let reader = try await start(spool, encoding)
        await spool.untilLines(expected)
        #expect(spool.queue.lines == expected)
        await reader.stop()
    }

    @Test("files of several blocks arrive whole", arguments: FileEncoding.allCases)
    func blocks(encoding: FileEncoding) async throws {
        let spool = try SpoolHarness()
        // Lines of odd lengths, so that blocks end in the middle of pairs.
        let expected = (0..<60_000).map {
            "\($0) \(lines(encoding)[$0 % 3]) \(encoding == .latin1 ? "é" : "😀😀")"
        }
        spool.write(bytes(expected.map { $0 + "\n" }.joined(), encoding), to: "app.log")
        let reader = try await start(spool, encoding)
        await spool.until("all arrive") { spool.queue.lines.count >= expected.count }
        #expect(spool.queue.lines == expected)
        await reader.stop()
    }

    @Test("a last line without a line feed, and half a unit at its end, count once the file is done")
    func lastLine() async throws {
        let spool = try SpoolHarness()
        spool.write(bytes("one\nend", .utf16le) + [0x3D], to: "app.log.1")
        spool.write(bytes("two\n", .utf16be) + [0xD8, 0x3D], to: "b.log.1")
        spool.write(bytes("", .utf16le, hasMark: true), to: "mark.log.1")
        let reader = try await start(spool, .utf16le)
        await spool.until("the last line arrives") { spool.queue.lines.count >= 2 }
        let texts = spool.queue.lines.filter { $0 == "one" || $0.hasPrefix("end") }
        #expect(texts == ["one", "end\u{FFFD}"])
        await spool.until("all was read") { reader.figures.unreadBytes == 0 }
        await reader.stop()
    }

    @Test(
        "what is too long is measured as text and quarantined, and the next line is read",
        arguments: FileEncoding.allCases)
    func tooLong(encoding: FileEncoding) async throws {
        let spool = try SpoolHarness()
        let letter = encoding == .latin1 ? "ä" : "日"
        let bytesOfLetter = letter.utf8.count
        let longest = 6000
        // As long as allowed, a byte longer, and very much longer; the first two also in pieces.
        let fits = String(repeating: letter, count: longest / bytesOfLetter)
        let beyond = fits + "x"
        let ascii = String(repeating: "a", count: longest)
        let far = String(repeating: letter, count: 900_000)
        let all = [fits, beyond, "next", ascii, ascii + "b", "after", far, "last"]
        let content = bytes(all.map { $0 + "\n" }.joined(), encoding)
        let first = bytes(all[..<5].map { $0 + "\n" }.joined(), encoding).count
        spool.write([], to: "app.log")
        let reader = try await start(spool, encoding, longest: longest)
        var place = 0
        while place < first {
            let end = min(first, place + 1999)
            spool.write(Array(content[place..<end]), to: "app.log", mode: O_APPEND)
            place = end
            await spool.pause(.milliseconds(4))
        }
        spool.write(Array(content[place...]), to: "app.log", mode: O_APPEND)
        await spool.untilLines([fits, "next", ascii, "after", "last"])
        await spool.until("three are quarantined") { spool.queue.quarantined.count >= 3 }
        let records = spool.queue.quarantined
        #expect(records.count == 3 && records.allSatisfy { $0.reason == .tooLong })
        #expect(records.first?.offset == Int64(bytes(fits + "\n", encoding).count))
        #expect(
            records.last.map { String(decoding: $0.content.prefix(bytesOfLetter), as: UTF8.self) } == letter)
        await reader.stop()
    }

    @Test(
        "zeros at the end of a file that is longer than its content are waited for",
        arguments: [
            FileEncoding.utf16le, .utf16be,
        ])
    func zeros(encoding: FileEncoding) async throws {
        let spool = try SpoolHarness()
        spool.write(bytes("one\n", encoding) + Array(repeating: 0, count: 4096), to: "app.log")
        let reader = try await start(spool, encoding)
        await spool.untilLines(["one"])
        let file = open("\(spool.path)/app.log", O_WRONLY | O_CLOEXEC)
        let more = bytes("two\n", encoding)
        #expect(pwrite(file, more, more.count, Int(bytes("one\n", encoding).count)) == more.count)
        close(file)
        await spool.untilLines(["one", "two"])
        await reader.stop()
    }

    @Test(
        "rotations arrive once: renamed, copied and truncated, and compressed while the agent is stopped",
        arguments: FileEncoding.allCases, [Compression.gzip, .zstd])
    func rotations(encoding: FileEncoding, compression: Compression) async throws {
        let spool = try SpoolHarness()
        let hasMark = encoding != .latin1
        func content(_ range: Range<Int>) -> [UInt8] {
            bytes(
                range.map { "\($0) zwölf\n" }.joined(), encoding,
                hasMark: hasMark && range.lowerBound % 100 == 0)
        }
        let end = compression == .gzip ? "gz" : "zst"
        spool.write(content(0..<50), to: "app.log")
        var reader = try await start(spool, encoding)
        func until(_ count: Int) async {
            await spool.untilLines((0..<count).map { "\($0) zwölf" })
        }
        await until(50)
        await spool.until("the pattern was seen") {
            spool.queue.with { $0.memory.values.allSatisfy { $0.last == 1 } && !$0.memory.isEmpty }
        }
        await reader.stop()
        // Compressed after lines were added, while the agent was stopped.
        spool.write(
            try FrameCompressor(compression).compress(content(0..<50) + content(50..<100)),
            to: "app.log.1.\(end)")
        spool.remove("app.log")
        spool.write(content(100..<150), to: "app.log")
        reader = try await start(spool, encoding)
        await until(150)
        // Copied and truncated.
        spool.write(content(150..<200), to: "app.log", mode: O_APPEND)
        await until(200)
        spool.write(content(100..<150) + content(150..<200), to: "app.log.1")
        spool.write(content(200..<220), to: "app.log")
        await until(220)
        spool.rename("app.log", to: "app.log.0")
        spool.write(content(300..<301), to: "app.log")
        await spool.until("the new file is read") { spool.queue.lines.contains("300 zwölf") }
        await spool.pause(.milliseconds(300))
        #expect(spool.queue.lines.count == 221)
        #expect(spool.queue.quarantined.isEmpty)
        await reader.stop()
    }

    @Test("since = now begins behind the last whole line", arguments: FileEncoding.allCases)
    func since(encoding: FileEncoding) async throws {
        let spool = try SpoolHarness()
        spool.write(bytes("old \(lines(encoding)[1])\nhalf", encoding), to: "app.log")
        await spool.pause(.milliseconds(50))
        let reader = try await start(spool, encoding, since: .now)
        await spool.until("the pattern was seen") {
            spool.queue.with { $0.memory.values.allSatisfy { $0.last == 1 } && !$0.memory.isEmpty }
        }
        spool.write(bytes(" whole\nnew\n", encoding), to: "app.log", mode: O_APPEND)
        await spool.untilLines(["half whole", "new"])
        await reader.stop()
    }

    @Test("records of several lines are handed over together", arguments: FileEncoding.allCases)
    func records(encoding: FileEncoding) async throws {
        let spool = try SpoolHarness()
        spool.write(bytes("one\ntwo\n", encoding), to: "app.log")
        let reader = try await start(spool, encoding) { $0.joinsText = true }
        await spool.untilLines(["one", "two"])
        // Silence ends a block of text, which comes in one piece.
        #expect(spool.queue.with { $0.lastOffered } == ["two"])
        await reader.stop()
    }

    @Test(
        "old files are decoded too, and go on at the place that was reached", arguments: FileEncoding.allCases
    )
    func backfill(encoding: FileEncoding) throws {
        let directory = try TemporaryDirectory()
        let text = (0..<5000).map { "{\"name\":\"\($0) zwölf\"}\n" }.joined()
        for (name, pack) in [("a.jsonl", nil), ("b.json", nil), ("c.jsonl.gz", Compression.gzip)] {
            let path = "\(directory.path)/\(name)"
            var content = bytes(text, encoding, hasMark: encoding != .latin1)
            if let pack { content = try FrameCompressor(pack).compress(content) }
            try WholeFile.replace(path, with: content, mode: 0o600)
            var (found, place) = ([UInt8](), String?.none)
            while true {
                let file = try BackfillFile(path: path, maxEventSize: 1000)
                file.decode(encoding)
                #expect(try file.begin(at: place))
                // Three pieces, then another run.
                var isEnd = false
                for _ in 0..<3 {
                    guard let piece = try file.next(atMost: 4096) else {
                        isEnd = true
                        break
                    }
                    #expect(piece.problem == nil)
                    (found, place) = (found + piece.bytes, piece.end)
                }
                if isEnd { break }
            }
            #expect(String(decoding: found, as: UTF8.self) == text, "\(name)")
        }
    }

    @Test(
        "old files and archives that are longer than a buffer are decoded whole",
        arguments: FileEncoding.allCases)
    func longBackfill(encoding: FileEncoding) throws {
        let directory = try TemporaryDirectory()
        let tail = encoding == .latin1 ? "zwölf" : "日本語 zwölf"
        let text = (0..<60_000).map { "{\"name\":\"\($0) \(tail)\"}\n" }.joined()
        for (name, pack) in [("a.jsonl", nil), ("b.json", nil), ("c.jsonl.gz", Compression.gzip)] {
            let path = "\(directory.path)/\(name)"
            var content = bytes(text, encoding, hasMark: encoding != .latin1)
            if let pack { content = try FrameCompressor(pack).compress(content) }
            try WholeFile.replace(path, with: content, mode: 0o600)
            let file = try BackfillFile(path: path, maxEventSize: 1000)
            file.decode(encoding)
            #expect(try file.begin(at: nil))
            var found: [UInt8] = []
            while let piece = try file.next(atMost: 100_000) {
                #expect(piece.problem == nil)
                found += piece.bytes
            }
            #expect(found == Array(text.utf8), "\(name)")
        }
    }

    @Test(
        "a first line that is too long, behind a byte order mark and before half a pair, ends",
        arguments: [FileEncoding.utf16le, .utf16be])
    func tooLongBehindMark(encoding: FileEncoding) throws {
        let directory = try TemporaryDirectory()
        let longest = 200_000
        // The buffer ends in the middle of the pair, at one of these lengths.
        for length in (longest - 2)...(longest + 4) {
            let path = "\(directory.path)/\(length).jsonl"
            let text = String(repeating: "a", count: length) + "😀😀\n{\"name\":\"next\"}\n"
            try WholeFile.replace(path, with: bytes(text, encoding, hasMark: true), mode: 0o600)
            let file = try BackfillFile(path: path, maxEventSize: longest)
            file.decode(encoding)
            #expect(try file.begin(at: nil))
            var (found, problems) = ([UInt8](), 0)
            while let piece = try file.next(atMost: 4096) {
                if piece.problem == nil {
                    found += piece.bytes
                } else {
                    problems += 1
                }
            }
            #expect(problems == 1 && found == Array("{\"name\":\"next\"}\n".utf8), "\(length)")
        }
    }

    @Test(
        "an archive in place is handed over whole, however little is taken at a time",
        arguments: FileEncoding.allCases)
    func archiveInSmallCommits(encoding: FileEncoding) async throws {
        let spool = try SpoolHarness()
        let expected = (0..<1200).map {
            "\($0) \(lines(encoding)[$0 % 3]) " + String(repeating: "x", count: 400)
        }
        spool.queue.with { $0.room = 100 }
        let content = bytes(expected.map { $0 + "\n" }.joined(), encoding, hasMark: encoding != .latin1)
        spool.write(try FrameCompressor(.gzip).compress(content), to: "app.log.1.gz")
        let place = try #require(ReadPlace.of(app: "web", ["\(spool.path)/*.gz"])?.first)
        let reader = try await start(spool, encoding) { ($0.place, $0.directory) = (place, place.root) }
        await spool.until("all arrive") { spool.queue.lines.count >= expected.count }
        #expect(spool.queue.lines == expected)
        await reader.stop()
    }
}
