import EventLoops
import Glibc
import Logs
import Model
import TestKit
import Testing

@testable import Spool

/// The way to the directory of files that are read where they lie: others' links and mounts on it.
@Suite(
    "The path of a place", .enabled(if: getuid() == 0, "giving files away takes root"),
    .timeLimit(.minutes(5)))
struct PlacePathTests {
    private static let (ann, bob): (uid_t, uid_t) = (23_002, 23_003)

    private func place(_ pattern: String, app: String = "ann") throws -> ReadPlace {
        try #require(ReadPlace.of(app: app, [pattern])?.first)
    }

    /// A reader of a place in the harness's directory.
    private func start(
        _ spool: SpoolHarness, _ place: ReadPlace, own: [String] = [], beside others: [ReadPlace] = []
    ) async throws -> SpoolReader {
        try await spool.start {
            ($0.place, $0.directory, $0.afterRead) = (place, place.root, .keep)
            ($0.own, $0.pathInterval) = (own, .milliseconds(50))
            $0.places = Dictionary(uniqueKeysWithValues: ([place] + others).map { ($0, $0.resolved) })
        }
    }

    private func make(_ spool: SpoolHarness, _ name: String, owner: uid_t) {
        spool.makeDirectory(name)
        chown("\(spool.path)/\(name)", owner, owner)
    }

