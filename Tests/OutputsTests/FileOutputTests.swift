import EventLoops
import Glibc
import Model
import Outputs
import Receiver
import TestKit
import Testing

@Suite("Writing to files")
struct FileOutputTests {
    /// A loop of its own, as the agent gives it one.
    private final class Desk {
        let loop: EventLoop
        let directory: TemporaryDirectory

        init() throws {
            loop = try EventLoop(name: "writing")
            try loop.start()
            directory = try TemporaryDirectory()
        }

        deinit { loop.stop() }

        var path: String { "\(directory.path)/out.jsonl" }
        func output(_ path: String? = nil) throws -> FileOutput {
            try FileOutput(path: path ?? self.path, on: loop)
        }
    }

    private func expected(_ numbers: Range<Int>) -> String {
        String(decoding: Sample.lines(numbers), as: UTF8.self)
    }

    private func holdMessage(_ outcome: Outcome) -> String? {
        guard case .held(let failure) = outcome else { return nil }
        return failure.message
    }

    @Test("batches are appended as plain lines, whatever their storage, and an existing file is kept")
    func appends() async throws {
        let desk = try Desk()
        let output = try desk.output()
        for (number, stored) in Compression.allCases.enumerated() {
            let batch = Sample.batch([try Sample.part(number * 10..<number * 10 + 10, stored)])
            #expect(await output.send(batch) == .acknowledged)
        }
        #expect(text(of: desk.path) == expected(0..<30))
        #expect(await output.takeSentBytes() == Sample.lines(0..<30).count)
        let later = try desk.output()
        #expect(await later.send(Sample.batch([try Sample.part(30..<35, .gzip)])) == .acknowledged)
        #expect(text(of: desk.path) == expected(0..<35))
    }

    @Test("a file that was renamed or deleted is left; the next batch makes a new one")
    func rotation() async throws {
        let desk = try Desk()
        let output = try desk.output()
        func send(_ numbers: Range<Int>) async throws {
            #expect(await output.send(Sample.batch([try Sample.part(numbers, .none)])) == .acknowledged)
        }
        try await send(0..<5)
        try #require(rename(desk.path, desk.path + ".1") == 0)
        try await send(5..<10)
        #expect(text(of: desk.path + ".1") == expected(0..<5) && text(of: desk.path) == expected(5..<10))
        // By a tool that makes the new file itself.
        try #require(rename(desk.path, desk.path + ".2") == 0)
        close(open(desk.path, O_WRONLY | O_CREAT, 0o600))
        try await send(10..<15)
        #expect(text(of: desk.path + ".2") == expected(5..<10) && text(of: desk.path) == expected(10..<15))
        try #require(unlink(desk.path) == 0)
        try await send(15..<20)
        #expect(text(of: desk.path) == expected(15..<20))
        // By copy and truncation.
        try #require(truncate(desk.path, 0) == 0)
        try await send(20..<25)
        #expect(text(of: desk.path) == expected(20..<25))
    }

    @Test("a line that a crash has cut is ended, and does not damage the line after it")
    func cutLine() async throws {
        let desk = try Desk()
        try PrivateFile.replace(desk.path, with: expected(0..<2) + #"{"name":"cut"#)
        let output = try desk.output()
        #expect(await output.send(Sample.batch([try Sample.part(2..<4, .none)])) == .acknowledged)
        #expect(text(of: desk.path) == expected(0..<2) + #"{"name":"cut"# + "\n" + expected(2..<4))
    }

    @Test("a problem that needs a person holds the destination, with the path; once repaired it continues")
    func held() async throws {
        let desk = try Desk()
        let batch = Sample.batch([try Sample.part(0..<3, .none)])
        let missing = try desk.output("\(desk.directory.path)/not/there.jsonl")
        #expect(holdMessage(await missing.send(batch))?.contains("not/there.jsonl: no such file") == true)
        try #require(mkdir("\(desk.directory.path)/not", 0o755) == 0)
        #expect(await missing.send(batch) == .acknowledged)
        #expect(holdMessage(await (try desk.output(desk.directory.path)).send(batch)) != nil)
        #expect(holdMessage(await (try desk.output("/dev/full")).send(batch))?.contains("cannot use") == true)
        try #require(mkfifo(desk.path, 0o600) == 0)
        #expect(holdMessage(await (try desk.output()).send(batch)) != nil)
    }
}

@Suite("Writing to standard output")
struct StandardOutputTests {
    /// A pipe that nobody reads before `read` does.
    private final class Pipe {
        let loop: EventLoop
        var reading: Int32
        let writing: Int32

        init() throws {
            // A reader that is gone must be an error here, as in the agent.
            signal(SIGPIPE, SIG_IGN)
            var ends: [Int32] = [0, 0]
            try #require(pipe(&ends) == 0)
            (reading, writing) = (ends[0], ends[1])
            loop = try EventLoop(name: "writing")
            try loop.start()
        }

