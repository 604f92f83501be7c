import EventLoops
import Glibc
import TestKit
import Testing

extension EndToEnd {
    @Suite("Deadlines")
    struct DeadlineTests {
        @Test(
            "ga08, ga09: late events of the app that a deadline names are counted one by one, and no others"
        )
        func ga08_lateEventsOfAnApp() throws {
            let bench = try Workbench()
            bench.settings["deadline.name"] = "\"reports\""
            bench.settings["deadline.time_zone"] = "\"Europe/Rome\""
            bench.settings["deadline.apps"] = "[\"shop\"]"
            try bench.startReceiver()
            for app in ["shop", "bank"] { try #require(mkdir("\(bench.spool)/\(app)", 0o755) == 0) }
            let now = SystemTime().wallTime
            func events(_ keys: Range<Int>, daysAgo: Int) -> String {
                keys.map { number in
                    let time = now - .seconds(86_400 * daysAgo)
                    return #"{"name":"sale","timestamp":"\#(time)","properties":{"key":"e\#(number)"}}"#
                        + "\n"
                }.joined()
            }
            // Nothing goes while both are read, so that late and punctual ones share batches.
            bench.settings["dispatch.interval"] = "\"off\""
            bench.settings["dispatch.batch_on_size"] = "false"
            try bench.startAgent()
            try bench.append(events(0..<5, daysAgo: 3) + events(5..<9, daysAgo: 0), to: "shop/app.jsonl")
            try bench.append(events(9..<20, daysAgo: 3), to: "bank/app.jsonl")
            try wait(.seconds(30), "all to be read") {
                try bench.figures().total("spoolship_events_read_total") == 20
            }
            let listed = try bench.command("queue", "list")
            #expect(listed.code == 0 && listed.text.contains("deadline=reports"), "\(listed)")
            #expect(listed.text.contains("left_seconds=-"), "late ones say so: \(listed)")
            #expect(try bench.command("drain").code == 0)
            try bench.waitUntilDelivered(20)
            try bench.expectOnce(Set((0..<20).map { "e\($0)" }), member: "key")
            #expect(
                try bench.figures().value(#"spoolship_deadline_late_events_total{deadline="reports"}"#) == 5)
        }
    }
}
