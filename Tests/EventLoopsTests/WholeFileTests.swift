import EventLoops
import Foundation
import Glibc
import Testing

@Suite("Replacing whole files")
struct WholeFileTests {
    private func makeDirectory() throws -> String {
        let url = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)
        return url.path
    }

    private func mode(_ path: String) throws -> Int {
        try #require(FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int)
    }

    @Test("content and mode are new, nothing else is left, and a link is replaced rather than followed")
    func replaces() throws {
        let directory = try makeDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let path = "\(directory)/file"
        try WholeFile.replace(path, with: Array("one".utf8), mode: 0o600)
        #expect(try mode(path) == 0o600)
        let other = "\(directory)/other"
        try Data("mine".utf8).write(to: URL(fileURLWithPath: other))
        // What somebody laid in the way is taken away, whatever it leads to.
        try FileManager.default.createSymbolicLink(atPath: path + ".new", withDestinationPath: other)
        try WholeFile.replace(path, with: Array("two".utf8), mode: 0o644, isForAll: true, isDurable: false)
        #expect(FileManager.default.contents(atPath: path) == Data("two".utf8))
        #expect(FileManager.default.contents(atPath: other) == Data("mine".utf8))
        #expect(try mode(path) == 0o644)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory).sorted() == ["file", "other"])
    }

    @Test("if the write fails, the old file stays and nothing is left")
    func fails() throws {
        let directory = try makeDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let path = "\(directory)/taken"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        #expect(throws: SystemError.self) { try WholeFile.replace(path, with: [1], mode: 0o600) }
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory) == ["taken"])
        #expect(throws: SystemError.self) {
            try WholeFile.replace("\(directory)/none/file", with: [1], mode: 0o600)
        }
    }

    @Test("a directory of a read-only file system is recognised, whatever its mode; no directory is changed")
    func readOnly() throws {
        let directory = try makeDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        #expect(!WholeFile.isReadOnly(directory) && !WholeFile.isReadOnly("\(directory)/none"))
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory).isEmpty)
        try #require(mount("tmpfs", directory, "tmpfs", UInt(MS_RDONLY), nil) == 0)
        defer { umount(directory) }
        #expect(WholeFile.isReadOnly(directory))
    }
}
