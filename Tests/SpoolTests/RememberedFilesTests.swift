import EventLoops
import Frames
import Glibc
import Logs
import Model
@testable import Spool
import TestKit
import Testing

/// What is remembered of files that are gone.
@Suite("Remembered files")
struct RememberedFilesTests {
    private func gone(
        _ number: Int, at milliseconds: Int64?, in path: String = "app/x.jsonl", of owner: UInt32? = nil
    ) -> (Checkpoint, FileTrace) {
        var trace = FileTrace()
        trace.owner = owner
        trace.fingerprint = Fingerprint(length: 10, hash: UInt64(number))
        let mark = Mark(offset: Int64(number) + 10, hash: UInt64(number))
        trace.add(mark)
        trace.missingSince = milliseconds
        let key = FileID(
            ofContent: trace.fingerprint, upTo: mark,
            in: Stream(holder: Holder(top: [], owner: nil), stem: FileName("x.jsonl"))
        ).bytes
        return (Checkpoint(key: key, path: path, offset: mark.offset, state: trace.encoded), trace)
    }

    @Test(
        "the file that went last is forgotten last, also if it went before the start had looked for known files",
        arguments: [100, 2040, 2044, 2047, 2048, 3000])
    func whatWentDuringTheFirstListingStays(older count: Int) {
        let now = ManualTime(wall: Timestamp(nanoseconds: 1_000_000_000_000))
        let older = (0..<count).map { gone($0, at: 900_000 + Int64($0)).0 }
        var files = RememberedFiles(older)
        var pass = Pass()
        let last = (0..<5).map { gone(5000 + $0, at: nil) }
        for (checkpoint, trace) in last { files.miss(checkpoint, trace, isAway: false, at: now, in: &pass) }
        for (_, checkpoint, trace) in files.endFirstListing() {
            guard let trace else { continue }
            files.miss(checkpoint, trace, isAway: false, at: now, in: &pass)
        }
        for (checkpoint, _) in last {
            #expect(files.kept[FileID(bytes: checkpoint.key)] != nil)
            #expect(!pass.forgotten.contains(FileID(bytes: checkpoint.key)))
        }
        let most = RememberedFiles.mostMissing
        #expect(files.kept.count == min(count + last.count, most))
        #expect((files.kept[FileID(bytes: older[0].key)] == nil) == (count + last.count > most))
        #expect(files.kept[FileID(bytes: older[count - 1].key)] != nil)
    }

