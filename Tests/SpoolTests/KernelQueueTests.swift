import EventLoops
import Glibc
import Synchronization
import TestKit
import Testing

@testable import Spool

/// Who watches what, and what waits for whom, without a kernel.
@Suite("Spool: kernel events for several readers")
struct KernelQueueTests {
    private func event(_ mask: Int32, watch: Int32 = 1, _ name: String) -> [UInt8] {
        let name = Array(name.utf8) + [0]
        let fields = [UInt32(bitPattern: watch), UInt32(bitPattern: mask), 0, UInt32(name.count)]
        return fields.flatMap { withUnsafeBytes(of: $0) { Array($0) } } + name
    }

    private func names(_ bytes: [UInt8]) -> [String] {
        bytes.withUnsafeBytes {
            KernelWatch.changes(in: $0).map { $0.kind == .overflow ? "overflow" : $0.name.text }
        }
    }

    @Test("a watch ends with its last reader, and belongs to each reader once")
    func watches() {
        var random = SplitMix64(seed: 51)
        for _ in 0..<200 {
            var table = WatchTable<String>()
            var expected: [Int32: Set<String>] = [:]
            for _ in 0..<60 {
                let watch = Int32.random(in: 1...5, using: &random)
                let reader = ["a", "b", "c"].randomElement(using: &random) ?? "a"
                switch Int.random(in: 0..<8, using: &random) {
                case 0..<4:
                    table.add(watch, for: reader)
                    expected[watch, default: []].insert(reader)
                case 4..<6:
                    let isLast = expected[watch] == [reader]
                    #expect(table.remove(watch, of: reader) == isLast)
                    expected[watch]?.remove(reader)
                case 6:
                    let own = expected.filter { $0.value == [reader] }.keys.sorted()
                    #expect(table.removeAll(of: reader) == own)
                    for watch in expected.keys { expected[watch]?.remove(reader) }
                default:
                    table.forget(watch)
                    expected[watch] = nil
                }
                expected = expected.filter { !$0.value.isEmpty }
                #expect(table.count == expected.count)
                for watch in Int32(1)...5 { #expect(table.readers(of: watch) == expected[watch] ?? []) }
            }
        }
    }

    @Test("an inbox returns events in their order, even if some are put back")
    func order() {
        var inbox = ChangeInbox()
        for name in ["a", "b", "c"] { event(Int32(IN_CREATE), name).withUnsafeBytes { inbox.add($0) } }
        let taken = inbox.takeAll()
        #expect(names(taken) == ["a", "b", "c"] && inbox.isEmpty)
        event(Int32(IN_CREATE), "d").withUnsafeBytes { inbox.add($0) }
        inbox.putBack(taken[(taken.count / 3)...])
        #expect(names(inbox.takeAll()) == ["b", "c", "d"])
    }

    @Test("an inbox is bounded: a flood becomes one event that says events were lost, and later ones count")
    func flood() {
        var inbox = ChangeInbox()
        let change = event(Int32(IN_CREATE), "a name of some length")
        var isOverflown = false
        for _ in 0..<3 * ChangeInbox.most / change.count {
            change.withUnsafeBytes { inbox.add($0) }
            #expect(inbox.count <= ChangeInbox.most)
            isOverflown = isOverflown || inbox.count < change.count
        }
        #expect(isOverflown)
        inbox.overflow()
        change.withUnsafeBytes { inbox.add($0) }
        #expect(names(inbox.takeAll()) == ["overflow", "a name of some length"])
    }
}

/// The same with a kernel: readers in place that share its one instance.
@Suite("Reading in place: readers that share an inotify instance", .timeLimit(.minutes(5)))
struct SharedReadingTests {
    /// The inotify instances of this process.
    private func instances() throws -> Int {
        try WholeFile.names(in: "/proc/self/fd").count { name in
            var text = [UInt8](repeating: 0, count: 64)
            let count = readlink("/proc/self/fd/\(name)", &text, text.count)
            return count > 0 && String(decoding: text[..<count], as: UTF8.self) == "anon_inode:inotify"
        }
    }

