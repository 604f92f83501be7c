import EventLoops
import Glibc
import TestKit
import Testing

@testable import Logs

@Suite("Standard error log", .timeLimit(.minutes(1)))
struct StandardErrorLogTests {
    /// A pipe or a pair of sockets with a reader that reads when told to.
    private final class Reader {
        let input: Int32
        let output: Int32

        init(socket isSocket: Bool) throws {
            var ends: [Int32] = [0, 0]
            let result = isSocket ? socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) : pipe(&ends)
            try #require(result == 0)
            (input, output) = (ends[0], ends[1])
            #expect(fcntl(input, F_SETFL, O_NONBLOCK) == 0)
        }

        deinit {
            close(input)
            close(output)
        }

        func read() -> String {
            var text: [UInt8] = []
            var block = [UInt8](repeating: 0, count: 65_536)
            while true {
                let count = Glibc.read(input, &block, block.count)
                guard count > 0 else { return String(decoding: text, as: UTF8.self) }
                text.append(contentsOf: block[..<count])
            }
        }
    }

    @Test("messages appear at once, by the current level", arguments: [false, true])
    func writes(socket: Bool) throws {
        let reader = try Reader(socket: socket)
        let sink = StandardErrorLog(descriptor: reader.output, forJournal: true)
        let log = Log(sink)
        log.info("agent started", ["version": "1.0"])
        log.debug("hidden")
        sink.level = .debug
        log.debug("shown")
        sink.format = .json
        log.error("failed")
        let lines = reader.read().split(separator: "\n")
        #expect(lines.prefix(2) == ["<6>agent started version=1.0", "<7>shown"])
        #expect(lines.last?.hasPrefix(#"<3>{"time":"#) == true)
        #expect(sink.messages(of: .info) == 1)
        #expect(sink.messages(of: .verbose) == 0)
        // Others that share the descriptor still may block on it.
        #expect(fcntl(reader.output, F_GETFL) & O_NONBLOCK == 0)
    }

    @Test(
        "a reader that stops reading neither blocks the agent nor goes unnoticed",
        arguments: [false, true])
    func fault25_slowReader(socket: Bool) throws {
        let reader = try Reader(socket: socket)
        let sink = StandardErrorLog(
            level: .verbose, descriptor: reader.output, forJournal: true, buffer: 4096)
        let log = Log(sink)
        let count = 20_000
        for number in 0..<count { log.debug("step", ["number": number]) }
        #expect(sink.suppressedLines > 0)
        var text = reader.read()
        log.debug("step", ["number": "last"])
        text += reader.read()
        sink.finish()
        text += reader.read()
        let lines = text.split(separator: "\n")
        let told = lines.compactMap {
            $0.hasPrefix("<4>log lines suppressed lines=") ? Int($0.dropFirst(30)) : nil
        }
        #expect(told.reduce(0, +) == sink.suppressedLines)
        #expect(lines.count - told.count + sink.suppressedLines == count + 1)
        #expect(
            lines.allSatisfy { $0.hasPrefix("<7>step number=") || $0.hasPrefix("<4>log lines suppressed") })
    }

    @Test("with a loop, waiting messages are written when the reader continues, and counts when they are due")
    func loopWritesTheRest() async throws {
        let reader = try Reader(socket: false)
        let loop = try EventLoop(name: "log")
        try loop.start()
        defer { loop.stop() }
        let sink = StandardErrorLog(
            level: .verbose, descriptor: reader.output, forJournal: true, buffer: 1_000_000)
        sink.attach(to: loop)
        let log = Log(sink)
        for number in 0..<10_000 { log.debug("step", ["number": number]) }
        var text = ""
        let clock = ContinuousClock()
        let deadline = clock.now + .seconds(20)
        while !text.contains("number=9999\n"), clock.now < deadline {
            text += reader.read()
            sched_yield()
        }
        #expect(text.split(separator: "\n").count == 10_000)
        #expect(sink.suppressedLines == 0)
    }

    @Test("at the end of the program held messages are written")
    func finishWrites() throws {
        let reader = try Reader(socket: false)
        let sink = StandardErrorLog(descriptor: reader.output, forJournal: true)
        for _ in 0..<5 { Log(sink).warning("queue near its cap") }
        #expect(reader.read() == "<4>queue near its cap\n")
        sink.finish()
        #expect(reader.read() == "<4>queue near its cap repeated=4\n")
    }

    @Test("a closed reader does not end the agent")
    func readerGone() throws {
        signal(SIGPIPE, SIG_IGN)
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        let sink = StandardErrorLog(descriptor: ends[1], forJournal: true)
        close(ends[0])
        Log(sink).error("failed")
        #expect(sink.suppressedLines == 1)
        close(ends[1])
    }
}
