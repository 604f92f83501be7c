import EventLoops
import Glibc
import Logs
import Model
@testable import Spool
import TestKit
import Testing

/// A sink that takes as many lines as the test allows, and keeps them.
private final class CountingSink: SpoolSink {
    var room = Int.max
    var parks = false
    var resume: (() -> Void)?
    var staying: [UInt8]?
    private(set) var records: [QuarantineRecord] = []

    func take(_ lines: UnsafeRawBufferPointer, from source: SpoolSource, at offset: Int64) -> Int {
        min(room, lines.count)
    }

    func park(_ resume: @escaping () -> Void) -> Bool {
        self.resume = parks ? resume : nil
        return parks
    }

    func quarantine(_ record: QuarantineRecord) { records.append(record) }
    func commit(_ progress: SpoolProgress) async throws {}
    func persist() async throws {}
    var isUrgent: Bool { false }
    func mustStay(_ file: [UInt8]) -> Bool { file == staying }
    func isClockTrusted() -> Bool { true }
}

/// The types of the reader that need no disk, no loop and no agent: each is given those before it.
private struct ReaderTypes {
    let time = ManualTime()
    let log = KeptLog()
    let sink = CountingSink()
    let turns = Turns()
    let schedule: Schedule
    let reports: Reports
    let outlet: Outlet
    let watching: SpoolWatch
    let lives: AppendLives
    let directory = SpoolDirectory(
        path: FileName("shop"), depth: 1, id: FileID(bytes: Array("shop".utf8)), 0)

    init(_ change: (inout SpoolOptions) -> Void = { _ in }) throws {
        var options = SpoolOptions(directory: "/spool")
        change(&options)
        let null = try Descriptor(checking: open("/dev/null", O_RDONLY | O_CLOEXEC), "open")
        let context = SpoolContext(
            options, Log(log), time, on: try EventLoop(name: "never started"), SpoolRoot(null))
        schedule = Schedule(time)
        reports = Reports(context, schedule, Owners { "user-\($0)" })
        outlet = Outlet(context, schedule, sink)
        watching = SpoolWatch(context, schedule, reports)
        let streams = Streams([], settleTime: .seconds(1), most: .max, time: time)
        lives = AppendLives(
            AppendFiles(streams, options), context, schedule, reports, outlet, watching, turns)
    }

    /// A file that is known under a name.
    func file(_ name: String, size: Int64 = 0) -> AppendFile {
        let file = AppendFile(
            FileID(bytes: Array(name.utf8)), in: directory, name: FileName(name), owner: 0, size: size,
            now: time.bootTime)
        _ = lives.streams.meet(file, isRotated: false, was: .unknown)
        directory.files[file.name] = file
        return file
    }

    /// All errands that are due now.
    func due() -> [Errand] {
        var errands: [Errand] = []
        while let errand = schedule.popDue() { errands.append(errand) }
        return errands
    }

    /// Offers lines of a file.
    func hand(_ text: String, resume: @escaping () -> Void = {}) -> Int {
        let source = SpoolSource(app: "shop", path: "shop/a.jsonl", producer: nil)
        return Array(text.utf8).withUnsafeBytes { outlet.hand($0, from: source, at: 0, resume: resume) }
    }
}

/// The reader's types by themselves: what each plans and notes.
@Suite("The reader's types")
struct ReaderTypesTests {
    @Test("Schedule: a pump is posted once, and the timer is set to the earliest errand only")
    func schedule() throws {
        let time = ManualTime()
        let schedule = Schedule(time)
        var posts = 0
        var timers: [Duration?] = []
        schedule.attach(post: { posts += 1 }, setTimer: { timers.append($0) })
        schedule.wake()
        schedule.plan(after: .seconds(9), .poll)
        #expect(posts == 0 && timers.isEmpty, "it has not started")
        _ = schedule.life.start()
        schedule.wake()
        schedule.wake()
        schedule.plan(after: .seconds(3), .findRoot)
        schedule.plan(after: .seconds(5), .checkRoot)
        #expect(posts == 1 && timers == [.seconds(3)])
        time.advance(by: .seconds(5))
        schedule.alarmFired()
        let errands = [schedule.popDue(), schedule.popDue(), schedule.popDue()]
        #expect(errands == [.findRoot, .checkRoot, nil])
        schedule.beginErrands()
        schedule.plan(at: schedule.now, .publish)
        #expect(schedule.popDue() == .publish)
        schedule.endErrands()
        #expect(timers == [.seconds(3), .seconds(4)], "no timer for what was carried out at once")
        schedule.clear()
        #expect(schedule.count == 0 && timers.last == .some(nil))
    }

    @Test("Schedule: out of descriptors, some are shed at once, and the task is tried again later")
    func shortage() throws {
        let types = try ReaderTypes()
        _ = types.schedule.life.start()
        types.schedule.tryAgain(at: FileName("a"), in: types.directory, SystemError("open", number: EMFILE))
        #expect(types.due() == [.shedDescriptors])
        #expect(types.schedule.obstacles == [.descriptors: 1])
        types.time.advance(by: .seconds(1))
        #expect(types.schedule.isAnyDue)
        #expect(types.due() == [.retry])
        #expect(!types.schedule.isAnyDue)
        let look = Errand.look(directory: types.directory.path, name: FileName("a"))
        #expect(types.schedule.takeFailed() == [look])
    }