    @Test(
        "readers of one directory each get their own lines, through rotations, while one of them stops and starts"
    )
    func oneDirectory() async throws {
        let spool = try SpoolHarness()
        let before = try instances()
        let shared = LoopBound(SharedReading(on: spool.loop), to: spool.loop)
        let apps = (0..<12).map { "app\($0)" }
        func start(_ app: String) async throws -> SpoolReader {
            let place = try #require(ReadPlace.of(app: app, ["\(spool.path)/\(app).log"])?.first)
            return try await spool.start(sharing: shared) {
                $0.place = place
                $0.afterRead = .keep
            }
        }
        var readers: [SpoolReader] = []
        for app in apps { readers.append(try await start(app)) }
        #expect(try instances() == before + 1)
        var expected: [String] = []
        for round in 0..<6 {
            for app in apps {
                if round % 2 == 1 { spool.rename("\(app).log", to: "\(app).log.\(round)") }
                spool.append("\(app) \(round)\n", to: "\(app).log")
                expected.append("\(app) \(round)")
            }
            await spool.untilLines(expected)
            let index = round % readers.count
            await readers[index].stop()
            spool.append("\(apps[index]) while away \(round)\n", to: "\(apps[index]).log")
            expected.append("\(apps[index]) while away \(round)")
            readers[index] = try await start(apps[index])
            await spool.untilLines(expected)
            #expect(try instances() == before + 1)
        }
        for line in spool.queue.with({ $0.lines }) { #expect(line.text.hasPrefix("\(line.app) ")) }
        for reader in readers { await reader.stop() }
        #expect(try instances() == before)
    }

    /// Names that were reported, on any thread.
    private final class Names: Sendable {
        private let names = Mutex<[String]>([])
        func add(_ name: String?) { names.withLock { $0.append(name ?? "any") } }
        func contains(_ name: String) -> Bool { names.withLock { $0.contains(name) } }
    }

    @Test("who wants names of a directory shares the instance, with readers that come, rest and go")
    func names() async throws {
        let spool = try SpoolHarness()
        let before = try instances()
        let shared = LoopBound(SharedReading(on: spool.loop), to: spool.loop)
        let names = Names()
        let path = spool.path
        let watch = LoopBound(
            try shared.wait { shared in Result { try shared.watchNames(in: path) { names.add($0) } } }.get(),
            to: spool.loop)
        // Without any reader.
        spool.write("1", to: "first")
        await spool.until("the first name") { names.contains("first") }
        #expect(try instances() == before + 1)
        // The reader watches the same directory with more kinds of changes, and lets them gather.
        let place = try #require(ReadPlace.of(app: "web", ["\(path)/*.log"])?.first)
        let reader = try await spool.start(sharing: shared) {
            $0.place = place
            $0.afterRead = .keep
            $0.linger = .milliseconds(150)
        }
        #expect(try instances() == before + 1)
        for line in 0..<40 {
            spool.append("\(line)\n", to: "app.log")
            await spool.pause(.milliseconds(5))
        }
        spool.write("1", to: "second")
        await spool.until("the second name") { names.contains("second") }
        await spool.untilLines((0..<40).map { "\($0)" })
        // The reader may leave while it lets changes gather.
        spool.append("last\n", to: "app.log")
        await spool.until("the last line") { spool.queue.lines.contains("last") }
        await reader.stop()
        spool.write("1", to: "third")
        await spool.until("the third name") { names.contains("third") }
        watch.wait { $0.stop() }
        #expect(try instances() == before)
    }

    @Test("a directory that is missing is refused, and leaves no instance open")
    func missingDirectory() throws {
        let spool = try SpoolHarness()
        let before = try instances()
        let shared = LoopBound(SharedReading(on: spool.loop), to: spool.loop)
        let isRefused = shared.wait { shared in
            (try? shared.watchNames(in: "/nonexistent/directory") { _ in }) == nil
        }
        #expect(isRefused)
        #expect(try instances() == before)
    }

    @Test("a drip for one reader delays no other reader's file, and no event is lost while it rests")
    func drip() async throws {
        let spool = try SpoolHarness()
        let shared = LoopBound(SharedReading(on: spool.loop), to: spool.loop)
        var readers: [SpoolReader] = []
        for app in ["drip", "other"] {
            let place = try #require(ReadPlace.of(app: app, ["\(spool.path)/\(app)*.log"])?.first)
            readers.append(
                try await spool.start(sharing: shared) {
                    $0.place = place
                    $0.afterRead = .keep
                    $0.linger = .milliseconds(150)
                })
        }
        var expected: [String] = []
        for line in 0..<60 {
            spool.append("drip \(line)\n", to: "drip.log")
            expected.append("drip \(line)")
            if line % 10 == 5 {
                spool.rename("drip.log", to: "drip.log.\(line)")
                spool.append("other \(line)\n", to: "other\(line).log")
                expected.append("other \(line)")
            }
            await spool.pause(.milliseconds(7))
        }
        await spool.untilLines(expected)
        for reader in readers { await reader.stop() }
    }
}