    @Test("the file that went last is forgotten last, also if the clock was set back meanwhile")
    func theOrderOutlivesTheClock() {
        let now = ManualTime(wall: Timestamp(nanoseconds: 1_000_000_000_000))
        let older = (0..<RememberedFiles.mostMissing).map { gone($0, at: 9_000_000 + Int64($0)).0 }
        // Known at the last stop; gone while all was looked for; and gone later.
        let last = (0..<6).map { gone(5000 + $0, at: nil) }
        var files = RememberedFiles(older + last[..<2].map(\.0))
        var pass = Pass()
        for (checkpoint, trace) in last[2..<4] {
            files.miss(checkpoint, trace, isAway: false, at: now, in: &pass)
        }
        for (_, checkpoint, trace) in files.endFirstListing() {
            files.miss(checkpoint, trace, isAway: false, at: now, in: &pass)
        }
        for (checkpoint, trace) in last[4...] {
            files.miss(checkpoint, trace, isAway: false, at: now, in: &pass)
        }
        for (checkpoint, _) in last { #expect(files.kept[FileID(bytes: checkpoint.key)] != nil) }
        #expect(files.kept.count == RememberedFiles.mostMissing)
        for checkpoint in older.prefix(last.count) {
            #expect(files.kept[FileID(bytes: checkpoint.key)] == nil)
        }
        // So it is for the next process, wherever its clock is.
        var next = RememberedFiles(Array(files.kept.values))
        now.step(to: now.wallTime - .seconds(86_400))
        for (_, checkpoint, trace) in next.endFirstListing() {
            next.miss(checkpoint, trace, isAway: false, at: now, in: &pass)
        }
        for number in 0..<3 {
            let (checkpoint, trace) = gone(6000 + number, at: nil)
            next.miss(checkpoint, trace, isAway: false, at: now, in: &pass)
        }
        for (checkpoint, _) in last { #expect(next.kept[FileID(bytes: checkpoint.key)] != nil) }
    }

    @Test("an app whose files come and go in masses does not have another's forgotten")
    func everyAppHasItsShare() {
        let now = ManualTime(wall: Timestamp(nanoseconds: 1_000_000_000_000))
        var files = RememberedFiles([])
        var pass = Pass()
        let quiet = gone(1, at: nil, in: "quiet/x.jsonl")
        files.miss(quiet.0, quiet.1, isAway: false, at: now, in: &pass)
        for number in 0..<(2 * RememberedFiles.mostMissing) {
            let (checkpoint, trace) = gone(100 + number, at: nil, in: "busy/x.jsonl")
            files.miss(checkpoint, trace, isAway: false, at: now, in: &pass)
        }
        #expect(files.kept.count == RememberedFiles.mostMissing)
        #expect(files.kept[FileID(bytes: quiet.0.key)] != nil)
    }

    @Test("who has a range of subordinate ids does not have another's forgotten, a file for each of them")
    func subordinateOwnersAreOne() {
        let now = ManualTime(wall: Timestamp(nanoseconds: 1_000_000_000_000))
        var files = RememberedFiles([])
        var pass = Pass()
        for number in 0..<(2 * RememberedFiles.mostMissing) {
            let (checkpoint, trace) = gone(
                100 + number, at: nil, in: "incoming/x.jsonl", of: 100_000 + UInt32(number))
            files.miss(checkpoint, trace, isAway: false, at: now, in: &pass)
        }
        let quiet = (0..<20).map { gone(10_000 + $0, at: nil, in: "incoming/x.jsonl", of: 1000) }
        for (checkpoint, trace) in quiet { files.miss(checkpoint, trace, isAway: false, at: now, in: &pass) }
        #expect(quiet.allSatisfy { files.kept[FileID(bytes: $0.0.key)] != nil })
        #expect(files.kept.count == RememberedFiles.mostMissing)
    }

    @Test("a drop file that was read in part and is gone keeps its place over starts, for a day")
    func readInPart() throws {
        let now = ManualTime(wall: Timestamp(nanoseconds: 1_000_000_000_000))
        let place = ObjectSplitter.Resumption(offset: 700, state: .afterComma)
        let key = FileID(
            ofContent: Fingerprint(length: 10, hash: 1), upTo: Mark(offset: 10, hash: 1),
            in: Stream(holder: Holder(top: [], owner: nil), stem: FileName("x.json"))
        ).bytes
        var checkpoint = Checkpoint(
            key: key, path: "app/x.json", offset: place.offset, state: place.encoded())
        let id = FileID(bytes: key)
        let first = now.wallTime.milliseconds
        for start in 0..<3 {
            var files = RememberedFiles([checkpoint])
            var pass = Pass()
            for (_, checkpoint, trace) in files.endFirstListing() {
                files.miss(checkpoint, trace, isAway: false, at: now, in: &pass)
            }
            checkpoint = try #require(files.kept[id])
            // Written once: at later starts it is known already.
            #expect((pass.checkpoints[id] == nil) == (start > 0))
            #expect(ObjectSplitter.Resumption(checkpoint) == place)
            #expect(ObjectSplitter.Resumption.missingSince(checkpoint) == first)
            #expect(FileTrace(checkpoint.state) == nil)
            now.advance(by: .seconds(3600))
        }
        var files = RememberedFiles([checkpoint])
        var pass = Pass()
        for (_, checkpoint, trace) in files.endFirstListing() {
            files.miss(checkpoint, trace, isAway: false, at: now, in: &pass)
        }
        now.advance(by: .seconds(100_000))
        let other = gone(2, at: nil)
        files.miss(other.0, other.1, isAway: false, at: now, in: &pass)
        #expect(files.kept[id] == nil && pass.forgotten.contains(id))
    }

    @Test("nothing is forgotten for its number while a copy of it may wait, but that has an end")
    func waitingCopiesKeepWhatIsKnown() {
        let now = ManualTime(wall: Timestamp(nanoseconds: 1_000_000_000_000))
        var files = RememberedFiles([])
        var pass = Pass()
        let first = gone(0, at: nil)
        files.miss(first.0, first.1, isAway: false, at: now, in: &pass)
        var number = 0
        func add(upTo count: Int, _ hasWaiting: Bool) {
            while number < count {
                number += 1
                let (checkpoint, trace) = gone(number, at: nil)
                files.miss(checkpoint, trace, isAway: false, at: now, hasWaiting: hasWaiting, in: &pass)
            }
        }
        add(upTo: RememberedFiles.mostWhileWaiting - 1, true)
        #expect(files.kept[FileID(bytes: first.0.key)] != nil)
        #expect(files.kept.count == RememberedFiles.mostWhileWaiting)
        add(upTo: RememberedFiles.mostWhileWaiting, true)
        #expect(files.kept[FileID(bytes: first.0.key)] == nil)
        #expect(files.kept.count == RememberedFiles.mostWhileWaiting)
        add(upTo: RememberedFiles.mostWhileWaiting + 1, false)
        #expect(files.kept.count == RememberedFiles.mostMissing)
        #expect(pass.forgotten.count == RememberedFiles.mostWhileWaiting + 2 - RememberedFiles.mostMissing)
    }

    @Test("contents are not forgotten because rotation renames archives, however many and often")
    func renamedArchivesForgetNothing() {
        let now = ManualTime(wall: Timestamp(nanoseconds: 1_000_000_000_000))
        var files = RememberedFiles([])
        var pass = Pass()
        // As many contents as are remembered, of six apps.
        for number in 0..<RememberedFiles.mostMissing {
            let (checkpoint, trace) = gone(10_000 + number, at: nil, in: "app\(number % 6)/x.jsonl")
            files.miss(checkpoint, trace, isAway: false, at: now, in: &pass)
        }
        // Archives of one of them that were read and stay, under names that go up with each rotation.
        var archives = (1...300).map { number in
            var (checkpoint, trace) = gone(number, at: nil, in: "app0/x.jsonl")
            trace.doneVersion = UInt64(number)
            checkpoint.state = trace.encoded
            return (checkpoint, trace)
        }
        for (checkpoint, _) in archives { files.keepPresent(checkpoint) }
        var last: [FileID] = []
        for rotation in 1...40 {
            let other = gone(1000 + rotation, at: nil, in: "app0/x.jsonl")
            files.miss(other.0, other.1, isAway: false, at: now, in: &pass)
            last.append(FileID(bytes: other.0.key))
            for index in archives.indices {
                let (checkpoint, trace) = archives[index]
                files.miss(checkpoint, trace, isAway: false, at: now, in: &pass)
                let path = FileName("app0/x.jsonl.\(index + rotation).gz")
                files.found(FileID(bytes: checkpoint.key), at: path, links: 1, in: &pass)
                archives[index].0.path = path.text
            }
            // Their archives may come some rotations later.
            #expect(last.suffix(20).allSatisfy { files.kept[$0] != nil }, "after rotation \(rotation)")
        }
        #expect(files.kept.count == RememberedFiles.mostMissing - 1 + archives.count)
    }

    @Test("a copy is recognised although thousands of other contents came before the reader looked at it")
    func aCopyThatWaitsIsKnown() async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory("app")
        var reader = try await spool.start { $0.afterRead = .keep }
        let lines = (0..<200).map { "{\"number\":\($0)}" }
        let text = lines.map { $0 + "\n" }.joined()
        spool.write(text, to: "app/x.jsonl")
        await spool.untilLines(lines)
        truncate("\(spool.path)/app/x.jsonl", 0)
        let content: UInt8 = 4
        await spool.until("the content is kept") {
            spool.queue.with { $0.checkpoints.keys.contains { $0.first == content } }
        }
        await reader.stop()
        // The agent was killed again and again before it had looked at the copy; meanwhile others were emptied.
        spool.write(text, to: "app/x.jsonl.1")
        let now = SystemTime().wallTime.milliseconds
        spool.queue.with { state in
            for number in 0..<RememberedFiles.mostMissing {
                let other = gone(number, at: now + Int64(number), in: "app/y.jsonl").0
                state.checkpoints[other.key] = other
            }
        }
        reader = try await spool.start { $0.afterRead = .keep }
        await spool.until("the copy is known") {
            spool.log.messages.contains { $0.text == "copy of a file that was read" }
        }
        #expect(spool.queue.lines.count == lines.count)
        await reader.stop()
    }

    /// Lets one file more go, which is when old ones are forgotten; whether the first one is remembered still.
    private func remembers(
        _ first: Checkpoint, in files: inout RememberedFiles, _ time: ManualTime, number: Int, isAway: Bool
    ) -> Bool {
        var pass = Pass()
        let (checkpoint, trace) = gone(number, at: nil)
        files.miss(checkpoint, trace, isAway: isAway, at: time, in: &pass)
        return files.kept[FileID(bytes: first.key)] != nil
    }

    @Test(
        "a clock that is set ahead by days forgets no file that has just gone: its copy may come yet",
        arguments: [false, true])
    func clockSetAhead(isAway: Bool) {
        let time = ManualTime()
        var files = RememberedFiles([])
        let (checkpoint, trace) = gone(1, at: nil)
        var pass = Pass()
        files.miss(checkpoint, trace, isAway: isAway, at: time, in: &pass)
        time.step(to: time.wallTime + .seconds(9 * 86_400))
        #expect(remembers(checkpoint, in: &files, time, number: 2, isAway: isAway))
        time.advance(by: .seconds(86_000))
        #expect(remembers(checkpoint, in: &files, time, number: 3, isAway: isAway))
        time.advance(by: .seconds(500))
        #expect(!remembers(checkpoint, in: &files, time, number: 4, isAway: isAway))
    }

    @Test(
        "a clock that was wrong keeps what went then no longer than a day", arguments: [false, true])
    func clockSetBack(isAway: Bool) {
        let time = ManualTime()
        var files = RememberedFiles([])
        let (checkpoint, trace) = gone(1, at: nil)
        var pass = Pass()
        files.miss(checkpoint, trace, isAway: isAway, at: time, in: &pass)
        time.step(to: time.wallTime - .seconds(30 * 86_400))
        time.advance(by: .seconds(86_000))
        #expect(remembers(checkpoint, in: &files, time, number: 2, isAway: isAway))
        time.advance(by: .seconds(500))
        #expect(!remembers(checkpoint, in: &files, time, number: 3, isAway: isAway))
    }

    @Test(
        "what an earlier process missed days ago is remembered for the next one's first hour, and no longer"
    )
    func afterStart() {
        let time = ManualTime()
        let (checkpoint, trace) = gone(1, at: (time.wallTime - .seconds(9 * 86_400)).milliseconds)
        var files = RememberedFiles([checkpoint])
        var pass = Pass()
        for missed in files.endFirstListing() {
            files.miss(missed.checkpoint, trace, isAway: false, at: time, in: &pass)
        }
        time.advance(by: .seconds(3500))
        #expect(remembers(checkpoint, in: &files, time, number: 2, isAway: false))
        time.advance(by: .seconds(200))
        #expect(!remembers(checkpoint, in: &files, time, number: 3, isAway: false))
    }

    @Test(
        "a file that was not found at the start and is found later does not count as gone"
    )
    func foundAfterTheFirstListing() async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory("app")
        spool.write("{\"event\":1}\n", to: "app/kept.json")
        let key = spool.handle(of: "app/kept.json")
        func missingSince() -> Int64? {
            spool.queue.with { $0.checkpoints[key] }.flatMap { FileTrace($0.state)?.missingSince }
        }
        var reader = try await spool.start { $0.afterRead = .keep }
        await spool.until("it is read") { spool.queue.with { $0.checkpoints[key] } != nil }
        await reader.stop()

        // A name that no listing looks into: the file is not there when the first listing ends.
        spool.rename("app", to: ".app")
        reader = try await spool.start { $0.afterRead = .keep }
        spool.append("{\"event\":2}\n", to: "x.jsonl")
        await spool.until("it counts as gone") { missingSince() != nil }
        spool.rename(".app", to: "app")
        await spool.until("it counts as there") {
            spool.append("{\"event\":3}\n", to: "x.jsonl")
            return missingSince() == nil
        }
        #expect(spool.queue.with { $0.checkpoints[key] } != nil)
        #expect(spool.queue.lines.filter { $0.contains("1") }.count == 1)
        await reader.stop()
    }