    private func link(_ spool: SpoolHarness, _ name: String, to target: String, owner: uid_t) {
        unlink("\(spool.path)/\(name)")
        #expect(
            symlink(target, "\(spool.path)/\(name)") == 0
                && lchown("\(spool.path)/\(name)", owner, owner) == 0)
    }

    @Test("a link is followed if it is root's, or if its user owns what it leads to; every link counts")
    func owners() throws {
        let spool = try SpoolHarness()
        for (name, owner) in [
            ("root", 0), ("ann", Self.ann), ("ann/log", Self.ann), ("bob", Self.bob), ("bob/log", Self.bob),
        ] {
            make(spool, name, owner: owner)
        }
        for (name, target, owner) in [
            ("by-root", "\(spool.path)/bob", 0), ("ann/own", "../ann/./log", Self.ann),
            ("ann/root", "../root", Self.ann),
            ("ann/bob", "\(spool.path)/bob/log", Self.ann), ("ann/by-root", "../by-root/log", Self.ann),
            ("to-ann", "ann/own", 0), ("through-ann", "ann/bob", 0), ("circle", "circle", 0),
            // Moved there by ann, or on a disk of hers.
            ("ann/as-root", "../root", 0), ("ann/as-bob", "../bob/log", Self.bob),
            ("ann/root-to-own", "log", 0),
            ("ann/nothing", "../nothing", Self.ann),
        ] { link(spool, name, to: target, owner: owner) }
        for (path, refused) in [
            ("root", nil), ("ann/log", nil), ("by-root/log", nil), ("ann/own", nil), ("ann/root", "ann/root"),
            ("ann/bob", "ann/bob"), ("ann/by-root", "ann/by-root"), ("to-ann", nil),
            ("through-ann", "ann/bob"),
            ("ann/as-root", "ann/as-root"), ("ann/as-bob", "ann/as-bob"), ("ann/root-to-own", nil),
            ("circle", nil), ("ann/nothing", nil), ("nothing", nil),
        ] {
            let problem = try place("\(spool.path)/\(path)/*.log").problem
            #expect(
                problem?.contains("the link \(spool.path)/\(refused ?? "-") is not followed")
                    ?? (refused == nil),
                "\(path)")
            #expect((problem == nil) == (refused == nil), "\(path): \(problem ?? "")")
        }
    }

    @Test(
        "a directory whose user replaces it by a link to another's is not read, and reported, until it is back"
    )
    func turned() async throws {
        let spool = try SpoolHarness()
        for name in ["home", "home/log", "home/other"] { make(spool, name, owner: Self.ann) }
        make(spool, "secret", owner: 0)
        spool.write("secret\n", to: "secret/auth.log")
        spool.write("1\n", to: "home/log/a.log")
        let reader = try await start(spool, try place("\(spool.path)/home/log/*.log"))
        await spool.untilLines(["1"])
        spool.rename("home/log", to: "home/log.old")
        link(spool, "home/log", to: "../secret", owner: Self.ann)
        await spool.until("it is refused") { reader.figures.refused[.symbolicLink] == 1 }
        spool.append("secret\n", to: "secret/auth.log")
        await spool.until("it is reported") {
            reader.figures.complaints.contains {
                $0.path == "\(spool.path)/home/log" && $0.owner == Self.ann
                    && $0.advice.contains("is not followed")
            } && reader.figures.root == nil
        }
        // To another one of the user's own, as a release is switched.
        link(spool, "home/log", to: "other", owner: Self.ann)
        spool.write("2\n", to: "home/other/a.log")
        await spool.untilLines(["1", "2"])
        await spool.until("all is well") { reader.figures.complaints.isEmpty && reader.figures.root != nil }
        link(spool, "home/log", to: "../secret", owner: Self.ann)
        await spool.until("that counts again") { reader.figures.refused[.symbolicLink] == 2 }
        spool.remove("home/log")
        spool.rename("home/log.old", to: "home/log")
        spool.append("3\n", to: "home/log/a.log")
        await spool.untilLines(["1", "2", "3"])
        await reader.stop()
    }

    @Test("a link to the agent's own directories, or to another place, is never followed")
    func turnedToWhatIsRead() async throws {
        let spool = try SpoolHarness()
        for name in ["log", "own", "own/ann", "bob", "bob/log"] { make(spool, name, owner: Self.ann) }
        for name in ["own/ann", "bob/log"] { spool.write("another's\n", to: "\(name)/x.log") }
        spool.write("1\n", to: "log/a.log")
        link(spool, "way", to: "log", owner: 0)
        let other = try place("\(spool.path)/bob/*/x.log", app: "bob")
        let reader = try await start(
            spool, try place("\(spool.path)/way/*.log"), own: ["\(spool.path)/own"], beside: [other])
        await spool.untilLines(["1"])
        for (round, (target, words)) in [
            ("own/ann", "reaches into \(spool.path)/own"), ("bob/log", "overlaps that of bob"),
        ].enumerated() {
            link(spool, "way", to: target, owner: round == 0 ? Self.ann : 0)
            await spool.until("it is refused") {
                reader.figures.complaints.contains { $0.advice.contains(words) }
            }
            link(spool, "way", to: "log", owner: 0)
            await spool.until("it is read again") {
                reader.figures.complaints.isEmpty && reader.figures.root != nil
            }
            spool.append("\(round + 2)\n", to: "log/a.log")
            await spool.untilLines((0...(round + 1)).map { "\($0 + 1)" })
        }
        #expect(reader.figures.refused[.symbolicLink] == 2)
        await reader.stop()
    }

    @Test("a directory below a closed one is reported and counted as not allowed, until it is accessible")
    func closedWay() async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory("closed")
        spool.makeDirectory("closed/log")
        spool.write("1\n", to: "closed/log/x.log")
        for (path, mode) in [
            ("", 0o755), ("/closed", 0o700), ("/closed/log", 0o755), ("/closed/log/x.log", 0o644),
        ] {
            chmod(spool.path + path, mode_t(mode))
        }
        spool.loop.post { #expect(ThreadRights.giveUp()) }
        let reader = try await start(spool, place("\(spool.path)/closed/log/*.log"))
        await spool.until("it is reported") {
            reader.figures.complaints.first?.advice
                == "the agent may not enter \(spool.path)/closed (owner root, mode 0700):"
                + " setfacl -m u:spoolship:x \(spool.path)/closed"
        }
        #expect(reader.figures.inaccessible == 1)
        #expect(spool.log.messages.count { $0.text == "cannot access" } == 1)
        chmod("\(spool.path)/closed", 0o755)
        await spool.untilLines(["1"])
        await spool.until("it is not reported any more") { reader.figures.inaccessible == 0 }
        await reader.stop()
    }

    @Test("a user's quota is the user's problem, and a full file system the agent's")
    func obstacles() {
        let quota = SpoolObstacle(SystemError("renameat2", number: EDQUOT))
        let room = SpoolObstacle(SystemError("renameat2", number: ENOSPC))
        #expect(quota == .quota && quota.isOwners && room == .noRoom && !room.isOwners)
    }

    @Test("no advice adds the agent to a group that may read, or become, much more than logs")
    func adviceOfGroups() {
        #expect(Reports.advice(group: "adm").hasPrefix("usermod -aG adm spoolship, or setfacl"))
        for group in ["root", "shadow", "docker"] {
            let advice = Reports.advice(group: group)
            #expect(!advice.contains("usermod") && advice.hasPrefix("setfacl"), "\(advice)")
        }
    }

    @Test(
        "a place that appears late keeps what was read of its files before", arguments: [true, false])
    func late(isThere: Bool) async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory("log")
        spool.write("1\n", to: "log/a.log")
        let place = try place("\(spool.path)/log/*.log")
        try await start(spool, place).stop()
        var reader = try await start(spool, place)
        await spool.untilLines(["1"])
        await reader.stop()
        if !isThere { spool.rename("log", to: "away") }
        reader = try await start(spool, place)
        if !isThere {
            await spool.pause(.milliseconds(200))
            spool.rename("away", to: "log")
        }
        spool.append("2\n", to: "log/a.log")
        await spool.untilLines(["1", "2"])
        await reader.stop()
    }

    @Test(
        "a file system that does not answer, at any level of the path, delays nothing else and is reported",
        .enabled(if: SilentFileSystem.isPossible), arguments: [true, false], ["home/one", "home"])
    func silentRoot(fromTheStart: Bool, over name: String) async throws {
        let spool = try SpoolHarness()
        for name in ["home", "home/one", "two"] { spool.makeDirectory(name) }
        var silent = fromTheStart ? SilentFileSystem(over: "\(spool.path)/\(name)") : nil
        defer { silent?.end() }
        try #require((silent != nil) == fromTheStart)
        let (first, second) = (
            try place("\(spool.path)/home/one/*.log"), try place("\(spool.path)/two/*.log", app: "two")
        )
        let one = try await start(spool, first, beside: [second])
        let two = try await start(spool, second, beside: [first])
        if !fromTheStart {
            spool.write("1\n", to: "home/one/a.log")
            await spool.untilLines(["1"])
            silent = SilentFileSystem(over: "\(spool.path)/\(name)")
            try #require(silent != nil)
        }
        await spool.until("it is reported") {
            one.figures.complaints.contains {
                $0.path == "\(spool.path)/home/one" && $0.advice.contains("does not answer")
            }
        }
        var lines = fromTheStart ? [] : ["1"]
        spool.write("2\n", to: "two/a.log")
        lines.append("2")
        await spool.untilLines(lines)
        // Neither a start nor check asks it anything.
        #expect(first.problem == nil && first.resolved == first && second.resolved == second)
        silent?.end()
        spool.append("3\n", to: "home/one/a.log")
        await spool.untilLines(lines + ["3"])
        await spool.until("all is well") { one.figures.complaints.isEmpty }
        await one.stop()
        await two.stop()
    }

    @Test(
        "directories in a file system that does not answer take one thread, however many they are",
        .enabled(if: SilentFileSystem.isPossible))
    func threads() async throws {
        func count() -> Int {
            let threads = (try? WholeFile.names(in: "/proc/self/task")) ?? []
            return threads.count { thread in
                let name = (try? WholeFile.bytes(of: "/proc/self/task/\(thread)/comm", atMost: 100)) ?? nil
                return name.map { String(decoding: $0, as: UTF8.self) } == "mount\n"
            }
        }
        let spool = try SpoolHarness()
        for name in ["nfs", "two"] { spool.makeDirectory(name) }
        let silent = try #require(SilentFileSystem(over: "\(spool.path)/nfs"))
        defer { silent.end() }
        let before = count()
        var readers: [SpoolReader] = []
        for number in 0..<40 {
            readers.append(
                try await start(spool, try place("\(spool.path)/nfs/\(number)/*.log", app: "app\(number)")))
        }
        spool.write("1\n", to: "two/a.log")
        readers.append(try await start(spool, try place("\(spool.path)/two/*.log", app: "two")))
        await spool.untilLines(["1"])
        await spool.until("all are reported") {
            readers.dropLast().allSatisfy { $0.figures.complaints.count == 1 }
        }
        // Tests beside this one may have some.
        #expect(count() - before < 20)
        silent.end()
        for reader in readers { await reader.stop() }
    }

    @Test(
        "a path through two mounts waits for the second one, and delays no other path through the first",
        .enabled(if: SilentFileSystem.isPossible))
    func twoMounts() async throws {
        let spool = try SpoolHarness()
        for name in ["two", "three"] { spool.makeDirectory(name) }
        // It answers, and is none of this machine's disks.
        for name in ["two", "three"] {
            link(spool, "to-\(name)", to: "/proc/..\(spool.path)/\(name)", owner: 0)
        }
        let silent = try #require(SilentFileSystem(over: "\(spool.path)/two"))
        defer { silent.end() }
        let two = try await start(spool, try place("\(spool.path)/to-two/*.log"))
        await spool.until("it is reported") {
            two.figures.complaints.contains { $0.advice.contains("does not answer") }
        }
        let three = try await start(spool, try place("\(spool.path)/to-three/*.log", app: "three"))
        spool.write("1\n", to: "three/a.log")
        await spool.untilLines(["1"])
        silent.end()
        spool.write("2\n", to: "two/a.log")
        await spool.untilLines(["1", "2"])
        await two.stop()
        await three.stop()
    }

    @Test(
        "a user's own mount on the path is not accessed, but refused and reported until it is gone",
        .enabled(if: SilentFileSystem.isPossible), arguments: ["home/log", "home"])
    func usersMount(over name: String) async throws {
        let spool = try SpoolHarness()
        for name in ["home", "home/log"] { make(spool, name, owner: Self.ann) }
        spool.write("1\n", to: "home/log/a.log")
        let place = try place("\(spool.path)/home/log/*.log")
        let reader = try await start(spool, place)
        await spool.untilLines(["1"])
        let silent = try #require(SilentFileSystem(over: "\(spool.path)/\(name)", user: Self.ann))
        defer { silent.end() }
        let words = "what a user has mounted at \(spool.path)/\(name) is not read"
        await spool.until("it is refused") { reader.figures.refused[.otherFileSystem] == 1 }
        #expect(
            reader.figures.complaints.contains {
                $0.path == "\(spool.path)/home/log" && $0.owner == Self.ann && $0.advice.contains(words)
            })
        #expect(place.problem?.contains(words) == true)
        silent.end()
        spool.append("2\n", to: "home/log/a.log")
        await spool.untilLines(["1", "2"])
        await spool.until("all is well") { reader.figures.complaints.isEmpty && reader.figures.root != nil }
        await reader.stop()
    }
}
