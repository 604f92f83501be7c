import EventLoops
import Glibc
import Logs
import Synchronization
import TestKit
import Testing

@testable import Agent

@Suite("The service manager")
struct WatchdogTests {
    /// The other end of `NOTIFY_SOCKET`.
    private final class Listener {
        let path: String
        private let socket: Descriptor

        init(_ directory: TemporaryDirectory) throws {
            path = "\(directory.path)/notify"
            socket = try Descriptor(
                checking: Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0),
                "socket")
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
            let raw = socket.raw
            let result = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(raw, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
            guard result == 0 else { throw SystemError("bind") }
        }

        /// The next message; nil when none comes in time.
        func next(within limit: Duration = .seconds(20)) -> String? {
            var waiting = pollfd(fd: socket.raw, events: Int16(POLLIN), revents: 0)
            guard poll(&waiting, 1, Int32(limit / .milliseconds(1))) == 1 else { return nil }
            var bytes = [UInt8](repeating: 0, count: 1024)
            let count = recv(socket.raw, &bytes, bytes.count, 0)
            return count < 0 ? nil : String(decoding: bytes[..<count], as: UTF8.self)
        }

        /// Takes what is there already.
        func clear() { while next(within: .zero) != nil {} }
    }

    @Test("the environment of systemd is read: for which process the watchdog is, and its timeout")
    func limits() {
        #expect(
            ServiceManager.watchdogLimit(microseconds: "300000000", process: "\(getpid())") == .seconds(300))
        #expect(ServiceManager.watchdogLimit(microseconds: "300000000", process: nil) == .seconds(300))
        #expect(ServiceManager.watchdogLimit(microseconds: "300000000", process: "1") == nil)
        #expect(ServiceManager.watchdogLimit(microseconds: nil, process: nil) == nil)
        #expect(ServiceManager.watchdogLimit(microseconds: "0", process: nil) == nil)
        #expect(ServiceManager.watchdogLimit(microseconds: "soon", process: nil) == nil)
    }

    @Test("systemd gets the readiness as one line of status, whenever it changes")
    func status() throws {
        let directory = try TemporaryDirectory()
        let listener = try Listener(directory)
        let manager = try #require(ServiceManager(socket: listener.path))
        manager.notifyStatus(["the disk hangs\nWATCHDOG=1", "another reason"])
        manager.notifyStatus(["the disk hangs\nWATCHDOG=1"])
        manager.notifyStatus([])
        manager.notifyStatus([])
        #expect(listener.next() == "STATUS=not ready: the disk hangs")
        #expect(listener.next() == "STATUS=ready")
        #expect(listener.next(within: .zero) == nil)
    }

    @Test("the agent tells systemd how long its stop may take")
    func stopping() throws {
        let directory = try TemporaryDirectory()
        let listener = try Listener(directory)
        let manager = try #require(ServiceManager(socket: listener.path))
        manager.notifyStopping(within: .seconds(70))
        #expect(listener.next() == "STOPPING=1\nEXTEND_TIMEOUT_USEC=70000000")
    }

    @Test("a main loop that waits for a file is reported with the file's name, unless it continues in time")
    func hangingMainLoop() async throws {
        let (main, other) = (try EventLoop(name: "main"), try EventLoop(name: "store"))
        try main.start()
        try other.start()
        defer {
            main.stop()
            other.stop()
        }
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/token"
        try #require(mkfifo(path, 0o600) == 0)
        let log = KeptLog()
        let alarm = HangAlarm(for: main, on: other, log: Log(log))
        // By its path, as secrets are opened, until somebody writes.
        main.post {
            alarm.expect(within: .milliseconds(300))
            close(open(path, O_RDONLY | O_CLOEXEC))
            alarm.expect(within: nil)
        }
        #expect(await eventually { !log.messages.isEmpty })
        #expect(log.texts.allSatisfy { $0.contains("it waits for \(path): does that file system hang?") })
        close(open(path, O_WRONLY | O_CLOEXEC))
        main.post { alarm.expect(within: .milliseconds(1)) }
        // Time itself: a loop that sleeps waits for no file.
        try await Task.sleep(for: .milliseconds(100))
        #expect(log.messages.count == 1)
    }

    @Test(
        "systemd's watchdog is fed only while all loops answer and make progress; the reason is logged once"
    )
    func fault10_progressFeeds() async throws {
        let directory = try TemporaryDirectory()
        let listener = try Listener(directory)
        let manager = try #require(ServiceManager(socket: listener.path))
        let log = KeptLog()
        let main = try EventLoop(name: "main")
        let reader = try EventLoop(name: "reader")
        try main.start()
        try reader.start()
        defer {
            main.stop()
            reader.stop()
        }
        let stalls = Mutex<[String]>([])
        nonisolated(unsafe) let watchdog = Watchdog(
            limit: .milliseconds(400), manager: manager, on: main, others: [reader],
            alarm: HangAlarm(for: main, on: reader, log: Log(log)), log: Log(log)
        ) { stalls.withLock { $0 } }
        main.post { watchdog.start() }
        #expect(listener.next() == "WATCHDOG=1")
        #expect(listener.next() == "WATCHDOG=1")

        // A loop that hangs.
        let (hangs, ends) = (Gate(), Gate())
        reader.post {
            hangs.open()
            ends.wait()
        }
        #expect(await eventually { hangs.isOpen })
        #expect(await eventually { log.texts.contains { $0.contains("loop reader does not answer") } })
        listener.clear()
        // Time itself: eight times as long as between two meals, nothing comes.
        #expect(listener.next(within: .seconds(2)) == nil)
        ends.open()
        #expect(listener.next() == "WATCHDOG=1")

        // A pipeline that stands still.
        stalls.withLock { $0 = ["main: the next attempt is overdue"] }
        #expect(await eventually { log.texts.contains { $0.contains("overdue") } })
        listener.clear()
        #expect(listener.next(within: .seconds(2)) == nil)
        stalls.withLock { $0 = [] }
        #expect(listener.next() == "WATCHDOG=1")
        #expect(log.texts.filter { $0.contains("no progress") }.count == 2)
        await withCheckedContinuation { continuation in
            main.post {
                watchdog.stop()
                continuation.resume()
            }
        }
    }

    /// Lets a thread wait for another, half a minute at most.
    final class Gate: Sendable {
        private let state = Atomic(false)
        var isOpen: Bool { state.load(ordering: .acquiring) }
        func open() { state.store(true, ordering: .releasing) }
        func wait() { for _ in 0..<30_000 where !isOpen { usleep(1_000) } }
    }
}

extension KeptLog {
    /// What was written, each message with its fields.
    fileprivate var texts: [String] { messages.map { "\($0)" } }
}
