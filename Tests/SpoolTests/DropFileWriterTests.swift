import EventLoops
import Glibc
import Spool
import TestKit
import Testing

@Suite("Writing drop files")
struct DropFileWriterTests {
    /// Draws the same numbers again and again.
    private struct Stuck: RandomNumberGenerator {
        var numbers: [UInt64]
        mutating func next() -> UInt64 { numbers.count > 1 ? numbers.removeFirst() : numbers[0] }
    }

    private func put(
        _ text: String, in directory: String, label: String = "event", using numbers: [UInt64] = [1, 2, 3]
    ) throws(SpoolError) -> String {
        var random = Stuck(numbers: numbers)
        let bytes = Array(text.utf8)
        return try bytes.withUnsafeBufferPointer { bytes throws(SpoolError) in
            let raw = UnsafeRawBufferPointer(bytes)
            return try DropFileWriter.put(raw, in: directory, label: label, using: &random)
        }
    }

    @Test("a file is there whole, readable by its group whatever the umask, and nothing else is left")
    func filesAreWhole() throws {
        let spool = try SpoolHarness()
        let old = umask(0o077)
        defer { umask(old) }
        let text = "{\"text\":\"\(String(repeating: "long ", count: 100_000))\"}"
        let name = try put(text, in: spool.path, label: "it's a/läbel", using: [0xABC])
        #expect(name == "it_s_a_l__bel-abc.json")
        #expect(spool.names() == [name])
        var status = stat()
        #expect(stat("\(spool.path)/\(name)", &status) == 0 && status.st_mode & 0o777 == 0o640)
        #expect(Int(status.st_size) == text.utf8.count)
    }

    @Test("the reader takes what is put, each once, while four writers put at a time")
    func readersTakeWhatIsPut() async throws {
        let spool = try SpoolHarness()
        let reader = try await spool.start()
        await withTaskGroup(of: Void.self) { group in
            for writer in 0..<4 {
                group.addTask {
                    var random = SplitMix64(seed: UInt64(writer))
                    for number in 0..<50 {
                        let bytes = Array("{\"writer\":\(writer),\"number\":\(number)}".utf8)
                        bytes.withUnsafeBytes { raw -> Void in
                            #expect(throws: Never.self) {
                                try DropFileWriter.put(raw, in: spool.path, using: &random)
                            }
                        }
                    }
                }
            }
        }
        await spool.untilLines(
            (0..<4).flatMap { writer in (0..<50).map { "{\"writer\":\(writer),\"number\":\($0)}" } })
        #expect(spool.queue.quarantined.isEmpty)
        await reader.stop()
    }

    @Test(
        "a name that is taken, hidden or not, is never replaced: another is drawn, or it ends with an error")
    func namesAreNotReplaced() throws {
        let spool = try SpoolHarness()
        spool.write("first", to: "event-1.json")
        spool.write("in the making", to: ".event-2.json.tmp")
        #expect(try put("{}", in: spool.path, using: [1, 2, 3]) == "event-3.json")
        #expect(spool.names() == [".event-2.json.tmp", "event-1.json", "event-3.json"])
        let error = #expect(throws: SpoolError.self) { try put("{}", in: spool.path, using: [1]) }
        #expect(error?.code == .cannotWrite && error?.cause?.number == EEXIST)
        #expect(spool.names() == [".event-2.json.tmp", "event-1.json", "event-3.json"])
    }

    @Test("a file whose name cannot be made durable is taken back, so that it may be written once more")
    func failedSync() throws {
        let spool = try SpoolHarness()
        // The first sync is the file's, the second its directory's.
        FaultSpool.arm("fsync", at: 2, error: EIO)
        let error = #expect(throws: SpoolError.self) { try put("{}", in: spool.path) }
        #expect(FaultSpool.disarm().failed == "fsync")
        #expect(error?.cause?.number == EIO)
        #expect(spool.names() == [])
        #expect(try put("{}", in: spool.path) == "event-1.json")
    }

    @Test("on a disk that fails from any call on, a file that an agent may still read is named")
    func diskFailsForGood() throws {
        var (number, named, failed) = (0, 0, true)
        while failed {
            number += 1
            let spool = try SpoolHarness()
            FaultSpool.arm(at: number, error: EROFS, lasting: true)
            let error: SpoolError?
            do throws(SpoolError) {
                _ = try put("{}", in: spool.path)
                error = nil
            } catch let thrown {
                error = thrown
            }
            failed = FaultSpool.disarm().failed != nil
            #expect((error != nil) == failed)
            let visible = spool.names().filter { !$0.hasPrefix(".") }
            if let error, let name = visible.first {
                #expect(error.message.contains("\(spool.path)/\(name)"))
                named += 1
            }
            #expect(visible.count <= 1)
        }
        #expect(named > 0)
    }

    @Test("where a directory cannot be synced by itself, its file system is")
    func directoriesWithoutSync() throws {
        let spool = try SpoolHarness()
        FaultSpool.arm("fsync", at: 2, error: EINVAL)
        let name = try put("{}", in: spool.path)
        #expect(FaultSpool.disarm().failed == "fsync")
        #expect(spool.names() == [name])
    }

    @Test("where it cannot write it says so, names the directory, and leaves nothing behind")
    func failuresLeaveNothing() throws {
        let error = #expect(throws: SpoolError.self) { try put("{}", in: "/nowhere/at/all") }
        #expect(error?.cause?.number == ENOENT && error?.message.contains("/nowhere/at/all") == true)
        let file = try TemporaryDirectory()
        close(open("\(file.path)/file", O_WRONLY | O_CREAT, 0o600))
        #expect(throws: SpoolError.self) { try put("{}", in: "\(file.path)/file") }
    }

    @Test(
        "a disk that is full in the middle of a file is an error, and the begun file is gone",
        .enabled(if: geteuid() == 0, "mounting a small file system takes root"))
    func fullDiskLeavesNothing() throws {
        let spool = try SpoolHarness()
        try #require(mount("tmpfs", spool.path, "tmpfs", 0, "size=128k,mode=0777") == 0)
        defer { umount2(spool.path, Int32(MNT_DETACH)) }
        let large = #expect(throws: SpoolError.self) {
            try put(String(repeating: "x", count: 200_000), in: spool.path)
        }
        #expect(large?.cause?.number == ENOSPC)
        #expect(spool.names().isEmpty)
        #expect(try put("{}", in: spool.path) == spool.names().first)
    }
}
