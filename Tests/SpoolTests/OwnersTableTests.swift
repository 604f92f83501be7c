@testable import Spool
import Testing

/// Users' names, apps and shares, without a user, a disk or a directory service.
@Suite("Spool: owner table")
struct OwnersTableTests {
    @Test("a name is looked up once at a time, and known afterwards")
    func lookup() {
        let owners = Owners()
        #expect(owners.name(of: 1000) == .toLookUp && owners.name(of: 1000) == .awaited)
        #expect(owners.name(of: 1001) == .toLookUp)
        #expect(owners.shownName(of: 1000) == "uid-1000")
        owners.found("anna", of: 1000)
        #expect(
            owners.name(of: 1000) == .known("anna") && owners[1000] == "anna"
                && owners.shownName(of: 1000) == "anna")
        #expect(owners.name(of: 1001) == .awaited)
    }

    @Test("of a range of subordinate ids one name is looked up at a time")
    func subordinate() {
        let owners = Owners()
        let first: UInt32 = 2 << 16
        #expect(owners.name(of: first) == .toLookUp && owners.name(of: first + 1) == .awaited)
        #expect(owners.name(of: first + 65_536) == .toLookUp)
        owners.found("uid-\(first)", of: first)
        #expect(owners.name(of: first + 1) == .toLookUp)
    }

    @Test("each of the first users has a share, so has each range beyond them, and each user with a name")
    func shares() {
        let owners = Owners()
        #expect(owners.share(of: 0) == "uid-0" && owners.share(of: 65_535) == "uid-65535")
        #expect(owners.share(of: 65_536) == "uids-1" && owners.share(of: 131_071) == "uids-1")
        owners.found("uid-65536", of: 65_536)
        #expect(owners.share(of: 65_536) == "uids-1")
        owners.found("anna", of: 65_537)
        #expect(owners.share(of: 65_537) == "anna")
    }

    @Test("a user whose name is another user's app writes as the user id instead")
    func clash() {
        #expect(Owners.app(of: 7, named: "shop") { $0 == "shop" } == .clash("uid-7"))
        #expect(Owners.app(of: 7, named: "anna") { $0 == "shop" } == .own("anna"))
        #expect(Owners.app(of: 7, named: "shop") { _ in true }.name == "uid-7")
    }

    @Test("the table is bounded")
    func bounded() {
        let owners = Owners()
        for owner in 0...UInt32(Owners.most) { owners.found("u\(owner)", of: owner) }
        let known = (0...UInt32(Owners.most)).count { owners[$0] != nil }
        #expect(known >= 1 && known <= Owners.most)
        #expect(owners[UInt32(Owners.most)] != nil)
    }
}