    @Test("Outlet: lines that are not taken wait for a commit, or for the sink if it parks the file")
    func outlet() throws {
        let types = try ReaderTypes()
        #expect(types.hand("{}\n") == 3 && !types.outlet.handover.isDue)
        types.sink.room = 3
        #expect(types.hand("{}\n{}\n") == 3)
        #expect(types.outlet.handover.isDue && !types.outlet.takeParked())
        types.sink.parks = true
        var resumed = 0
        types.outlet.beginFile()
        #expect(types.hand("{}\n{}\n", resume: { resumed += 1 }) == 3)
        #expect(types.outlet.handover.isParked && types.outlet.isWaiting)
        #expect(types.outlet.takeParked() && !types.outlet.takeParked())
        types.sink.resume?()
        #expect(resumed == 1 && !types.outlet.isWaiting)
        #expect(types.outlet.pass.bytes == 9)
    }

    @Test("Outlet: a line that is too long goes to quarantine with its app and place")
    func tooLong() throws {
        let types = try ReaderTypes()
        let source = SpoolSource(app: "shop", path: "shop/a.jsonl", producer: nil)
        types.outlet.tooLong("line", 9_000_000, from: source, at: 7, content: [1])
        #expect(types.sink.records.map(\.reason) == [.tooLong] && types.sink.records[0].offset == 7)
        #expect(types.outlet.handover.counts.tooLong == 1 && !types.outlet.handover.isEmpty)
    }

    @Test("SpoolWatch: without inotify a directory is polled until it is gone, and nothing is reported")
    func polling() throws {
        let types = try ReaderTypes { $0.isWatching = false }
        _ = types.schedule.life.start()
        let queue = KernelQueue(on: try EventLoop(name: "never started"))
        types.watching.begin(queue) {}
        #expect(types.watching.pollReason == "watching is turned off")
        let null = try Descriptor(checking: open("/dev/null", O_RDONLY | O_CLOEXEC), "open")
        types.watching.watch(types.directory, null)
        types.watching.watch(types.directory, null)
        #expect(types.directory.isPolled && types.watching.polled.count == 1)
        #expect(types.log.messages.count == 1)
        let file = types.file("a.jsonl")
        #expect(!types.watching.isReported(file))
        let polled = types.watching.takePolled()
        #expect(polled.count == 1 && types.schedule.count == 1)
        types.directory.isGone = true
        #expect(types.watching.takePolled().isEmpty)
    }

    @Test("PaddingReader: zeros at the end are looked at again once a wait, until content replaces them")
    func padding() throws {
        let types = try ReaderTypes()
        _ = types.schedule.life.start()
        let padding = PaddingReader(
            SpoolContext(
                SpoolOptions(directory: "/spool"), Log(types.log), types.time,
                on: try EventLoop(name: "never started"),
                SpoolRoot(try Descriptor(checking: open("/dev/null", O_RDONLY | O_CLOEXEC), "open"))),
            types.schedule, types.lives)
        let file = types.file("a.jsonl", size: 100)
        padding.planLook(at: file)
        #expect(types.schedule.count == 0, "without zeros")
        file.endContent(at: 40)
        padding.planLook(at: file)
        padding.planLook(at: file)
        #expect(types.schedule.count == 1)
        types.time.advance(by: .seconds(10))
        #expect(types.due() == [.lookThroughZeros(file.id)])
        padding.lookAgain(at: file)
        #expect(file.isReady && file.padding?.isLookPlanned == false)
        types.time.advance(by: .seconds(1))
        padding.sawContent(of: file, upTo: 60)
        #expect(file.size == 60 && file.lastChange == types.time.bootTime)
        padding.sawContent(of: file, upTo: 100)
        #expect(file.padding == nil)
    }

    @Test(
        "SpoolWatch: a rest that was put off ends, although a wake-up was planned for an earlier time",
        arguments: [false, true])
    func restPutOff(holdsLines: Bool) async throws {
        let loop = try EventLoop(name: "rest")
        try loop.start()
        defer { loop.stop() }
        let wakes = await withCheckedContinuation { continuation in
            loop.post {
                continuation.resume(returning: Result { try ReaderTypesTests.wakes(on: loop, holdsLines) })
            }
        }
        #expect(try wakes.get() == [true, true])
    }

    /// Whether the reader is woken at the time for which a wake-up was planned, and at the end of the rest,
    /// which was put off. To be called on the loop.
    private static func wakes(on loop: EventLoop, _ holdsLines: Bool) throws -> [Bool] {
        let types = try ReaderTypes()
        _ = types.schedule.life.start()
        types.watching.begin(KernelQueue(on: loop)) {}
        defer { types.watching.stop() }
        try #require(types.watching.pollReason == nil)
        let begin = types.time.bootTime
        types.watching.pause(until: begin + .seconds(1))
        // A commit that came early puts the next one off.
        types.watching.pause(until: begin + .seconds(2))
        types.time.advance(by: .seconds(1))
        let first = types.due() == [.wake]
        // What the turn does that this wakes.
        if holdsLines {
            types.watching.pause(until: begin + .seconds(2))
        } else {
            types.watching.endPauseIfOver()
        }
        types.time.advance(by: .seconds(1))
        return [first, types.due() == [.wake]]
    }

