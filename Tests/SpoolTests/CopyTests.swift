import EventLoops
import Frames
import Glibc
import Logs
import Model
import Spool
import TestKit
import Testing

/// Copies that rotation makes before it empties a file, quicker than anybody looks.
@Suite("Copies during rotation", .timeLimit(.minutes(5)))
struct CopyTests {
    private func lines(_ label: String, _ count: Int) -> [String] {
        (0..<count).map { "{\"\(label)\":\($0),\"text\":\"\(String(repeating: "t", count: $0 % 90))\"}" }
    }

    private func text(_ lines: [String]) -> String { lines.map { $0 + "\n" }.joined() }

    /// What copy-and-truncate does: the file is copied, then emptied.
    private func rotate(_ spool: SpoolHarness, to copy: String, holding lines: [String]) {
        spool.write(text(lines), to: copy)
        truncate("\(spool.path)/x.jsonl", 0)
    }

    /// Has something done on the reader's own thread: all that the kernel tells of it is told when it is over.
    private func atOnce(_ spool: SpoolHarness, _ body: @escaping @Sendable () -> Void) async {
        await withCheckedContinuation { continuation in
            spool.loop.post {
                body()
                continuation.resume()
            }
        }
    }

    private func expectOnce(_ spool: SpoolHarness, _ lines: [String]) async {
        await spool.until("\(lines.count) lines arrive") { spool.queue.lines.count >= lines.count }
        #expect(Set(lines).subtracting(spool.queue.lines).isEmpty)
        // Time enough for what would come twice.
        await spool.pause(.milliseconds(600))
        #expect(spool.queue.lines.count == lines.count, "\(spool.queue.lines.count - lines.count) came twice")
    }

    @Test(
        "a copy that moves to .2 before the reader looked at it is recognised by its content",
        arguments: [1, 3])
    func shiftedBeforeItWasLookedAt(shifts: Int) async throws {
        let spool = try SpoolHarness()
        let reader = try await spool.start { $0.afterRead = .keep }
        let first = lines("first", 200)
        spool.write(text(first), to: "x.jsonl")
        await spool.untilLines(first)
        await atOnce(spool) { [self] in
            rotate(spool, to: "x.jsonl.1", holding: first)
            for number in 1...shifts { spool.rename("x.jsonl.\(number)", to: "x.jsonl.\(number + 1)") }
        }
        let second = lines("second", 3)
        spool.append(text(second), to: "x.jsonl")
        await expectOnce(spool, first + second)
        await reader.stop()
    }

    @Test("a copy that moves on after another took its name is recognised by its content")
    func shiftedOnceAnotherHasItsName() async throws {
        let spool = try SpoolHarness()
        let reader = try await spool.start { $0.afterRead = .keep }
        let first = lines("first", 200)
        spool.write(text(first), to: "x.jsonl")
        await spool.untilLines(first)
        let second = lines("second", 200)
        // When the reader looks at x.jsonl.1 for the first time, it is the second copy; the first one is x.jsonl.2 then.
        await atOnce(spool) { [self] in
            rotate(spool, to: "x.jsonl.1", holding: first)
            spool.rename("x.jsonl.1", to: "x.jsonl.2")
            spool.append(text(second), to: "x.jsonl")
            rotate(spool, to: "x.jsonl.1", holding: second)
        }
        let third = lines("third", 3)
        spool.append(text(third), to: "x.jsonl")
        await expectOnce(spool, first + second + third)
        await reader.stop()
    }

    @Test(
        "a file that was rewritten while no agent ran is read before the copy of its content",
        arguments: [nil, "gz"], [1, 256])
    func rewrittenBeforeTheStart(suffix: String?, mostOpen: Int) async throws {
        let spool = try SpoolHarness()
        var reader = try await spool.start { $0.afterRead = .keep }
        // Directories are listed in no order: of ten files some are found after their copies.
        var expected: [String] = []
        for number in 0..<10 {
            let first = lines("first \(number)", 100)
            spool.write(text(first), to: "x\(number).jsonl")
            expected += first
        }
        await spool.untilLines(expected)
        await reader.stop()
        for number in 0..<10 {
            let second = lines("second \(number)", 150)
            spool.write(text(second), to: "x\(number).jsonl")
            if let suffix {
                let packed = try FrameCompressor(.gzip).compress(Array(text(second).utf8))
                spool.write(packed, to: "x\(number).jsonl.1.\(suffix)")
            } else {
                spool.write(text(second), to: "x\(number).jsonl.1")
            }
            expected += second
        }
        reader = try await spool.start {
            $0.afterRead = .keep
            $0.maxOpenFiles = mostOpen
        }
        await expectOnce(spool, expected)
        #expect(reader.figures.errors == 0)
        await reader.stop()
    }

    @Test(
        "every copy is recognised of a file that is emptied more often than the reader looks at copies",
        arguments: [true, false])
    func manyCopiesAtOnce(isRestarted: Bool) async throws {
        let spool = try SpoolHarness()
        var reader = try await spool.start {
            $0.afterRead = .keep
            $0.settleTime = .seconds(2)
        }
        var expected: [String] = []
        for round in 0..<12 {
            let part = lines("\(round)", 30)
            spool.append(text(part), to: "x.jsonl")
            expected += part
            await spool.untilLines(expected)
            rotate(spool, to: "x.jsonl.\(round + 1)", holding: part)
            await spool.until("the truncation is seen") { reader.figures.truncations == round + 1 }
        }
        if isRestarted {
            await reader.stop()
            reader = try await spool.start { $0.afterRead = .keep }
        }
        await spool.pause(.milliseconds(isRestarted ? 0 : 1500))
        await expectOnce(spool, expected)
        await reader.stop()
    }

