import Frames
import Glibc
import Model
import Spool
import TestKit
import Testing

/// Files that are truncated while reading waits: what a copy has is read there, what none has is counted.
@Suite("Truncated before reading", .timeLimit(.minutes(5)))
struct CutOffTests {
    private func lines(_ label: String, _ count: Int) -> String {
        (0..<count).map { "{\"\(label)\":\($0),\"text\":\"\(String(repeating: "t", count: $0 % 90))\"}\n" }
            .joined()
    }

    /// A reader whose commits wait: what is written now is seen, and not read.
    private func heldBack(
        _ spool: SpoolHarness, after count: Int, _ change: (inout SpoolOptions) -> Void = { _ in }
    ) async throws -> SpoolReader {
        let reader = try await spool.start {
            $0.afterRead = .keep
            $0.linger = .zero
            $0.settleTime = .milliseconds(50)
            change(&$0)
        }
        await spool.until("what lies there is read") { spool.queue.lines.count == count }
        await holdBack(spool, reader)
        return reader
    }

    private func holdBack(_ spool: SpoolHarness, _ reader: SpoolReader) async {
        // Two commits wait, of a line each; then nothing more is taken.
        spool.queue.with {
            $0.isFull = true
            $0.room = 1
        }
        spool.append("{\"n\":0}\n{\"n\":1}\n{\"n\":2}\n", to: "busy.jsonl")
        await spool.until("reading is held back") { reader.figures.isHeldBack }
    }

    private func seen(_ reader: SpoolReader, _ spool: SpoolHarness, unread: Int) async {
        await spool.until("it is seen") { reader.figures.unreadBytes.value >= unread }
    }

    private func release(_ spool: SpoolHarness) {
        spool.queue.with {
            $0.isFull = false
            $0.room = .max
        }
    }

    private static let phrase = "file was truncated before it was read"

    @Test(
        "bytes truncated before they were read, and in no copy, are counted and logged",
        arguments: [0, 40])
    func counted(readBefore: Int) async throws {
        let spool = try SpoolHarness()
        let first = lines("first", readBefore)
        spool.write(first, to: "x.jsonl")
        let reader = try await heldBack(spool, after: readBefore)
        let second = lines("second", 100)
        spool.append(second, to: "x.jsonl")
        await seen(reader, spool, unread: second.utf8.count)
        truncate("\(spool.path)/x.jsonl", 0)
        await spool.until("it is seen to be empty") { reader.figures.unreadBytes.value < second.utf8.count }
        spool.append(lines("third", 5), to: "x.jsonl")
        release(spool)
        await spool.until("they are counted") {
            reader.figures.bytesGivenUp.value == Int64(second.utf8.count)
        }
        let read = spool.queue.lines.filter { !$0.hasPrefix("{\"n\"") }
        #expect(read.count == readBefore + 5)
        #expect(spool.log.messages.contains { "\($0)".contains(Self.phrase) && "\($0)".contains("x.jsonl") })
        await reader.stop()
    }

    @Test("bytes that a copy has are not counted as lost", arguments: [0, 40], [false, true])
    func copied(readBefore: Int, isPacked: Bool) async throws {
        let spool = try SpoolHarness()
        let first = lines("first", readBefore)
        spool.write(first, to: "x.jsonl")
        let reader = try await heldBack(spool, after: readBefore)
        let second = lines("second", 100)
        spool.append(second, to: "x.jsonl")
        await seen(reader, spool, unread: second.utf8.count)
        if isPacked {
            spool.write(try FrameCompressor(.gzip).compress(Array((first + second).utf8)), to: ".packed")
            spool.rename(".packed", to: "x.jsonl.1.gz")
        } else {
            spool.write(first + second, to: "x.jsonl.1")
        }
        truncate("\(spool.path)/x.jsonl", 0)
        await spool.pause(.milliseconds(100))
        spool.append(lines("third", 5), to: "x.jsonl")
        release(spool)
        await spool.until("all is read") { spool.queue.lines.count == 3 + readBefore + 105 }
        await spool.pause(.seconds(3))
        #expect(spool.queue.lines.count == 3 + readBefore + 105)
        #expect(reader.figures.bytesGivenUp == 0)
        await reader.stop()
    }

