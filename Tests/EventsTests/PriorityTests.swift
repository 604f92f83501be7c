@testable import Events
import Model
import Testing

@Suite("Priority of an event")
struct EventPriorityTests {
    @Test(
        "ac26: a forcing rule wins, then the event's own value, a rule, the default; unknown values are normal"
    )
    func ac26_order() {
        var options = EventOptions()
        options.defaults.priority = .critical
        options.priorityRules = [
            PriorityRule(event: "Login*", priority: .normal),
            PriorityRule(app: "bank", priority: .normal, force: true),
            PriorityRule(app: "shop", event: "Pay", priority: .critical, force: true),
            PriorityRule(event: "Quiet", priority: .normal, force: true),
            PriorityRule(event: "Log", priority: .normal),
        ]
        var reading = Reading(options)
        for (line, expected) in [
            (#"{"name":"x"}"#, .critical), (#"{"name":"x","priority":"normal"}"#, .normal),
            (#"{"name":"x","priority":"critical"}"#, .critical), (#"{"name":"Login"}"#, .normal),
            (#"{"name":"Login failed"}"#, .normal), (#"{"name":"Logi"}"#, .critical),
            (#"{"name":"Log"}"#, .normal),
            (#"{"name":"Login","priority":"critical"}"#, .critical),
            (#"{"name":"Pay","priority":"normal"}"#, .critical),
            (#"{"name":"Quiet","priority":"critical"}"#, .normal),
            (#"{"name":"Qui\u0065t","priority":"critical"}"#, .normal),
            (#"{"name":"x","priority":"High"}"#, .critical), (#"{"name":"x","priority":1}"#, .critical),
            (#"{"name":"Login","priority":"urgent"}"#, .normal),
            (#"{"name":"x","priority":null}"#, .critical), (#"{"name":"Quiet","type":"crash"}"#, .normal),
        ] as [(String, Priority)] {
            #expect(reading.read(line).verdict.priority == expected, "\(line)")
        }
        #expect(reading.pass.counts[.unknownPriority] == 3)
        // Of several forcing rules the first counts.
        options.priorityRules.append(PriorityRule(event: "Quiet", priority: .critical, force: true))
        var twice = Reading(options)
        #expect(twice.read(#"{"name":"Quiet","priority":"critical"}"#).verdict.priority == .normal)
        var bank = Reading(options, app: "bank")
        #expect(bank.read(#"{"name":"x","priority":"critical"}"#).verdict.priority == .normal)
    }

    @Test("ac26: crash records are critical, but not from an app that may not be critical")
    func ac26_crashAndMayBeCritical() {
        var own = Reading()
        #expect(own.read(#"{"name":"x","type":"crash"}"#).verdict.priority == .critical)
        #expect(own.read(#"{"name":"x","type":"crash","priority":"normal"}"#).verdict.priority == .critical)
        #expect(own.read(#"{"name":"x","type":"crashed"}"#).verdict.priority == .normal)
        var shared = Reading(isShared: true)
        #expect(shared.read(#"{"name":"x","type":"crash"}"#).verdict.priority == .normal)
        #expect(shared.read(#"{"name":"x","priority":"critical"}"#).verdict.priority == .normal)
        #expect(shared.read(#"{"name":"x","priority":"normal"}"#).verdict.priority == .normal)
        #expect(shared.pass.counts[.criticalDenied] == 2)
        // What a receiver reads is what the agent decided, of events and of records; nothing else is touched.
        for (line, expected) in [
            (#"{"name":"x","priority":"critical","n":1}"#, #"{"name":"x","priority":"normal","n":1"#),
            (#"{"priority": "critical"}"#, #"{"priority": "normal""#),
            (
                #"{"name":"x","type":"crash","priority":"critical"}"#,
                #"{"name":"x","type":"crash","priority":"normal""#
            ),
            (#"{"name":"x","priority":"Critical"}"#, #"{"name":"x","priority":"Critical""#),
        ] {
            #expect(shared.read(line).output?.hasPrefix(expected) == true, "\(line)")
        }
        var options = EventOptions()
        options.defaults.mayBeCritical = true
        var trusted = Reading(options, isShared: true)
        #expect(trusted.read(#"{"name":"x","priority":"critical"}"#).verdict.priority == .critical)
        options.defaults.mayBeCritical = false
        options.priorityRules = [PriorityRule(event: "x", priority: .critical)]
        var ruled = Reading(options)
        let critical = ruled.read(#"{"name":"x","priority":"critical"}"#)
        #expect(
            critical.verdict.priority == .critical
                && critical.output?.contains(#""priority":"critical""#) == true)
        #expect(ruled.read(#"{"name":"y","priority":"critical"}"#).verdict.priority == .normal)
    }
}
