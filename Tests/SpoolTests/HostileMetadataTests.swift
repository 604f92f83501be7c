import EventLoops
import Glibc
import Model
import Spool
import TestKit
import Testing

@Suite("Hostile times and sizes", .timeLimit(.minutes(5)))
struct HostileMetadataTests {
    /// A disk's file system and one of memory, which keeps any time and size.
    private static let places = (["/tmp", "/dev/shm"] as [String]).filter { path in access(path, W_OK) == 0 }

    /// The years 2300, 1600, and the ends of what 64 bits hold; seconds since 1970.
    private static let times = [10_413_792_000, -11_676_096_000, -1, Int.max, Int.min]

    private func date(_ path: String, _ seconds: Int, nanoseconds: Int = 999_999_999) {
        let time = timespec(tv_sec: seconds, tv_nsec: nanoseconds)
        let result = utimensat(AT_FDCWD, path, [time, time], AT_SYMLINK_NOFOLLOW)
        #expect(result == 0, "utimensat \(path): \(SystemError.message(errno))")
    }

    /// Files of every kind with a time; gives the lines that must come of them.
    private func write(_ label: String, dated seconds: Int, _ spool: SpoolHarness) -> [String] {
        spool.write("{\"drop\":\"\(label)\"}", to: ".\(label).new")
        date("\(spool.path)/.\(label).new", seconds)
        spool.rename(".\(label).new", to: "\(label).json")
        // A file that is kept and then dated is another version of it, and read again.
        spool.write(
            "{\"slow\":\"\(label)\"}", to: "\(label)-slow.json",
            dated: timespec(tv_sec: seconds, tv_nsec: 999_999_999))
        spool.write("append \(label)\n", to: "\(label).jsonl")
        date("\(spool.path)/\(label).jsonl", seconds)
        spool.write("rotated \(label)\n", to: "\(label)-old.jsonl.1")
        date("\(spool.path)/\(label)-old.jsonl.1", seconds)
        spool.write("", to: "\(label)-closed.other")
        chmod("\(spool.path)/\(label)-closed.other", 0)
        date("\(spool.path)/\(label)-closed.other", seconds)
        symlink("nowhere", "\(spool.path)/\(label)-link.json")
        date("\(spool.path)/\(label)-link.json", seconds)
        spool.makeDirectory("\(label)-app")
        date("\(spool.path)/\(label)-app", seconds)
        return [
            "{\"drop\":\"\(label)\"}", "{\"slow\":\"\(label)\"}", "append \(label)", "rotated \(label)",
        ]
    }

    @Test(
        "a file with any time, at the start and later, neither ends nor delays anything",
        arguments: places,
        [SpoolOptions.AfterRead.delete, .keep, .archive(directory: ".archive", retention: .seconds(60))])
    func farTimes(place: String, afterRead: SpoolOptions.AfterRead) async throws {
        let spool = try SpoolHarness(in: place)
        var lines: [String] = []
        for (number, time) in Self.times.enumerated() { lines += write("early\(number)", dated: time, spool) }
        let reader = try await spool.start { $0.afterRead = afterRead }
        await spool.untilLines(lines)
        for (number, time) in Self.times.enumerated() { lines += write("late\(number)", dated: time, spool) }
        await spool.untilLines(lines)
        await spool.until("links are refused") {
            reader.figures.refused[.symbolicLink] == 2 * Self.times.count
        }
        await reader.stop()
        // What was kept of them is enough to know them again.
        let again = try await spool.start { $0.afterRead = afterRead }
        spool.append("more\n", to: "early0.jsonl")
        await spool.untilLines(lines + ["more"])
        await again.stop()
    }

