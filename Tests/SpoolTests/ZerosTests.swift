import EventLoops
import Glibc
import Logs
import Model
@testable import Spool
import TestKit
import Testing

/// Files that are made long first and filled later: mapped memory (log4j2's MemoryMappedFile), preallocation.
@Suite("Zeros in append files", .timeLimit(.minutes(5)))
struct ZerosTests {
    /// A file that is written through mapped memory, which the kernel tells nobody of.
    private final class MappedFile {
        let path: String
        private let descriptor: Int32
        private(set) var length: Int
        private(set) var used = 0
        private var memory: UnsafeMutableRawPointer

        init(_ path: String, length: Int) throws {
            self.path = path
            self.length = length
            descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o660)
            guard descriptor >= 0, ftruncate(descriptor, length) == 0,
                let memory = mmap(nil, length, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0),
                memory != MAP_FAILED
            else { throw SystemError("mmap") }
            self.memory = memory
        }

        /// Copies bytes there, one piece after another.
        func write(_ text: some Sequence<UInt8>) {
            for byte in text {
                memory.storeBytes(of: byte, toByteOffset: used, as: UInt8.self)
                used += 1
            }
        }

        /// As log4j2 does: what was not used goes.
        func end(cut isCut: Bool) {
            munmap(memory, length)
            if isCut { #expect(ftruncate(descriptor, used) == 0) }
            close(descriptor)
        }
    }

