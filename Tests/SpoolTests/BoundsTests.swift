import EventLoops
import Glibc
import Logs
import Model
import Synchronization
@testable import Spool
import TestKit
import Testing

/// What users may make of names, directories, owners and renames: it takes a bounded part of the reader's memory, and none of another
/// user's events or complaints.
@Suite("Bounds of tables", .enabled(if: getuid() == 0), .timeLimit(.minutes(5)))
struct BoundsTests {
    private func drop(_ number: Int, of owner: UInt32, in spool: SpoolHarness, mode: UInt32 = 0o644) {
        let hidden = "\(spool.path)/incoming/.\(owner).\(number)"
        spool.write("{\"n\":\(number)}", to: "incoming/.\(owner).\(number)")
        #expect(chown(hidden, owner, owner) == 0 && chmod(hidden, mode) == 0)
        spool.rename("incoming/.\(owner).\(number)", to: "incoming/\(owner).\(number).json")
    }

    @Test(
        "the drop box is flat: a directory in it is reported once, and neither listed nor watched",
        arguments: [true, false])
    func flatBox(isWatching: Bool) async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory("incoming")
        func nest(_ number: Int) {
            spool.makeDirectory("incoming/d\(number)")
            spool.write("{\"n\":\(number)}", to: "incoming/d\(number)/x.json")
        }
        for number in 0..<50 { nest(number) }
        let reader = try await spool.start { $0.isWatching = isWatching }
        for number in 50..<100 { nest(number) }
        drop(1000, of: 1001, in: spool)
        await spool.untilLines(["{\"n\":1000}"])
        await spool.until("it is told") { reader.figures.complaints.count == 1 }
        #expect(reader.figures.directories == 2 && reader.figures.inaccessible == 1)
        #expect(spool.log.messages.count { $0.text == "cannot access" } == 1)
        for number in 0..<100 {
            spool.remove("incoming/d\(number)/x.json")
            rmdir("\(spool.path)/incoming/d\(number)")
        }
        await spool.until("all is well") { reader.figures.inaccessible == 0 }
        await reader.stop()
    }

    @Test("lost+found is not the directory of an app")
    func lostAndFound() async throws {
        let spool = try SpoolHarness()
        chmod(spool.path, 0o777)
        spool.loop.post { #expect(ThreadRights.giveUp()) }
        mkdir("\(spool.path)/lost+found", 0o700)
        let reader = try await spool.start()
        spool.write("1\n", to: "x.jsonl")
        chmod("\(spool.path)/x.jsonl", 0o666)
        await spool.untilLines(["1"])
        #expect(reader.figures.inaccessible == 0 && reader.figures.secondTries.isEmpty)
        #expect(reader.figures.directories == 1 && reader.figures.polledDirectories == 0)
        await reader.stop()
    }

    @Test("empty append files are not remembered beyond the descriptors, and are read when they grow")
    func emptyFiles() async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory("app")
        let names = (0..<2000).map { "app/x\($0).jsonl" }
        for name in names[..<1000] { spool.write("", to: name) }
        let reader = try await spool.start { $0.maxOpenFiles = 20 }
        for name in names[1000...] { spool.write("", to: name) }
        spool.write("1\n", to: "app/last.jsonl")
        await spool.untilLines(["1"])
        #expect(await reader.knownFiles <= 21)
        for (number, name) in names.enumerated() { spool.append("\(number)\n", to: name) }
        await spool.untilLines(["1"] + names.indices.map { "\($0)" })
        await reader.stop()
    }

    @Test(
        "append files beyond the bound are reported, and read when there is room; other apps and owners have room"
    )
    func appendFiles() async throws {
        let spool = try SpoolHarness(in: "/dev/shm")
        for path in ["many", "other", "incoming"] { spool.makeDirectory(path) }
        let (most, factor) = (100, 100)
        var peak = 0
        let reader = try await spool.start {
            $0.mostAppendFiles = most
            ($0.settleTime, $0.giveUpTime, $0.graceTime) = (
                .milliseconds(20), .milliseconds(40), .milliseconds(10)
            )
        }
        for number in 0..<(most * factor) {
            spool.write("\(number)\n", to: "many/\(number).jsonl")
            peak = max(peak, reader.figures.appendFiles)
        }
        await spool.until("it is reported") { reader.figures.complaints.map(\.path) == ["many/*.jsonl"] }
        #expect(reader.figures.crowdedDirectories == 1)
        spool.write("other\n", to: "other/x.jsonl")
        for (number, owner) in [UInt32(1001), 1002].enumerated() {
            spool.write("box \(number)\n", to: "incoming/.new")
            #expect(chown("\(spool.path)/incoming/.new", owner, owner) == 0)
            spool.rename("incoming/.new", to: "incoming/\(number).jsonl")
        }
        await spool.until("the others are read") {
            let others = spool.queue.lines.filter { $0.hasPrefix("o") || $0.hasPrefix("b") }
            return others.count == 3
        }
        #expect(spool.queue.lines.count < most * factor)
        await spool.until("all are read") {
            peak = max(peak, reader.figures.appendFiles)
            return spool.queue.lines.count == most * factor + 3
        }
        #expect(Set(spool.queue.lines).count == most * factor + 3)
        #expect(peak <= most + 16, "\(peak) were known at a time")
        await spool.until("all have gone") {
            reader.figures.appendFiles == 0 && reader.figures.crowdedDirectories == 0
        }
        #expect(reader.figures.complaints.isEmpty)
        #expect(spool.log.messages.count { $0.text == "cannot access" } < 10)
        await reader.stop()
    }

    @Test("if files stay, those beyond the bound are read when others are removed")
    func appendFilesThatStay() async throws {
        let spool = try SpoolHarness(in: "/dev/shm")
        spool.makeDirectory("many")
        let reader = try await spool.start {
            $0.afterRead = .keep
            $0.mostAppendFiles = 10
        }
        for number in 0..<400 { spool.write("\(number)\n", to: "many/\(number).jsonl") }
        await spool.until("as many as may be are read") {
            spool.queue.lines.count >= 40 && reader.figures.crowdedDirectories == 1
        }
        #expect(reader.figures.appendFiles <= 44)
        while spool.queue.lines.count < 400 {
            for line in spool.queue.lines { spool.remove("many/\(line).jsonl") }
            await spool.pause(.milliseconds(20))
        }
        #expect(Set(spool.queue.lines).count == 400)
        await reader.stop()
    }

    @Test("a directory that is renamed repeatedly, with unreadable ones in it, leaves nothing behind")
    func renamedDirectories() async throws {
        let spool = try SpoolHarness()
        chmod(spool.path, 0o777)
        spool.loop.post { #expect(ThreadRights.giveUp()) }
        spool.makeDirectory("app")
        spool.makeDirectory("app/a")
        for number in 0..<10 { mkdir("\(spool.path)/app/a/d\(number)", 0o700) }
        for path in ["app", "app/a"] { chmod("\(spool.path)/\(path)", 0o777) }
        let reader = try await spool.start()
        await spool.until("they are told") { reader.figures.inaccessible >= 10 }
        for round in 0..<400 {
            let names = round % 2 == 0 ? ["app/a", "app/b"] : ["app/b", "app/a"]
            spool.rename(names[0], to: names[1])
            if round % 20 == 0 { await spool.pause(.milliseconds(10)) }
        }
        spool.write("1\n", to: "x.jsonl")
        chmod("\(spool.path)/x.jsonl", 0o666)
        await spool.untilLines(["1"])
        await spool.until("all that was renamed is forgotten") { reader.figures.directories == 13 }
        let held = await reader.heldInAll
        #expect(held.errands < 60 && held.listings <= 13, "\(held)")
        await reader.stop()
    }

    @Test(
        "directories beyond an app's bound are reported, and read when there is room; other apps have their own"
    )
    func directories() async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory("app")
        func make(_ number: Int) {
            spool.makeDirectory("app/d\(number)")
            spool.write("{\"n\":\(number)}", to: "app/.new")
            spool.rename("app/.new", to: "app/d\(number)/x.json")
        }
        for number in 0..<150 { make(number) }
        let reader = try await spool.start { $0.mostDirectories = 4 }
        spool.makeDirectory("other")
        spool.write("{\"n\":1000}", to: "other/.new")
        spool.rename("other/.new", to: "other/x.json")
        for number in 150..<300 { make(number) }
        await spool.until("the other is read") { spool.queue.lines.contains("{\"n\":1000}") }
        await spool.until("it is told") { reader.figures.complaints.map(\.path) == ["app/*"] }
        #expect(reader.figures.directories == 6)
        let told = spool.log.messages.count { $0.text == "cannot access" }
        #expect(told == 1)
        // Whoever makes room has the others read.
        while spool.queue.lines.count < 301 {
            for number in 0..<300 { rmdir("\(spool.path)/app/d\(number)") }
            await spool.pause(.milliseconds(10))
        }
        #expect(Set(spool.queue.lines).count == 301)
        await reader.stop()
    }

    @Test("each owner of drop files has room for some, and those beyond are found again")
    func owners() async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory("incoming")
        let reader = try await spool.start { $0.mostDropsInAll = 40 }
        spool.queue.with { $0.isFull = true }
        for owner in 0..<100 {
            for number in 0..<8 { drop(owner * 100 + number, of: 2000 + UInt32(owner), in: spool) }
        }
        await spool.until("some wait") { reader.figures.waitingDropFiles > 0 }
        #expect(reader.figures.waitingDropFiles <= 500)
        spool.queue.with { $0.isFull = false }
        await spool.until("all arrive") { spool.queue.lines.count == 800 }
        await reader.stop()
        #expect(Set(spool.queue.lines).count == 800)
    }

    @Test("a user with a range of subordinate ids has one share for all of them")
    func subordinateOwners() async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory("incoming")
        let reader = try await spool.start()
        spool.queue.with { $0.isFull = true }
        for number in 0..<3000 { drop(number, of: 100_000 + UInt32(number), in: spool) }
        await spool.until("most wait") { reader.figures.waitingDropFiles > 2000 }
        drop(5000, of: 2000, in: spool)
        spool.makeDirectory("honest")
        spool.write("{\"n\":6000}", to: "honest/.new")
        spool.rename("honest/.new", to: "honest/x.json")
        spool.queue.with { $0.isFull = false }
        await spool.until("all arrive") { spool.queue.lines.count == 3002 }
        await reader.stop()
        let places = ["{\"n\":5000}", "{\"n\":6000}"].compactMap { spool.queue.lines.firstIndex(of: $0) }
        #expect(places.count == 2 && places.allSatisfy { $0 < 2000 })
    }

    @Test("a thousand links of one user hide no refused file of another's, and none is counted twice")
    func refusalsOfAll() async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory("incoming")
        let most = HeldPaths<SpoolRefusal>.most
        for number in 0..<(most + 100) {
            let path = "\(spool.path)/incoming/l\(number).jsonl"
            #expect(symlink("/etc/passwd", path) == 0 && lchown(path, 1001, 1001) == 0)
        }
        // Listed again and again.
        let reader = try await spool.start {
            $0.isWatching = false
            $0.pollInterval = .milliseconds(20)
        }
        await spool.until("there are as many as are told") { reader.figures.refusedFiles == most }
        spool.write("{\"n\":1}", to: "incoming/.new")
        #expect(chown("\(spool.path)/incoming/.new", 1002, 1002) == 0)
        #expect(link("\(spool.path)/incoming/.new", "\(spool.path)/keep") == 0)
        spool.rename("incoming/.new", to: "incoming/1002.1.json")
        await spool.until("the other's is named first") {
            reader.figures.refusedNames.first == "incoming/1002.1.json (hard_link)"
        }
        #expect(reader.figures.refusedFiles == most)
        let commits = reader.figures.bytesRead
        spool.write("{\"n\":7}\n", to: "seven.jsonl")
        await spool.until("it is listed again") { reader.figures.bytesRead > commits }
        #expect(reader.figures.refused == [.symbolicLink: most, .hardLink: 1])
        spool.remove("keep")
        await spool.until("it is read") { spool.queue.lines.count == 2 }
        await spool.until("and no more refused") {
            !reader.figures.refusedNames.contains { $0.contains("1002") }
        }
        await reader.stop()
    }

    @Test("a directory service that does not answer delays only files of its users, and is named")
    func silentDirectoryService() async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory("incoming")
        spool.makeDirectory("honest")
        let answers = Mutex(false)
        let reader = try await spool.startAsking { owner in
            while !answers.withLock({ $0 }) { usleep(10_000) }
            return owner % 2 == 0 ? "late" : "uid-\(owner)"
        }
        for owner in [60_002, 60_003, 100_004, 100_005] as [UInt32] {
            drop(Int(owner), of: owner, in: spool)
            spool.write("{\"n\":-\(owner)}\n", to: "incoming/.\(owner)")
            #expect(chown("\(spool.path)/incoming/.\(owner)", owner, owner) == 0)
            spool.rename("incoming/.\(owner)", to: "incoming/\(owner).jsonl")
        }
        spool.write("{\"n\":1}\n", to: "honest/x.jsonl")
        drop(2, of: 1, in: spool)
        await spool.until("others' arrive") { spool.queue.lines.count == 2 }
        await spool.until("it is named") {
            reader.figures.complaints.contains {
                $0.advice.contains("the name of user 60002 cannot be found out")
            }
        }
        #expect(spool.queue.lines.sorted() == ["{\"n\":1}", "{\"n\":2}"])
        answers.withLock { $0 = true }
        await spool.until("all arrive") { spool.queue.lines.count == 10 }
        await spool.until("all is well") { reader.figures.complaints.isEmpty }
        let apps = Dictionary(grouping: spool.queue.with { $0.lines }, by: \.app).mapValues(\.count)
        #expect(apps == ["honest": 1, "daemon": 1, "late": 4, "uid-60003": 2, "uid-100005": 2])
        await reader.stop()
    }

    @Test(
        "a user whose login name is an app's name does not write as that app, unless it is the app's own user"
    )
    func loginNamesOfApps() async throws {
        let spool = try SpoolHarness()
        for name in ["incoming", "daemon", "bin"] { spool.makeDirectory(name) }
        #expect(chown("\(spool.path)/bin", 2, 2) == 0)
        let reader = try await spool.start { $0.appsElsewhere = ["sys"] }
        for owner in 1...4 as ClosedRange<UInt32> { drop(Int(owner), of: owner, in: spool) }
        await spool.until("all arrive") { spool.queue.lines.count == 4 }
        let apps = Dictionary(uniqueKeysWithValues: spool.queue.with { $0.lines }.map { ($0.text, $0.app) })
        #expect(
            apps == ["{\"n\":1}": "uid-1", "{\"n\":2}": "bin", "{\"n\":3}": "uid-3", "{\"n\":4}": "sync"])
        await spool.until("it is said") { reader.figures.complaints.count == 2 }
        #expect(reader.figures.complaints.first?.advice.contains("of the app uid-1") == true)
        await reader.stop()
    }

    @Test("a thousand complaints of one user do not hide another's")
    func complaintsOfAll() async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory("incoming")
        for path in ["", "/incoming"] { chmod("\(spool.path)\(path)", 0o777) }
        spool.loop.post { #expect(ThreadRights.giveUp()) }
        for number in 0..<(HeldPaths<SpoolComplaint>.most + 100) {
            drop(number, of: 1001, in: spool, mode: 0o600)
        }
        let reader = try await spool.start()
        await spool.until("there are as many as are told") {
            reader.figures.inaccessible == HeldPaths<SpoolComplaint>.most
        }
        drop(5000, of: 1002, in: spool, mode: 0o600)
        await spool.until("the other's is told") { reader.figures.complaints.contains { $0.owner == 1002 } }
        #expect(spool.log.messages.contains { $0.fields.contains { $0.value == "incoming/1002.5000.json" } })
        #expect(reader.figures.inaccessible == HeldPaths<SpoolComplaint>.most)
        // What was not told is read as well when it may be.
        for number in 0..<(HeldPaths<SpoolComplaint>.most + 100) {
            chmod("\(spool.path)/incoming/1001.\(number).json", 0o644)
        }
        chmod("\(spool.path)/incoming/1002.5000.json", 0o644)
        await spool.until("all is read") { spool.queue.lines.count == HeldPaths<SpoolComplaint>.most + 101 }
        await reader.stop()
        #expect(Set(spool.queue.lines).count == HeldPaths<SpoolComplaint>.most + 101)
    }
}

extension SpoolReader {
    fileprivate var knownFiles: Int { lives.streams.files.count }
    fileprivate var heldInAll: (errands: Int, listings: Int) { (schedule.count, tree.listing.count) }
}