    @Test("a copy that is compressed before it was recognised as a copy gives its unread end once")
    func packedBeforeItWasKnown() async throws {
        let spool = try SpoolHarness()
        var reader = try await spool.start { $0.afterRead = .keep }
        let read = lines("read", 100)
        let unread = lines("unread", 100)
        spool.write(text(read), to: "x.jsonl")
        await spool.untilLines(read)
        await reader.stop()
        spool.append(text(unread), to: "x.jsonl")
        rotate(spool, to: "x.jsonl.1", holding: read + unread)
        reader = try await spool.start {
            $0.afterRead = .keep
            $0.settleTime = .milliseconds(400)
        }
        await spool.until("the copy is open") {
            reader.figures.appendFiles == 2 && reader.figures.truncations == 1
        }
        let packed = try FrameCompressor(.gzip).compress(Array(text(read + unread).utf8))
        spool.write(packed, to: "x.jsonl.1.gz")
        spool.remove("x.jsonl.1")
        spool.append("last\n", to: "x.jsonl")
        await spool.untilLines(read + unread + ["last"])
        await spool.pause(.milliseconds(1500))
        #expect(spool.queue.lines.count == 201)
        await reader.stop()
    }

    @Test(
        "an equal first kilobyte proves nothing: a shorter file with different content is read",
        arguments: [nil, "gz"])
    func equalBeginningsAreNoProof(suffix: String?) async throws {
        let spool = try SpoolHarness()
        let reader = try await spool.start { $0.afterRead = .keep }
        let header = lines("header", 40)
        let first = lines("first", 100)
        spool.write(text(header + first), to: "x.jsonl")
        await spool.untilLines(header + first)
        spool.write("", to: "x.jsonl")
        await spool.until("the truncation is seen") { reader.figures.truncations == 1 }
        let other = lines("other", 5)
        if let suffix {
            let packed = try FrameCompressor(.gzip).compress(Array(text(header + other).utf8))
            spool.write(packed, to: "x.jsonl.1.\(suffix)")
        } else {
            spool.write(text(header + other), to: "x.jsonl.1")
        }
        await expectOnce(spool, header + first + header + other)
        await reader.stop()
    }

    @Test(
        "a shorter rotated file with a removed file's beginning is read from where they differ",
        arguments: [nil, "gz"])
    func equalMarksAreNoProof(suffix: String?) async throws {
        let spool = try SpoolHarness()
        let (banner, first, other) = (lines("banner", 40), lines("first", 200), lines("other", 5))
        var reader = try await spool.start { $0.afterRead = .keep }
        spool.append(text(banner), to: "x.jsonl")
        await spool.untilLines(banner)
        spool.append(text(first), to: "x.jsonl")
        await spool.untilLines(banner + first)
        await reader.stop()
        if let suffix {
            unlink("\(spool.path)/x.jsonl")
            let packed = try FrameCompressor(.gzip).compress(Array(text(banner + other).utf8))
            spool.write(packed, to: "x.jsonl.1.\(suffix)")
        } else {
            rename("\(spool.path)/x.jsonl", "\(spool.path)/x.jsonl.2")
            spool.write(text(banner + other), to: "x.jsonl.1")
        }
        reader = try await spool.start { $0.afterRead = .keep }
        await expectOnce(spool, banner + first + other)
        await reader.stop()
    }

    @Test("a file that contains another and continues is not a copy of it: all its lines are read")
    func longerThanItsOriginal() async throws {
        let spool = try SpoolHarness()
        let reader = try await spool.start { $0.afterRead = .keep }
        let first = lines("first", 200)
        spool.write(text(first), to: "x.jsonl")
        await spool.untilLines(first)
        let more = lines("more", 5)
        spool.write(text(first + more), to: "x.jsonl.1")
        await spool.until("all of both") { spool.queue.lines.count >= 2 * first.count + more.count }
        #expect(spool.queue.lines.sorted() == (first + first + more).sorted())
        await reader.stop()
    }

    @Test("a copy made before the last lines is not read again, even if commits lie in between")
    func earlyCopiesHoldNothingNew() async throws {
        let spool = try SpoolHarness()
        let reader = try await spool.start {
            $0.afterRead = .keep
            $0.settleTime = .milliseconds(30)
        }
        var written: [String] = []
        for round in 0..<5 {
            written += lines("round \(round)", 30)
            spool.append(text(lines("round \(round)", 30)), to: "x.jsonl")
            await spool.untilLines(written)
        }
        spool.write(text(Array(written.dropLast(20))), to: "x.jsonl.1")
        truncate("\(spool.path)/x.jsonl", 0)
        await expectOnce(spool, written)
        await reader.stop()
    }

    @Test("a copy that is written with a pause longer than the settle time is not taken for another file")
    func pausesWhileItIsMade() async throws {
        let spool = try SpoolHarness()
        let reader = try await spool.start {
            $0.afterRead = .keep
            $0.settleTime = .milliseconds(400)
        }
        // All in one commit: no earlier place proves what the first half of the copy is.
        let first = lines("first", 200)
        spool.write(text(first), to: "x.jsonl")
        await spool.untilLines(first)
        spool.write(text(Array(first.prefix(100))), to: "x.jsonl.1")
        await spool.pause(.milliseconds(900))
        spool.append(text(Array(first.dropFirst(100))), to: "x.jsonl.1")
        truncate("\(spool.path)/x.jsonl", 0)
        await spool.until("the copy is known") {
            spool.log.messages.contains { $0.text == "copy of a file that was read" }
        }
        #expect(spool.queue.lines.count == first.count)
        await reader.stop()
    }
}
