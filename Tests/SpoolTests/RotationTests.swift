import EventLoops
import Frames
import Glibc
import Model
import Spool
import TestKit
import Testing

@Suite("Rotation", .timeLimit(.minutes(5)))
struct RotationTests {
    /// Runs Debian's logrotate on `x.jsonl` with these directives.
    private func logrotate(_ spool: SpoolHarness, _ directives: String) throws {
        let configuration = """
            \(spool.path)/x.jsonl {
                su root root
                rotate 4
                missingok
                \(directives)
            }
            """
        let folder = "\(spool.path)-logrotate"
        mkdir(folder, 0o700)
        defer { removeTree(folder) }
        let file = try #require(fopen("\(folder)/conf", "w"))
        fputs(configuration, file)
        fclose(file)
        let status = run(["/usr/sbin/logrotate", "--force", "--state", "\(folder)/state", "\(folder)/conf"])
        try #require(status == 0, "logrotate ended with \(status)")
    }

    private func run(_ arguments: [String]) -> Int32 {
        var process = pid_t()
        var pointers: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
        defer { for pointer in pointers { free(pointer) } }
        guard posix_spawn(&process, arguments[0], nil, nil, &pointers, environ) == 0 else { return -1 }
        var status: Int32 = 0
        waitpid(process, &status, 0)
        return status
    }

    @Test(
        "a file renamed before the reader looked at it is read, whatever has its name by then",
        arguments: ["x.jsonl.1", "x.jsonl-20261121.old", "old.json"], [true, false])
    func renamedBeforeItWasLookedAt(name: String, isFollowed: Bool) async throws {
        let spool = try SpoolHarness()
        let reader = try await spool.start()
        // On the reader's own thread: all that the kernel tells of it is told when it is over.
        await withCheckedContinuation { continuation in
            spool.loop.post {
                spool.write("1\n2\n", to: "x.jsonl")
                spool.rename("x.jsonl", to: name)
                if isFollowed { spool.write("3\n", to: "x.jsonl") }
                continuation.resume()
            }
        }
        await spool.untilLines(["1", "2"] + (isFollowed ? ["3"] : []))
        #expect(spool.queue.quarantined.isEmpty)
        await reader.stop()
    }

