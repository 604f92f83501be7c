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

    private func runner(_ definitions: [String: FunctionDefinition]) -> Asker {
        Asker(runner: FunctionRunner(definitions, on: loop))
    }

    private func call(_ asker: Asker, _ function: String, _ parameters: JSONValue = [:]) async -> JSONValue {
        await withCheckedContinuation { continuation in
            loop.post {
                asker.runner.call(FunctionCall(function: function, parameters: parameters)) {
                    continuation.resume(returning: $0)
                }
            }
        }
    }

    private func cached(_ asker: Asker, _ function: String, _ parameters: JSONValue = [:]) async -> JSONValue? {
        await withCheckedContinuation { continuation in
            loop.post {
                continuation.resume(
                    returning: asker.runner.cachedResult(of: FunctionCall(function: function, parameters: parameters)))
            }
        }
    }

    private func results(_ asker: Asker, _ function: String) -> [FunctionResult: Int] {
        asker.runner.figures.calls[function] ?? [:]
    }

    @Test("tm14: JSON goes in on standard input, one JSON value comes back; arguments are no shell's")
    func echo() async throws {
        let command = try program("read line; printf '{\"got\": %s, \"arg\": \"%s\"}' \"$line\" \"$1\"")
        let asker = runner(["echo": FunctionDefinition(command: command + ["$(touch /tmp/x); `ls`"])])
        let answer = await call(asker, "echo", ["Category": "Music"])
        #expect(answer["got"]?["function"] == "echo")
        #expect(answer["got"]?["parameters"]?["Category"] == "Music")
        #expect(answer["arg"] == "$(touch /tmp/x); `ls`")
        #expect(results(asker, "echo") == [.success: 1])
    }

    @Test("tm14: an unknown name, an exit code, a signal, rubbish, nothing, too much, no program: null, counted")
    func failures() async throws {
        let programs: [(String, String, FunctionResult)] = [
            ("code", "cat >/dev/null; echo 1; exit 3", .exit), ("signal", "kill -9 $$", .exit),
            ("rubbish", "echo '{\"a\": '", .badJSON), ("two", "echo '1 2'", .badJSON), ("nothing", "true", .badJSON),
            ("much", "yes | head -c 100000", .tooLarge), ("endless", "yes", .tooLarge),
        ]
        var definitions = ["none": FunctionDefinition(command: ["/does/not/exist"])]
        for (name, text, _) in programs {
            definitions[name] = FunctionDefinition(command: try program(text, name), timeout: .seconds(30))
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

    @Test("tm14: a function that hangs is killed with all that it has started, and the next one goes on")
    func hanging() async throws {
        let mark = "\(directory.path)/child"
        let command = try program("sleep 1000 & echo $! > \(mark); trap '' TERM; wait; sleep 1000")
        let asker = runner([
            "hang": FunctionDefinition(command: command, timeout: .milliseconds(700)),
            "good": FunctionDefinition(command: try program("echo 7", "good"), timeout: .seconds(30)),
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

    @Test("tm14: what has left the process group and holds the pipe open is not waited for")
    func daemon() async throws {
        let mark = "\(directory.path)/daemon"
        let command = try program(
            "setsid sh -c 'echo $$ > \(mark); exec sleep 1000' & while [ ! -s \(mark) ]; do :; done; echo 5")
        let asker = runner(["fork": FunctionDefinition(command: command, timeout: .seconds(60))])
        #expect(await call(asker, "fork") == 5)
        if let child = readSmall(mark).flatMap({ pid_t($0.prefix { $0.isNumber }) }) { kill(child, SIGKILL) }
    }

    @Test("tm14: at most N run at once; the others wait for a place, and no longer than their time")
    func parallel() async throws {
        let log = "\(directory.path)/log"
        let command = try program("echo + >> \(log); sleep 0.3; echo - >> \(log); echo 1")
        let asker = runner(["slow": FunctionDefinition(command: command, timeout: .seconds(60), parallel: 2)])
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
            "stuck": FunctionDefinition(command: try program("sleep 1000", "stuck"), timeout: .milliseconds(400))
        ])
        await withTaskGroup(of: JSONValue.self) { group in
            for number in 0..<4 { group.addTask { await call(stuck, "stuck", ["n": .integer(number)]) } }
            for await answer in group { #expect(answer == .null) }
        }
        #expect(results(stuck, "stuck") == [.timeout: 4])
    }

    @Test("tm14: a result serves again for its time, for the same parameters only; a failure never does")
    func cache() async throws {
        let log = "\(directory.path)/log"
        let command = try program("echo run >> \(log); cat")
        let asker = runner(["get": FunctionDefinition(command: command, timeout: .seconds(60), cache: .seconds(3600))])
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
            "bad": FunctionDefinition(
                command: try program("exit 1", "bad"), timeout: .seconds(60), cache: .seconds(3600))
        ])
        #expect(await call(failing, "bad") == .null)
        #expect(await cached(failing, "bad") == nil)
    }

    @Test("tm14: no descriptor, signal mask or secret of the environment is inherited")
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
        let asker = runner(["look": FunctionDefinition(command: command, timeout: .seconds(60))])
        let answer = await call(asker, "look")
        // 3 is the directory that ls itself reads.
        #expect(answer["fds"] == "0 1 2 3 ")
        #expect(answer["mask"] == "0000000000000000")
        // glibc leaves its own signals 32 and 33 ignored in what it spawns.
        #expect(answer["ignored"] == "0000000180000000" || answer["ignored"] == "0000000000000000")
        #expect(answer["secret"] == "" && answer["dir"] == "/")
    }

    @Test("tm14: when the agent stops, what runs is killed and everybody is answered")
    func stop() async throws {
        let asker = runner([
            "hang": FunctionDefinition(command: try program("sleep 1000"), timeout: .seconds(1000), parallel: 1)
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
