import EventLoops
import Frames
import Glibc
import Model
@testable import Spool
import TestKit
import Testing

@Suite("Old files, read by command")
struct BackfillFileTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func write(_ text: String, as name: String) throws -> String {
        try write(Array(text.utf8), as: name)
    }

    private func write(_ bytes: [UInt8], as name: String) throws -> String {
        let path = "\(directory.path)/\(name)"
        let file = try Descriptor(
            checking: open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644), "open")
        try #require(Glibc.write(file.raw, bytes, bytes.count) == bytes.count)
        return path
    }

    private func packed(_ text: String, _ compression: Compression) throws -> [UInt8] {
        let compressor = try FrameCompressor(compression)
        return try Array(text.utf8).withUnsafeBytes { try compressor.compress($0) }
    }

    private struct Read: Equatable {
        var lines = ""
        var problems: [QuarantineRecord.Reason] = []
        var place: String?
    }

    /// Reads a file from a place on; after some pieces, to end there.
    private func read(
        _ path: String, from place: String? = nil, atMost limit: Int = 100, pieces: Int = .max,
        longest: Int = 1000
    ) throws -> Read {
        let file = try BackfillFile(path: path, maxEventSize: longest)
        #expect(try file.begin(at: place))
        var read = Read(place: place)
        for _ in 0..<pieces {
            guard let piece = try file.next(atMost: limit) else { break }
            if let problem = piece.problem {
                #expect(piece.bytes.count <= 4096 && Int(problem.length) >= piece.bytes.count)
                read.problems.append(problem.reason)
            } else {
                #expect(piece.bytes.last == 0x0A)
                #expect(piece.bytes.count <= limit || piece.bytes.count { $0 == 0x0A } == 1)
                read.lines += String(decoding: piece.bytes, as: UTF8.self)
            }
            read.place = piece.end
        }
        return read
    }

    private func lines(_ numbers: Range<Int>) -> String {
        numbers.map { #"{"name":"event","n":\#($0)}"# + "\n" }.joined()
    }

    @Test("lines are read in pieces, none is cut in two, and the last one needs no line feed")
    func linesInPieces() throws {
        let text = lines(0..<5000)
        for limit in [1, 30, 100, 4096, 1 << 20] {
            #expect(try read(write(text, as: "a.jsonl"), atMost: limit).lines == text)
        }
        let open = String(text.dropLast())
        #expect(try read(write(open, as: "b.log")).lines == text)
        #expect(try read(write("", as: "c.log")) == Read())
        #expect(try read(write(packed(text, .gzip), as: "d.jsonl.gz")).lines == text)
        #expect(try read(write(packed(text, .zstd), as: "e.jsonl.zst"), atMost: 1 << 16).lines == text)
    }

    @Test(
        "reading continues after any piece, and nothing is missing or repeated",
        arguments: ["a.jsonl", "a.json", "a.jsonl.gz", "a.json.zst"])
    func goesOn(name: String) throws {
        let seed = Seeds.one(9)
        print("reading goes on, \(name): seed \(seed)")
        var random = SplitMix64(seed: seed)
        let isText = name.hasPrefix("a.json") && !name.hasPrefix("a.jsonl")
        let events = (0..<400).map { number in
            #"{"name":"event","n":\#(number),"x":"\#(String(repeating: "x", count: Int.random(in: 0...200, using: &random)))"}"#
        }
        let text =
            isText
            ? "[\n" + events.joined(separator: " ,\n") + "\n]\n" : events.joined(separator: "\n") + "\n"
        let compression: Compression = name.hasSuffix(".gz") ? .gzip : name.hasSuffix(".zst") ? .zstd : .none
        let path = try write(compression == .none ? Array(text.utf8) : packed(text, compression), as: name)
        for _ in 0..<20 {
            var lines = ""
            var place: String?
            var rounds = 0
            while rounds < 1000 {
                rounds += 1
                let pieces = Int.random(in: 1...9, using: &random)
                let found = try read(
                    path, from: place, atMost: Int.random(in: 1...5000, using: &random), pieces: pieces)
                #expect(found.problems == [])
                if found.lines.isEmpty { break }
                lines += found.lines
                place = found.place
            }
            #expect(lines == events.map { $0 + "\n" }.joined())
        }
    }

    @Test("a file with different content is read from its beginning")
    func otherContent() throws {
        let path = try write(lines(0..<100), as: "a.jsonl")
        let place = try read(path, pieces: 3).place
        let file = try BackfillFile(path: write(lines(7..<100), as: "a.jsonl"), maxEventSize: 1000)
        #expect(try !file.begin(at: place) && !file.begin(at: "nonsense") && !file.begin(at: "1:-1:0:0:0"))
        #expect(try file.next(atMost: 40).map { String(decoding: $0.bytes, as: UTF8.self) } == lines(7..<8))
        // What grew behind the place is the same file.
        let grown = try read(write(lines(0..<100) + lines(100..<200), as: "a.jsonl"), from: place)
        #expect(grown.lines.hasSuffix(lines(100..<200)))
    }

    @Test("a file rewritten in place is read from its beginning, even if its start and end are the same")
    func rewrittenInPlace() throws {
        let head = String(
            repeating: #"{"name":"config","k":"\#(String(repeating: "c", count: 80))"}"# + "\n", count: 20)
        let tail = String(repeating: "t", count: 400)
        func text(_ numbers: Range<Int>) -> String {
            head + numbers.map { #"{"n":\#(1000 + $0),"x":"\#(tail)"}"# + "\n" }.joined()
        }
        for (name, compression) in [("a.jsonl", Compression.none), ("a.json", .none), ("a.jsonl.gz", .gzip)] {
            func write(_ numbers: Range<Int>) throws -> String {
                let text = text(numbers)
                return try self.write(
                    compression == .none ? Array(text.utf8) : packed(text, compression), as: name)
            }
            let place = try read(write(0..<300)).place
            for other in [0..<200, 300..<600, 300..<400, 300..<900] {
                let file = try BackfillFile(path: write(other), maxEventSize: 1000)
                #expect(try !file.begin(at: place), "\(name) \(other)")
            }
            #expect(try read(write(0..<300), from: place) == Read(place: place))
            if compression == .none {
                #expect(
                    try read(write(0..<400), from: place).lines
                        == String(text(300..<400).dropFirst(head.utf8.count)))
            }
        }
    }

    @Test("a position of an earlier version is valid if the file has the same beginning")
    func placesOfEarlierVersions() throws {
        let path = try write(lines(0..<100), as: "a.jsonl")
        let hash = Array(lines(0..<100).utf8.prefix(1024)).withUnsafeBytes { ByteHash.of($0) }
        let offset = lines(0..<3).utf8.count
        let place = "1:\(String(offset, radix: 16)):0:400:\(String(hash, radix: 16))"
        #expect(try read(path, from: place).lines == lines(3..<100))
        #expect(
            try !BackfillFile(path: write(lines(7..<100), as: "a.jsonl"), maxEventSize: 1000).begin(at: place)
        )
    }

    @Test(
        "records of a container runtime are not cut at the end of a piece", arguments: LineWrapper.allCases)
    func recordsOfContainers(format: LineWrapper) throws {
        func line(_ text: String, isLast: Bool) -> String {
            let time = "2026-11-20T10:00:00.000000001Z"
            guard format == .docker else { return "\(time) stdout \(isLast ? "F" : "P") \(text)\n" }
            return #"{"log":"\#(text)\#(isLast ? "\n" : "")","stream":"stdout","time":"\#(time)"}"# + "\n"
        }
        func record(_ number: Int, of lines: Int) -> String {
            (1...lines).map {
                line("\(number)-\($0) \(String(repeating: "x", count: 200))", isLast: $0 == lines)
            }
            .joined()
        }
        let records = (0..<60).map { record($0, of: 1 + $0 % 9) }
        for name in ["a.log", "a.log.gz"] {
            let all = records.joined()
            let path = try write(name == "a.log" ? Array(all.utf8) : packed(all, .gzip), as: name)
            let file = try BackfillFile(path: path, maxEventSize: 4000)
            file.format = format
            var (rest, pieces) = (records[...], 0)
            while let piece = try file.next(atMost: 1000) {
                let whole = rest.first?.utf8.count ?? 0
                #expect(piece.problem == nil && piece.bytes.count <= max(1000, whole))
                var text = ""
                while text.utf8.count < piece.bytes.count, let next = rest.popFirst() { text += next }
                #expect(Array(text.utf8) == piece.bytes)
                pieces += 1
            }
            #expect(rest.isEmpty && pieces > 20)
        }
        // One that is longer than an event may be goes in parts, and one that does not end goes as it is.
        let path = try write(record(1, of: 30) + record(2, of: 3) + line("3-1", isLast: false), as: "b.log")
        let file = try BackfillFile(path: path, maxEventSize: 4000)
        file.format = format
        var found: [String] = []
        while let piece = try file.next(atMost: 1000) {
            found.append(String(decoding: piece.bytes, as: UTF8.self))
        }
        #expect(found.joined() == record(1, of: 30) + record(2, of: 3) + line("3-1", isLast: false))
        #expect(found.last == line("3-1", isLast: false) && found.dropLast().last == record(2, of: 3))
    }

    @Test("the key belongs to the file, whatever its name")
    func keys() throws {
        let path = try write("x", as: "a.jsonl")
        let key = try BackfillFile(path: path, maxEventSize: 9).key
        #expect(rename(path, "\(directory.path)/b.jsonl") == 0)
        #expect(try BackfillFile(path: "\(directory.path)/b.jsonl", maxEventSize: 9).key == key)
        #expect(try BackfillFile(path: write("x", as: "a.jsonl"), maxEventSize: 9).key != key)
        #expect(throws: SpoolError.self) { try BackfillFile(path: "\(directory.path)/none", maxEventSize: 9) }
        #expect(throws: SpoolError.self) { try BackfillFile(path: directory.path, maxEventSize: 9) }
    }

    @Test("a line that is too long is reported with its length, and its neighbours are read")
    func fault19_tooLong() throws {
        for length in [1001, 5000, 700_000] {
            let long = String(repeating: "x", count: length)
            let found = try read(write(lines(0..<3) + long + "\n" + lines(3..<6), as: "a.jsonl"))
            #expect(found.lines == lines(0..<6) && found.problems == [.tooLong])
            let last = try read(write(lines(0..<3) + long, as: "a.jsonl"))
            #expect(last.lines == lines(0..<3) && last.problems == [.tooLong])
            let text = try read(write("[{\"a\":1},{\"b\":\"\(long)\"},{\"c\":3}]", as: "a.json"))
            #expect(text.lines == "{\"a\":1}\n{\"c\":3}\n" && text.problems == [.tooLong])
        }
    }

    @Test("an oversized line in a truncated archive is one record, with the reason")
    func tornLongLine() throws {
        for length in [5000, 700_000] {
            var random = SplitMix64(seed: UInt64(length))
            let long = (0..<length / 10).map { _ in String(random.next() % 10_000_000_000, radix: 36) }
                .joined()
            let archive = try packed(lines(0..<3) + long, .gzip)
            let found = try read(write(Array(archive.dropLast(20)), as: "a.jsonl.gz"))
            #expect(found.lines == lines(0..<3) && found.problems == [.cutShort], "\(length)")
        }
    }

    @Test("truncated or damaged archives, and incomplete texts, are reported once")
    func brokenEnds() throws {
        let archive = try packed(lines(0..<2000), .gzip)
        for (bytes, name, reason) in [
            (Array(archive.dropLast(20)), "a.jsonl.gz", .cutShort),
            (Array("no archive".utf8), "b.jsonl.gz", .badArchive),
            (Array("[{\"a\":1},{\"b\":".utf8), "c.json", .cutShort), ([], "d.json", .cutShort),
        ] as [([UInt8], String, QuarantineRecord.Reason)] {
            let path = try write(bytes, as: name)
            let first = try read(path)
            #expect(first.problems == [reason], "\(name)")
            #expect(try read(path, from: first.place) == Read(place: first.place), "\(name)")
        }
    }

    @Test(
        "in a text with an error the events before it are read, and the rest is reported once, with its position"
    )
    func faultyTexts() throws {
        let long = String(repeating: "{\"n\":1},", count: 200_000)
        for (text, offset) in [
            ("[{\"a\":1},{\"a\":\"x\ny\"},{\"b\":1}]", 9), ("[{\"a\":1},,{\"b\":2}]", 9),
            ("{\"a\":1}{\"b\":2}", 7),
            ("[{\"a\":1} \(long)", 9), ("[{\"a\":1},]", 9),
        ] {
            for name in ["a.json", "b.json.gz", "c.json.zst"] {
                let compression: Compression =
                    name.hasSuffix(".gz") ? .gzip : name.hasSuffix(".zst") ? .zstd : .none
                let path = try write(
                    compression == .none ? Array(text.utf8) : packed(text, compression), as: name)
                let file = try BackfillFile(path: path, maxEventSize: 1000)
                let lines = try #require(try file.next(atMost: 1000))
                #expect(String(decoding: lines.bytes, as: UTF8.self) == "{\"a\":1}\n")
                let rest = try #require(try file.next(atMost: 1000))
                #expect(
                    rest.problem?.reason == .notJSON && rest.problem?.detail.contains(" at byte ") == true)
                #expect(rest.offset <= offset && rest.offset + (rest.problem?.length ?? 0) == text.utf8.count)
                #expect(try file.next(atMost: 1000) == nil)
                #expect(try read(path, from: rest.end) == Read(place: rest.end))
                #expect(try read(path, from: lines.end).problems == [.notJSON])
            }
        }
    }
}
