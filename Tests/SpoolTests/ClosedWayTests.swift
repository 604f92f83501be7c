import TestKit
import Testing

@testable import Spool

/// The advice for a path that may not be entered: a sandbox and access rights are told apart.
@Suite("Closed ways")
struct ClosedWayTests {
    private func advice(_ path: String, owner: UInt32, mode: String, isForAll: Bool = false) -> String {
        ClosedWay.advice(for: ClosedWay.Door(path: path, owner: owner, mode: mode, isForAll: isForAll))
    }

    @Test("for missing rights the message has the directory, its owner and mode, and the command that helps")
    func rights() {
        #expect(
            advice("/srv/app", owner: 1001, mode: "0700")
                == "the agent may not enter /srv/app (owner user id 1001, mode 0700): setfacl -m u:spoolship:x /srv/app"
        )
    }

    @Test("a directory that is listed must be readable, too; one above it need only be entered")
    func listed() {
        func advice(_ isListed: Bool) -> String {
            ClosedWay.advice(
                for: ClosedWay.Door(
                    path: "/d/other", owner: 0, mode: "0700", isForAll: false, isListed: isListed))
        }
        #expect(advice(true).hasSuffix(": setfacl -m u:spoolship:rx /d/other"))
        #expect(advice(false).hasSuffix(": setfacl -m u:spoolship:x /d/other"))
    }

    @Test("for a directory that systemd hides the message has the setting, and no advice about rights")
    func sandbox() {
        #expect(
            advice("/home", owner: 0, mode: "0000")
                == "spoolship.service hides /home from the agent:"
                + " write ProtectHome=read-only in a drop-in (systemctl edit spoolship)")
        #expect(advice("/srv", owner: 0, mode: "0000").contains("see InaccessiblePaths="))
        #expect(!advice("/home", owner: 0, mode: "0000").contains("setfacl"))
    }

    @Test("a directory that everybody may enter except the agent is blamed on a sandbox or a security module")
    func module() {
        let said = advice("/srv", owner: 0, mode: "0755", isForAll: true)
        #expect(said.contains("all users may enter /srv"))
        #expect(!said.contains("setfacl"))
    }
}
