import EventLoops
import TestKit
import Testing

extension EndToEnd {
    @Suite("The package's unit")
    struct PackagingTests {
        private static let packaging =
            "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/") + "/packaging"
        private static let unit = "\(packaging)/systemd/spoolship.service"

        @Test("systemd finds no fault with it")
        func verifies() throws {
            let directory = try TemporaryDirectory()
            let text = try contents(of: PackagingTests.unit)
            // Where the package is not installed its program is elsewhere; systemd looks whether it is there.
            let parts = text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
                line.hasPrefix("Exec") ? String(line.replacing("/usr/bin/spoolship", with: spoolship)) : String(line)
            }
            try write(parts.joined(separator: "\n"), to: "\(directory.path)/spoolship.service")
            let verdict = try run(
                "systemd-analyze",
                ["verify", "--man=no", "--recursive-errors=no", "\(directory.path)/spoolship.service"])
            #expect(verdict.code == 0 && verdict.text.isEmpty, "\(verdict.text)")
        }

        @Test("it may do little: systemd's score of its exposure is 1.5 at most, and CAP_LEASE is its only capability")
        func exposure() throws {
            let verdict = try run(
                "systemd-analyze", ["security", "--offline=true", "--no-pager", "--threshold=15", PackagingTests.unit])
            let last = verdict.text.split(separator: "\n").last { $0.contains("Overall exposure level") }
            #expect(verdict.code == 0, "\(last ?? "\(verdict.text)")")
            let words = try #require(last).split(separator: " ")
            let score = try #require(words.compactMap { Double($0) }.first)
            #expect(score > 0 && score <= 1.5)
            let granted = verdict.text.split(separator: "\n").filter { $0.hasPrefix("✗") && $0.contains("CAP_") }
            #expect(granted.count == 1 && granted.allSatisfy { $0.contains("CAP_LEASE") }, "\(granted)")
        }

        @Test("what it says and what the program does agree: watchdog, reload, the exit code that no restart mends")
        func promises() throws {
            let lines = Set(try contents(of: PackagingTests.unit).split(separator: "\n").map(String.init))
            for line in [
                "Type=notify", "WatchdogSec=5min", "RestartPreventExitStatus=78", "ExecStart=/usr/bin/spoolship run",
                "ExecReload=/usr/bin/spoolship reload", "AmbientCapabilities=CAP_LEASE",
                "CapabilityBoundingSet=CAP_LEASE", "StateDirectory=spoolship", "RuntimeDirectory=spoolship",
            ] { #expect(lines.contains(line), "\(line)") }
            // It forbids openat2, and with it all reading.
            #expect(!lines.contains { $0.hasPrefix("RestrictSUIDSGID=") })
            let directory = try TemporaryDirectory()
            try write("[dispatch]\ninterval = 10\n", to: "\(directory.path)/spoolship.toml")
            #expect(try run(spoolship, ["run", "--config", "\(directory.path)/spoolship.toml"]).code == 78)
        }
    }
}
