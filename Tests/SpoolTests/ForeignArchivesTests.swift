import EventLoops
import Glibc
import Testing

@testable import Spool

@Suite("Archives that are not read")
struct ForeignArchivesTests {
    private let holder = Holder(top: Array("shop".utf8), owner: nil)

    private func stream(_ stem: String) -> Stream { Stream(holder: holder, stem: FileName(stem)) }

    private func status(modified seconds: Int, isDirectory: Bool = false) -> FileStatus {
        var status = stat()
        status.st_mode = isDirectory ? S_IFDIR : S_IFREG
        status.st_size = 70
        status.st_mtim.tv_sec = seconds
        return FileStatus(status)
    }

    /// The names that are reported of archives with these times, after files were missed.
    private func unread(
        _ times: [String: Int], missed: [(String, Int64)], isDirectory: Bool = false
    ) -> [String] {
        var archives = ForeignArchives()
        for name in times.keys.sorted() {
            let name = FileName(name)
            if let before = name.packedElsewhere { archives.found(name, of: before, in: FileName("shop")) }
        }
        for (stem, modified) in missed { archives.missed([stream(stem)], modified: modified) }
        let found = archives.takeUnread(
            holder: { _, _ in holder },
            status: { times[$0.name.text].map { status(modified: $0, isDirectory: isDirectory) } })
        #expect(archives.takeUnread(holder: { _, _ in holder }, status: { _ in nil }).isEmpty)
        return found.map(\.archive.name.text)
    }

    @Test("one that was written to after all files of its stream were read is reported")
    func later() {
        let times = ["x.log.1.xz": 101, "x.log.2.xz": 100, "x.log-20261130.bz2": 300, "y.log.1.xz": 300]
        #expect(unread(times, missed: [("x.log", 100)]) == ["x.log-20261130.bz2", "x.log.1.xz"])
        // The older of two files that were read does not make the archive of the younger one count.
        #expect(unread(times, missed: [("x.log", 90), ("x.log", 101)]) == ["x.log-20261130.bz2"])
    }

    @Test("without a file that is gone, of what is no file, and of what is no archive nothing is reported")
    func nothing() {
        #expect(unread(["x.log.1.xz": 300], missed: []).isEmpty)
        #expect(unread(["x.log.1.xz": 300], missed: [("z.log", 1)]).isEmpty)
        #expect(unread(["x.log.1.xz": 300], missed: [("x.log", 1)], isDirectory: true).isEmpty)
        #expect(unread(["x.log.1.gz": 300, ".xz": 300, "x.log": 300], missed: [("x.log", 1)]).isEmpty)
    }
}
