import EventLoops
import Glibc
import Model
import Synchronization
import TestKit
import Testing

@testable import Spool

@Suite("Copies of known files", .timeLimit(.minutes(5)))
struct KnownContentTests {
    @Test("the name before rotation and compression is found, whatever was added")
    func stems() {
        for name in [
            "x.jsonl", "x.jsonl.1", "x.jsonl-20261120", "x.jsonl.2.gz", "x.jsonl-20261120.zst", "x.jsonl.old",
            ".spoolship.0123456789abcdef.x.jsonl.1",
        ] {
            #expect(FileName(name).stem == FileName("x.jsonl"), "\(name)")
        }
        #expect(FileName("y.log.3").stem == FileName("y.log"))
        #expect(FileName("@4000000068e0f1a20b3c4d5e.s").stem == FileName("current"))
        #expect(FileName("z.json").stem == FileName("z.json"))
    }

    @Test("a file that changed before it was read is not searched for: it is read from its start")
    func changedBeforeItWasRead() {
        let nothing = KnownContent(
            fingerprint: .empty, taken: .start, marks: [], carrier: nil, isCutOff: false,
            origin: FileName("x.log"),
            isOfOtherName: false)
        let inquiry = Inquiry(
            aboutChanged: true, head: Head(Array("line\n".utf8)), size: 5000, .quiet, of: [], twins: [],
            contents: [nothing])
        if case .answer(.new) = inquiry.next { return }
        Issue.record("it asks for something")
    }

    @Test(
        "among contents that begin alike, the one with the longest proven match counts, not the longest one"
    )
    func fault02_mostProvenCounts() {
        let head = Array("the same beginning\n".utf8)
        func content(upTo place: Int64, marks: [Int64], isCutOff: Bool) -> KnownContent {
            KnownContent(
                fingerprint: Fingerprint(length: head.count, hash: head.withUnsafeBytes { ByteHash.of($0) }),
                taken: Mark(offset: place, hash: UInt64(place)),
                marks: marks.map { Mark(offset: $0, hash: UInt64($0)) },
                carrier: nil, isCutOff: isCutOff, origin: FileName("x.log"), isOfOtherName: false)
        }
        // What was cut to 30 bytes, and what was written after the cut and read up to 60; the archive is of the latter, 80 bytes.
        let contents = [
            content(upTo: 100, marks: [30], isCutOff: true), content(upTo: 60, marks: [30], isCutOff: false),
        ]
        for contents in [contents, contents.reversed()] {
            var inquiry = Inquiry(
                aboutChanged: false, head: Head(head), size: nil, .quiet, of: [], twins: [],
                contents: contents)
            var sight = Sight()
            for place: Int64 in [30, 60] {
                sight.saw(Mark(offset: place, hash: UInt64(place)), endsLine: true)
            }
            sight.end = Mark(offset: 80, hash: 80)
            inquiry.saw(sight)
            guard case .answer(.goOn(let place, _, _)) = inquiry.next else {
                Issue.record("it is not known")
                continue
            }
            #expect(place.offset == 60)
        }
    }

    /// An inquiry about an archive of 80 bytes in which a mark at 30 is held and none at 60.
    private func inquiry(aboutArchive contents: [KnownContent], _ head: [UInt8]) -> Inquiry {
        var inquiry = Inquiry(
            aboutChanged: false, head: Head(head), size: nil, .quiet, of: [], twins: [], contents: contents)
        var sight = Sight()
        sight.saw(Mark(offset: 30, hash: 30), endsLine: true)
        sight.end = Mark(offset: 80, hash: 80)
        inquiry.saw(sight)
        return inquiry
    }

    private func content(
        upTo place: Int64, _ head: [UInt8], carrier: AppendFile? = nil, isCutOff: Bool = false
    ) -> KnownContent {
        KnownContent(
            fingerprint: Head(head).fingerprint(of: head.count),
            taken: Mark(offset: place, hash: UInt64(place)), marks: [Mark(offset: 30, hash: 30)],
            carrier: carrier, isCutOff: isCutOff, origin: FileName("x.log"), isOfOtherName: false)
    }