    @Test("a file that stays and is removed is remembered as gone, under whichever name it had last")
    func removedAfterItStayed() async throws {
        let spool = try SpoolHarness()
        for name in ["a", "b"] { spool.write("{\"event\":\"\(name)\"}\n", to: "\(name).json") }
        let keys = ["a", "b"].map { spool.handle(of: "\($0).json") }
        func traces() -> [FileTrace?] {
            spool.queue.with { queue in keys.map { queue.checkpoints[$0].flatMap { FileTrace($0.state) } } }
        }
        let reader = try await spool.start { $0.afterRead = .keep }
        await spool.until("they are read") { traces().allSatisfy { $0?.doneVersion != nil } }
        spool.remove("a.json")
        spool.rename("b.json", to: "d.json")
        await spool.until("the removed one is gone, the renamed one is not") {
            traces().map { $0?.missingSince != nil } == [true, false]
        }
        spool.remove("d.json")
        await spool.until("the renamed one is gone too") { traces()[1]?.missingSince != nil }
        #expect(spool.queue.lines.count == 2)
        await reader.stop()
    }

    @Test("files of a directory that comes and goes leave nothing behind each time")
    func flappingDirectory() {
        let time = ManualTime(wall: Timestamp(nanoseconds: 1_000_000_000_000))
        var files = RememberedFiles([])
        var pass = Pass()
        let stays = gone(0, at: nil)
        files.miss(stays.0, stays.1, isAway: true, at: time, in: &pass)
        for _ in 0..<1000 {
            time.advance(by: .seconds(1))
            for number in 1...3 {
                let (checkpoint, trace) = gone(number, at: nil)
                files.miss(checkpoint, trace, isAway: true, at: time, in: &pass)
            }
            for number in 1...3 { files.remove(FileID(bytes: gone(number, at: nil).0.key)) }
        }
        #expect(files.sizes["missing", default: 0] < 100)
        #expect(files.kept.count == 1)
    }

