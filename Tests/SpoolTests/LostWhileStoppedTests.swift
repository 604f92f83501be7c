import Frames
import Glibc
import Model
import TestKit
import Testing

@testable import Spool

/// Files that change while no reader runs. What was unread at the stop is known, and reported if it is gone; what was read,
/// or is found elsewhere, is not.
@Suite("Files lost while the agent was stopped", .timeLimit(.minutes(5)))
struct LostWhileStoppedTests {
    private static let read = (0..<40).map { "{\"read\":\($0),\"text\":\"\(filler)\"}\n" }.joined()
    private static let filler = String(repeating: "t", count: 60)
    /// The beginning of a line: it stays unread as long as its end is missing.
    private static let half = "{\"unread\":1,"

    /// A reader has read 40 lines of a file and half a line was written behind them when it stopped.
    private func stopped(_ spool: SpoolHarness, half: String = half) async throws {
        spool.write(Self.read + half, to: "x.jsonl")
        // Something else keeps the directory from being empty.
        spool.write("{\"other\":1}\n", to: "other.jsonl")
        let reader = try await start(spool)
        await spool.until("all whole lines are read") { spool.queue.lines.count == 41 }
        await spool.until("the half line is seen") { reader.figures.unreadBytes.value == half.utf8.count }
        await reader.stop()
    }

    private func start(_ spool: SpoolHarness) async throws -> SpoolReader {
        try await spool.start {
            $0.afterRead = .keep
            $0.linger = .zero
            $0.settleTime = .milliseconds(30)
            $0.sealTime = .seconds(60)
        }
    }

    private func expectLoss(
        _ spool: SpoolHarness, _ way: SpoolFigures.LostFile.Way, bytes: Int = half.utf8.count
    ) async throws {
        let reader = try await start(spool)
        await spool.until("the loss is reported") { reader.figures.bytesGivenUp > 0 }
        #expect(reader.figures.bytesGivenUp.value == bytes)
        await spool.until("the file is named") { reader.figures.lostFiles.count == 1 }
        let lost = try #require(reader.figures.lostFiles.first)
        #expect(lost.path == "\(spool.path)/x.jsonl" && lost.bytes == bytes && lost.way == way)
        await reader.stop()
        // Once reported, it is not reported again.
        await expectSilence(spool, try await start(spool))
    }

    private func expectSilence(_ spool: SpoolHarness, _ reader: SpoolReader) async {
        // Longer than copies are waited for.
        await spool.pause(.seconds(3))
        #expect(reader.figures.bytesGivenUp == 0)
        #expect(reader.figures.lostFiles.isEmpty)
        await reader.stop()
    }

    @Test("a file that was not read to its end and is gone")
    func removed() async throws {
        let spool = try SpoolHarness()
        try await stopped(spool)
        spool.remove("x.jsonl")
        try await expectLoss(spool, .removedWhileStopped)
        let message = "file vanished while the agent was stopped, before it was read"
        #expect(spool.log.messages.contains { "\($0)".contains(message) && "\($0)".contains("x.jsonl") })
    }

    @Test("a file that was not read to its end and was emptied or written anew")
    func truncated() async throws {
        for text in ["", "{\"new\":1}\n", Self.read.uppercased() + Self.read.uppercased()] {
            let spool = try SpoolHarness()
            try await stopped(spool)
            truncate("\(spool.path)/x.jsonl", 0)
            spool.append(text, to: "x.jsonl")
            try await expectLoss(spool, .truncated)
        }
    }

    @Test("a file that was read to its end and is gone, is not reported")
    func wasRead() async throws {
        let spool = try SpoolHarness()
        try await stopped(spool, half: "")
        spool.remove("x.jsonl")
        let reader = try await start(spool)
        await expectSilence(spool, reader)
        let message = "files that were read are gone since the last stop"
        #expect(spool.log.messages.contains { "\($0)".contains(message) })
    }