    @Test("of contents that are proven equally, the one that was read less far counts: else lines are lost")
    func equallyProven() {
        let head = Array("the same beginning\n".utf8)
        // Read up to 100, cut to 30, written to again unseen, and packed.
        let contents = [content(upTo: 100, head, isCutOff: true), content(upTo: 30, head)]
        for contents in [contents, contents.reversed()] {
            guard case .answer(.goOn(let place, _, _)) = inquiry(aboutArchive: contents, head).next else {
                Issue.record("it is not known")
                continue
            }
            #expect(place.offset == 30)
        }
    }

    @Test("a file that may have been rewritten since is looked at before its archive counts as new")
    func rewrittenUnseen() {
        let head = Array("the same beginning\n".utf8)
        let directory = SpoolDirectory(path: FileName("a"), depth: 1, id: FileID(bytes: [1]), 0)
        let file = AppendFile(
            FileID(bytes: [2]), in: directory, name: FileName("x.log"), owner: 0, size: 60,
            now: BootInstant(nanoseconds: 0))
        // Read up to 60, cut to 30 and written to up to 80 unread, and packed.
        file.isReady = true
        let inquiry = inquiry(aboutArchive: [content(upTo: 60, head, carrier: file)], head)
        guard case .content(let asked) = inquiry.next else {
            Issue.record("nobody asks for the file: \(inquiry.next)")
            return
        }
        #expect(asked == file)
    }

    @Test("the beginning of a torn line marks no copy: files that begin with it are read whole")
    func fault03_tornLinesAreNoFingerprint() async throws {
        let spool = try SpoolHarness()
        // What a power cut left of a line, closed and quiet: it counts as a line.
        spool.write("{\"", to: "x.jsonl")
        let reader = try await spool.start { $0.afterRead = .keep }
        await spool.untilLines(["{\""])
        spool.write("{\"n\":1}\n{\"n\":2}\n", to: "x.jsonl.1")
        await spool.untilLines(["{\"", "{\"n\":1}", "{\"n\":2}"])
        await reader.stop()
    }

    @Test("a file of another name with a known beginning is another file, rotated or compressed")
    func fault03_otherNamesAreOtherFiles() async throws {
        let spool = try SpoolHarness()
        let reader = try await spool.start { $0.afterRead = .keep }
        spool.write("{\"started\":true}\n", to: "web.jsonl")
        await spool.untilLines(["{\"started\":true}"])
        spool.write("{\"started\":true}\n{\"n\":1}\n", to: "cron.jsonl.1")
        await spool.untilLines(["{\"started\":true}", "{\"started\":true}", "{\"n\":1}"])
        await reader.stop()
    }

    @Test("if several known contents match a copy, the farthest position counts")
    func fault02_theFarthestPlaceCounts() async throws {
        let spool = try SpoolHarness()
        let reader = try await spool.start { $0.afterRead = .keep }
        let start = "{\"started\":true}"
        spool.write(start + "\n", to: "x.jsonl")
        await spool.untilLines([start])
        // Truncated, and begun anew in the same way.
        spool.write("", to: "x.jsonl")
        await spool.until("the truncation is seen") { reader.figures.truncations == 1 }
        spool.append(start + "\n{\"n\":1}\n{\"n\":2}\n", to: "x.jsonl")
        await spool.untilLines([start, start, "{\"n\":1}", "{\"n\":2}"])
        // Rotation copies it before it truncates it.
        spool.write(start + "\n{\"n\":1}\n{\"n\":2}\n", to: "x.jsonl.1")
        await spool.pause(.milliseconds(300))
        spool.write("", to: "x.jsonl")
        spool.append("{\"n\":3}\n", to: "x.jsonl")
        await spool.untilLines([start, start, "{\"n\":1}", "{\"n\":2}", "{\"n\":3}"])
        await spool.pause(.milliseconds(200))
        #expect(spool.queue.lines.count == 5)
        await reader.stop()
    }