    @Test("a file that stays under several names is not gone when one of them is")
    func linksOfStayingFiles() throws {
        let spool = try SpoolHarness()
        spool.write("1", to: "a.json")
        let path = FileName("a.json")
        let id = FileID(bytes: spool.handle(of: "a.json"))
        var files = RememberedFiles([])
        var pass = Pass()
        _ = files.keepDone(id, at: path, try #require(FileStatus("\(spool.path)/a.json")))
        #expect(files.stayed(at: path).map(\.checkpoint.key) == [id.bytes])
        files.found(id, at: FileName("b.json"), links: 2, in: &pass)
        #expect(files.stayed(at: path).isEmpty && files.stayed(at: FileName("b.json")).isEmpty)
        #expect(pass.isEmpty)
    }

    @Test(
        "a file that is first read while a start looks for known files does not count as gone"
    )
    func readDuringTheFirstListing() async throws {
        let spool = try SpoolHarness()
        spool.write("{\"event\":1}\n", to: "x.jsonl")
        var reader = try await spool.start { $0.afterRead = .keep }
        await spool.untilLines(["{\"event\":1}"])
        let original = spool.handle(of: "x.jsonl")
        await reader.stop()

        spool.write(try FrameCompressor(.gzip).compress(Array("{\"event\":1}\n".utf8)), to: "x.jsonl.1.gz")
        spool.remove("x.jsonl")
        spool.write("{\"event\":2}\n", to: "kept.json")
        let staying = [spool.handle(of: "x.jsonl.1.gz"), spool.handle(of: "kept.json")]
        func trace(_ key: [UInt8]) -> FileTrace? {
            spool.queue.with { $0.checkpoints[key] }.flatMap { FileTrace($0.state) }
        }
        reader = try await spool.start {
            $0.afterRead = .keep
            $0.settleTime = .zero
        }
        await spool.until("what is gone counts as gone") { trace(original)?.missingSince != nil }
        for key in staying {
            #expect(trace(key)?.doneVersion != nil)
            #expect(trace(key)?.missingSince == nil)
        }
        #expect(spool.queue.lines == ["{\"event\":1}", "{\"event\":2}"])
        await reader.stop()
    }
}
