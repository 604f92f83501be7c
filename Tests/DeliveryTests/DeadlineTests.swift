@testable import Delivery
import EventLoops
import Model
import TestKit
import Testing
import TimeZones

@Suite("Deadlines")
struct DeadlineTests {
    private func time(_ zone: TimeZoneRules, _ text: String) throws -> Timestamp {
        let numbers = text.split { "-: ".contains($0) }.compactMap { Int($0) }
        try #require(numbers.count == 5)
        let date = LocalDate(year: numbers[0], month: numbers[1], day: numbers[2])
        return zone.instant(of: date, secondOfDay: numbers[3] * 3600 + numbers[4] * 60)
    }

    @Test(
        "ga08: an event has until 04:00 of the next local date, on unusual days too",
        arguments: [
            ("Europe/Rome", "2026-06-10 23:59", "4:01"), ("Europe/Rome", "2026-06-10 00:00", "28:00"),
            // Clocks go forward in the night before the deadline.
            ("Europe/Rome", "2026-03-28 23:59", "3:01"), ("Europe/Rome", "2026-03-28 00:00", "27:00"),
            // And back.
            ("Europe/Rome", "2026-10-24 23:59", "5:01"), ("Europe/Rome", "2026-10-24 00:00", "29:00"),
            ("America/New_York", "2026-03-07 23:59", "3:01"),
            ("America/New_York", "2026-10-31 00:00", "29:00"),
            // 03:00 becomes 04:00.
            ("Europe/Athens", "2026-03-28 23:59", "3:01"),
            // Half an hour of daylight saving.
            ("Australia/Lord_Howe", "2026-10-03 23:59", "3:31"),
            // Midnight becomes 23:00.
            ("Africa/Cairo", "2026-10-29 22:59", "6:01"),
            // Midnight becomes 01:00.
            ("Atlantic/Azores", "2026-03-28 23:59", "3:01"), ("Africa/Cairo", "2026-04-23 23:59", "3:01"),
            // 30 December 2011 does not exist there: a day less until the 31st.
            ("Pacific/Apia", "2011-12-29 23:59", "4:01"), ("Pacific/Apia", "2011-12-29 00:00", "28:00"),
            ("Pacific/Apia", "2011-12-28 12:00", "16:00"), ("Pacific/Apia", "2011-12-31 00:00", "28:00"),
            ("UTC", "2026-01-01 00:00", "28:00"),
        ])
    func ga08_table(zone: String, event: String, left: String) throws {
        let rules = try TimeZoneLoader().load(zone)
        let deadline = Deadline(name: "view", zone: rules)
        let at = try time(rules, event)
        let wanted = left.split(separator: ":").compactMap { Int($0) }
        #expect(deadline.due(for: at) - at == .seconds(wanted[0] * 3600 + wanted[1] * 60))
    }

    @Test("ga08: a missing time is the first instant after the gap, a doubled one the earlier instant")
    func ga08_gapAndOverlap() throws {
        let rome = try TimeZoneLoader().load("Europe/Rome")
        let deadline = Deadline(name: "view", secondOfDay: 2 * 3600 + 1800, zone: rome)
        #expect(deadline.due(for: try time(rome, "2026-03-28 12:00")) == (try time(rome, "2026-03-29 03:00")))
        // 02:30 comes at 00:30 and at 01:30 UTC.
        let utc = TimeZoneRules.utc
        #expect(deadline.due(for: try time(rome, "2026-10-24 12:00")) == (try time(utc, "2026-10-25 00:30")))
    }