    @Test(
        "files rotated by multilog and svlogd are one stream, across a restart", arguments: [true, false])
    func fullLogs(isKept: Bool) async throws {
        let spool = try SpoolHarness()
        func change(_ options: inout SpoolOptions) { options.afterRead = isKept ? .keep : .delete }
        var reader = try await spool.start(change)
        spool.write("1\n2\n", to: "current")
        await spool.untilLines(["1", "2"])
        await reader.stop()
        spool.write("3\n", to: "current", mode: O_APPEND)
        spool.rename("current", to: "@4000000068e0f1a20b3c4d5e.s")
        spool.write("4\n", to: "current")
        reader = try await spool.start(change)
        await spool.untilLines(["1", "2", "3", "4"])
        if !isKept { #expect(await eventually { !spool.exists("@4000000068e0f1a20b3c4d5e.s") }) }
        #expect(spool.exists("current"))
        await reader.stop()
    }

    @Test(
        "with a real logrotate every line arrives once, in each of its modes",
        arguments: [
            "create", "copytruncate", "create\ncompress", "copytruncate\ncompress",
            "create\ncompress\ndelaycompress",
        ],
        [true, false])
    func logrotateLosesAndRepeatsNothing(directives: String, isRestarted: Bool) async throws {
        try #require(access("/usr/sbin/logrotate", X_OK) == 0, "install logrotate")
        let spool = try SpoolHarness()
        var reader = try await spool.start { $0.afterRead = .keep }
        var lines: [String] = []
        for round in 0..<4 {
            for line in 0..<50 {
                lines.append(
                    "{\"round\":\(round),\"line\":\(line),\"text\":\"\(String(repeating: "t", count: line))\"}"
                )
                spool.append(lines[lines.count - 1] + "\n", to: "x.jsonl")
            }
            // Copy-and-truncate loses what is written in between; here nothing is, and all is read before.
            await spool.until("round \(round) is read") { spool.queue.lines.count >= lines.count }
            if isRestarted { await reader.stop() }
            try logrotate(spool, directives)
            if isRestarted { reader = try await spool.start { $0.afterRead = .keep } }
        }
        spool.append("last\n", to: "x.jsonl")
        await spool.until("the last line arrives") { spool.queue.lines.contains("last") }
        // Time enough for whatever would be read twice.
        await spool.pause(.milliseconds(400))
        #expect(spool.queue.lines.sorted() == (lines + ["last"]).sorted())
        #expect(spool.queue.quarantined.isEmpty)
        if directives.contains("compress") { #expect(spool.names().contains { $0.hasSuffix(".gz") }) }
        await reader.stop()
    }

    @Test("an archive of a file with an unread tail continues at the checkpoint, and stays")
    func archivesGoOnAtTheCheckpoint() async throws {
        for (suffix, compression) in [("gz", Compression.gzip), ("zst", .zstd)] {
            let spool = try SpoolHarness()
            let read = (0..<40).map { "line \($0) of those that are read" }
            spool.write(read.joined(separator: "\n") + "\n", to: "x.jsonl")
            var reader = try await spool.start()
            await spool.untilLines(read)
            await reader.stop()
            // While the agent is off, lines are added and the file is compressed.
            let unread = (0..<40).map { "line \($0) of those that are not" }
            let all = (read + unread).joined(separator: "\n") + "\n"
            spool.remove("x.jsonl")
            spool.write(try FrameCompressor(compression).compress(Array(all.utf8)), to: "x.jsonl.1.\(suffix)")
            reader = try await spool.start()
            await spool.untilLines(read + unread)
            await reader.stop()
            #expect(spool.exists("x.jsonl.1.\(suffix)"))
            reader = try await spool.start()
            spool.append("new\n", to: "x.jsonl")
            await spool.untilLines(read + unread + ["new"])
            await reader.stop()
        }
    }

    @Test(
        "compressed lines are drop files: read, then removed",
        arguments: [("gz", Compression.gzip), ("zst", .zstd)])
    func packedLinesAreDropFiles(suffix: String, compression: Compression) async throws {
        let spool = try SpoolHarness()
        let long = String(repeating: "z", count: 400_000)
        let lines = (0..<20_000).map { "line number \($0)" }
        let text = lines.joined(separator: "\n") + "\n" + long + "\nlast without a line feed"
        spool.write(try FrameCompressor(compression).compress(Array(text.utf8)), to: ".x")
        spool.rename(".x", to: "x.jsonl.\(suffix)")
        let reader = try await spool.start {
            $0.maxEventSize = 10_000
            $0.commitBytes = 50_000
            $0.linger = .zero
        }
        await spool.until("all lines arrive") { spool.queue.lines.count > lines.count }
        #expect(spool.queue.lines == lines + ["last without a line feed"])
        #expect(spool.queue.quarantined.map(\.reason) == [.tooLong])
        #expect(spool.queue.quarantined.map(\.length) == [400_000])
        await spool.until("it is removed") { spool.names().isEmpty }
        await reader.stop()
    }

    @Test("a damaged archive is quarantined, and a truncated one is read again once")
    func badArchivesAreQuarantined() async throws {
        let spool = try SpoolHarness()
        let packed = try FrameCompressor(.gzip).compress(Array("first\nsecond\n".utf8))
        spool.write("not gzip at all", to: ".bad")
        spool.rename(".bad", to: "bad.jsonl.gz")
        spool.write(Array(packed.dropLast(6)), to: ".cut")
        spool.rename(".cut", to: "cut.jsonl.gz")
        let reader = try await spool.start()
        await spool.until("both are quarantined") { spool.queue.quarantined.count == 2 }
        #expect(Set(spool.queue.quarantined.map(\.reason)) == [.badArchive, .cutShort])
        await spool.until("both are removed") { spool.names().isEmpty }
        await reader.stop()
    }
}
