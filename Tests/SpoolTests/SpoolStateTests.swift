import Glibc
@testable import Spool
import TestKit
import Testing

@Suite("The spool's state for writers")
struct SpoolStateTests {
    @Test("ac08: the published state can be read by anybody; no state means that everything is accepted")
    func ac08_state() throws {
        let spool = try TemporaryDirectory()
        #expect(SpoolState.read(in: spool.path) == SpoolState(.all))
        #expect(SpoolState.read(in: "/nonexistent") == SpoolState(.all))
        for state in [
            SpoolState(.critical, reason: "the queue is full of critical events"),
            SpoolState(.none, reason: "disabled"),
            SpoolState(.all, reason: "not told"),
        ] {
            try state.publish(in: spool.path)
            #expect(SpoolState.read(in: spool.path) == state)
        }
        var status = stat()
        #expect(stat("\(spool.path)/.spoolship/state", &status) == 0 && status.st_mode & 0o777 == 0o644)
        #expect(SpoolState(.none, reason: "one\ntwo").reason == "one")
        #expect(
            SpoolState(.critical).accepts(critical: true) && !SpoolState(.critical).accepts(critical: false))
        #expect(SpoolState(.all).accepts(critical: false) && !SpoolState(.none).accepts(critical: true))
        #expect(throws: SpoolError.self) { try SpoolState(.all).publish(in: "/nonexistent") }
    }

    @Test("ac08: writers may read it whatever the agent's umask is, and although an earlier agent closed it")
    func ac08_readableByWriters() throws {
        let spool = try TemporaryDirectory()
        // As the unit's umask (0077) left it.
        mkdir("\(spool.path)/.spoolship", 0o700)
        try SpoolState(.none, reason: "disabled").publish(in: spool.path)
        var status = stat()
        #expect(stat("\(spool.path)/.spoolship", &status) == 0 && status.st_mode & 0o777 == 0o755)
        #expect(stat("\(spool.path)/.spoolship/state", &status) == 0 && status.st_mode & 0o777 == 0o644)
    }

    @Test("a link in place of the state, or of its directory, is not followed")
    func fault26_linksAreNotFollowed() throws {
        let spool = try TemporaryDirectory()
        let other = try TemporaryDirectory()
        try SpoolState(.none, reason: "other").publish(in: other.path)
        symlink("\(other.path)/.spoolship", "\(spool.path)/.spoolship")
        #expect(SpoolState.read(in: spool.path) == SpoolState(.all))
        #expect(throws: SpoolError.self) { try SpoolState(.critical).publish(in: spool.path) }
        #expect(SpoolState.read(in: other.path).accepting == .none)
        unlink("\(spool.path)/.spoolship")
        mkdir("\(spool.path)/.spoolship", 0o755)
        symlink("\(other.path)/.spoolship/state", "\(spool.path)/.spoolship/state")
        #expect(SpoolState.read(in: spool.path) == SpoolState(.all))
        try SpoolState(.critical).publish(in: spool.path)
        #expect(SpoolState.read(in: spool.path).accepting == .critical)
        #expect(SpoolState.read(in: other.path).accepting == .none)
    }
}