    private var processorTime: Duration {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    /// What it costs to judge rotated files of one line in an app that has so many other files.
    private func costOfRotated(_ count: Int, beside others: Int) async throws -> Duration {
        let spool = try SpoolHarness()
        spool.makeDirectory("app")
        for number in 0..<others { spool.write("1\n", to: "app/f\(number).jsonl") }
        let reader = try await spool.start { $0.afterRead = .keep }
        await spool.until("the others are read") { reader.figures.bytesRead.value == Int64(2 * others) }
        await spool.pause(.milliseconds(300))
        let start = processorTime
        for number in 0..<count { spool.write("{}\n", to: "app/r\(number).jsonl.1") }
        await spool.until("the rotated ones are read") {
            reader.figures.bytesRead.value == Int64(2 * others + 3 * count)
        }
        let spent = processorTime - start
        await reader.stop()
        return spent
    }

    @Test("rotated files cost as much as their streams have, not as their app has")
    func costOfStreams() async throws {
        let (alone, beside) = (
            try await costOfRotated(300, beside: 0), try await costOfRotated(300, beside: 20_000)
        )
        print("streams: 300 rotated files cost \(alone) alone, \(beside) beside 20,000 files of their app")
        #expect(beside < alone * 3 + .milliseconds(300))
    }

    /// What it costs to ask what a file begins with, where its stream has so many contents.
    private func costOfAsking(contents count: Int) -> Duration {
        let time = ManualTime()
        let text = Array(String(repeating: "x", count: Fingerprint.longest).utf8)
        func fingerprint(_ number: Int) -> Fingerprint {
            let bytes = Array("\(number)\n".utf8) + text
            let length = Fingerprint.longest - number % 8
            return Fingerprint(length: length, hash: bytes[..<length].withUnsafeBytes { ByteHash.of($0) })
        }
        let checkpoints = (0..<count).map { number in
            var trace = FileTrace()
            (trace.inode, trace.fingerprint) = (UInt64(number + 1), fingerprint(number))
            trace.add(Mark(offset: 5000, hash: UInt64(number)))
            (trace.missingSince, trace.owner) = (1, 7)
            return Checkpoint(
                key: Array("key \(number)".utf8), path: "incoming/app.log.\(number)", offset: 5000,
                state: trace.encoded
            )
        }
        let streams = Streams(checkpoints, settleTime: .seconds(1), most: 1 << 20, time: time)
        let asked = Stream.asked(Holder(top: Array("incoming".utf8), owner: 7), FileName("app.log.1"))
        let start = processorTime
        for number in 0..<500 {
            let head = Head(Array((Array("\(number % 100)\n".utf8) + text).prefix(Fingerprint.longest)))
            let known = streams.contents(of: asked, head)
            #expect(known.contents.count == 1 && !known.mayGrow)
        }
        return processorTime - start
    }

    @Test("a search by beginning has a fixed cost, even if a user gives its stream thousands of contents")
    func costOfContents() {
        let (few, many) = (costOfAsking(contents: 100), costOfAsking(contents: 16_000))
        print("contents: 500 questions cost \(few) with 100 contents, \(many) with 16,000")
        #expect(many < few * 5 + .milliseconds(20))
    }

    @Test("an append file is removed only after its commit would survive a power cut")
    func removalWaitsForDurability() async throws {
        let spool = try SpoolHarness()
        spool.queue.with { $0.isPersistent = false }
        spool.write("1\n", to: "x.jsonl.1")
        let reader = try await spool.start()
        await spool.until("it is about to go") { spool.names().contains { $0.hasPrefix(".spoolship") } }
        // Longer than its time of grace.
        await spool.pause(.milliseconds(400))
        #expect(!spool.names().isEmpty)
        spool.queue.with { $0.isPersistent = true }
        await spool.until("it goes") { spool.names().isEmpty }
        #expect(spool.queue.lines == ["1"])
        await reader.stop()
    }
}