        deinit {
            loop.stop()
            close(writing)
            if reading >= 0 { close(reading) }
        }

        func output(timeout: Duration = .milliseconds(300)) throws -> StandardOutput {
            try StandardOutput(writing, timeout: timeout, on: loop)
        }

        /// All that lies in the pipe now.
        func read() -> [UInt8] {
            var found: [UInt8] = []
            var block = [UInt8](repeating: 0, count: 1 << 16)
            var one = pollfd(fd: reading, events: Int16(POLLIN), revents: 0)
            while poll(&one, 1, 0) > 0 {
                let count = Glibc.read(reading, &block, block.count)
                guard count > 0 else { break }
                found += block[..<count]
            }
            return found
        }
    }

    @Test("batches are written as plain lines")
    func lines() async throws {
        let pipe = try Pipe()
        let output = try pipe.output()
        #expect(await output.send(Sample.batch([try Sample.part(0..<20, .zstd)])) == .acknowledged)
        #expect(await output.send(try Sample.batch(5, number: 2)) == .acknowledged)
        #expect(pipe.read() == Sample.lines(0..<20) + Sample.lines(0..<5))
    }

    @Test(
        "a FIFO's reader that sleeps costs the timeout; an interrupted batch continues where it was, and no line is torn"
    )
    func fault10_sleepingReader() async throws {
        let pipe = try Pipe()
        let output = try pipe.output()
        // More than a pipe holds, several times.
        let large = Sample.batch([try Sample.part(0..<8000, .gzip)], id: BatchID(high: 1, low: 1))
        let other = Sample.batch([try Sample.part(8000..<8010, .gzip)], id: BatchID(high: 1, low: 2))
        var came: [UInt8] = []
        var isOtherDone = false
        var rounds = 0
        while true {
            let outcome = await output.send(large)
            came += pipe.read()
            if outcome == .acknowledged { break }
            guard case .retry(let failure) = outcome else {
                Issue.record("\(outcome)")
                break
            }
            #expect(failure.kind == .timeout)
            // Another batch waits behind what was begun.
            if !isOtherDone { isOtherDone = await output.send(other) == .acknowledged }
            came += pipe.read()
            rounds += 1
            try #require(rounds < 100)
        }
        #expect(rounds > 1)
        if !isOtherDone { #expect(await output.send(other) == .acknowledged) }
        came += pipe.read()
        let expected = Sample.lines(0..<8010)
        #expect(came.count == expected.count)
        #expect(Set(came.split(separator: 10)) == Set(expected.split(separator: 10)))
    }

    @Test(
        "a file system that is full in the middle of a batch tears no line: the batch continues where it was")
    func fullFileSystem() async throws {
        guard geteuid() == 0 else { return }
        signal(SIGPIPE, SIG_IGN)
        let directory = try TemporaryDirectory()
        try #require(mount("tmpfs", directory.path, "tmpfs", 0, "size=1m,mode=0777") == 0)
        defer { umount2(directory.path, Int32(MNT_DETACH)) }
        let filler = "\(directory.path)/filler"
        try WholeFile.replace(filler, with: [UInt8](repeating: 0, count: 1000 << 10), mode: 0o600)
        let path = "\(directory.path)/out"
        let descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        defer { close(descriptor) }
        let loop = try EventLoop(name: "writing")
        try loop.start()
        defer { loop.stop() }
        let output = try StandardOutput(descriptor, timeout: .seconds(5), on: loop)
        let large = Sample.batch([try Sample.part(0..<2000, .gzip)], id: BatchID(high: 1, low: 1))
        let other = Sample.batch([try Sample.part(2000..<2010, .gzip)], id: BatchID(high: 1, low: 2))
        guard case .retry(let failure) = await output.send(large) else {
            Issue.record("the file system had room for all")
            return
        }
        #expect(failure.leavesOpen && failure.message.contains("no space left"), "some lines are written")
        try #require(unlink(filler) == 0)
        // What was begun goes first, then the other batch; afterwards the first one is known to be written.
        #expect(await output.send(other) == .acknowledged)
        let found = try #require(try WholeFile.bytes(of: path, atMost: 1 << 20))
        #expect(found == Sample.lines(0..<2010))
    }

    @Test("when nobody will ever read again it holds, and says so")
    func gone() async throws {
        let pipe = try Pipe()
        let output = try pipe.output()
        close(pipe.reading)
        pipe.reading = -1
        guard case .held(let failure) = await output.send(try Sample.batch(3)) else {
            Issue.record("it was not held")
            return
        }
        #expect(failure.message.contains("standard output"))
    }
}
