import EventLoops
import Glibc
import Logs
import TestKit
import Testing

@testable import Agent

/// What is said about the end of an agent that did not stop by itself.
@Suite("How the last run ended")
struct LastRunTests {
    private let machine: TemporaryDirectory
    private let state: TemporaryDirectory

    init() throws {
        machine = try TemporaryDirectory()
        state = try TemporaryDirectory()
        for directory in [
            "proc/self", "proc/sys/kernel/random", "sys/fs/cgroup/system.slice/spoolship.service",
        ] {
            var path = machine.path
            for part in directory.split(separator: "/") {
                path += "/\(part)"
                _ = mkdir(path, 0o755)
            }
        }
        try set("proc/self/cgroup", "12:cpuset:/\n0::/system.slice/spoolship.service\n")
        try boot("one")
        try killed(3)
        try set("sys/fs/cgroup/system.slice/spoolship.service/memory.max", "268435456\n")
    }

    private func set(_ path: String, _ text: String) throws {
        try writeFile("\(machine.path)/\(path)", text)
    }

    private func boot(_ id: String) throws { try set("proc/sys/kernel/random/boot_id", "\(id)\n") }

    private func killed(_ count: Int) throws {
        try set(
            "sys/fs/cgroup/system.slice/memory.events", "low 0\nhigh 4\nmax 71\noom 5\noom_kill \(count)\n")
    }

    /// Begins a run, and says what the log and `status` said.
    private func begin() -> (run: LastRun, log: String, complaints: [String]) {
        let log = KeptLog()
        let run = LastRun(in: state.path, root: machine.path)
        run.begin(Log(log))
        return (run, log.messages.map { "\($0)" }.joined(separator: "\n"), run.complaints)
    }

    @Test("the first start, and a start after an orderly stop, report nothing")
    func quiet() throws {
        let first = begin()
        #expect(first.log.isEmpty && first.complaints.isEmpty)
        first.run.end()
        try killed(9)
        let second = begin()
        #expect(second.log.isEmpty && second.complaints.isEmpty)
    }

    @Test("after the kernel ended processes for lack of memory, log and status name the group and the limit")
    func memory() throws {
        _ = begin()
        try killed(5)
        let next = begin()
        #expect(next.log.contains("for lack of memory") && next.log.contains("256 MiB"), "\(next.log)")
        let complaint = try #require(next.complaints.first)
        #expect(complaint.contains("ended 2 processes of /system.slice for lack of memory"), "\(complaint)")
        #expect(complaint.contains("its limit is 256 MiB"), "\(complaint)")
        // The next end has another cause: nothing was ended since.
        let last = begin()
        #expect(
            last.log.contains("it was killed, or ended by a fault") && last.complaints.isEmpty, "\(last.log)")
    }

    @Test("after the machine went down, the counts of another boot are not compared")
    func machineDown() throws {
        _ = begin()
        try boot("two")
        try killed(8)
        let next = begin()
        #expect(next.log.contains("the machine went down") && next.complaints.isEmpty, "\(next.log)")
    }

    @Test(
        "a truncated or garbled mark counts as a run that did not stop by itself",
        arguments: ["", "\n", "one", "one /a b c", "one /a x\n"])
    func garbage(_ text: String) throws {
        try writeFile("\(state.path)/running", text)
        let next = begin()
        #expect(next.complaints.isEmpty)
        #expect(
            next.log.contains("did not stop by itself") == !text.allSatisfy(\.isWhitespace), "\(next.log)")
    }

    @Test("version 1 of control groups is not read; in a container the agent reads its own group")
    func groups() throws {
        #expect(
            MemoryGroup(root: machine.path)
                == MemoryGroup(name: "/system.slice", killed: 3, limit: 268_435_456))
        try set("sys/fs/cgroup/system.slice/spoolship.service/memory.max", "max\n")
        #expect(MemoryGroup(root: machine.path)?.limit == nil)
        try set("proc/self/cgroup", "0::/\n")
        #expect(MemoryGroup(root: machine.path) == nil)
        try set("sys/fs/cgroup/memory.events", "oom_kill 1\n")
        #expect(MemoryGroup(root: machine.path) == MemoryGroup(name: "/", killed: 1, limit: nil))
        try set("proc/self/cgroup", "4:memory:/a\n")
        #expect(MemoryGroup(root: machine.path) == nil)
    }

    @Test(
        "only file systems in memory are reported as volatile: /dev/shm, but neither /proc nor missing paths")
    func volatileStorage() {
        #expect(VolatileStorage.name(of: "/dev/shm") == "tmpfs")
        #expect(VolatileStorage.name(of: "/proc") == nil)
        #expect(VolatileStorage.name(of: "/nowhere") == nil)
    }
}