    @Test(
        "ga08, ga09: late and at-risk boundaries agree with each event's own deadline, at any time in any zone",
        arguments: [
            "Europe/Rome", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "Pacific/Apia", "UTC",
        ])
    func boundariesAgree(zone: String) throws {
        let rules = try TimeZoneLoader().load(zone)
        var random = SplitMix64(seed: 11)
        for _ in 0..<2000 {
            let second = Int.random(in: 0..<86_400, using: &random)
            let deadline = Deadline(name: "view", secondOfDay: second, zone: rules)
            // 2011-12-20 to 2012-01-10 for Apia, else anywhere in the years around.
            let span: Range<Int64> =
                zone == "Pacific/Apia" ? 1_324_339_200..<1_326_153_600 : 1_577_836_800..<2_000_000_000
            let now = Timestamp(nanoseconds: Int64.random(in: span, using: &random) * 1_000_000_000)
            let event = now - .seconds(Int.random(in: -86_400...(4 * 86_400), using: &random))
            #expect((event < deadline.lateBefore(at: now)) == (deadline.due(for: event) <= now))
            let due = deadline.due(for: event)
            #expect(
                event < deadline.lateBefore(at: due)
                    && event >= deadline.lateBefore(at: due - .nanoseconds(1)))
            let end = deadline.end(ofDayOf: event)
            #expect(end > event)
            #expect(deadline.due(for: end) > deadline.due(for: event))
            #expect(deadline.due(for: end - .nanoseconds(1)) == deadline.due(for: event))
        }
    }

    @Test("ga09: events at risk are sent without waiting for the interval, but never against off")
    func ga09_atRisk() throws {
        let rome = try TimeZoneLoader().load("Europe/Rome")
        let deadline = Deadline(name: "daily", zone: rome)
        func world(_ interval: DispatchInterval) throws -> World {
            var world = World(options(interval: interval) { $0.deadlines = [deadline] })
            world.stepWall(by: try time(rome, "2026-06-11 00:10") - world.wall)
            world.store.acceptedAt = try time(rome, "2026-06-10 23:50")
            return world
        }
        var on = try world(.every(.seconds(86_400)))
        let start = on.boot
        on.accept(20)
        on.run(.seconds(12 * 3600))
        #expect(on.sent.count == 1)
        let waited = on.sent[0].at - start
        // At 03:30, half an hour before the deadline.
        #expect(waited >= .seconds(3 * 3600 + 20 * 60) && waited < .seconds(3 * 3600 + 20 * 60 + 2))
        #expect(on.shown.counters.late.isEmpty)

        var off = try world(.off)
        off.accept(20)
        off.run(.seconds(12 * 3600))
        #expect(off.sent.isEmpty)
        // Late ones are sent all the same, and counted by view.
        off.input(.dispatch(nil, nil))
        off.run(.seconds(1))
        #expect(off.shown.counters.late == ["daily": 20])
        #expect(off.store.acknowledged.count == 20)
    }

    @Test("ga09: the request names the events with the next deadline, and none if no deadline is near")
    func ga09_urgentBefore() throws {
        let rome = try TimeZoneLoader().load("Europe/Rome")
        let newYork = try TimeZoneLoader().load("America/New_York")
        let deadlines = [
            Deadline(name: "rome", zone: rome), Deadline(name: "new york", zone: newYork),
        ]
        let event = try time(rome, "2026-06-10 23:50")
        var lane = LaneSummary()
        (lane.waitingEvents, lane.earliestEventTime) = (1, event)
        #expect(deadlines.atRisk(lane) == (try time(rome, "2026-06-11 03:30")))
        #expect(deadlines.urgent(in: lane, at: try time(rome, "2026-06-11 03:29")) == nil)
        let urgent = try #require(deadlines.urgent(in: lane, at: try time(rome, "2026-06-11 03:30")))
        #expect(urgent == (try time(rome, "2026-06-11 00:00"), nil))
    }

    @Test(
        "ga08, ga09: a deadline for some apps concerns only their events, and the request names the urgent apps"
    )
    func ga09_apps() throws {
        let rome = try TimeZoneLoader().load("Europe/Rome")
        let deadlines = [
            Deadline(name: "shop", zone: rome, apps: ["shop"]),
            Deadline(name: "late", secondOfDay: 6 * 3600, zone: rome, apps: ["shop", "bank"]),
        ]
        let old = try time(rome, "2026-06-08 12:00")
        let event = try time(rome, "2026-06-10 23:50")
        let now = try time(rome, "2026-06-11 03:30")
        // Other apps' events may be as old as they like.
        var others = LaneSummary()
        (others.waitingEvents, others.earliestEventTime) = (9, old)
        #expect(deadlines.atRisk(others) == nil)
        #expect(deadlines.urgent(in: others, at: now) == nil)

        var lane = others
        lane.earliestByDeadlines[try #require(DeadlineNames(["shop", "late"]))] = event
        #expect(deadlines.atRisk(lane) == now)
        #expect(deadlines.urgent(in: lane, at: now - .seconds(1)) == nil)
        #expect(
            try #require(deadlines.urgent(in: lane, at: now)) == (try time(rome, "2026-06-11 00:00"), "shop"))
        lane.earliestByDeadlines = [try #require(DeadlineNames(["late"])): event]
        #expect(deadlines.atRisk(lane) == (try time(rome, "2026-06-11 05:30")))
        #expect(DeadlineNames([String]()) == nil && DeadlineNames(["b", "a", "b"])?.text == "a,b")
    }
}
