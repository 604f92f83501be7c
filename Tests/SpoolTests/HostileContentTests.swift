import EventLoops
import Glibc
import Model
@testable import Spool
import TestKit
import Testing

@Suite("Hostile content", .timeLimit(.minutes(5)))
struct HostileContentTests {
    /// A file of holes: it costs its writer nothing and takes hours to read.
    private func makeHole(_ path: String, _ begin: String, size: Int) {
        let file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o660)
        defer { close(file) }
        #expect(write(file, begin, begin.utf8.count) == begin.utf8.count)
        #expect(ftruncate(file, size) == 0, "the file system takes no file of \(size) bytes")
    }

    @Test("an endless line that nobody could read in a day does not delay other apps' events")
    func fault19_holesHoldNobodyUp() async throws {
        let spool = try SpoolHarness()
        makeHole("\(spool.path)/x.jsonl", "1\n", size: 8 << 40)
        let reader = try await spool.start()
        await spool.until("it is being read") { reader.figures.bytesRead > 0 || spool.queue.lines == ["1"] }
        await spool.pause(.milliseconds(200))
        spool.write("{\"n\":2}", to: ".y")
        spool.rename(".y", to: "y.json")
        await spool.untilLines(["1", "{\"n\":2}"])
        #expect(truncate("\(spool.path)/x.jsonl", 2) == 0)
        await reader.stop()
    }

    @Test("an archive of empty frames is read in bounded pieces")
    func emptyFramesAreReadInPieces() throws {
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/x.jsonl.zst"
        // A frame to be skipped, of almost 4 GiB that are not there, again and again.
        let file = Descriptor(open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o660))
        let frame: [UInt8] = [0x50, 0x2A, 0x4D, 0x18, 0xFF, 0xFF, 0xFF, 0xFF]
        let length = 0xFFFF_FFFF + 8
        for number in 0..<32 { #expect(pwrite(file.raw, frame, 8, number * length) == 8) }
        #expect(ftruncate(file.raw, 32 * length) == 0)
        let packed = try PackedLines(.zstd, longest: 1_000_000)
        try packed.fill(from: file.raw, atMost: 1 << 20)
        #expect(packed.end == nil && packed.lines.isEmpty)
        #expect(packed.inputPosition < 4 << 20)
    }

    @Test("a hundred thousand brackets are one value, and the next value follows them")
    func deepValuesAreCheap() {
        var splitter = ObjectSplitter(longest: 10_000_000)
        let deep = String(repeating: "[", count: 100_000) + String(repeating: "]", count: 100_000)
        let text = Array("[{\"a\":1},\(deep),{\"b\":2}]".utf8)
        var used = 0
        var events: [Int] = []
        let before = Self.cpuTime
        text.withUnsafeBytes {
            while splitter.next($0, used: &used) == .event { events.append(splitter.event.count) }
        }
        #expect(events == [8, 200_001, 8] && splitter.isComplete)
        // Beyond what is followed it is a fault: a bit a level is not nothing.
        var endless = ObjectSplitter(longest: 10_000_000)
        used = 0
        let brackets = [UInt8](repeating: UInt8(ascii: "["), count: JSONGrammar.deepest + 10)
        #expect(
            brackets.withUnsafeBytes { endless.next($0, used: &used) }
                == .fault("nested too deeply at byte \(JSONGrammar.deepest + 1) of the file"))
        // Measured: a quarter of a second in a debug build.
        #expect(Self.cpuTime - before < .seconds(10))
    }

    private static var cpuTime: Duration {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    @Test("drop files that wait for their second attempt hold neither a decompressor nor content")
    func cutFilesHoldNoMemory() async throws {
        let spool = try SpoolHarness()
        spool.write([0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3], to: "x.jsonl.gz")
        spool.write("{\"text\":\"\(String(repeating: "x", count: 500_000))", to: "y.json")
        let reader = try await spool.start { $0.secondTry = .seconds(3600) }
        var held: [Int] = []
        while held.count < 2 {
            held = await reader.bytesHeldForSecondTries
            await spool.pause(.milliseconds(5))
        }
        #expect(held == [0, 0])
        await reader.stop()
    }
}

extension SpoolReader {
    /// What each drop file holds that waits for its second try.
    fileprivate var bytesHeldForSecondTries: [Int] {
        drops.allCut.map(\.content.heldBytes)
    }
}