    @Test("an ordinary rotation while no reader runs loses nothing", arguments: 0..<6)
    func rotated(_ way: Int) async throws {
        let spool = try SpoolHarness()
        try await stopped(spool)
        spool.append("\"end\":1}\n", to: "x.jsonl")
        let whole = Self.read + Self.half + "\"end\":1}\n"
        func pack(_ name: String) throws {
            spool.write(try FrameCompressor(.gzip).compress(Array(whole.utf8)), to: ".packed")
            spool.rename(".packed", to: name)
        }
        switch way {
        case 0: spool.rename("x.jsonl", to: "x.jsonl.1")
        case 1:
            try pack("x.jsonl.1.gz")
            spool.remove("x.jsonl")
        case 2:
            try pack("x.jsonl.1.gz")
            truncate("\(spool.path)/x.jsonl", 0)
        case 3:
            spool.write(whole, to: "x.jsonl.1")
            truncate("\(spool.path)/x.jsonl", 0)
        case 4:
            // An editor writes the file again.
            spool.write(whole, to: ".new")
            spool.rename(".new", to: "x.jsonl")
        default:
            spool.rename("x.jsonl", to: "x.jsonl.2")
            spool.write("{\"new\":1}\n", to: "x.jsonl")
        }
        let reader = try await start(spool)
        await spool.until("the rest is read") { spool.queue.lines.contains { $0.contains("end") } }
        await expectSilence(spool, reader)
    }

    /// Rotates and compresses `x.jsonl`, which was read to its end, with a program whose archives are not read.
    ///
    /// - Parameter seconds: how much later than the agent the file was written to; compressors keep that time.
    private func pack(_ spool: SpoolHarness, to name: String, writtenLater seconds: Int) {
        var status = stat()
        #expect(stat("\(spool.path)/x.jsonl", &status) == 0)
        spool.write("packed", to: name)
        var times = [status.st_atim, status.st_mtim]
        times[1].tv_sec += seconds
        #expect(utimensat(AT_FDCWD, "\(spool.path)/\(name)", times, 0) == 0)
        spool.remove("x.jsonl")
    }

    @Test(
        "an archive that is not read, of a file that was read to its end and written to afterwards, is named",
        arguments: ["x.jsonl.1.xz", "x.jsonl-20261130.bz2", "x.jsonl.lz4"])
    func packed(_ name: String) async throws {
        let spool = try SpoolHarness()
        try await stopped(spool, half: "")
        pack(spool, to: name, writtenLater: 3)
        // A new file takes the name.
        spool.write("{\"new\":1}\n", to: "x.jsonl")
        let reader = try await start(spool)
        await spool.until("the archive is named") { reader.figures.lostFiles.count == 1 }
        #expect(reader.figures.lostFiles.first?.path == "\(spool.path)/\(name)")
        await reader.stop()
        await expectSilence(spool, try await start(spool))
    }

    @Test("an archive that is not read, of a file that was not written to after it was read, loses nothing")
    func packedAfterReading() async throws {
        let spool = try SpoolHarness()
        try await stopped(spool, half: "")
        pack(spool, to: "x.jsonl.1.xz", writtenLater: 0)
        // Archives of other files.
        spool.write("packed", to: "y.jsonl.1.xz")
        await expectSilence(spool, try await start(spool))
    }

    @Test("a directory that is gone tells nothing about its files")
    func away() async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory("shop")
        spool.write(Self.read + Self.half, to: "shop/x.jsonl")
        let first = try await start(spool)
        await spool.until("all whole lines are read") { spool.queue.lines.count == 40 }
        await spool.until("the half line is seen") { first.figures.unreadBytes.value == Self.half.utf8.count }
        await first.stop()
        rename("\(spool.path)/shop", "\(spool.path)/.away")
        let second = try await start(spool)
        await expectSilence(spool, second)
        rename("\(spool.path)/.away", "\(spool.path)/shop")
        spool.append("\"end\":1}\n", to: "shop/x.jsonl")
        let third = try await start(spool)
        await spool.until("the rest is read") { spool.queue.lines.count == 41 }
        await expectSilence(spool, third)
    }
}
