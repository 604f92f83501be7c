import EventLoops
import Glibc
import Logs
import Model
import Spool
import TestKit
import Testing

@Suite("System calls that fail once", .serialized, .timeLimit(.minutes(60)))
struct FailingCallsTests {
    private static let errors = [ENOMEM, EMFILE, EIO, EACCES, EROFS, ENOENT]
    /// `SPOOL_FAULTS=100000` for all of them.
    private static let most = getenv("SPOOL_FAULTS").flatMap { Int(String(cString: $0)) } ?? 120
    private static let atOnce = 12

    private struct Outcome {
        var calls = 0
        var failed: String?
    }

    /// What a spool goes through in a few moments: each kind of file, from before the start and later; rotation; a directory that
    /// comes late. All of it must be read once, and gone.
    private func live(error: Int32, _ call: String? = nil, at: Int) async throws -> Outcome {
        let spool = try SpoolHarness()
        func drop(_ text: String, to name: String) {
            let hidden =
                String(
                    name.prefix(
                        upTo: name.lastIndex(of: "/").map { name.index(after: $0) } ?? name.startIndex))
                + ".new"
            spool.write(text, to: hidden)
            spool.rename(hidden, to: name)
        }
        spool.makeDirectory("app")
        spool.makeDirectory("app/deep")
        spool.write("1\n2\n", to: "app/x.jsonl")
        spool.write("3\n", to: "app/old.jsonl.1")
        drop("{\"n\":4}", to: "app/deep/a.json")
        drop("[{\"n\":5},{\"n\":6}]", to: "b.json")
        var options = SpoolOptions(directory: spool.path)
        options.settleTime = .milliseconds(60)
        options.secondTry = .milliseconds(100)
        options.sealTime = .milliseconds(80)
        options.giveUpTime = .milliseconds(500)
        options.graceTime = .milliseconds(60)
        options.pollInterval = .milliseconds(30)
        options.syncInterval = .milliseconds(30)
        options.maxOpenFiles = 2
        let reader = try SpoolReader(
            options, start: spool.queue.start, sink: KeepingSink(spool.queue, on: spool.loop), on: spool.loop,
            log: Log(spool.log))
        spool.loop.post { FaultSpool.arm(call, at: at, error: error) }
        await reader.start()
        spool.append("7\n", to: "app/x.jsonl")
        drop("{\"n\":8}", to: "app/c.json")
        spool.rename("app/x.jsonl", to: "app/x.jsonl.1")
        spool.write("9\n", to: "app/x.jsonl")
        spool.makeDirectory("late")
        drop("{\"n\":10}", to: "late/d.json")
        spool.write("{\"n\":11}", to: "late/slow.json")
        spool.write("12", to: "late/unended.log")
        let lines = ["1", "2", "3", "7", "9", "12"] + [4, 5, 6, 8, 10, 11].map { "{\"n\":\($0)}" }
        let isDone = await spool.holds(within: .seconds(45)) {
            spool.queue.lines.count >= lines.count && spool.names(in: "app") == ["deep"]
                && spool.names(in: "late").isEmpty
                && spool.names() == ["app", "late"] && spool.names(in: "app/deep").isEmpty
                && reader.figures.secondTries.isEmpty && spool.queue.with { $0.done.isEmpty }
        }
        let outcome = await withCheckedContinuation { continuation in
            spool.loop.post {
                let (calls, failed) = FaultSpool.disarm()
                continuation.resume(returning: Outcome(calls: calls, failed: failed))
            }
        }
        let state = [
            "\(SystemError.message(error)) from \(call ?? "call") \(at)", outcome.failed ?? "none",
            "\(spool.names())",
            "\(spool.names(in: "app"))", "\(spool.names(in: "late"))", "\(reader.figures.secondTries)",
            "\(spool.queue.with { $0.done.count })", "\(spool.queue.lines)",
        ]
        let told = spool.log.messages.suffix(8).map { "\($0.text) \($0.fields)" }
        let what = Comment(rawValue: (state + told).joined(separator: "; "))
        // EACCES is no failure of F_SETLEASE that passes: it says that there is no capability, and the file is kept. Its last line
        // without an end comes when a writer closes it, should the reader not have seen that before.
        if error != EACCES || outcome.failed != "fcntl" {
            #expect(isDone, what)
        } else if spool.names(in: "late").contains("unended.log") {
            spool.append("", to: "late/unended.log")
            _ = await spool.holds(within: .seconds(45)) { spool.queue.lines.count >= lines.count }
        }
        #expect(spool.queue.lines.sorted() == lines.sorted(), what)
        await reader.stop()
        return outcome
    }

    @Test(
        "whichever system call fails, with any error, nothing is lost, repeated, left unread or left behind"
    )
    func everyErrorHasASecondTry() async throws {
        let seed = Seeds.one(1)
        var random = SplitMix64(seed: seed)
        let calls = try await live(error: 0, at: .max).calls
        #expect(calls > 50)
        // The first so many, which each run makes in about the same order, and some that only a long run makes.
        var cases = Self.errors.flatMap { error in (1...(calls + calls / 4)).map { (error, $0) } }
        cases = Array(cases.shuffled(using: &random).prefix(Self.most))
        print("failing calls: seed \(seed), \(calls) calls in a run, \(cases.count) runs")
        let failed = try await run(cases.map { ($0, nil, $1) })
        print("failing calls: \(failed.sorted { $0.key < $1.key })")
    }

    /// The calls that each run makes, whatever its speed.
    private static let calls = [
        "openat2", "openat", "fstat", "fcntl", "pread", "readdir", "fdopendir", "renameat2", "unlinkat",
        "fsync",
        "name_to_handle_at", "inotify_add_watch",
    ]

    @Test("each kind of system call fails once with each error: the first call, and one chosen by a seed")
    func everyKindOfCallHasASecondTry() async throws {
        var random = SplitMix64(seed: Seeds.one(2))
        var cases: [(Int32, String?, Int)] = []
        for call in Self.calls {
            let calls = try await live(error: 0, call, at: .max).calls
            #expect(calls > 0, "no \(call) is made")
            cases += Self.errors.map { ($0, call, 1) }
            // How many there are depends on the run: this one may come too late to fail.
            if calls > 1 {
                cases.append(
                    (
                        Self.errors.randomElement(using: &random) ?? EIO, call,
                        Int.random(in: 2...calls, using: &random)
                    ))
            }
        }
        let failed = try await run(cases)
        print("failing calls: \(failed.sorted { $0.key < $1.key })")
        for call in Self.calls {
            #expect(failed[call, default: 0] >= Self.errors.count, "\(call): \(failed)")
        }
    }

    /// Several runs at once; how often which call has failed.
    private func run(_ cases: [(Int32, String?, Int)]) async throws -> [String: Int] {
        var failed: [String: Int] = [:]
        var index = 0
        while index < cases.count {
            let batch = cases[index..<min(index + Self.atOnce, cases.count)]
            index += batch.count
            try await withThrowingTaskGroup(of: Outcome.self) { group in
                for (error, call, at) in batch {
                    group.addTask { try await live(error: error, call, at: at) }
                }
                for try await outcome in group {
                    if let name = outcome.failed { failed[name, default: 0] += 1 }
                }
            }
        }
        return failed
    }
}
