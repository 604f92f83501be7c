import EventLoops
import Frames
import Glibc
import Model
@testable import Spool
import TestKit
import Testing

@Suite("Erasure from the archive")
struct ArchiveErasureTests {
    private let directory: TemporaryDirectory
    private var archive: String { "\(directory.path)/archive" }

    init() throws {
        directory = try TemporaryDirectory()
        for path in ["archive", "archive/2026-11-20", "archive/2026-11-20/shop", "archive/2026-11-20/web"] {
            mkdir("\(directory.path)/\(path)", 0o750)
        }
    }

    private func path(_ name: String, of app: String = "shop") -> String {
        "\(archive)/2026-11-20/\(app)/\(name)"
    }

    private func write(_ text: String, as path: String, _ compression: Compression = .none) throws {
        let compressor = try FrameCompressor(compression)
        let bytes = try Array(text.utf8).withUnsafeBytes { try compressor.compress($0) }
        try WholeFile.create(path, with: bytes)
    }

    /// The lines of a file, unpacked and split.
    private func lines(_ path: String) throws -> String {
        let file = try BackfillFile(path: path, maxEventSize: 1000)
        var text = ""
        while let piece = try file.next(atMost: 100) { text += String(decoding: piece.bytes, as: UTF8.self) }
        return text
    }

    private func erase(isTrial: Bool = false) -> ErasedFiles {
        ArchiveErasure(archive, maxEventSize: 1000, isTrial: isTrial) {
            { line, app in app == "shop" && String(decoding: line, as: UTF8.self).contains("4711") }
        }.run()
    }

    @Test("lines go from files of every kind; other lines, other apps and other directories stay")
    func kinds() throws {
        let text = "{\"user\":4711}\n{\"user\":17}\nplain text of 4711\n{\"user\":18}"
        let staying = "{\"user\":17}\n{\"user\":18}\n"
        try write(text, as: path("app.jsonl.1"))
        try write(text, as: path("app.jsonl.gz"), .gzip)
        try write(text, as: path("app.jsonl.zst"), .zstd)
        try write("[{\"user\":4711,\n \"a\":1}, {\"user\":17},\n{\"user\":18}]", as: path("drop.json"))
        try write("{\"user\":4711}", as: path("only.json"))
        try write(text, as: path("app.jsonl", of: "web"))
        try write(text, as: "\(archive)/notes")
        let trial = erase(isTrial: true)
        #expect(trial.events == 8 && trial.files == 5 && trial.failures == 0)
        #expect(try lines(path("app.jsonl.gz")) == text + "\n")
        #expect(erase() == trial)
        for name in ["app.jsonl.1", "app.jsonl.gz", "app.jsonl.zst", "drop.json"] {
            #expect(try lines(path(name)) == staying, "\(name)")
        }
        #expect(FileStatus(path("only.json")) == nil)
        #expect(try lines(path("app.jsonl", of: "web")) == text + "\n")
        #expect(FileStatus("\(archive)/notes")?.size == Int64(text.utf8.count))
        #expect(erase() == ErasedFiles())
        #expect(try WholeFile.names(in: "\(archive)/2026-11-20/shop").count == 4)
    }

    @Test("a large file is replaced in pieces, in its order")
    func large() throws {
        var (text, staying) = ("", "")
        for number in 0..<40_000 {
            let line =
                "{\"number\":\(number),\"user\":\(number % 3 == 0 ? 4711 : 17),\"pad\":\"0123456789\"}\n"
            text += line
            if !line.contains("4711") {
                staying += line
            }
        }
        try write(text, as: path("app.jsonl.gz"), .gzip)
        _ = erase()
        #expect(try lines(path("app.jsonl.gz")) == staying)
    }

    @Test("a file that cannot be read to its end is named, and stays as it is")
    func damaged() throws {
        let long = String(repeating: "x", count: 2000)
        let text = "{\"user\":4711}\n\(long)\n{\"user\":17}\n"
        try write(text, as: path("long.jsonl"))
        try write("no gzip at all", as: path("broken.jsonl.gz"))
        let erased = erase()
        #expect(erased.events == 0 && erased.failures == 2)
        #expect(
            erased.failed.map { $0.prefix { $0 != ":" } } == [
                path("broken.jsonl.gz")[...], path("long.jsonl")[...],
            ])
        #expect(FileStatus(path("long.jsonl"))?.size == Int64(text.utf8.count))
    }

    @Test("no link is followed, and what a crash has left is removed")
    func links() throws {
        let outside = "\(directory.path)/outside"
        try write("{\"user\":4711}\n", as: outside)
        symlink(outside, path("link.jsonl"))
        mkdir("\(directory.path)/folder", 0o750)
        try write("{\"user\":4711}\n", as: "\(directory.path)/folder/a.jsonl")
        symlink("\(directory.path)/folder", "\(archive)/2026-11-20/linked")
        try write("{\"user\":4711}\n", as: path(".erase.new"))
        _ = erase(isTrial: true)
        #expect(FileStatus(path(".erase.new")) != nil)
        #expect(erase().events == 0)
        #expect(FileStatus(path(".erase.new")) == nil)
        #expect(FileStatus(outside)?.size == 14)
        #expect(FileStatus("\(directory.path)/folder/a.jsonl")?.size == 14)
    }

    @Test("without an archive nothing is found")
    func missing() {
        let none = ArchiveErasure("\(archive)/none", maxEventSize: 1000, isTrial: false) { { _, _ in true } }
        #expect(none.run() == ErasedFiles())
    }
}
