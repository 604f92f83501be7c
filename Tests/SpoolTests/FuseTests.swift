import Glibc
import Model
import Spool
import TestKit
import Testing

/// A file system without handles, without notice of changes, and without a rename that does not replace.
@Suite(
    "On FUSE", .enabled(if: access("/dev/fuse", R_OK | W_OK) == 0 && getuid() == 0), .timeLimit(.minutes(5)))
struct FuseTests {
    private static let archives: [SpoolOptions.AfterRead] = [
        .delete, .archive(directory: ".archive", retention: nil),
    ]

    @Test("on FUSE drop files are read once and then removed", arguments: archives)
    func drops(afterRead: SpoolOptions.AfterRead) async throws {
        let (source, mount) = (try TemporaryDirectory(), try TemporaryDirectory())
        let (code, output) = try runShell("bindfs '\(source.path)' '\(mount.path)'")
        #expect(code == 0, "\(output)")
        defer { _ = try? runShell("umount -l '\(mount.path)'") }
        let spool = try SpoolHarness(in: mount.path)
        spool.makeDirectory("app")
        spool.write("1\n", to: "app/x.log")
        spool.write("2\n", to: "app/y.log.1")
        func drop(_ number: Int) {
            spool.write("{\"n\":\(number)}", to: "app/.new")
            spool.rename("app/.new", to: "app/\(number).json")
        }
        drop(3)
        var reader = try await spool.start { $0.afterRead = afterRead }
        drop(4)
        spool.rename("app/x.log", to: "app/x.log.1")
        spool.write("5\n", to: "app/x.log")
        let lines = ["1", "2", "5", "{\"n\":3}", "{\"n\":4}"]
        await spool.untilLines(lines)
        await spool.until("all goes but what is current") {
            spool.names(in: "app").allSatisfy { $0 == "x.log" }
        }
        await reader.stop()
        reader = try await spool.start { $0.afterRead = afterRead }
        drop(6)
        await spool.untilLines(lines + ["{\"n\":6}"])
        await spool.until("it goes, too") { spool.names(in: "app").allSatisfy { $0 == "x.log" } }
        #expect(reader.figures.errors == 0 && reader.figures.secondTries.isEmpty)
        await reader.stop()
    }
}