    @Test("FollowedLinks: a full table has room for known links only, and a round comes to each link once")
    func fullTable() {
        var links = FollowedLinks()
        func link(_ number: Int) -> FollowedLinks.Link {
            FollowedLinks.Link(directory: FileName("pods"), name: FileName("\(number).log"))
        }
        for number in 0..<FollowedLinks.most {
            #expect(links.hasRoom(for: link(number)))
            _ = links.found(link(number), to: FileName("0.log"), in: Int32(number % 7))
        }
        #expect(links.hasRoom(for: link(3)) && !links.hasRoom(for: link(FollowedLinks.most)))
        let refused = links.found(link(FollowedLinks.most), to: FileName("0.log"), in: 99)
        #expect(refused == nil && !links.isWatched(99))
        var seen: Set<FollowedLinks.Link> = []
        var rounds = 0
        var hasMore = true
        while hasMore {
            let next = links.takeToLook(atMost: 1_000)
            #expect(next.links.allSatisfy { seen.insert($0).inserted } && next.links.count <= 1_000)
            rounds += 1
            hasMore = next.hasMore
        }
        #expect(seen.count == FollowedLinks.most && rounds == 17)
        let again = links.takeToLook(atMost: 10)
        #expect(again.links.count == 10, "the next round begins")
    }

    @Test("AppendLives: a file lines up once; while reading waits it is to be held open")
    func ready() throws {
        let types = try ReaderTypes()
        _ = types.schedule.life.start()
        let file = types.file("a.jsonl", size: 4)
        types.lives.makeReady(file)
        types.lives.changed(file)
        let next = types.turns.nextFile { _ in true }
        #expect(next?.file === file && next?.app == "shop")
        #expect(types.turns.nextFile { _ in true } == nil && types.due().isEmpty)
        let other = types.file("b.jsonl", size: 4)
        types.sink.parks = true
        types.sink.room = 0
        #expect(types.hand("{}\n") == 0)
        types.lives.makeReady(other)
        #expect(types.due() == [.hold(other.id)])
    }

    @Test("a file that waits for its turn is at rest, unless it must be judged or compared, or has a watch")
    func waitingFiles() throws {
        let types = try ReaderTypes()
        let file = types.file("a.jsonl", size: 5)
        types.lives.makeReady(file)
        #expect(!file.isResting)
        file.releaseActivity()
        #expect(file.isResting && file.isReady)
        // An empty file was judged to be no copy, and has bytes now: they may be a copy's.
        let late = types.file("b.jsonl")
        late.see(length: 5)
        types.lives.makeReady(late)
        late.releaseActivity()
        #expect(late.beganLate)
        let compared = types.file("c.jsonl", size: 5)
        compared.proof = AppendFile.Proof(size: 5, reached: 3)
        types.lives.makeReady(compared)
        compared.releaseActivity()
        #expect(compared.proof?.reached == 3)
        let watched = types.file("d.jsonl", size: 5)
        watched.watch = 7
        types.lives.makeReady(watched)
        watched.releaseActivity()
        #expect(watched.watch == 7)
    }

    @Test("AppendLives: a file that loses its name is read and checked, and one that was read is checked")
    func displaced() throws {
        let types = try ReaderTypes { $0.settleTime = .seconds(1) }
        _ = types.schedule.life.start()
        let file = types.file("a.jsonl")
        types.lives.displaced(file)
        types.lives.displaced(file)
        #expect(!file.hasName && file.isReady && types.lives.appendFiles.counts.rotations == 1)
        #expect(types.lives.nameless(in: types.directory, file.name).count == 1)
        #expect(types.lives.appendFiles.beginTurn(of: file, at: types.schedule.now))
        types.lives.considerLater(file)
        types.time.advance(by: .seconds(2))
        #expect(types.due() == [.check(file.id)])
    }

    @Test("Reports: a path is reported once until it is reached, and a retry of it is then forgotten")
    func reports() throws {
        let types = try ReaderTypes()
        _ = types.schedule.life.start()
        let path = FileName("shop/a.jsonl")
        types.reports.complain(path, 0, "let its group read it")
        types.reports.complain(path, 0, "let its group read it")
        types.schedule.tryAgain(.look, path, SystemError("open", number: EACCES), .listEverything)
        #expect(types.log.messages.count == 1 && types.schedule.hasFailures)
        types.reports.reached(path)
        #expect(types.reports.complaints.isEmpty && !types.schedule.hasFailures)
        types.reports.refuse(.symbolicLink, path, 0)
        types.reports.refuse(.symbolicLink, path, 0)
        #expect(types.log.messages.count == 2 && types.reports.complaints.refused == [.symbolicLink: 1])
    }
}
