import Glibc
import TestKit
import Testing

extension EndToEnd {
    /// `scripts/kill-sweep` in its short form; CONTRIBUTING.md names the long one.
    @Suite("Kills at system calls")
    struct KillSweepTests {
        @Test("killed at a read, write, rename or unlink: each event arrives once, and the spool is empty")
        func killedAtACall() throws {
            let directory = try TemporaryDirectory()
            let seed = Seeds.one(1)
            let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
            let calls =
                "openat2,openat,pread64,pwrite64,write,fsync,fdatasync,renameat2,unlinkat,unlink,ftruncate,close"
            let result = try run(
                "/\(root)/scripts/kill-sweep",
                [
                    "--binary", spoolship, "--directory", directory.path, "--seed", "\(seed)", "--points",
                    "12",
                    "--calls",
                    calls,
                ], within: .seconds(400))
            print(result.text)
            #expect(result.code == 0, "seed \(seed): \(result.text)")
        }
    }
}
