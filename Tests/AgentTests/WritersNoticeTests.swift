import EventLoops
import Glibc
import Logs
import Model
import Queue
import Spool
import TestKit
import Testing

@testable import Agent

@Suite("The notice to writers")
struct WritersNoticeTests {
    private func withLoop(_ body: (EventLoop) async throws -> Void) async throws {
        let loop = try EventLoop(name: "reader")
        try loop.start()
        defer { loop.stop() }
        try await body(loop)
    }

    /// Returns when what was posted to the loop before has run.
    private func settle(_ loop: EventLoop) async {
        await withCheckedContinuation { continuation in loop.post { continuation.resume() } }
    }

    @Test("writers can read what the agent accepts, and the reason if that is not everything")
    func ac08_writersAreTold() async throws {
        let spool = try TemporaryDirectory()
        try await withLoop { loop in
            let notice = WritersNotice(in: spool.path, isCollecting: true, on: loop, log: Log(KeptLog()))
            notice.queueAccepts(.critical)
            await settle(loop)
            #expect(SpoolState.read(in: spool.path).accepting == .critical)
            notice.queueAccepts(.nothing(.diskFull))
            await settle(loop)
            let full = SpoolState.read(in: spool.path)
            #expect(full.accepting == .none && full.reason.contains("disk"))
            notice.queueAccepts(.all)
            notice.setCollecting(false)
            await settle(loop)
            let disabled = SpoolState.read(in: spool.path)
            #expect(disabled.accepting == .none && disabled.reason.contains("disabled"))
            notice.setCollecting(true)
            await settle(loop)
            #expect(SpoolState.read(in: spool.path) == SpoolState(.all))
        }
    }

    @Test(".spoolship and its lock are made again if they were removed, unless another agent was faster")
    func lockAgain() async throws {
        let spool = try TemporaryDirectory()
        let log = KeptLog()
        try await withLoop { loop in
            let lock = try #require(try SpoolLock.take(spool.path))
            let notice = WritersNotice(
                in: spool.path, isCollecting: true, lock: lock, on: loop, log: Log(log))
            notice.queueAccepts(.critical)
            await settle(loop)
            #expect(notice.checkLock() == nil && log.messages.isEmpty)
            func remove() throws {
                for name in ["state", "lock"] {
                    try #require(unlink("\(spool.path)/.spoolship/\(name)") == 0)
                }
                try #require(rmdir("\(spool.path)/.spoolship") == 0)
            }
            func look() async -> String? {
                _ = notice.checkLock()
                await settle(loop)
                return notice.checkLock()
            }
            try remove()
            #expect(await look() == nil)
            #expect(SpoolState.read(in: spool.path).accepting == .critical)
            #expect(throws: SpoolError.self) { try SpoolLock.take(spool.path) }
            #expect(log.messages.count == 1)
            try remove()
            var other = try SpoolLock.take(spool.path)
            #expect(other != nil)
            #expect(await look()?.contains("another agent has it") == true)
            #expect(await look() != nil && log.messages.count == 1)
            other = nil
            #expect(await look() == nil)
            #expect(throws: SpoolError.self) { try SpoolLock.take(spool.path) }
        }
    }

    @Test("in a spool that may not be mounted nothing is created before files were read; status reports it")
    func foreign() async throws {
        let spool = try TemporaryDirectory()
        let own = "\(spool.path)/.spoolship"
        try await withLoop { loop in
            let notice = WritersNotice(
                in: spool.path, isCollecting: true, isNew: true, on: loop, log: Log(KeptLog()))
            notice.queueAccepts(.critical)
            await settle(loop)
            #expect(notice.checkLock()?.contains("is its file system mounted?") == true)
            await settle(loop)
            #expect(access(own, F_OK) != 0)
            #expect(notice.checkLock(hasBeenRead: true) == nil)
            await settle(loop)
            #expect(SpoolState.read(in: spool.path).accepting == .critical)
            #expect(throws: SpoolError.self) { try SpoolLock.take(spool.path) }
            #expect(notice.checkLock() == nil)
        }
    }

    @Test("a spool that is not writable is logged once, not at each change")
    func aFailureIsSaidOnce() async throws {
        let log = KeptLog()
        try await withLoop { loop in
            let notice = WritersNotice(in: "/nowhere/at/all", isCollecting: true, on: loop, log: Log(log))
            for _ in 0..<3 {
                notice.queueAccepts(.critical)
                notice.queueAccepts(.all)
                await settle(loop)
            }
            #expect(log.messages.count == 1)
        }
    }
}
