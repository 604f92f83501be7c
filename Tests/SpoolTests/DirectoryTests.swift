import Glibc
import Spool
import TestKit
import Testing

/// App directories that get another's name, in one step: the reader goes by what a directory is, not by what it is called.
@Suite("Replaced directories", .timeLimit(.minutes(5)))
struct DirectoryTests {
    private func start(_ spool: SpoolHarness, isWatching: Bool) async throws -> SpoolReader {
        try await spool.start { $0.isWatching = isWatching }
    }

    @Test(
        "a directory that is moved over an app's empty one is read",
        arguments: [true, false], ["new", ".new", "deep/new"])
    func movedOver(isWatching: Bool, name: String) async throws {
        let spool = try SpoolHarness()
        for name in ["shop", "deep"] { spool.makeDirectory(name) }
        spool.write("{\"n\":0}", to: "shop/.first")
        let reader = try await start(spool, isWatching: isWatching)
        spool.rename("shop/.first", to: "shop/first.json")
        // A drop file is gone once it is read: the directory is empty again.
        await spool.until("the drop file is removed") {
            spool.names(in: "shop").isEmpty && spool.queue.lines.count == 1
        }
        spool.makeDirectory(name)
        spool.write("{\"n\":1}\n", to: "\(name)/x.jsonl")
        spool.rename(name, to: "shop")
        await spool.untilLines(["{\"n\":0}", "{\"n\":1}"])
        spool.append("{\"n\":2}\n", to: "shop/x.jsonl")
        spool.write("{\"n\":3}", to: "shop/y.json")
        await spool.untilLines((0...3).map { "{\"n\":\($0)}" })
        #expect(spool.queue.with { $0.lines.allSatisfy { $0.app == "shop" || name.hasPrefix($0.app) } })
        await reader.stop()
    }

    @Test(
        "two exchanged directories are both read, each as the app of its name",
        arguments: [true, false])
    func exchanged(isWatching: Bool) async throws {
        let spool = try SpoolHarness()
        for name in ["a", "b", "a/old", "a/old/deep"] { spool.makeDirectory(name) }
        spool.write("a 1\n", to: "a/x.jsonl")
        spool.write("b 1\n", to: "b/x.jsonl")
        spool.write("deep 1\n", to: "a/old/deep/x.jsonl")
        let reader = try await start(spool, isWatching: isWatching)
        var expected = ["a 1", "b 1", "deep 1"]
        await spool.untilLines(expected)
        for round in 2...5 {
            #expect(FileExchange.put("\(spool.path)/a", at: "\(spool.path)/b") == .returned)
            // The files went with the directories.
            let (a, b) = round.isMultiple(of: 2) ? ("b", "a") : ("a", "b")
            for (name, text) in [
                ("\(a)/x.jsonl", "a"), ("\(b)/x.jsonl", "b"), ("\(a)/old/deep/x.jsonl", "deep"),
            ] {
                spool.append("\(text) \(round)\n", to: name)
                expected.append("\(text) \(round)")
            }
            for app in ["a", "b"] {
                spool.write("\(app)-\(round)\n", to: "\(app)/new\(round).jsonl")
                expected.append("\(app)-\(round)")
            }
            await spool.untilLines(expected)
        }
        let apps = spool.queue.with {
            $0.lines.filter { $0.text.dropFirst().first == "-" }.map { ($0.app, $0.text) }
        }
        for (app, text) in apps { #expect(text.hasPrefix("\(app)-")) }
        #expect(reader.figures.directories == 5)
        await reader.stop()
    }

    @Test("a directory that is removed and quickly made again is read", arguments: [true, false])
    func removedAndMadeAgain(isWatching: Bool) async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory("shop")
        let reader = try await start(spool, isWatching: isWatching)
        for round in 0..<20 {
            spool.append("\(round)\n", to: "shop/x.jsonl")
            await spool.untilLines((0...round).map { "\($0)" })
            spool.remove("shop/x.jsonl")
            await spool.until("the directory is gone") { rmdir("\(spool.path)/shop") == 0 }
            spool.makeDirectory("shop")
        }
        await reader.stop()
    }
}
