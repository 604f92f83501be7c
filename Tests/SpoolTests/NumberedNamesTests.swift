import Frames
import Glibc
import Model
import Spool
import TestKit
import Testing

/// Rotations that number or date a file before its extension, as logback, log4j2 and logrotate's `extension` do.
@Suite("Numbers before the extension", .timeLimit(.minutes(10)))
struct NumberedNamesTests {
    /// An app that logs, is rotated now and then, and an agent that stops now and then.
    private final class World {
        let spool: SpoolHarness
        var reader: SpoolReader
        var random: SplitMix64
        var lines: [String] = []
        /// What the current file holds.
        var current: [String] = []
        let options: @Sendable (inout SpoolOptions) -> Void

        init(seed: UInt64) async throws {
            random = SplitMix64(seed: seed)
            spool = try SpoolHarness()
            spool.makeDirectory("shop")
            let (isKept, isWatching) = (seed.isMultiple(of: 2), seed % 4 < 2)
            options = {
                $0.afterRead = isKept ? .keep : .delete
                $0.isWatching = isWatching
            }
            reader = try await spool.start(options)
        }

        func write(_ count: Int = 30) {
            let new = (lines.count..<(lines.count + count)).map {
                "{\"n\":\($0),\"text\":\"\(String(repeating: "t", count: $0 % 90))\"}"
            }
            lines += new
            current += new
            spool.append(new.map { $0 + "\n" }.joined(), to: "shop/app.log")
        }

        /// Sometimes all is read, sometimes not, and sometimes the agent stops meanwhile.
        func agent() async throws {
            switch Int.random(in: 0..<4, using: &random) {
            case 0: await settle()
            case 1:
                await reader.stop()
                away = Bool.random(using: &random)
                if !away { reader = try await spool.start(options) }
            default: await spool.pause(.milliseconds(Int.random(in: 0..<40, using: &random)))
            }
        }

        private var away = false

        func back() async throws {
            if away { reader = try await spool.start(options) }
            away = false
        }

        func settle() async {
            // What was not looked at before it got a temporary name is read from its archive.
            _ =
                away
                ? false : await spool.holds(within: .seconds(2)) { spool.queue.lines.count >= lines.count }
        }

        func compress(_ content: [String], to name: String) throws {
            spool.write(
                try FrameCompressor(.gzip).compress(Array(content.map { $0 + "\n" }.joined().utf8)), to: name)
        }

        func expectOnce(_ seed: String) async throws {
            try await back()
            let lines = lines
            await spool.until("\(seed): \(lines.count) lines arrive") {
                spool.queue.lines.count >= lines.count
            }
            // Time enough for what would come twice.
            await spool.pause(.seconds(2))
            let read = spool.queue.lines
            #expect(Set(lines).subtracting(read).isEmpty, "\(seed): lost")
            #expect(read.count == lines.count, "\(seed): \(read.count - lines.count) came twice")
            await reader.stop()
        }
    }

    @Test(
        "logback's temporary name, compression and deletion: each line once",
        arguments: Seeds.list(1...6))
    func logback(seed: UInt64) async throws {
        let world = try await World(seed: seed)
        for round in 1...6 {
            world.write()
            try await world.agent()
            let (name, held) = ("shop/app-2026-11-23-\(round).log", world.current)
            let temporary = "\(name)\(8_123_456_789_012 + round).tmp"
            world.spool.rename("shop/app.log", to: temporary)
            world.current = []
            if Bool.random(using: &world.random) { world.write() }
            try await world.agent()
            try world.compress(held, to: "\(name).gz")
            world.spool.remove(temporary)
            try await world.agent()
            try await world.back()
        }
        try await world.expectOnce(Seeds.again(seed))
    }

    @Test(
        "log4j2's default numbers: each line once, although archives are renumbered",
        arguments: Seeds.list(1...6))
    func log4j2(seed: UInt64) async throws {
        let world = try await World(seed: seed)
        let most = 3
        var next = 1
        for _ in 1...6 {
            world.write()
            try await world.agent()
            if next > most {
                // Numbers move at the next rotation: time enough to look at an archive by its first one. What was read under that
                // number alone is not known by another.
                try await world.back()
                await world.settle()
                await world.spool.pause(.milliseconds(400))
                world.spool.remove("shop/app-1.log.gz")
                // The agent removes an archive that nobody else has read.
                for number in 2...most where world.spool.exists("shop/app-\(number).log.gz") {
                    world.spool.rename("shop/app-\(number).log.gz", to: "shop/app-\(number - 1).log.gz")
                }
                next = most
            }
            let (name, held) = ("shop/app-\(next).log", world.current)
            next += 1
            world.spool.rename("shop/app.log", to: name)
            world.current = []
            if Bool.random(using: &world.random) { world.write() }
            try await world.agent()
            try world.compress(held, to: "\(name).gz")
            world.spool.remove(name)
            // What takes longer than the agent's removal of what it has read is for the agent to remove.
            try await world.agent()
            try await world.back()
        }
        try await world.expectOnce(Seeds.again(seed))
    }

    @Test(
        "logrotate with its extension before that of compression: each line once",
        .enabled(if: access("/usr/sbin/logrotate", X_OK) == 0, "logrotate is not installed"),
        arguments: [
            "compress", "compress delaycompress", "compress dateext", "compress copytruncate", "copytruncate",
            "compress copytruncate dateext",
        ])
    func logrotate(words: String) async throws {
        let world = try await World(seed: words.contains("date") ? 2 : 4)
        let scratch = try TemporaryDirectory()
        let dated = words.contains("dateext") ? "dateformat -%Y%m%d-%s\n" : ""
        let text =
            "\(world.spool.path)/shop/app.log {\nsu root root\nrotate 9\nextension .log\nmissingok\n"
            + words.split(separator: " ").joined(separator: "\n") + "\n\(dated)}\n"
        let file = try #require(fopen("\(scratch.path)/conf", "w"))
        fputs(text, file)
        fclose(file)
        chmod("\(scratch.path)/conf", 0o644)
        for _ in 0..<4 {
            world.write(60)
            // logrotate itself loses what comes between its copy and the emptying.
            await world.settle()
            #expect(system("/usr/sbin/logrotate -f -s \(scratch.path)/state \(scratch.path)/conf") == 0)
            // A date of seconds is another one then.
            await world.spool.pause(.milliseconds(1_100))
        }
        #expect(!world.spool.names(in: "shop").isEmpty)
        try await world.expectOnce(words)
    }

    @Test("a number before the extension may be the file's own: with equal first lines, both files are read")
    func numbersOfTheirOwn() async throws {
        let spool = try SpoolHarness()
        let reader = try await spool.start { $0.afterRead = .keep }
        let first = "{\"started\":true}"
        for name in ["worker.log", "worker-1.log", "worker-2.log"] { spool.write("\(first)\n", to: name) }
        await spool.untilLines([first, first, first])
        for (number, name) in ["worker.log", "worker-1.log", "worker-2.log"].enumerated() {
            spool.append("{\"n\":\(number)}\n", to: name)
        }
        await spool.untilLines([first, first, first, "{\"n\":0}", "{\"n\":1}", "{\"n\":2}"])
        spool.write("\(first)\n", to: "worker-3.log")
        await spool.untilLines([first, first, first, first, "{\"n\":0}", "{\"n\":1}", "{\"n\":2}"])
        await reader.stop()
    }
}
