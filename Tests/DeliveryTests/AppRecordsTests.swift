import EventLoops
import Model
import TestKit
import Testing

@testable import Delivery

@Suite("What is remembered of apps")
struct AppRecordsTests {
    private func suspect(at second: Int64) -> AppRecords.Suspect {
        let now = BootInstant(nanoseconds: second * 1_000_000_000)
        return AppRecords.Suspect(since: now, at: now, inARow: 1, isAlone: true, failure: .unavailable)
    }

    @Test("the share of refused events follows what happened last, by app, and says nothing of too few")
    func shares() {
        var apps = AppRecords()
        apps.note(refused: true, events: 9, of: "web")
        #expect(apps.share(of: "web") == nil && apps.share(of: nil) == nil)
        apps.note(refused: false, events: 27, of: "web")
        #expect(apps.share(of: "web") == 0.25 && apps.share(of: nil) == nil)
        apps.note(refused: false, events: 5_000, of: "web")
        #expect(apps.share(of: "web").map { $0 < 0.05 } == true)
        apps.note(refused: true, events: 10, of: nil)
        #expect(apps.share(of: nil) == 1 && apps.share(of: "") == 1, "unknown apps share that of all")
    }

    @Test("an app is hopeless after fifty kept events, until it is forgiven")
    func kept() {
        var apps = AppRecords()
        apps.noteKept(49, of: "bad")
        #expect(apps.hasKept && !apps.isHopeless("bad"))
        apps.noteKept(1, of: "bad")
        apps.noteKept(50, of: "worse")
        #expect(apps.isHopeless("bad") && !apps.isHopeless("good") && !apps.isHopeless(nil))
        apps.forgive("bad")
        #expect(!apps.isHopeless("bad") && apps.isHopeless("worse"))
        apps.forgive(nil)
        #expect(!apps.hasKept)
    }

    @Test("a suspect stays until it is cleared; its kept events and its share stay longer")
    func suspects() {
        var apps = AppRecords()
        apps.noteKept(50, of: "bad")
        apps.suspect("bad", suspect(at: 1))
        apps.suspect("worse", suspect(at: 2))
        #expect(apps.hasSuspects && apps.suspects { $0 == suspect(at: 2) }.keys.sorted() == ["worse"])
        apps.clear { $0 == suspect(at: 2) }
        #expect(apps.suspect("worse") == nil && apps.suspect("bad") != nil)
        apps.clear("bad")
        #expect(!apps.hasSuspects && apps.isHopeless("bad"))
    }

    @Test("at most a thousand apps are remembered; those of which only a share is known go first")
    func bounds() {
        var apps = AppRecords()
        apps.noteKept(50, of: "bad")
        for app in 0..<2_000 { apps.note(refused: true, events: 10, of: "app\(app)") }
        #expect(apps.share(of: "app1999") == 1 && apps.share(of: "app0") == nil && apps.isHopeless("bad"))
        for app in 0..<1_000 { apps.suspect("app\(app)", suspect(at: 1)) }
        apps.suspect("late", suspect(at: 2))
        #expect(apps.suspects { _ in true }.count == 502)
        #expect(apps.suspect("app999") != nil && apps.suspect("app0") == nil && !apps.isHopeless("bad"))
        for app in 0..<2_000 { apps.suspect("app\(app)", suspect(at: 1)) }
        #expect(apps.suspects { _ in true }.count <= 1_000 && apps.suspect("app1999") != nil)
        apps.clear(nil)
        apps.forgive(nil)
        #expect(!apps.hasSuspects && !apps.hasKept)
    }
}
