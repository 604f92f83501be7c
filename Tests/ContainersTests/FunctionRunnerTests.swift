import EventLoops
import Glibc
import Model
import Synchronization
import TestKit
import Testing

@testable import Containers

@Suite("Functions", .serialized)
struct FunctionRunnerTests {
    private let directory: TemporaryDirectory
    private let loop: EventLoop

    init() throws {
        directory = try TemporaryDirectory()
        loop = try EventLoop(name: "functions")
        try loop.start()
    }

    /// A program in the shell's language; the agent itself uses none.
    private func program(_ text: String, _ name: String = "program") throws -> [String] {
        let path = "\(directory.path)/\(name)"
        let file = try Descriptor(checking: open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o755), "open")
        let bytes = Array("#!/bin/sh\n\(text)\n".utf8)
        #expect(write(file.raw, bytes, bytes.count) == bytes.count)
        return [path]
    }

    private struct Asker: @unchecked Sendable {
        // Everything happens on the loop's thread.
        let runner: FunctionRunner
    }

    private final class Failures: Sendable {
        private let kept = Mutex<[FunctionFailure]>([])
        var all: [FunctionFailure] { kept.withLock { $0 } }
        func add(_ failure: FunctionFailure) { kept.withLock { $0.append(failure) } }
    }

    private let failures = Failures()

    private func runner(_ definitions: [String: FunctionSettings]) -> Asker {
        Asker(runner: FunctionRunner(definitions, on: loop, failed: { [failures] in failures.add($0) }))
    }

    private func call(
        _ asker: Asker, _ function: String, _ parameters: JSONValue = [:], for app: String = "a"
    ) async -> JSONValue {
        await withCheckedContinuation { continuation in
            loop.post {
                asker.runner.call(FunctionCall(function: function, parameters: parameters), for: app) {
                    continuation.resume(returning: $0)
                }
            }
        }
    }

    private func cached(_ asker: Asker, _ function: String, _ parameters: JSONValue = [:]) async -> JSONValue?
    {
        await withCheckedContinuation { continuation in
            loop.post {
                continuation.resume(
                    returning: asker.runner.cachedResult(
                        of: FunctionCall(function: function, parameters: parameters)))
            }
        }
    }

    private func results(_ asker: Asker, _ function: String) -> [FunctionResult: Int] {
        asker.runner.figures.calls[function] ?? [:]
    }

    @Test(
        "tm14: JSON is written to standard input and one JSON value is read back; no shell sees the arguments"
    )
    func echo() async throws {
        let command = try program("read line; printf '{\"got\": %s, \"arg\": \"%s\"}' \"$line\" \"$1\"")
        let asker = runner(["echo": FunctionSettings(command: command + ["$(touch /tmp/x); `ls`"])])
        let answer = await call(asker, "echo", ["Category": "Music"])
        #expect(answer["got"]?["function"] == "echo")
        #expect(answer["got"]?["parameters"]?["Category"] == "Music")
        #expect(answer["arg"] == "$(touch /tmp/x); `ls`")
        #expect(results(asker, "echo") == [.success: 1])
    }

    @Test(
        "tm14: an unknown function, a failure, garbage, silence and too much output give null, and are counted"
    )
    func failures() async throws {
        let programs: [(String, String, FunctionResult)] = [
            ("code", "cat >/dev/null; echo 1; exit 3", .exit), ("signal", "kill -9 $$", .exit),
            ("rubbish", "echo '{\"a\": '", .badJSON), ("two", "echo '1 2'", .badJSON),
            ("nothing", "true", .badJSON),
            ("much", "yes | head -c 100000", .tooLarge), ("endless", "yes", .tooLarge),
        ]
        var definitions = ["none": FunctionSettings(command: ["/does/not/exist"])]
        for (name, text, _) in programs {
            definitions[name] = FunctionSettings(command: try program(text, name), timeout: .seconds(30))
        }
        let asker = runner(definitions)
        for (name, _, result) in programs {
            #expect(await call(asker, name) == .null)
            #expect(results(asker, name) == [result: 1], "\(name)")
        }
        #expect(await call(asker, "none") == .null)
        #expect(results(asker, "none") == [.notStarted: 1])
        #expect(await call(asker, "another") == .null)
        #expect(results(asker, "unknown") == [.unknown: 1])
        let large = JSONValue.string(String(repeating: "x", count: 70_000))
        #expect(await call(asker, "code", ["text": large]) == .null)
        #expect(results(asker, "code")[.tooLarge] == 1)
    }

    @Test("tm14: a function that hangs is killed with its children, and the next call runs")
    func hanging() async throws {
        let mark = "\(directory.path)/child"
        let command = try program("sleep 1000 & echo $! > \(mark); trap '' TERM; wait; sleep 1000")
        let asker = runner([
            "hang": FunctionSettings(command: command, timeout: .milliseconds(700)),
            "good": FunctionSettings(command: try program("echo 7", "good"), timeout: .seconds(30)),
        ])
        async let hanging = call(asker, "hang")
        #expect(await call(asker, "good") == 7)
        #expect(await hanging == .null)
        #expect(results(asker, "hang") == [.timeout: 1])
        let child = readSmall(mark).flatMap { pid_t($0.prefix { $0.isNumber }) }
        if let child {
            let deadline = SystemTime().bootTime + .seconds(20)
            while kill(child, 0) == 0, !isZombie(child) {
                try #require(SystemTime().bootTime < deadline, "the child runs on")
                usleep(10_000)
            }
        }
        #expect(asker.runner.figures.running["hang"] == 0)
    }

    @Test("tm14: a child that has left the process group and keeps the pipe open is not waited for")
    func daemon() async throws {
        let mark = "\(directory.path)/daemon"
        let command = try program(
            "setsid sh -c 'echo $$ > \(mark); exec sleep 1000' & while [ ! -s \(mark) ]; do :; done; echo 5")
        let asker = runner(["fork": FunctionSettings(command: command, timeout: .seconds(60))])
        #expect(await call(asker, "fork") == 5)
        if let child = readSmall(mark).flatMap({ pid_t($0.prefix { $0.isNumber }) }) { kill(child, SIGKILL) }
    }

    @Test("tm14: at most N run at once; the others wait, and the timeout of each begins with its start")
    func parallel() async throws {
        let log = "\(directory.path)/log"
        let command = try program("echo + >> \(log); sleep 0.3; echo - >> \(log); echo 1")
        let asker = runner(["slow": FunctionSettings(command: command, timeout: .seconds(60), parallel: 2)])
        await withTaskGroup(of: JSONValue.self) { group in
            for number in 0..<6 { group.addTask { await call(asker, "slow", ["n": .integer(number)]) } }
            for await answer in group { #expect(answer == 1) }
        }
        var running = 0
        var most = 0
        for mark in readSmall(log) ?? "" where mark != "\n" {
            running += mark == "+" ? 1 : -1
            most = max(most, running)
        }
        #expect(most == 2)

        let stuck = runner([
            "stuck": FunctionSettings(
                command: try program("sleep 1000", "stuck"), timeout: .milliseconds(400))
        ])
        await withTaskGroup(of: JSONValue.self) { group in
            for number in 0..<4 { group.addTask { await call(stuck, "stuck", ["n": .integer(number)]) } }
            for await answer in group { #expect(answer == .null) }
        }
        #expect(results(stuck, "stuck") == [.timeout: 4])
    }

    @Test("tm14: calls wait in one queue for each app; the app that has used least time is next")
    func turns() async throws {
        let log = "\(directory.path)/turns"
        let gate = "\(directory.path)/gate"
        let command = try program(
            """
            read call
            case $call in
            *first*) while ! [ -e \(gate) ]; do sleep 0.01; done;;
            *'"of":"a"'*) echo a >> \(log);;
            *) echo b >> \(log);;
            esac
            echo 1
            """)
        let time = ManualTime()
        let asker = Asker(
            runner: FunctionRunner(
                ["look": FunctionSettings(command: command, timeout: .seconds(60))], on: loop, time: time))
        let answered = Mutex(0)
        loop.post {
            for (app, calls) in [("a", ["first", "a", "a", "a"]), ("b", ["b", "b", "b"])] {
                for (number, of) in calls.enumerated() {
                    let call = FunctionCall(
                        function: "look", parameters: ["of": .string(of), "n": .integer(number)])
                    asker.runner.call(call, for: app) { _ in answered.withLock { $0 += 1 } }
                }
            }
        }
        #expect(await eventually { asker.runner.figures.running["look"] == 1 })
        time.advance(by: .seconds(10))
        _ = try program("", "gate")
        #expect(await eventually { answered.withLock { $0 } == 7 })
        #expect(readSmall(log) == "b\nb\nb\na\na\na\n")
    }

    @Test("tm14: waiting for a place does not count towards the timeout: every call runs")
    func waitingIsFree() async throws {
        let definition = FunctionSettings(command: try program("sleep 0.3; echo 1"), timeout: .seconds(5))
        let asker = runner(["slow": definition])
        await withTaskGroup(of: JSONValue.self) { group in
            for number in 0..<25 { group.addTask { await call(asker, "slow", ["n": .integer(number)]) } }
            for await answer in group { #expect(answer == 1) }
        }
        #expect(results(asker, "slow") == [.success: 25])
    }

    @Test(
        "tm14: a failure is reported with exit code and the beginning of standard error, however long that is"
    )
    func complaints() async throws {
        let scripts = [
            ("code", "echo 'no such user' >&2; exit 7", FunctionResult.exit, Int32(7), "no such user"),
            ("signal", "kill -SEGV $$", .exit, 139, ""),
            ("rubbish", "echo 'it says' >&2; echo x", .badJSON, 0, "it says"),
        ]
        for (name, text, result, code, said) in scripts {
            let asker = runner([
                name: FunctionSettings(command: try program(text, name), timeout: .seconds(60))
            ])
            #expect(await call(asker, name) == .null)
            let wanted = FunctionFailure(function: name, result: result, code: code, complaint: said)
            #expect(failures.all.last == wanted, "\(failures.all)")
        }
        // A megabyte is taken and left out; the program is not held up, and its answer counts.
        let chatty = try program("head -c 1000000 /dev/zero | tr '\\0' x >&2; echo 1", "chatty")
        let asker = runner(["chatty": FunctionSettings(command: chatty, timeout: .seconds(60))])
        #expect(await call(asker, "chatty") == 1)
        let loud = try program("head -c 1000000 /dev/zero | tr '\\0' x >&2; exit 1", "loud")
        let other = runner(["loud": FunctionSettings(command: loud, timeout: .seconds(60))])
        #expect(await call(other, "loud") == .null)
        #expect(failures.all.last?.complaint == String(repeating: "x", count: 256))
        // One that is killed has its words, too.
        let stuck = try program("echo waiting >&2; sleep 1000", "stuck")
        let third = runner(["stuck": FunctionSettings(command: stuck, timeout: .seconds(3))])
        #expect(await call(third, "stuck") == .null)
        #expect(
            failures.all.last
                == FunctionFailure(function: "stuck", result: .timeout, code: nil, complaint: "waiting"))
    }

    @Test(
        "tm14: a program that others can change or replace is not run until that is corrected; no restart needed"
    )
    func trust() async throws {
        let inner = "\(directory.path)/inner"
        #expect(mkdir(inner, 0o755) == 0)
        let path = try program("echo 1", "inner/it")[0]
        #expect(symlink(path, "\(directory.path)/link") == 0)
        func answer(_ path: String) async -> JSONValue {
            let asker = runner(["f": FunctionSettings(command: [path], timeout: .seconds(60))])
            return await call(asker, "f")
        }
        for changed in [path, inner, directory.path] {
            for (mode, isRun) in [(mode_t(0o757), false), (0o775, false), (0o755, true)] {
                #expect(chmod(changed, mode) == 0)
                for way in [path, "\(directory.path)/link"] {
                    let problem = FunctionProgram.problem(way)
                    #expect(
                        (problem == nil) == isRun, "\(changed) \(String(mode, radix: 8)): \(problem ?? "")")
                    #expect(await answer(way) == (isRun ? 1 : .null))
                    if !isRun { #expect(failures.all.last?.result == .notStarted) }
                }
            }
        }
        // In a directory with the sticky bit, as /tmp is: a link of somebody else's is not followed.
        #expect(chmod(directory.path, 0o1777) == 0)
        #expect(FunctionProgram.problem("\(directory.path)/link") == nil)
        if geteuid() == 0 {
            #expect(lchown("\(directory.path)/link", 65_534, 65_534) == 0)
            #expect(FunctionProgram.problem("\(directory.path)/link") != nil)
        }
        #expect(FunctionProgram.problem("/bin/sh") == nil)
        #expect(symlink("circle", "\(directory.path)/circle") == 0)
        #expect(FunctionProgram.problem("\(directory.path)/circle") != nil)
        // A runner that refused it asks again each time.
        let asker = runner(["f": FunctionSettings(command: [path], timeout: .seconds(60))])
        #expect(chmod(inner, 0o777) == 0)
        #expect(await call(asker, "f") == .null)
        #expect(chmod(inner, 0o755) == 0)
        #expect(await call(asker, "f") == 1)
    }

    @Test("tm14: a result is cached for its time and its parameters; a failure is not cached")
    func cache() async throws {
        let log = "\(directory.path)/log"
        let command = try program("echo run >> \(log); cat")
        let asker = runner([
            "get": FunctionSettings(command: command, timeout: .seconds(60), cache: .seconds(3600))
        ])
        #expect(await cached(asker, "get", ["a": 1]) == nil)
        let first = await call(asker, "get", ["a": 1])
        #expect(await cached(asker, "get", ["a": 1]) == first)
        #expect(await cached(asker, "get", ["a": 2]) == nil)
        #expect(readSmall(log) == "run\n")
        #expect(results(asker, "get") == [.success: 1, .cached: 1])
        // Asked twice at once, it runs once.
        async let one = call(asker, "get", ["a": 3])
        async let two = call(asker, "get", ["a": 3])
        let both = await [one, two]
        #expect(both[0] == both[1])
        let runs = (readSmall(log) ?? "").split(separator: "\n").count
        #expect(runs == 2 || runs == 3)

        let failing = runner([
            "bad": FunctionSettings(
                command: try program("exit 1", "bad"), timeout: .seconds(60), cache: .seconds(3600))
        ])
        #expect(await call(failing, "bad") == .null)
        #expect(await cached(failing, "bad") == nil)
    }

    @Test("tm14: a program inherits no descriptor, signal mask or secret of the environment")
    func inheritance() async throws {
        // A descriptor that a library forgot to mark.
        let leaked = open("/dev/null", O_RDONLY)
        defer { close(leaked) }
        setenv("SPOOLSHIP_TEST_SECRET", "geheim", 1)
        defer { unsetenv("SPOOLSHIP_TEST_SECRET") }
        let command = try program(
            """
            fds=$(ls /proc/self/fd | tr '\\n' ' ')
            mask=$(grep SigBlk /proc/self/status | cut -f2)
            ignored=$(grep SigIgn /proc/self/status | cut -f2)
            printf '{"fds": "%s", "mask": "%s", "ignored": "%s", "secret": "%s", "dir": "%s"}' \
            "$fds" "$mask" "$ignored" "$SPOOLSHIP_TEST_SECRET" "$(pwd)"
            """)
        let asker = runner(["look": FunctionSettings(command: command, timeout: .seconds(60))])
        let answer = await call(asker, "look")
        // 3 is the directory that ls itself reads.
        #expect(answer["fds"] == "0 1 2 3 ")
        #expect(answer["mask"] == "0000000000000000")
        // glibc leaves its own signals 32 and 33 ignored in what it spawns.
        #expect(answer["ignored"] == "0000000180000000" || answer["ignored"] == "0000000000000000")
        #expect(answer["secret"] == "" && answer["dir"] == "/")
    }

    @Test("tm14: when the agent stops, running programs are killed and all callers are answered")
    func stop() async throws {
        let asker = runner([
            "hang": FunctionSettings(command: try program("sleep 1000"), timeout: .seconds(1000), parallel: 1)
        ])
        async let first = call(asker, "hang", ["n": 1])
        async let second = call(asker, "hang", ["n": 2])
        let deadline = SystemTime().bootTime + .seconds(30)
        while asker.runner.figures.running["hang"] != 1, SystemTime().bootTime < deadline { usleep(5_000) }
        loop.post { asker.runner.stop() }
        #expect(await [first, second] == [.null, .null])
    }

    private func readSmall(_ path: String) -> String? {
        guard let file = try? Descriptor(checking: open(path, O_RDONLY), "open") else { return nil }
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = read(file.raw, &bytes, bytes.count)
        return String(decoding: bytes[..<max(0, count)], as: UTF8.self)
    }

    private func isZombie(_ process: pid_t) -> Bool {
        (readSmall("/proc/\(process)/stat") ?? "").split(separator: " ").dropFirst(2).first == "Z"
    }
}

extension FunctionSettings {
    fileprivate init(
        command: [String], timeout: Duration = .seconds(2), parallel: Int = 1, cache: Duration = .zero
    ) {
        self.init()
        self.command = command
        self.timeout = timeout
        self.parallel = parallel
        self.cache = cache
    }
}
