import TestKit
import Testing

@testable import Spool

@Suite("Memory of a file")
struct FileTraceTests {
    private func trace(_ random: inout SplitMix64) -> FileTrace {
        var trace = FileTrace()
        trace.inode = random.next()
        trace.fingerprint = Fingerprint(length: Int(random.next() % 1025), hash: random.next())
        var offset: Int64 = 0
        // From the first mark on of which the sum is not known none is known.
        let known = random.next() % 200
        for number in 0..<(random.next() % 200) {
            offset += Int64(random.next() % 1_000_000) + 1
            let sum = number < known ? UInt32(truncatingIfNeeded: random.next()) : 0
            trace.add(Mark(offset: offset, hash: random.next(), sum: sum))
        }
        if random.next() % 2 == 0 { trace.missingSince = Int64(random.next() >> 2) }
        if random.next() % 2 == 0 { trace.doneVersion = random.next() }
        if random.next() % 2 == 0 { trace.owner = UInt32(truncatingIfNeeded: random.next()) }
        if random.next() % 2 == 0 { trace.origin = FileName("events-\(random.next() % 100).jsonl") }
        if random.next() % 2 == 0 { trace.unreadEnd = Int64(random.next() >> 2) }
        if random.next() % 2 == 0 { trace.taken = Int64(random.next() >> 2) }
        if random.next() % 2 == 0 { trace.modified = Int64(random.next() >> 2) }
        return trace
    }

    @Test("a trace reads back as written, and is bounded")
    func tracesRoundTrip() throws {
        var random = SplitMix64(seed: 3)
        for _ in 0..<500 {
            let trace = trace(&random)
            let bytes = trace.encoded
            #expect(bytes.count <= 2048)
            #expect(FileTrace(bytes) == trace)
        }
    }

    @Test("a trace of an earlier version has its marks, without sums")
    func tracesOfEarlierVersions() {
        var trace = FileTrace()
        for offset in [10, 20] { trace.add(Mark(offset: Int64(offset), hash: 7, sum: 9)) }
        #expect(FileTrace(trace.encoded.dropLast(8))?.marks.map(\.sum) == [0, 0])
        #expect(FileTrace(trace.encoded.dropLast(8))?.marks.map(\.offset) == [10, 20])
    }

    @Test("invalid traces are refused, whatever their bytes")
    func hostileBytesAreRefused() {
        var random = SplitMix64(seed: 4)
        for _ in 0..<2000 {
            var bytes = trace(&random).encoded
            switch random.next() % 3 {
            case 0: bytes.removeLast(Int(random.next() % UInt64(bytes.count)) + 1)
            case 1:
                bytes.append(UInt8(truncatingIfNeeded: random.next()))
                #expect(FileTrace(bytes) == nil)
            default:
                bytes = (0..<Int(random.next() % 300)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            }
            // Nearly all are refused; none may trap.
            if let trace = FileTrace(bytes) { #expect(trace.marks.count <= FileTrace.mostMarks) }
        }
        #expect(FileTrace([]) == nil)
        #expect(FileTrace([UInt8](repeating: 1, count: 5000)) == nil)
    }

    @Test("64 marks are kept, the newest close together, the oldest far apart")
    func fault02_marksAreSpreadOut() throws {
        var trace = FileTrace()
        for commit in 1...10_000 { trace.add(Mark(offset: Int64(commit) * 100, hash: UInt64(commit))) }
        #expect(trace.marks.count == 64)
        #expect(trace.marks.last?.offset == 1_000_000)
        let distances = trace.marks.map { 1_000_000 - $0.offset }
        #expect(distances.contains(100) && distances.contains(200))
        #expect(try #require(distances.first) > 500_000)
        for (older, newer) in zip(distances, distances.dropFirst()) {
            #expect(older > newer && (older < 2_000 || (older - newer) * 3 < older))
        }
    }
}

@Suite("Names")
struct FileNameTests {
    @Test(
        "a name tells the kind of its file",
        arguments: [
            ("x.jsonl", .append), ("x.ndjson", .append), ("x.log", .append), ("x.jsonl.1", .append),
            ("x.log-20261120", .append), ("x.log.2026-11-20T10:00", .append), ("x.jsonl.old", .append),
            ("2026-11-20.log", .append), ("x.json", .drop(.json)), ("x.jsonl.gz", .drop(.gzipLines)),
            ("x.jsonl.1.gz", .drop(.gzipLines)), ("x.jsonl.zst", .drop(.zstdLines)),
            ("x.log-20261120.zst", .drop(.zstdLines)), (".x.json", .other), ("x.json.tmp", .other),
            ("x.jsonl.part", .other), ("x.txt", .other), ("x.gz", .other), (".jsonl", .other),
            ("jsonl", .other),
            ("1", .other), ("x.jsonl.swp", .other), ("", .other), ("current", .append),
            ("@4000000068e0f1a20b3c4d5e.s", .append), ("@4000000068e0f1a20b3c4d5e.u", .append),
            ("@4000000068e0f1a20b3c4d5e.t", .other), ("@4000000068e0f1a20b3c4d5.s", .other), ("lock", .other),
            ("state", .other), ("current.1", .other),
        ] as [(String, FileKind)])
    func namesTellTheKind(name: String, kind: FileKind) {
        #expect(FileName(name).kind == kind)
    }

    @Test("a claim is hidden, shows the kind of the original name, and gives it back")
    func claimsGiveTheirNameBack() {
        let name = FileName("events.json")
        let claim = name.claim(0xAB)
        #expect(claim.text == ".spoolship.00000000000000ab.events.json")
        #expect(claim.claimed == name && claim.kind == .drop(.json) && claim.isHidden)
        #expect(claim.claim(1).claimed == name)
        let long = FileName(String(repeating: "n", count: 250) + ".json").claim(.max)
        #expect(long.bytes.count == 255 && long.kind == .drop(.json))
        #expect(FileName(".spoolship.00000000000000ag.events.json").claimed == nil)
        #expect(FileName(".spoolship.state").claimed == nil)
    }
}