    @Test("a copy over an unexamined copy loses nothing, because its content had been read")
    func copiedOverACopy() async throws {
        let spool = try SpoolHarness()
        let reader = try await spool.start {
            $0.afterRead = .keep
            $0.settleTime = .milliseconds(250)
        }
        for round in 1...5 {
            let text = lines("round \(round)", 40 - round)
            spool.append(text, to: "x.jsonl")
            await spool.until("it is read") {
                spool.queue.lines.count == (0..<round).reduce(0) { $0 + 39 - $1 }
            }
            spool.write(text, to: "x.jsonl.1")
            await spool.until("the copy is seen") { reader.figures.appendFiles == 2 }
            truncate("\(spool.path)/x.jsonl", 0)
        }
        // Longer than copies are waited for.
        await spool.pause(.seconds(9))
        #expect(spool.queue.lines.count == 185)
        #expect(reader.figures.bytesGivenUp == 0)
        await reader.stop()
    }

    @Test("content seen in a copy that was overwritten before it was read is not counted as lost")
    func copiedOverAKnownCopy() async throws {
        let spool = try SpoolHarness()
        let (first, second) = (lines("first", 40), lines("second", 60))
        for name in ["x.jsonl", "x.jsonl.1"] { spool.write(first, to: name) }
        let reader = try await spool.start {
            $0.afterRead = .keep
            $0.linger = .zero
            $0.settleTime = .milliseconds(50)
        }
        await spool.until("the copy is known") {
            spool.log.messages.contains { "\($0)".contains("copy of a file that was read") }
        }
        truncate("\(spool.path)/x.jsonl", 0)
        spool.append(second, to: "x.jsonl")
        await spool.until("the second is read") { spool.queue.lines.count == 100 }
        await holdBack(spool, reader)
        spool.write(second, to: "x.jsonl.1")
        await seen(reader, spool, unread: second.utf8.count - first.utf8.count)
        truncate("\(spool.path)/x.jsonl.1", 0)
        await spool.until("it is seen to be empty") { reader.figures.unreadBytes.value < 100 }
        spool.write(second, to: "x.jsonl.1")
        release(spool)
        await spool.pause(.seconds(3))
        #expect(spool.queue.lines.count == 103)
        #expect(reader.figures.bytesGivenUp == 0)
        await reader.stop()
    }

    @Test("lines between copy and truncation are counted, if they were seen")
    func betweenCopyAndTruncation() async throws {
        let spool = try SpoolHarness()
        let first = lines("first", 40)
        spool.write(first, to: "x.jsonl")
        let reader = try await heldBack(spool, after: 40)
        let (second, late) = (lines("second", 100), lines("late", 10))
        spool.append(second + late, to: "x.jsonl")
        await seen(reader, spool, unread: second.utf8.count + late.utf8.count)
        spool.write(first + second, to: "x.jsonl.1")
        truncate("\(spool.path)/x.jsonl", 0)
        release(spool)
        await spool.until("they are counted") {
            reader.figures.bytesGivenUp.value == late.utf8.count
        }
        #expect(spool.queue.lines.count == 143)
        await reader.stop()
    }

    @Test("a truncated end is counted, and the remaining part is read")
    func endCutOff() async throws {
        let spool = try SpoolHarness()
        let first = lines("first", 40)
        spool.write(first, to: "x.jsonl")
        let reader = try await heldBack(spool, after: 40)
        let (second, end) = (lines("second", 20), lines("end", 10))
        spool.append(second + end, to: "x.jsonl")
        await seen(reader, spool, unread: second.utf8.count + end.utf8.count)
        truncate("\(spool.path)/x.jsonl", first.utf8.count + second.utf8.count)
        await spool.pause(.milliseconds(100))
        release(spool)
        await spool.until("they are counted") {
            reader.figures.bytesGivenUp.value == end.utf8.count
        }
        #expect(spool.queue.lines.count == 63)
        await reader.stop()
    }

