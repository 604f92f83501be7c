import EventLoops
import Glibc
import Model
import Spool
import TestKit
import Testing

/// A user who may write anything into the spool, driven by a seed: names, times, sizes, modes, links, FIFOs, sockets, directories
/// that come and go, while an honest app goes on.
private struct HostileUser {
    let path: String
    var random: SplitMix64
    private var held: [Int32] = []

    init(path: String, random: SplitMix64) {
        self.path = path
        self.random = random
        // A lease that is broken is told by a signal.
        signal(SIGIO, SIG_IGN)
    }

    private mutating func below(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }

    /// A name of a few, so that they meet; some are not text.
    private mutating func name() -> String {
        let stems = [
            "a", "b", "x.y", "\u{1F}odd", String(repeating: "l", count: 200), ".h", "-", "spool ship", "é",
        ]
        let ends = [
            ".json", ".jsonl", ".jsonl.1", ".log", ".log.old", ".jsonl.gz", ".jsonl.zst", ".txt", ".tmp",
            ".json.part",
            "",
            "-20261120.log", ".ndjson",
        ]
        let claim = below(8) == 0 ? ".spoolship.0123456789abcde\(below(9))." : ""
        return claim + stems[below(stems.count)] + ends[below(ends.count)]
    }

    private mutating func place() -> String {
        let folders = ["", "", "d1/", "d1/d2/", "incoming/", "d3/"]
        return "\(path)/hostile/" + folders[below(folders.count)] + name()
    }

    /// Has a file open, or no more: with space for what it does not hold, a lock, and a lease that keeps others from opening it.
    private mutating func holdOne(_ path: String) {
        held.append(open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW))
        guard let file = held.last else { return }
        switch below(4) {
        case 0: posix_fallocate(file, below(10_000), 4096)
        case 1: pwrite(file, "{}\n", 3, below(10_000))
        case 2: flock(file, LOCK_EX | LOCK_NB)
        // F_SETLEASE
        default: _ = fcntl(file, 1024, [F_RDLCK, F_WRLCK][below(2)])
        }
        if held.count > 8 { close(held.remove(at: below(held.count))) }
    }

    func end() { for file in held { close(file) } }

    mutating func act() {
        let (one, other) = (place(), place())
        switch below(20) {
        case 0...4:
            let file = open(
                one, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | (below(2) == 0 ? O_TRUNC : O_APPEND), 0o660
            )
            guard file >= 0 else { return }
            let texts: [[UInt8]] = [
                Array("{\"hostile\":1}\n".utf8), Array("[1,{".utf8), [0, 0, 0], [0xFF, 0x0A, 0xC3],
                [0x28, 0xB5, 0x2F, 0xFD],
                [0x1F, 0x8B, 8, 0], [], Array(repeating: 0x78, count: 3000),
            ]
            let text = texts[below(texts.count)]
            write(file, text, text.count)
            close(file)
        case 5: rename(one, other)
        case 6: unlink(one)
        case 7: truncate(one, [0, 1, 4096, 1 << 30, 1 << 43, Int.max][below(6)])
        case 8, 9:
            let seconds = [0, 1, -1, 10_413_792_000, -11_676_096_000, Int.max, Int.min][below(7)]
            let times = [
                timespec(tv_sec: seconds, tv_nsec: below(1_000_000_000)),
                timespec(tv_sec: seconds, tv_nsec: 0),
            ]
            utimensat(AT_FDCWD, one, times, AT_SYMLINK_NOFOLLOW)
        case 10: chmod(one, [0, 0o777, 0o200, 0o4755][below(4)])
        case 11: symlink([other, "/etc/passwd", "nowhere", "."][below(4)], one)
        case 12: link(other, one)
        case 13: mkfifo(one, 0o660)
        case 14:
            mkdir(
                [
                    "\(path)/hostile", "\(path)/hostile/d1", "\(path)/hostile/d1/d2", "\(path)/hostile/d3",
                    one,
                ][below(5)],
                0o770)
        case 15: rename("\(path)/hostile/d1", "\(path)/hostile/d3")
        case 16:
            for (from, to) in [(one, "\(path)/.third"), (other, one), ("\(path)/.third", other)] {
                rename(from, to)
            }
        case 17: holdOne(one)
        case 18: if below(10) == 0 { removeTree("\(path)/hostile/d\(1 + below(3))") }
        default: mknod(one, UInt32(S_IFSOCK) | 0o660, 0)
        }
    }
}

@Suite("A hostile user, by a seed", .timeLimit(.minutes(120)))
struct HostileDriverTests {
    /// `SPOOL_HOSTILE=3600` for an hour, `SPOOL_SEED` to repeat one.
    private static let seconds = getenv("SPOOL_HOSTILE").flatMap { Int(String(cString: $0)) } ?? 4
    private static let seed = getenv("SPOOL_SEED").flatMap { UInt64(String(cString: $0)) }

    @Test(
        "whatever files claim and whatever happens to them, an honest app's events are read once and soon",
        arguments: [
            SpoolOptions.AfterRead.delete, .keep,
            .archive(directory: ".spoolship-archive", retention: nil, mostBytes: 1 << 20),
        ])
    func honestAppsAreRead(afterRead: SpoolOptions.AfterRead) async throws {
        let end = SystemTime().bootTime + .seconds(Self.seconds)
        var rounds = 0
        repeat {
            let seed = Self.seed ?? Seeds.one(1)
            rounds += 1
            try await live(seed, afterRead, in: rounds.isMultiple(of: 2) ? "/dev/shm" : "/tmp")
        } while SystemTime().bootTime < end
    }

    private func live(_ seed: UInt64, _ afterRead: SpoolOptions.AfterRead, in place: String) async throws {
        print("hostile driver: seed \(seed), \(afterRead), \(place)")
        let spool = try SpoolHarness(in: access(place, W_OK) == 0 ? place : "/tmp")
        var user = HostileUser(path: spool.path, random: SplitMix64(seed: seed))
        defer { user.end() }
        for name in ["honest", "hostile", "hostile/incoming", "hostile/d1"] { spool.makeDirectory(name) }
        for _ in 0..<100 { user.act() }
        let reader = try await spool.start {
            $0.afterRead = afterRead
            $0.maxOpenFiles = 8
            $0.maxEventSize = 2000
        }
        var lines: [String] = []
        for round in 0..<20 {
            for _ in 0..<25 { user.act() }
            let (line, drop) = ("honest \(round)", "{\"honest\":\(round)}")
            spool.append(line + "\n", to: "honest/x.jsonl")
            spool.write(drop, to: "honest/.new")
            spool.rename("honest/.new", to: "honest/d\(round).json")
            lines += [line, drop]
            let want = lines.sorted()
            let isRead = await spool.holds(within: .seconds(20)) { honest(spool) == want }
            #expect(isRead, "seed \(seed): \(honest(spool).count) of \(want.count) are read")
            guard isRead else { break }
        }
        #expect(
            spool.queue.with { state in state.lines.allSatisfy { !$0.text.contains("root:") } },
            "seed \(seed)")
        await reader.stop()
        // And again, from what was kept.
        let again = try await spool.start { $0.afterRead = afterRead }
        spool.append("last\n", to: "honest/x.jsonl")
        let isRead = await spool.holds(within: .seconds(20)) { honest(spool) == (lines + ["last"]).sorted() }
        #expect(isRead, "seed \(seed): after a restart")
        await again.stop()
    }

    private func honest(_ spool: SpoolHarness) -> [String] {
        spool.queue.with { $0.lines.filter { $0.app == "honest" }.map(\.text) }.sorted()
    }
}