    @Test(
        "a spool that nobody reads is measured, whatever size and time its files claim",
        arguments: places)
    func backlogOfAnySize(place: String) throws {
        let spool = try SpoolHarness(in: place)
        var sum: ByteCount = 0
        for (number, time) in Self.times.enumerated() {
            let path = "\(spool.path)/\(number).jsonl"
            spool.write("", to: "\(number).jsonl")
            let size = [Int.max, 1 << 43].first { truncate(path, $0) == 0 }
            sum += ByteCount(Int64(try #require(size)))
            date(path, time)
        }
        let before = SystemTime().wallTime - .seconds(60)
        let backlog = SpoolBacklog.measure(in: spool.path, read: ["0.jsonl": .max])
        #expect(
            backlog.files >= Self.times.count - 1 && backlog.bytes <= sum
                && backlog.bytes > ByteCount(1 << 44))
        #expect(backlog.oldest.map { $0 > before } == true)
    }

    @Test("a file's owner cannot forge how long its oldest event has waited", arguments: places)
    func agesAreTheKernels(place: String) async throws {
        let spool = try SpoolHarness(in: place)
        let reader = try await spool.start { $0.linger = .zero }
        spool.queue.with { $0.isFull = true }
        for number in 0..<3 {
            spool.append("12345678\n", to: "x.jsonl")
            await spool.pause(.milliseconds(20 + Int64(number)))
        }
        let before = SystemTime().wallTime - .seconds(60)
        spool.write("{}", to: ".new")
        date("\(spool.path)/.new", -11_676_096_000)
        spool.rename(".new", to: "old.json")
        await spool.until("it is counted") {
            reader.figures.isHeldBack && reader.figures.unreadBytes.value == 29
        }
        #expect(reader.figures.oldestUnread ?? before > before)
        spool.queue.with { $0.isFull = false }
        await spool.until("all is read") { spool.queue.lines.count == 4 }
        await reader.stop()
    }

    @Test("empty files of the greatest possible length are counted, and then ignored")
    func hugeSizes() async throws {
        let spool = try SpoolHarness(in: Self.places.last ?? "/tmp")
        let reader = try await spool.start { $0.linger = .zero }
        spool.queue.with { $0.isFull = true }
        for number in 0..<3 {
            spool.append("12345678\n", to: "x.jsonl")
            await spool.pause(.milliseconds(20 + Int64(number)))
        }
        await spool.until("reading is held back") { reader.figures.isHeldBack }
        // Where a file system bounds a file at less, its most is taken.
        let sizes = [Int.max, 17_592_186_040_320, 1 << 40]
        func sparse(_ name: String) {
            spool.write("", to: ".sparse")
            #expect(sizes.contains { truncate("\(spool.path)/.sparse", $0) == 0 })
            spool.rename(".sparse", to: name)
        }
        for number in 0..<3 {
            sparse("drop\(number).json")
            sparse("append\(number).jsonl.1")
        }
        await spool.until("all of it is counted") { reader.figures.unreadBytes.value > 3 << 40 }
        spool.queue.with { $0.isFull = false }
        spool.write("good\n", to: "y.jsonl")
        await spool.until("the others are read") { spool.queue.lines.contains("good") }
        await spool.until("drop files that hold nothing go to the quarantine") {
            spool.queue.quarantined.count == 3
        }
        await spool.until("all of it goes") { spool.names() == ["x.jsonl", "y.jsonl"] }
        await spool.until("nothing of it is counted any more") { reader.figures.unreadBytes == 0 }
        // Zeros at the end of an append file are no line.
        #expect(spool.queue.quarantined.count == 3)
        await reader.stop()
    }

    @Test("sums of sizes saturate, and differences end at zero")
    func countsSaturate() {
        #expect(ByteCount(.max) + 1 == ByteCount(.max))
        #expect(ByteCount(3) - 5 == 0)
        #expect(ByteCount(-3) == 0)
        #expect(Timestamp(seconds: .max, nanoseconds: 0).nanoseconds == .max)
        #expect(Timestamp(seconds: .min, nanoseconds: 999_999_999).nanoseconds == .min + 999_999_999)
        let (first, last) = (Int64.min, Int64.max)
        let wait: Duration = BootInstant(nanoseconds: first) - BootInstant(nanoseconds: 1)
        #expect(wait == Duration.nanoseconds(first))
        #expect(Duration.nanoseconds(first).nanosecondsClamped == -last)
        let later: Timestamp = Timestamp(nanoseconds: last) - Duration.nanoseconds(first)
        #expect(later == Timestamp(nanoseconds: last))
    }
}
