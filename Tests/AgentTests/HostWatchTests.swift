import EventLoops
import Glibc
import Logs
import Synchronization
import TestKit
import Testing

@testable import Agent
@testable import Configuration
@testable import Spool

@Suite("The host's name and time zone", .timeLimit(.minutes(2)))
struct HostWatchTests {
    /// Counts calls on any thread.
    private final class Calls: Sendable {
        private let count = Mutex(0)
        func add() { count.withLock { $0 += 1 } }
        var value: Int { count.withLock { $0 } }

        /// Waits for a call beyond those that were made before.
        func isCalled(after before: Int) async -> Bool {
            for _ in 0..<3000 {
                if value > before { return true }
                try? await Task.sleep(for: .milliseconds(10))
            }
            return false
        }
    }

    @Test("a zone that is set, by a new link or a new file, is reported; other names beside it are not")
    func zone() async throws {
        let directory = try TemporaryDirectory()
        let loop = try EventLoop(name: "main")
        try loop.start()
        defer { loop.stop() }
        let calls = Calls()
        let path = "\(directory.path)/localtime"
        let watch = HostWatch(
            on: loop, sharing: LoopBound(SharedReading(on: loop), to: loop), nameFile: "/nonexistent",
            localTime: path
        ) { calls.add() }
        await watch.start()
        // A name that is no concern comes first: were it reported, more calls would come than changes.
        try WholeFile.replace("\(directory.path)/resolv.conf", with: [0x0A], mode: 0o644)
        try await Task.sleep(for: .milliseconds(700))
        #expect(calls.value == 0)
        symlink("/usr/share/zoneinfo/Europe/Rome", path)
        #expect(await calls.isCalled(after: 0))
        symlink("/usr/share/zoneinfo/Asia/Tokyo", "\(path).new")
        rename("\(path).new", path)
        #expect(await calls.isCalled(after: 1))
        unlink(path)
        try WholeFile.replace(path, with: Array("TZif".utf8), mode: 0o644)
        #expect(await calls.isCalled(after: 2))
        await watch.stop()
    }

    @Test("a host that is renamed is reported by the kernel", .enabled(if: geteuid() == 0))
    func name() async throws {
        let loop = try EventLoop(name: "main")
        try loop.start()
        defer { loop.stop() }
        let calls = Calls()
        let watch = HostWatch(
            on: loop, sharing: LoopBound(SharedReading(on: loop), to: loop),
            localTime: "/nonexistent/localtime"
        ) { calls.add() }
        await watch.start()
        for round in 0..<3 {
            // The kernel reports renames in all namespaces; this machine keeps its name.
            let child = renameElsewhere()
            #expect(await calls.isCalled(after: round), "rename \(round)")
            #expect(child == 0)
        }
        await watch.stop()
        // Nothing is reported afterwards.
        let count = calls.value
        _ = renameElsewhere()
        try await Task.sleep(for: .milliseconds(700))
        #expect(calls.value == count)
    }

    /// Sets a host name in a namespace of its own; 0 if that was possible.
    private func renameElsewhere() -> Int32 {
        var child: pid_t = 0
        let words = ["unshare", "--uts", "hostname", "renamed"]
        var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) }
        arguments.append(nil)
        defer { for word in arguments { free(word) } }
        let failure = posix_spawnp(&child, "unshare", nil, nil, arguments, environ)
        guard failure == 0 else { return failure }
        var status: Int32 = 0
        waitpid(child, &status, 0)
        return status
    }

    @Test("facts that are looked up again say what has changed, once")
    func facts() throws {
        let directory = try TemporaryDirectory()
        var settings = Settings()
        settings.agent.stateDirectory = directory.path
        let machine = Machine(HostFacts(settings, version: "1", log: Log(KeptLog()), keepsID: false))
        let log = KeptLog()
        #expect(!machine.lookAgain(at: .init(nanoseconds: 0), log: Log(log)))
        #expect(machine.news.isEmpty && log.messages.isEmpty)
        // The variable takes precedence over the machine's zone, so no file of the machine is changed.
        let epoch = Timestamp(nanoseconds: 0)
        var other = "Asia/Tokyo"
        if !machine.lookAgain(at: epoch, log: Log(log), other) {
            // The machine is in Tokyo.
            other = "Europe/Rome"
            #expect(machine.lookAgain(at: epoch, log: Log(log), other))
        }
        #expect(machine.news.count == 1 && machine.news[0].contains("to \(other) at 1970"))
        #expect(log.messages.map(\.text) == ["time zone was changed"])
        #expect(!machine.lookAgain(at: .init(nanoseconds: 0), log: Log(log), "no such zone"))
        #expect(machine.news.count == 1)
    }
}
