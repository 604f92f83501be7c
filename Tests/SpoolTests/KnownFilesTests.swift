import Glibc
import Model
@testable import Spool
import TestKit
import Testing

@Suite("Many known files", .timeLimit(.minutes(5)))
struct KnownFilesTests {
    /// Bytes that the allocator gave for a reader's append files, beside their names and tables, and how many do not rest.
    private func size(of reader: isolated SpoolReader) -> (files: Int, awake: Int) {
        var (bytes, awake) = (0, 0)
        guard let symbol = dlsym(nil, "malloc_usable_size") else { return (.max, 0) }
        let usableSize = unsafeBitCast(symbol, to: (@convention(c) (UnsafeMutableRawPointer) -> Int).self)
        for file in reader.lives.streams.files.values {
            bytes += usableSize(Unmanaged.passUnretained(file).toOpaque())
            if !file.isResting { awake += 1 }
        }
        return (bytes, awake)
    }

    @Test("files that stay and are not written to use at most 224 bytes each; a new line wakes only its file")
    func knownFilesRest() async throws {
        let spool = try SpoolHarness(in: "/dev/shm")
        let count = 20_000
        for folder in 0..<20 {
            spool.makeDirectory("app\(folder)")
            for number in 0..<(count / 20) {
                spool.write("\(folder)/\(number)\n", to: "app\(folder)/\(number).jsonl")
            }
        }
        let reader = try await spool.start {
            $0.afterRead = .keep
            $0.maxOpenFiles = 100
        }
        await spool.until("all are read") { spool.queue.lines.count == count }
        await spool.until("few are open") {
            reader.figures.openFiles <= 100 && reader.figures.unreadBytes == 0
        }
        #expect(reader.figures.appendFiles == count)
        let rest = await size(of: reader)
        #expect(rest.files <= count * 224)
        #expect(rest.awake <= 101, "those that are open are not at rest")
        spool.append("more\n", to: "app7/77.jsonl")
        await spool.until("the line is found") { spool.queue.lines.count == count + 1 }
        #expect(spool.queue.with { $0.lines.last?.path } == "app7/77.jsonl")
        let after = await size(of: reader)
        #expect(after.awake <= 102)
        // Rotation is followed, whether the file rests or not.
        spool.rename("app7/78.jsonl", to: "app7/78.jsonl.1")
        spool.append("rotated\n", to: "app7/78.jsonl.1")
        spool.write("new\n", to: "app7/78.jsonl")
        await spool.until("both are found") { spool.queue.lines.count == count + 3 }
        #expect(Set(spool.queue.lines.suffix(2)) == ["rotated", "new"])
        await reader.stop()
    }

    /// Whether the name of a file and its name before rotation share their storage; nil if the file is not
    /// known.
    private func isNameShared(of name: String, in reader: isolated SpoolReader) -> Bool? {
        guard let file = reader.tree.top?.files[FileName(name)] else { return nil }
        let (name, origin) = (file.name.bytes, file.origin.bytes)
        return name.withUnsafeBytes { left in
            origin.withUnsafeBytes { left.baseAddress == $0.baseAddress }
        }
    }

    private func capacity(of reader: isolated SpoolReader) -> Int { reader.lives.streams.remembered.capacity }

    @Test(
        "after a restart nothing that was remembered of files is left once they are found, and each name is kept once"
    )
    func restarted() async throws {
        let spool = try SpoolHarness(in: "/dev/shm")
        let count = 6_000
        for number in 0..<count { spool.write("\(number)\n", to: "\(number).jsonl") }
        let first = try await spool.start {
            $0.afterRead = .keep
            $0.maxOpenFiles = 8
        }
        await spool.until("all are read") { spool.queue.lines.count == count }
        await first.stop()
        let second = try await spool.start {
            $0.afterRead = .keep
            $0.maxOpenFiles = 8
        }
        spool.append("more\n", to: "77.jsonl")
        await spool.until("the line is found") { spool.queue.lines.count == count + 1 }
        await spool.until("all are known") { second.figures.appendFiles == count }
        #expect(await capacity(of: second) < 64)
        for name in ["0.jsonl", "5999.jsonl"] {
            #expect(await isNameShared(of: name, in: second) == true)
        }
        await second.stop()
    }

    @Test("files that wait for their turn take no more memory than those that were read")
    func waiting() async throws {
        let spool = try SpoolHarness(in: "/dev/shm")
        let count = 2_000
        for number in 0..<count { spool.write("\(number)\n", to: "\(number).jsonl") }
        spool.queue.with { $0.isFull = true }
        let reader = try await spool.start {
            $0.afterRead = .keep
            $0.maxOpenFiles = 100
            $0.commitBytes = 1
        }
        await spool.until("all are known, and two commits wait") { reader.figures.appendFiles == count }
        #expect(await size(of: reader).awake <= 104)
        spool.queue.with { $0.isFull = false }
        await spool.until("all are read") { spool.queue.lines.count == count }
        #expect(Set(spool.queue.lines).count == count)
        await reader.stop()
    }
}
