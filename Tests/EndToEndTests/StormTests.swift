import Glibc
import TestKit
import Testing

extension EndToEnd {
    /// `scripts/storm` in its short form; CONTRIBUTING.md names the long one.
    @Suite("Storms")
    struct StormTests {
        private func storm(_ arguments: String...) throws {
            let directory = try TemporaryDirectory()
            let seed = Seeds.one(1)
            let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
            let arguments =
                ["--binary", spoolship, "--directory", directory.path, "--seed", "\(seed)"] + arguments
            let result = try run("/\(root)/scripts/storm", arguments, within: .seconds(400))
            print(result.text)
            #expect(result.code == 0, "seed \(seed): \(result.text)")
        }

        @Test("files are rotated many times a second in eleven ways, and the agent is killed: each line once")
        func killedInTheStorm() throws { try storm("--kills", "5") }

        @Test("rotated many times a second without inotify, and the agent killed: each line once")
        func killedInThePolledStorm() throws { try storm("--kills", "3", "--polled") }

        @Test(
            "temporarily failing calls change no file's identity: each line arrives once",
            arguments: [
                "name_to_handle_at:error=ENOMEM:when=7+11", "name_to_handle_at:error=EOPNOTSUPP:when=7+11",
                "name_to_handle_at:error=EOPNOTSUPP", "unlinkat:error=ENOENT:when=3+5",
            ])
        func faultsForAMoment(fault: String) throws {
            let modes = "drop,rename,rename_compress,copytruncate"
            try storm("--kills", "2", "--seconds", "2", "--mode", modes, "--inject", fault)
        }
    }
}
