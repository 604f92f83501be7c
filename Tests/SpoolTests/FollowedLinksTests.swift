import EventLoops
import Glibc
import Logs
import Model
import Synchronization
import TestKit
import Testing

@testable import Spool

/// `follow`: links to files below the first wildcard of a pattern, as in Kubernetes' `/var/log/containers`.
@Suite("Links that are followed", .timeLimit(.minutes(5)))
struct FollowedLinksTests {
    /// `containers/NAME.log` leads to `pods/…/0.log`, and that to `docker/…`, all in the test's directory.
    private func start(
        _ spool: SpoolHarness, _ pattern: String = "*.log", following: [String],
        pathInterval: Duration = .milliseconds(100), _ change: (inout SpoolOptions) -> Void = { _ in }
    ) async throws -> SpoolReader {
        let place = try #require(
            ReadPlace.of(
                app: "web", ["\(spool.path)/containers/\(pattern)"],
                following: following.map { "\(spool.path)/\($0)" })?.first)
        return try await spool.start {
            ($0.place, $0.directory, $0.afterRead) = (place, place.root, .keep)
            $0.pathInterval = pathInterval
            change(&$0)
        }
    }

    private func makeDirectories(_ spool: SpoolHarness) {
        for name in ["containers", "pods", "pods/web", "docker", "docker/1", "other"] {
            spool.makeDirectory(name)
        }
    }

    private func link(_ spool: SpoolHarness, _ name: String, to target: String) {
        // Replaced in one step, as `ln -sfn` does.
        #expect(symlink(target, "\(spool.path)/\(name).new") == 0)
        #expect(Glibc.rename("\(spool.path)/\(name).new", "\(spool.path)/\(name)") == 0)
    }

    @Test(
        "a file is read through two links once, under the pattern's path, as it grows and after a restart")
    func twoLinks() async throws {
        let spool = try SpoolHarness()
        makeDirectories(spool)
        spool.write("1\n", to: "docker/1/json.log")
        link(spool, "pods/web/0.log", to: "../../docker/1/json.log")
        link(spool, "containers/web.log", to: "\(spool.path)/pods/web/0.log")
        var reader = try await start(spool, following: ["pods", "docker"], pathInterval: .seconds(3600))
        await spool.untilLines(["1"])
        spool.append("2\n", to: "docker/1/json.log")
        await spool.untilLines(["1", "2"])
        #expect(spool.queue.with { $0.lines.allSatisfy { $0.path == "\(spool.path)/containers/web.log" } })
        await reader.stop()
        spool.append("3\n", to: "docker/1/json.log")
        reader = try await start(spool, following: ["pods", "docker"])
        await spool.untilLines(["1", "2", "3"])
        await spool.pause(.milliseconds(300))
        #expect(spool.queue.lines == ["1", "2", "3"])
        await spool.until("nothing is unread") { reader.figures.unreadBytes == 0 }
        await reader.stop()
    }

    @Test(
        "a link that leads elsewhere, or to a directory, is refused, and the log says so",
        arguments: [[], ["pods"], ["pods", "docker"]])
    func elsewhere(following: [String]) async throws {
        let spool = try SpoolHarness()
        makeDirectories(spool)
        spool.makeDirectory("pods/web/directory.log")
        spool.write("secret\n", to: "other/secret.log")
        spool.write("docker\n", to: "docker/1/json.log")
        spool.write("pod\n", to: "pods/web/0.log")
        // A directory whose name only begins like one that is followed.
        spool.makeDirectory("podsX")
        spool.write("secret\n", to: "podsX/0.log")
        // Chains of eight and of nine links, with the one that the pattern finds.
        for (name, length) in [("eight", 7), ("nine", 8)] {
            spool.write("\(name)\n", to: "pods/web/\(name)-0")
            for number in 1...length {
                link(spool, "pods/web/\(name)-\(number)", to: "\(name)-\(number - 1)")
            }
            link(spool, "containers/\(name).log", to: "../pods/web/\(name)-\(length)")
        }
        link(spool, "pods/web/out.log", to: "../../other/secret.log")
        for (name, target) in [
            ("direct", "../other/secret.log"), ("above", "../pods/../other/secret.log"),
            ("second", "../pods/web/out.log"), ("directory", "../pods/web/directory.log"),
            ("prefix", "\(spool.path)/podsX/0.log"), ("docker", "../docker/1/json.log"),
            ("pod", "../pods/web/0.log"), ("loop", "loop.log"),
        ] { link(spool, "containers/\(name).log", to: target) }
        spool.write("own\n", to: "containers/own.log")
        let reader = try await start(spool, following: following)
        var expected = ["own"]
        if following.contains("pods") { expected += ["pod", "eight"] }
        if following.contains("docker") { expected.append("docker") }
        await spool.untilLines(expected)
        await spool.pause(.milliseconds(300))
        #expect(Set(spool.queue.lines) == Set(expected))
        for name in ["direct", "above", "second", "directory", "prefix"] {
            #expect(
                spool.log.messages.contains {
                    $0.text == "file refused" && $0.fields.contains { $0.value.hasSuffix("/\(name).log") }
                },
                "\(name)")
        }
        await reader.stop()
    }

    @Test("a file that rotation replaces behind the link is read to its end, and then the new one")
    func rotation() async throws {
        let spool = try SpoolHarness()
        makeDirectories(spool)
        spool.write("", to: "pods/web/0.log")
        link(spool, "containers/web.log", to: "../pods/web/0.log")
        let reader = try await start(spool, following: ["pods"], pathInterval: .seconds(3600))
        var expected: [String] = []
        for round in 0..<20 {
            let lines = (0..<10).map { "\(round)-\($0)" }
            spool.append(lines[0] + "\n", to: "pods/web/0.log")
            // A file that was never under the link's name when the reader looked is not the link's.
            await spool.untilLines(expected + lines[..<1])
            spool.append(lines[1..<5].map { $0 + "\n" }.joined(), to: "pods/web/0.log")
            if round % 2 == 0 { await spool.untilLines(expected + lines[..<5]) }
            spool.rename("pods/web/0.log", to: "pods/web/0.log.\(round)")
            // The writer has not noticed yet.
            spool.append(lines[5...].map { $0 + "\n" }.joined(), to: "pods/web/0.log.\(round)")
            spool.write("", to: "pods/web/0.log")
            expected += lines
            await spool.untilLines(expected)
        }
        #expect(spool.queue.lines == expected)
        await reader.stop()
    }

    @Test("links that are turned, or lead to nothing at first, are looked at again; removed ones are let go")
    func turned() async throws {
        let spool = try SpoolHarness()
        makeDirectories(spool)
        link(spool, "containers/web.log", to: "../pods/web/0.log")
        link(spool, "containers/late.log", to: "../pods/late/0.log")
        let reader = try await start(spool, following: ["pods", "docker"]) {
            $0.giveUpTime = .milliseconds(200)
        }
        await spool.pause(.milliseconds(150))
        spool.write("a\n", to: "pods/web/0.log")
        await spool.untilLines(["a"])
        spool.makeDirectory("pods/late")
        spool.write("late\n", to: "pods/late/0.log")
        await spool.untilLines(["a", "late"])
        // The link in the middle, which no event reports.
        spool.write("b\n", to: "docker/1/json.log")
        link(spool, "pods/web/0.log", to: "../../docker/1/json.log")
        await spool.untilLines(["a", "late", "b"])
        spool.write("c\n", to: "pods/web/1.log")
        link(spool, "containers/web.log", to: "../pods/web/1.log")
        await spool.untilLines(["a", "late", "b", "c"])
        spool.remove("containers/web.log")
        spool.remove("pods/web/1.log")
        spool.append("more\n", to: "pods/late/0.log")
        await spool.untilLines(["a", "late", "b", "c", "more"])
        await spool.until("the removed file is let go") { reader.figures.appendFiles == 1 }
        await reader.stop()
    }

    @Test("a link to a directory is followed, through another one, under the path of the pattern")
    func directories() async throws {
        let spool = try SpoolHarness()
        makeDirectories(spool)
        spool.makeDirectory("docker/1/deep")
        spool.write("1\n", to: "docker/1/a.log")
        spool.write("deep\n", to: "docker/1/deep/b.log")
        link(spool, "pods/web/current", to: "../../docker/1")
        link(spool, "containers/web", to: "\(spool.path)/pods/web/current")
        var reader = try await start(spool, "**/*.log", following: ["pods", "docker"])
        await spool.untilLines(["1", "deep"])
        spool.append("2\n", to: "docker/1/a.log")
        spool.write("new\n", to: "docker/1/new.log")
        await spool.untilLines(["1", "deep", "2", "new"])
        spool.rename("docker/1/a.log", to: "docker/1/a.log.1")
        spool.append("3\n", to: "docker/1/a.log.1")
        spool.write("4\n", to: "docker/1/a.log")
        await spool.untilLines(["1", "deep", "2", "new", "3", "4"])
        await reader.stop()
        spool.append("5\n", to: "docker/1/a.log")
        reader = try await start(spool, "**/*.log", following: ["pods", "docker"])
        await spool.untilLines(["1", "deep", "2", "new", "3", "4", "5"])
        await spool.pause(.milliseconds(300))
        #expect(Set(spool.queue.lines) == ["1", "deep", "2", "new", "3", "4", "5"])
        #expect(spool.queue.lines.count == 7)
        let path = "\(spool.path)/containers/web/"
        #expect(spool.queue.with { $0.lines.allSatisfy { $0.path.hasPrefix(path) } })
        let place = try #require(
            ReadPlace.of(
                app: "web", ["\(spool.path)/containers/**/*.log"],
                following: ["\(spool.path)/pods", "\(spool.path)/docker"])?.first)
        #expect(place.files == ["a.log", "a.log.1", "deep/b.log", "new.log"].map { path + $0 })
        await reader.stop()
    }

    @Test("a link in the middle of a link's path is followed, to a file and to a directory")
    func middle() async throws {
        let spool = try SpoolHarness()
        makeDirectories(spool)
        spool.write("1\n", to: "docker/1/json.log")
        spool.makeDirectory("docker/2")
        spool.write("2\n", to: "docker/2/json.log")
        link(spool, "pods/data", to: "../docker")
        link(spool, "containers/file.log", to: "../pods/data/1/json.log")
        link(spool, "containers/directory", to: "../pods/data/2")
        spool.write("secret\n", to: "other/0.log")
        link(spool, "pods/out", to: "../other")
        link(spool, "containers/out.log", to: "../pods/out/0.log")
        let reader = try await start(spool, "**/*.log", following: ["pods", "docker"])
        await spool.untilLines(["1", "2"])
        spool.append("3\n", to: "docker/1/json.log")
        spool.append("4\n", to: "docker/2/json.log")
        await spool.untilLines(["1", "2", "3", "4"])
        await spool.pause(.milliseconds(300))
        #expect(spool.queue.lines.count == 4)
        await reader.stop()
    }

    @Test("links to directories that are turned, come late, or go")
    func turnedDirectories() async throws {
        let spool = try SpoolHarness()
        makeDirectories(spool)
        for name in ["a", "b"] {
            spool.makeDirectory("docker/\(name)")
            spool.write("\(name)\n", to: "docker/\(name)/0.log")
        }
        link(spool, "pods/web/current", to: "../../docker/a")
        link(spool, "containers/web", to: "../pods/web/current")
        link(spool, "containers/late", to: "../docker/late")
        let reader = try await start(spool, "*/*.log", following: ["pods", "docker"])
        await spool.untilLines(["a"])
        // The link in the middle, which no event reports.
        link(spool, "pods/web/current", to: "../../docker/b")
        await spool.untilLines(["a", "b"])
        spool.makeDirectory("docker/late")
        spool.write("late\n", to: "docker/late/0.log")
        await spool.untilLines(["a", "b", "late"])
        spool.remove("containers/late")
        spool.makeDirectory("docker/c")
        spool.write("c\n", to: "docker/c/0.log")
        link(spool, "containers/web", to: "../docker/c")
        await spool.untilLines(["a", "b", "late", "c"])
        // A file that was open stays known, as a deleted one does; a new one is not found any more.
        spool.write("unseen\n", to: "docker/late/1.log")
        spool.append("more\n", to: "docker/c/0.log")
        await spool.untilLines(["a", "b", "late", "c", "more"])
        await spool.pause(.milliseconds(300))
        #expect(!spool.queue.lines.contains("unseen"))
        await reader.stop()
    }

    @Test("a directory is read once by several paths; a link to one above it, or to elsewhere, ends")
    func sameDirectory() async throws {
        let spool = try SpoolHarness()
        makeDirectories(spool)
        spool.makeDirectory("containers/own")
        spool.write("own\n", to: "containers/own/0.log")
        spool.write("pod\n", to: "pods/web/0.log")
        spool.write("secret\n", to: "other/0.log")
        link(spool, "containers/again", to: "own")
        link(spool, "containers/first", to: "../pods")
        link(spool, "containers/second", to: "../pods")
        link(spool, "containers/out", to: "../other")
        link(spool, "pods/web/up", to: "..")
        link(spool, "containers/up", to: ".")
        let reader = try await start(spool, "**/*.log", following: ["pods", "containers"])
        await spool.untilLines(["own", "pod"])
        spool.append("own2\n", to: "containers/own/0.log")
        spool.append("pod2\n", to: "pods/web/0.log")
        await spool.untilLines(["own", "pod", "own2", "pod2"])
        await spool.pause(.milliseconds(500))
        #expect(spool.queue.lines.sorted() == ["own", "own2", "pod", "pod2"])
        #expect(reader.figures.directories == 4)
        await reader.stop()
    }

    @Test("whoever turns links and directories all the time leads the agent nowhere else")
    func races() async throws {
        let spool = try SpoolHarness()
        makeDirectories(spool)
        spool.makeDirectory("pods/a")
        spool.makeDirectory("other/a")
        for name in ["pods/a/0.log", "pods/web/0.log"] { spool.write("good\n", to: name) }
        for name in ["other/a/0.log", "other/secret.log"] { spool.write("secret\n", to: name) }
        link(spool, "containers/web.log", to: "../pods/a/0.log")
        let path = spool.path
        let isOver = Mutex(false)
        let turning = Task.detached {
            var round = 0
            while !isOver.withLock({ $0 }) {
                round += 1
                let target = ["../pods/a/0.log", "../other/a/0.log", "../pods/web/out.log"][round % 3]
                symlink(target, "\(path)/link")
                Glibc.rename("\(path)/link", "\(path)/containers/web.log")
                Glibc.rename("\(path)/pods/a", "\(path)/pods/b")
                symlink("\(path)/other/a", "\(path)/pods/a")
                unlink("\(path)/pods/a")
                Glibc.rename("\(path)/pods/b", "\(path)/pods/a")
                symlink(round % 2 == 0 ? "0.log" : "../../other/secret.log", "\(path)/out")
                Glibc.rename("\(path)/out", "\(path)/pods/web/out.log")
                await Task.yield()
            }
        }
        let reader = try await start(spool, following: ["pods"], pathInterval: .milliseconds(5))
        await spool.until("a good file is read") { spool.queue.lines.contains("good") }
        await spool.pause(.milliseconds(1000))
        isOver.withLock { $0 = true }
        await turning.value
        await reader.stop()
        #expect(!spool.queue.lines.contains("secret"))
    }

    @Test("what links lead to counts as the place's: for the agent's own directories, and for other apps")
    func overlaps() throws {
        func place(_ app: String, _ pattern: String, _ follow: [String] = []) throws -> ReadPlace {
            try #require(ReadPlace.of(app: app, [pattern], following: follow)?.first)
        }
        let links = try place("a", "/l/containers/*.log", ["/l/pods"])
        #expect(links.meets(try place("b", "/l/pods/*/0.log")))
        #expect(try place("b", "/l/pods/*/0.log").meets(links))
        #expect(!links.meets(try place("b", "/l/other/*.log")))
        // Two apps may have links of different names into one directory.
        #expect(!links.meets(try place("b", "/l/others/*.log", ["/l/pods"])))
        #expect(links.reaches(into: "/l/pods/x") && !links.reaches(into: "/l/else"))
        #expect(try place("a", "/l/c/*", ["/l"]).reaches(into: "/l/spool"))
    }

    @Test("links to directories are looked at in rounds; those that are gone are left out")
    func rounds() {
        var links = LinkedDirectories()
        for number in 0..<5 { links.note(FileName("\(number)"), depth: 1) }
        links.note(FileName("0"), depth: 1)
        let first = links.takeToLook(atMost: 3)
        #expect(first.links.count == 3 && first.hasMore)
        for number in 0..<5 { links.forget(FileName("\(number)")) }
        let second = links.takeToLook(atMost: 3)
        #expect(second.links.isEmpty && !second.hasMore && links.isEmpty)
        links.note(FileName("a/link"), depth: 2)
        links.note(FileName("a/b/link"), depth: 3)
        links.forget(in: FileName("a"))
        #expect(links.takeToLook(atMost: 9).links.map(\.path) == [FileName("a/b/link")])
        links.forget(FileName("a/b/link"))
        for number in 0..<(LinkedDirectories.most + 5) { links.note(FileName("\(number)"), depth: 1) }
        #expect(links.takeToLook(atMost: .max).links.count == LinkedDirectories.most)
    }

    @Test("the table of links to directories holds what a set would hold")
    func likeSet() {
        var random = SplitMix64(seed: 51)
        for _ in 0..<100 {
            var links = LinkedDirectories()
            var expected: [FileName: Int] = [:]
            for _ in 0..<80 {
                let directory = ["", "a", "a/b", "c"].randomElement(using: &random) ?? ""
                let name = "\(Int.random(in: 0..<6, using: &random))"
                let path = FileName(directory.isEmpty ? name : "\(directory)/\(name)")
                switch Int.random(in: 0..<6, using: &random) {
                case 0..<3:
                    let depth = Int.random(in: 1...4, using: &random)
                    links.note(path, depth: depth)
                    expected[path] = depth
                case 3..<5:
                    links.forget(path)
                    expected[path] = nil
                default:
                    links.forget(in: FileName(directory))
                    expected = expected.filter { $0.key.parent != FileName(directory) }
                }
                #expect(links.isEmpty == expected.isEmpty)
            }
            // The first call ends a round that may have begun before.
            let found = links.takeToLook(atMost: .max).links
            #expect(Dictionary(uniqueKeysWithValues: found.map { ($0.path, $0.depth) }) == expected)
        }
    }

    private func knowsLinks(_ reader: isolated SpoolReader) -> Bool { !reader.tree.linked.isEmpty }

    @Test("a link to a directory that is gone is forgotten, and one that leads to nothing is not")
    func goneLinks() async throws {
        for isWatching in [true, false] {
            let spool = try SpoolHarness()
            makeDirectories(spool)
            spool.write("1\n", to: "pods/web/0.log")
            link(spool, "containers/web", to: "../pods/web")
            link(spool, "containers/later", to: "../pods/later")
            let reader = try await start(spool, "*/*.log", following: ["pods"]) {
                $0.isWatching = isWatching
                $0.pollInterval = .milliseconds(50)
            }
            await spool.untilLines(["1"])
            #expect(await knowsLinks(reader))
            spool.remove("containers/web")
            await spool.pause(.milliseconds(300))
            // The other link leads to nothing, and is looked at until its directory comes.
            #expect(await knowsLinks(reader))
            spool.makeDirectory("pods/later")
            spool.write("2\n", to: "pods/later/0.log")
            await spool.untilLines(["1", "2"])
            spool.remove("containers/later")
            for _ in 0..<1500 {
                guard await knowsLinks(reader) else { break }
                await spool.pause(.milliseconds(20))
            }
            #expect(await !knowsLinks(reader), "watching: \(isWatching)")
            await reader.stop()
        }
    }

    @Test("the table of links ends a watch with its last link")
    func table() {
        var links = FollowedLinks()
        func link(_ name: String) -> FollowedLinks.Link {
            .init(directory: FileName("d"), name: FileName(name))
        }
        #expect(links.found(link("a"), to: FileName("0"), in: 1) == nil)
        #expect(links.found(link("b"), to: FileName("0"), in: 1) == nil)
        #expect(links.links(to: FileName("0"), in: 1).count == 2 && links.isWatched(1))
        #expect(links.found(link("a"), to: FileName("1"), in: 2) == nil)
        #expect(links.gone(link("b")) == 1 && !links.isWatched(1))
        #expect(links.found(link("a"), to: FileName("2"), in: 2) == nil)
        #expect(links.found(link("a"), to: FileName("2"), in: nil) == 2 && links.isDangling(link("a")))
        #expect(links.found(link("a"), to: FileName("0"), in: 3) == nil && !links.isDangling(link("a")))
        links.ended(3)
        #expect(links.isDangling(link("a")) && !links.isDangling(link("b")))
        #expect(links.gone(in: FileName("d")) == [] && links.isEmpty)
    }
}