    @Test("a file that is repeatedly truncated and filled with zeros while it is read stops nothing")
    func cutToNothing() async throws {
        let spool = try SpoolHarness()
        let reader = try await spool.start()
        let path = "\(spool.path)/hostile.jsonl"
        let rounds = await Task.detached {
            let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o660)
            defer { close(descriptor) }
            let zeros = [UInt8](repeating: 0, count: 100)
            return (0..<200_000).count { _ in
                ftruncate(descriptor, 0) == 0 && pwrite(descriptor, zeros, zeros.count, 0) == zeros.count
            }
        }.value
        #expect(rounds == 200_000)
        spool.write("1\n", to: "honest.jsonl")
        await spool.untilLines(["1"])
        await reader.stop()
    }

    @Test("lines written into mapped memory are read once, as a whole", arguments: [true, false])
    func mapped(isWatching: Bool) async throws {
        let seed = Seeds.one(4)
        var random = SplitMix64(seed: seed)
        let spool = try SpoolHarness()
        let reader = try await spool.start {
            $0.isWatching = isWatching
            $0.sealTime = .milliseconds(500)
        }
        var lines: [String] = []
        for round in 0..<3 {
            let file = try MappedFile("\(spool.path)/m\(round).log", length: 1 << 20)
            for number in 0..<400 {
                let text = String(repeating: "x", count: Int.random(in: 0...600, using: &random))
                lines.append("{\"n\":\(round * 1000 + number),\"text\":\"\(text)\"}")
                let bytes = Array(lines[lines.count - 1].utf8) + [0x0A]
                let half = Int.random(in: 0...bytes.count, using: &random)
                file.write(bytes[..<half])
                if number % 8 == 0 {
                    await spool.pause(.milliseconds(Int.random(in: 0...40, using: &random)))
                }
                file.write(bytes[half...])
            }
            await spool.untilLines(lines)
            file.end(cut: round == 1)
            if round == 2 { spool.rename("m2.log", to: "m2.log.1") }
        }
        // A file that is complete goes, zeros or not.
        await spool.until("the rotated one is removed") { !spool.exists("m2.log.1") }
        await reader.stop()
        #expect(spool.queue.quarantined.isEmpty && reader.figures.bytesGivenUp == 0, "seed \(seed)")
        #expect(reader.figures.zeroBytes == 0 && reader.figures.unreadBytes == 0)
        // And a start finds nothing new in what is left.
        let again = try await spool.start()
        spool.append("{\"n\":9}\n", to: "other.log")
        await spool.untilLines(lines + ["{\"n\":9}"])
        await again.stop()
    }

    @Test("a late line feed ends the line, however long it has waited before zeros")
    func waits() async throws {
        let spool = try SpoolHarness()
        let reader = try await spool.start()
        let file = try MappedFile("\(spool.path)/x.log", length: 3 << 20)
        file.write("1\n{\"half\":".utf8)
        await spool.untilLines(["1"])
        // Longer than what counts as the last line of a file that nobody writes to: somebody has it open.
        await spool.pause(.milliseconds(400))
        #expect(spool.queue.lines == ["1"])
        let long = String(repeating: "y", count: 9000)
        file.write("\"\(long)".utf8)
        await spool.pause(.milliseconds(200))
        file.write("\"}\n".utf8)
        await spool.untilLines(["1", "{\"half\":\"\(long)\"}"])
        file.end(cut: false)
        await reader.stop()
        #expect(spool.queue.quarantined.isEmpty)
    }

    @Test("zeros between lines are skipped and counted, and the lines after them are read")
    func inside() async throws {
        let spool = try SpoolHarness()
        // As after copy-and-truncate of a file that its writer does not append to.
        let holed = [UInt8](repeating: 0, count: 300_000) + Array("2\n".utf8)
        spool.write(Array("1\n".utf8) + holed, to: "x.log")
        // Within a line they belong to it.
        spool.write(Array("3\n4\0\0".utf8) + Array("4\n5\n".utf8), to: "y.log")
        let reader = try await spool.start()
        await spool.untilLines(["1", "2", "3", "4\0\04", "5"])
        await reader.stop()
        #expect(reader.figures.zeroBytes == 300_000)
        #expect(spool.log.messages.filter { $0.text == "zeros in a file are skipped" }.count == 1)
    }

    @Test("content written after zeros does not make them skipped while they may still be filled")
    func filledLater() async throws {
        let spool = try SpoolHarness()
        let path = "\(spool.path)/x.log"
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o660)
        #expect(ftruncate(file, 1 << 20) == 0)
        let reader = try await spool.start { $0.sealTime = .seconds(2) }
        #expect(pwrite(file, "1\n", 2, 0) == 2)
        #expect(pwrite(file, "3\n", 2, 4) == 2)
        await spool.untilLines(["1"])
        await spool.pause(.milliseconds(300))
        #expect(spool.queue.lines == ["1"])
        #expect(pwrite(file, "2\n", 2, 2) == 2)
        await spool.untilLines(["1", "2", "3"])
        // Nobody fills these.
        #expect(pwrite(file, "4\n", 2, 100) == 2)
        await spool.untilLines(["1", "2", "3", "4"])
        #expect(reader.figures.zeroBytes == 94)
        close(file)
        await reader.stop()
    }

    @Test("a file of zeros that nobody has open wakes nothing")
    func idle() async throws {
        let spool = try SpoolHarness()
        let file = try MappedFile("\(spool.path)/x.log", length: 1 << 20)
        file.write("1\n".utf8)
        let reader = try await spool.start()
        await spool.untilLines(["1"])
        file.end(cut: false)
        while await !reader.isSealed("x.log") { await spool.pause(.milliseconds(5)) }
        let looks = await reader.plannedLooks
        #expect(looks == 0)
        // Somebody opens it again.
        let again = open("\(spool.path)/x.log", O_RDWR | O_CLOEXEC)
        #expect(pwrite(again, "2\n", 2, 2) == 2)
        await spool.untilLines(["1", "2"])
        close(again)
        await reader.stop()
    }
}

extension SpoolReader {
    fileprivate func isSealed(_ name: String) -> Bool {
        guard let file = tree[FileName("")]?.files[FileName(name)] else { return false }
        return file.isSealed && !file.isReady && file.padding?.isLookPlanned == false
    }
    fileprivate var plannedLooks: Int {
        lives.streams.files.values.filter { $0.padding?.isLookPlanned == true }.count
    }
}
