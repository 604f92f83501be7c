import Glibc
import TestKit
import Testing

extension EndToEnd {
    @Suite("Alerts of the machine and its journal, live")
    struct LiveMachineAlertTests {
        @Test("an alert fires for a file system that runs full", .enabled(if: getuid() == 0))
        func fullSoon() throws {
            let bench = try Workbench()
            let mounted = try run("mount", ["-t", "tmpfs", "-o", "size=32m", "tmpfs", bench.spool])
            try #require(mounted.code == 0, "\(mounted)")
            defer {
                bench.killAgent()
                _ = try? run("umount", [bench.spool])
            }
            try bench.startReceiver()
            try bench.startAgent()
            let prometheus = try LivePrometheus(bench)
            try prometheus.expect(fires: "SpoolshipDiskFullSoon")
            _ = try run("dd", ["if=/dev/zero", "of=\(bench.spool)/other.bin", "bs=1M"])
            let page = try fetch("http://127.0.0.1:\(bench.statsPort)/readyz")
            #expect(page.status == 503 && page.body.contains("the spool: its disk is full"), "\(page)")
            #expect(try run("mount", ["-o", "remount,size=256m", bench.spool]).code == 0)
            // The state directory's file system is the machine's, which may be busy with other tests.
            try prometheus.expect(resolves: "SpoolshipDiskFullSoon")
        }

        @Test("an alert fires for a clock that is not synchronised")
        func clock() throws {
            let bench = try Workbench()
            let library = try bench.clockLibrary()
            try bench.startReceiver()
            try bench.startAgent(environment: ["LD_PRELOAD=\(library)", "CLOCK_UNSYNCHRONISED=1"])
            let prometheus = try LivePrometheus(bench)
            try prometheus.expect(fires: "SpoolshipClockUnsynchronised")
            #expect(try bench.stopAgent() == 0)
            try bench.startAgent(environment: ["LD_PRELOAD=\(library)"])
            try prometheus.expect(resolves: "SpoolshipClockUnsynchronised")
        }

        @Test("an alert fires for a certificate that became garbage, and resolves when it is repaired")
        func restartWouldFail() throws {
            let bench = try Workbench()
            try bench.startReceiver()
            let copy = "\(bench.path)/authority.pem"
            let good = try contents(of: bench.caFile)
            try write(good, to: copy)
            bench.settings["destination.tls.ca_file"] = "\"\(copy)\""
            try bench.startAgent()
            let prometheus = try LivePrometheus(bench)
            try write("garbage", to: copy)
            try prometheus.expect(fires: "SpoolshipRestartWouldFail")
            try write(good, to: copy)
            try prometheus.expect(resolves: "SpoolshipRestartWouldFail")
        }

        @Test("alerts fire for a missing journal, and for entries that were removed before they were read")
        func journal() throws {
            let daemon = try JournalDaemon()
            let bench = try Workbench()
            bench.settings["apps.system.journal"] = "true"
            bench.settings["apps.system.journal_since"] = "\"beginning\""
            bench.settings["apps.system.journal_directory"] = "\"\(bench.path)/nowhere\""
            try bench.startReceiver()
            try bench.startAgent()
            let prometheus = try LivePrometheus(bench)
            try prometheus.expect(fires: "SpoolshipJournalNotRead")
            #expect(try bench.stopAgent() == 0)

            bench.settings["apps.system.journal_directory"] = "\"\(daemon.directory)\""
            try daemon.write(["one"])
            try bench.startAgent()
            try prometheus.expect(resolves: "SpoolshipJournalNotRead")
            try wait(.seconds(60), "the first entry") { try contents(of: bench.events).contains("\"one\"") }
            // The counter has to be seen at zero first.
            _ = try prometheus.samples(of: "spoolship_journal_gaps_total")
            bench.agent?.send(SIGSTOP)
            try daemon.write(["two", "three"])
            try daemon.ask("--rotate")
            try daemon.write(["four"])
            try daemon.ask("--vacuum-files=1")
            bench.agent?.send(SIGCONT)
            try prometheus.expect(fires: "SpoolshipJournalGap")
            try prometheus.expect(resolves: "SpoolshipJournalGap")
        }
    }
}
