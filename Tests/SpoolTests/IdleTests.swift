import EventLoops
import Glibc
import Spool
import Synchronization
import TestKit
import Testing

@Suite("Idle", .timeLimit(.minutes(5)))
struct IdleTests {
    /// How often a thread has given up the processor: it must, for every system call that waits.
    private func switches(of thread: Int32) throws -> Int {
        let file = try #require(fopen("/proc/self/task/\(thread)/status", "r"))
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 256)
        while fgets(&line, 256, file) != nil {
            let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            let parts = text.split(whereSeparator: \.isWhitespace)
            if parts.first == "voluntary_ctxt_switches:" { return try #require(Int(parts[1])) }
        }
        throw SystemError("status", number: ENOENT)
    }

    /// How many descriptors of this process lead into a directory.
    private func openDescriptors(below directory: String) throws -> Int {
        let stream = try #require(opendir("/proc/self/fd"))
        defer { closedir(stream) }
        var count = 0
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            var target = [CChar](repeating: 0, count: 512)
            let length = readlink("/proc/self/fd/\(name)", &target, 511)
            let text = String(
                decoding: target.prefix(max(0, length)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
            if text.hasPrefix(directory) { count += 1 }
        }
        return count
    }

    /// The id of the thread on which the reader runs.
    private func thread(of spool: SpoolHarness) async -> Int32 {
        let thread = Atomic<Int32>(0)
        spool.loop.post {
            // `PID/task/TID`
            var path = [CChar](repeating: 0, count: 64)
            let count = readlink("/proc/thread-self", &path, 63)
            let text = String(
                decoding: path.prefix(max(0, count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
            thread.store(text.split(separator: "/").last.flatMap { Int32($0) } ?? -1, ordering: .releasing)
        }
        await spool.until("its thread is known") { thread.load(ordering: .acquiring) != 0 }
        return thread.load(ordering: .acquiring)
    }

    /// How long a thread has run on a processor.
    private func runTime(of thread: Int32) throws -> Duration {
        let bytes = try #require(try WholeFile.bytes(of: "/proc/self/task/\(thread)/schedstat", atMost: 256))
        let words = String(decoding: bytes, as: UTF8.self).split(separator: " ")
        return .nanoseconds(try #require(words.first.flatMap { Int64($0) }))
    }

    @Test(
        "an unfinished line beyond max_event_size keeps no thread busy, and is skipped when it ends",
        arguments: [true, false])
    func longUnfinishedLine(isClosed: Bool) async throws {
        let spool = try SpoolHarness()
        let file = open("\(spool.path)/x.jsonl", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644)
        let text = "1\n" + String(repeating: "x", count: 2_000)
        #expect(write(file, text, text.utf8.count) == text.utf8.count)
        if isClosed { close(file) }
        let reader = try await spool.start { $0.maxEventSize = 1_024 }
        await spool.untilLines(["1"])
        let number = await thread(of: spool)
        let before = try runTime(of: number)
        usleep(1_000_000)
        #expect(try runTime(of: number) - before < .milliseconds(300))
        let end = isClosed ? open("\(spool.path)/x.jsonl", O_WRONLY | O_APPEND | O_CLOEXEC) : file
        // A line that its writer closed without an end was skipped then.
        let more = isClosed ? "2\n" : "\n2\n"
        #expect(write(end, more, more.utf8.count) == more.utf8.count)
        close(end)
        await spool.untilLines(["1", "2"])
        await reader.stop()
    }

    @Test("with 1,000 directories and nothing to do the reader's thread sleeps")
    func idleReadersSleep() async throws {
        let spool = try SpoolHarness()
        for number in 0..<1000 { spool.makeDirectory("app\(number)") }
        spool.write("1\n", to: "app7/x.jsonl")
        let reader = try await spool.start()
        await spool.untilLines(["1"])
        await spool.until("all are watched") { reader.figures.directories == 1001 }
        // Watched, but not held open.
        #expect(try openDescriptors(below: spool.path) < 200)
        let number = await thread(of: spool)
        // What follows reading (the check whether a commit takes long) comes within seconds; then nothing more.
        await spool.pause(.seconds(3))
        let before = try switches(of: number)
        // On this thread, because waiting on the loop would wake it.
        usleep(2_000_000)
        #expect(try switches(of: number) <= before + 1)
        await reader.stop()
    }
}
