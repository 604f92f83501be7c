import EventLoops
import Glibc
import TestKit
import Testing

extension EndToEnd {
    @Suite("The package's unit")
    struct PackagingTests {
        private static let packaging =
            "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/") + "/packaging"
        private static let unit = "\(packaging)/systemd/spoolship.service"

        @Test("systemd-analyze verify reports no problems")
        func verifies() throws {
            let directory = try TemporaryDirectory()
            let text = try contents(of: PackagingTests.unit)
            // Where the package is not installed its program is elsewhere; systemd looks whether it is there.
            let parts = text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
                line.hasPrefix("Exec")
                    ? String(line.replacing("/usr/bin/spoolship", with: spoolship)) : String(line)
            }
            try write(parts.joined(separator: "\n"), to: "\(directory.path)/spoolship.service")
            let verdict = try run(
                "systemd-analyze",
                ["verify", "--man=no", "--recursive-errors=no", "\(directory.path)/spoolship.service"])
            #expect(verdict.code == 0 && verdict.text.isEmpty, "\(verdict.text)")
        }

        @Test("the unit leaves no core dump, and limits tasks and memory")
        func bounds() throws {
            let lines = try contents(of: PackagingTests.unit).split(separator: "\n")
            #expect(lines.contains("LimitCORE=0"))
            #expect(
                lines.contains { $0.hasPrefix("TasksMax=") } && lines.contains { $0.hasPrefix("MemoryMax=") })
        }

        @Test("installed in a chroot without /proc, the package makes the same user and directories")
        func withoutProc() throws {
            func made(mount: String) throws -> [String] {
                let directory = try TemporaryDirectory()
                let script = """
                    set -e
                    cd "$1"; mkdir tmp; mount -t tmpfs none tmp; cd tmp; mkdir upper work root
                    mount -t overlay overlay -o lowerdir=/,upperdir="$PWD/upper",workdir="$PWD/work" root
                    cp "$2/debian/postinst" root/
                    cp "$2/systemd/spoolship.sysusers" root/usr/lib/sysusers.d/spoolship.conf
                    cp "$2/systemd/spoolship.tmpfiles" root/usr/lib/tmpfiles.d/spoolship.conf
                    \(mount)
                    PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot root sh -c 'sh /postinst configure && getent passwd spoolship &&
                        cd /var/spool/spoolship && stat -c "%A %U:%G %n" . incoming .spoolship /var/lib/spoolship &&
                        getfacl -cp incoming'
                    """
                let run = try run(
                    "unshare", ["-m", "bash", "-c", script, "bash", directory.path, PackagingTests.packaging])
                #expect(run.code == 0, "\(run.text)")
                return run.text.split(separator: "\n").map(String.init).filter { !$0.contains("systemd") }
            }
            let usual = try made(mount: "mount -t proc proc root/proc")
            #expect(try made(mount: "test ! -e root/proc/self").suffix(usual.count) == usual[...])
            #expect(
                usual.contains("drwx-ws-wt spoolship:spoolship incoming")
                    && usual.contains("default:other::---"))
        }

        @Test("every link in the packaged documents leads to a packaged file")
        func links() throws {
            let directory = try TemporaryDirectory()
            let root = PackagingTests.packaging.replacing("/packaging", with: "")
            let made = try run("\(root)/scripts/package-docs", [directory.path])
            try #require(made.code == 0, "\(made)")
            let script = """
                import os, re, sys
                count = 0
                for place, _, names in os.walk(sys.argv[1]):
                    for name in (n for n in names if n.endswith(".md")):
                        for link in re.findall(r"\\]\\(([^)#\\s]+)", open(os.path.join(place, name)).read()):
                            count += 1
                            # Absolute ones are of the package's other files; three are made by scripts/deb.
                            if link.startswith(("http", "/")) or link.rstrip("/") in ("changelog.gz", "copyright", "monitoring"):
                                continue
                            if not os.path.exists(os.path.join(place, link)):
                                print(os.path.join(place, name), link)
                print(count > 30)
                """
            let found = try run("python3", ["-c", script, directory.path])
            #expect(found.code == 0 && found.text == "True\n", "\(found.text)")
            #expect(access("\(directory.path)/README.md", F_OK) == 0)
        }

        @Test("systemd's exposure score is 1.6 at most, and CAP_LEASE is the only capability")
        func exposure() throws {
            let verdict = try run(
                "systemd-analyze",
                ["security", "--offline=true", "--no-pager", "--threshold=16", PackagingTests.unit])
            let last = verdict.text.split(separator: "\n").last { $0.contains("Overall exposure level") }
            #expect(verdict.code == 0, "\(last ?? "\(verdict.text)")")
            let words = try #require(last).split(separator: " ")
            let score = try #require(words.compactMap { Double($0) }.first)
            #expect(score > 0 && score <= 1.6)
            let granted = verdict.text.split(separator: "\n").filter {
                $0.hasPrefix("✗") && $0.contains("CAP_")
            }
            #expect(granted.count == 1 && granted.allSatisfy { $0.contains("CAP_LEASE") }, "\(granted)")
        }

        @Test("unit and program agree on watchdog, reload, and the exit code without a restart")
        func promises() throws {
            let lines = Set(try contents(of: PackagingTests.unit).split(separator: "\n").map(String.init))
            for line in [
                "Type=notify", "WatchdogSec=5min", "RestartPreventExitStatus=78",
                "ExecStart=/usr/bin/spoolship run",
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
