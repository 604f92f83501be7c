import Glibc
import Spool
import TestKit
import Testing

@Suite("One agent for one spool")
struct SpoolLockTests {
    @Test(
        "a spool with an agent is refused to another one until the first ends; no one else may open the lock"
    )
    func oneAgent() throws {
        let spool = try TemporaryDirectory()
        do {
            let first = try SpoolLock.take(spool.path)
            #expect(first != nil)
            let error = #expect(throws: SpoolError.self) { try SpoolLock.take(spool.path) }
            #expect(error?.code == .inUse && error?.message.contains(spool.path) == true)
            var status = stat()
            #expect(stat("\(spool.path)/.spoolship/lock", &status) == 0 && status.st_mode & 0o777 == 0o600)
            withExtendedLifetime(first) {}
        }
        #expect(try SpoolLock.take(spool.path) != nil)
    }

    @Test("without a lock two agents may read, and neither removes anything; a link is not followed")
    func noLock() throws {
        #expect(try SpoolLock.take("/nonexistent") == nil)
        let spool = try TemporaryDirectory()
        mkdir("\(spool.path)/.spoolship", 0o755)
        symlink("\(spool.path)/elsewhere", "\(spool.path)/.spoolship/lock")
        #expect(try SpoolLock.take(spool.path) == nil)
        #expect(access("\(spool.path)/elsewhere", F_OK) != 0)
    }
}