    @Test("an empty rotated file does not hide that bytes of its stream are lost")
    func lossBesideAnEmptyFile() async throws {
        let spool = try SpoolHarness()
        let (first, second) = (lines("first", 40), lines("second", 20))
        spool.write("", to: "x.jsonl.1")
        spool.write(first, to: "x.jsonl")
        let reader = try await heldBack(spool, after: 40)
        spool.append(second, to: "x.jsonl")
        await seen(reader, spool, unread: second.utf8.count)
        truncate("\(spool.path)/x.jsonl", first.utf8.count)
        await spool.pause(.milliseconds(100))
        release(spool)
        await spool.until("they are counted") { reader.figures.bytesGivenUp.value == second.utf8.count }
        await reader.stop()
    }

    @Test("an empty file under a rotated name is removed like one with lines")
    func emptyRotatedFile() async throws {
        let spool = try SpoolHarness()
        spool.write("", to: "x.jsonl.1")
        spool.write("1\n", to: "x.jsonl")
        let reader = try await spool.start { $0.settleTime = .milliseconds(50) }
        await spool.until("it is gone") { spool.names() == ["x.jsonl"] }
        await reader.stop()
    }

    /// Files that are seen and not read, of which few are open: what has no name any more is gone.
    private func seenAndClosed(_ spool: SpoolHarness, _ text: String) async throws -> SpoolReader {
        let reader = try await heldBack(spool, after: 0) {
            $0.maxOpenFiles = 1
            $0.settleTime = .milliseconds(200)
        }
        for number in 0..<20 { spool.write(text, to: "late\(number).jsonl") }
        await seen(reader, spool, unread: 20 * text.utf8.count)
        return reader
    }

    @Test("a file that disappears unread and returns under another name is read, and not counted as lost")
    func awayUnread() async throws {
        let spool = try SpoolHarness()
        let outside = try TemporaryDirectory()
        let text = lines("late", 10)
        let reader = try await seenAndClosed(spool, text)
        for number in 0..<20 { rename("\(spool.path)/late\(number).jsonl", "\(outside.path)/\(number)") }
        release(spool)
        await spool.until("they are looked for") { reader.figures.appendFiles <= 2 }
        for number in 0..<20 { rename("\(outside.path)/\(number)", "\(spool.path)/late\(number).jsonl.1") }
        await spool.until("all is read") { spool.queue.lines.count == 203 }
        // Longer than they would be waited for.
        await spool.pause(.seconds(7))
        #expect(spool.queue.lines.count == 203)
        #expect(reader.figures.bytesGivenUp == 0)
        await reader.stop()
    }

    @Test("a file deleted before it was read is counted and logged, if no descriptor of it is open")
    func deletedUnread() async throws {
        let spool = try SpoolHarness()
        let text = lines("late", 10)
        let reader = try await seenAndClosed(spool, text)
        for number in 0..<20 { spool.remove("late\(number).jsonl") }
        release(spool)
        // Those that happened to be open are read.
        await spool.until("they are counted") {
            let read = (spool.queue.lines.count - 3) / 10
            return reader.figures.bytesGivenUp.value == Int64((20 - read) * text.utf8.count)
        }
        #expect(reader.figures.bytesGivenUp > 0)
        #expect(spool.log.messages.contains { "\($0)".contains("file vanished before it was read") })
        await reader.stop()
    }

    @Test("without inotify, the size of a file that took another's name does not count as the other's")
    func polledReplacement() async throws {
        let spool = try SpoolHarness()
        spool.write(lines("first", 5), to: "x.jsonl")
        let reader = try await spool.start {
            $0.afterRead = .keep
            $0.isWatching = false
            $0.maxOpenFiles = 1
            $0.settleTime = .milliseconds(50)
        }
        await spool.until("it is read") { spool.queue.lines.count == 5 }
        // It is closed: another file is open.
        spool.write(lines("other", 5), to: "y.jsonl")
        await spool.until("the other is read") { spool.queue.lines.count == 10 }
        spool.write(lines("second", 100), to: ".new")
        spool.rename(".new", to: "x.jsonl")
        await spool.until("what replaced it is read") { spool.queue.lines.count == 110 }
        // Longer than copies are waited for.
        await spool.pause(.seconds(3))
        #expect(reader.figures.bytesGivenUp == 0)
        await reader.stop()
    }
}
