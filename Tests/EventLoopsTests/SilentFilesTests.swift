import Testing

@testable import EventLoops

@Suite("File systems that do not answer")
struct SilentFilesTests {
    @Test("a mount point is read as it is, also with blanks, backslashes and other letters in it")
    func mountPoints() {
        let table = #"""
            22 1 0:20 / / rw - ext4 /dev/vda rw
            23 22 0:21 / /mnt/two\040words\011and\134more rw,nosuid shared:1 - nfs server:/a rw
            24 22 0:22 / /mnt/ü\04 rw - nfs server:/b rw
            broken
            """#
        #expect(
            SilentFiles.mountPoints(in: Array(table.utf8)) == [
                "/", "/mnt/two words\tand\\more", "/mnt/ü\\04",
            ])
    }
}
