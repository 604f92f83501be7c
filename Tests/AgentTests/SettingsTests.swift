import Delivery
import Events
import EventLoops
import Glibc
@testable import Intake
import Logs
import Model
import Outputs
import Spool
import TestKit
import Testing
import TimeZones

@testable import Agent
@testable import Configuration

@Suite("Settings for the modules")
struct SettingsTests {
    @Test("a destination with a proxy depends on the routes to the proxy")
    func ac15_networkTargetsNameTheProxy() {
        var settings = Settings()
        for (name, url, proxy) in [
            ("a", "https://192.0.2.7/x", nil), ("b", "https://b.example.com", "http://192.0.2.8:3128"),
            ("c", "http://localhost:1", nil), ("d", "https://[2001:db8::1]:9", nil),
        ] as [(String, String, String?)] {
            var destination = DestinationSettings()
            destination.name = name
            destination.url = EndpointURL(url)
            destination.proxy = proxy.flatMap { EndpointURL($0) }
            settings.destinations.append(destination)
        }
        #expect(
            settings.networkTargets == [
                "a": [.address([192, 0, 2, 7])], "b": [.address([192, 0, 2, 8])], "c": [.local],
                "d": [.address([0x20, 0x01, 0x0d, 0xb8] + Array(repeating: 0, count: 11) + [1])],
            ])
    }

    @Test(
        "ac15: all servers of a destination are tried for a route, in the order in which the client connects"
    )
    func ac15_networkTargetsNameEveryServer() throws {
        var settings = Settings()
        var destination = DestinationSettings()
        destination.name = "bus"
        destination.url = EndpointURL("tls://192.0.2.7:4222")
        destination.nats.subject = "events"
        destination.nats.servers = ["tls://192.0.2.8:4222", "nats://localhost"].compactMap { EndpointURL($0) }
        settings.destinations = [destination]
        #expect(
            settings.networkTargets == [
                "bus": [.address([192, 0, 2, 7]), .address([192, 0, 2, 8]), .local]
            ])
        #expect(
            destination.addresses.map(\.text) == [
                "tls://192.0.2.7:4222", "tls://192.0.2.8:4222", "nats://localhost",
            ])
        destination.proxy = EndpointURL("http://192.0.2.9:3128")
        settings.destinations = [destination]
        #expect(settings.networkTargets == ["bus": [.address([192, 0, 2, 9])]])
        var kafka = DestinationSettings()
        kafka.name = "log"
        kafka.kafka.brokers = ["192.0.2.7:9092", "localhost:9092"]
        settings.destinations = [kafka]
        #expect(settings.networkTargets == ["log": [.address([192, 0, 2, 7]), .local]])
    }

    @Test(
        "ac15: a destination without a route to its configured servers stays online if it learned of others")
    func ac15_learnedServersCount() {
        var settings = Settings()
        var bus = DestinationSettings()
        bus.name = "bus"
        bus.url = EndpointURL("tls://192.0.2.7:4222")
        bus.nats.subject = "events"
        settings.destinations = [bus]
        #expect(settings.networkTargets == ["bus": [.address([192, 0, 2, 7]), .name]])
        bus.nats.followCluster = false
        settings.destinations = [bus]
        #expect(settings.networkTargets == ["bus": [.address([192, 0, 2, 7])]])
        var log = DestinationSettings()
        log.name = "log"
        log.kafka.brokers = ["192.0.2.7:9092", "kafka.example.com:9092"]
        settings.destinations = [log]
        #expect(settings.networkTargets == ["log": [.address([192, 0, 2, 7]), .name]])
        log.kafka.brokers = ["192.0.2.7:9092"]
        settings.destinations = [log]
        #expect(settings.networkTargets == ["log": [.address([192, 0, 2, 7]), .name]])
    }

    @Test("a change of label, encoding or inline secret invalidates earlier acknowledgements")
    func fault11_fingerprintOfSettings() throws {
        func fingerprint(_ change: (inout DestinationSettings) -> Void) throws -> String {
            var settings = Settings()
            var destination = DestinationSettings()
            destination.name = "main"
            destination.url = EndpointURL("https://example.com/loki/api/v1/push")
            change(&destination)
            settings.destinations = [destination]
            return try #require(try settings.deliveryOptions().destinations.first).fingerprint
        }
        func format<Settings>(
            _ make: @escaping (Settings) -> FormatSettings, _ standard: Settings,
            _ change: @escaping (inout Settings) -> Void
        ) -> (before: FormatSettings, after: FormatSettings) {
            var changed = standard
            change(&changed)
            return (make(standard), make(changed))
        }
        for (old, new) in [
            format(FormatSettings.loki, LokiSettings()) { $0.labels = ["job": "other"] },
            format(FormatSettings.ga4, GA4Settings()) { $0.measurementID = "G-2" },
            format(FormatSettings.otlp, OTLPSettings()) { $0.encoding = .json },
            format(FormatSettings.splunkHEC, SplunkSettings()) { $0.indexerAcknowledgement = true },
        ] {
            #expect(try fingerprint { $0.http.format = old } != fingerprint { $0.http.format = new })
        }
        let before = try fingerprint { _ in }
        #expect(before.utf8.count == 64)
        for change: (inout DestinationSettings) -> Void in [
            { $0.http.batchIDParameter = "token" }, { $0.http.tokenScheme = "Other" },
            { $0.http.outcomes = ["404": .retry] }, { $0.token.inline = Secret("hidden-token") },
        ] {
            let after = try fingerprint(change)
            #expect(after != before && !after.contains("hidden"))
        }
        #expect(try fingerprint { $0.connectTimeout = .seconds(3) } == before)
    }

    @Test("ac22: the first start has an install id, although the state directory does not exist yet")
    func ac22_installIDOfTheFirstStart() throws {
        let directory = try TemporaryDirectory()
        var settings = Settings()
        settings.agent.stateDirectory = "\(directory.path)/state"
        let log = KeptLog()
        let first = HostFacts(settings, version: "1", log: Log(log))
        #expect(first.installID?.utf8.count == 36)
        #expect(HostFacts(settings, version: "1", log: Log(log)).installID == first.installID)
        #expect(!log.messages.contains { $0.text.contains("install id") })
        var status = stat()
        #expect(stat(settings.agent.stateDirectory, &status) == 0 && status.st_mode & 0o777 == 0o700)
    }

    @Test("ga08: apps that a deadline names get their own chunks, with the names of the deadlines")
    func ga08_deadlinesOfApps() throws {
        let directory = try TemporaryDirectory()
        var settings = Settings()
        settings.agent.stateDirectory = directory.path
        for name in ["main", "other"] {
            var destination = DestinationSettings()
            destination.name = name
            destination.url = EndpointURL("https://\(name).example.com")
            settings.destinations.append(destination)
        }
        settings.apps["bank"] = AppSettings()
        settings.apps["bank"]?.destinations = ["other"]
        settings.apps["plain"] = AppSettings()
        for (name, apps, to) in [
            ("reports", ["shop", "bank"], []), ("all", [], ["main"]), ("night", ["shop"], []),
        ] as [(String, [String], [String])] {
            var deadline = DeadlineSettings()
            (deadline.name, deadline.apps, deadline.destinations) = (name, apps, to)
            deadline.timeZone = "Europe/Rome"
            settings.deadlines.append(deadline)
        }
        let intake = settings.intakeSettings(
            cap: 10 << 20, isCollecting: true, country: nil,
            host: HostFacts(settings, version: "1", log: Log(KeptLog())))
        func route(_ app: String) -> (to: [String], deadlines: String?) {
            let route = intake.routes[intake.routeIndex(of: app)]
            return (route.destinations.map(\.text), route.deadlines?.text)
        }
        #expect(route("shop") == (["main", "other"], "night,reports"))
        #expect(route("bank") == (["other"], "reports"))
        #expect(route("plain") == (["main", "other"], nil) && intake.routeIndex(of: "plain") == 0)
        let options = try settings.deliveryOptions()
        #expect(options.deadlines["main"]?.map(\.name) == ["reports", "all", "night"])
        #expect(options.deadlines["other"]?.map(\.apps) == [["shop", "bank"], ["shop"]])
    }

    @Test("ga09: a listed batch shows its next deadline and the time left, by the deadlines for its events")
    func ga09_timeLeft() throws {
        let reports = Deadline(name: "reports", zone: .utc, apps: ["shop"])
        let all = Deadline(name: "all", secondOfDay: 6 * 3600, zone: .utc)
        // 2026-06-10T12:00:00Z: until 04:00 and 06:00 of the next day.
        let noon = 1_781_092_800_000
        func record(_ names: JSONValue) -> JSONValue {
            ["destination": "main", "first_event_ms": .integer(noon), "deadlines": names]
        }
        let now = Timestamp(milliseconds: Int64(noon)) + .seconds(15 * 3600)
        let shop = AgentRecords.withTimeLeft(record("reports"), ["main": [reports, all]], at: now)
        #expect(shop["deadline"] == "reports" && shop["left_seconds"] == .integer(3600))
        #expect(shop["due_ms"] == .integer(noon + 16 * 3_600_000))
        let bank = AgentRecords.withTimeLeft(record(.null), ["main": [reports, all]], at: now)
        #expect(bank["deadline"] == "all" && bank["left_seconds"] == .integer(3 * 3600))
        let late = AgentRecords.withTimeLeft(record(.null), ["main": [all]], at: now + .seconds(4 * 3600))
        #expect(late["left_seconds"] == .integer(-3600))
        #expect(AgentRecords.withTimeLeft(record(.null), ["main": [reports]], at: now) == record(.null))
    }

    @Test("the first country rule that matches app and host wins over the host's own country")
    func ac23_countryRulesDecideInTheirOrder() {
        var settings = Settings()
        settings.country.code = "DE"
        for (app, host, code) in [("shop", "rome-*", "IT"), ("shop", nil, "AT"), (nil, "bern-1", "CH")]
            as [(String?, String?, String)]
        {
            var rule = CountryRule()
            (rule.app, rule.host, rule.code) = (app, host, code)
            settings.country.rules.append(rule)
        }
        func code(_ app: String?, _ host: String) -> String? {
            settings.countryCode(of: app, on: host).map { "\($0)" }
        }
        #expect(code("shop", "rome-7") == "IT")
        #expect(code("shop", "bern-1") == "AT")
        #expect(code("bank", "bern-1") == "CH")
        #expect(code(nil, "bern-1") == "CH")
        #expect(code(nil, "rome-7") == "DE")
    }
}

extension SettingsTests {
    @Test(
        "a drip gathers for a fifteenth of the shortest wait, without critical events a tenth of the interval",
        arguments: [
            ("", 200, 600), ("dispatch.interval = \"off\"", 200, 200),
            ("dispatch.critical_delay = \"600ms\"", 40, 600), ("dispatch.interval = \"1500ms\"", 100, 150),
            ("dispatch.critical_delay = \"0s\"\ndispatch.allow_zero_delay = true", 5, 5),
            ("dispatch.batch_events = 1", 200, 200),
            ("[[destination]]\nname = \"a\"\ntype = \"stdout\"\ncritical_delay = \"600ms\"", 40, 600),
            (
                "[[destination]]\nname = \"a\"\ntype = \"stdout\"\ninterval = \"1500ms\"\n"
                    + "[[destination]]\nname = \"b\"\ntype = \"stdout\"\ninterval = \"off\"", 100, 150
            ),
            (
                "dispatch.critical_delay = \"300ms\"\n"
                    + "[[destination]]\nname = \"a\"\ntype = \"stdout\"\ncritical_delay = \"3s\"", 200, 600
            ),
        ])
    func linger(text: String, milliseconds: Int, patience: Int) throws {
        let directory = try TemporaryDirectory()
        let whole = "agent.state_directory = \"\(directory.path)\"\n\(text)\n"
        let settings = try Settings.read([ConfigurationText(file: "t.toml", text: whole)]).settings
        #expect(settings.spoolOptions.linger == .milliseconds(milliseconds))
        #expect(settings.spoolOptions.patience == .milliseconds(patience))
    }

    @Test("ac19: each limit and its consequence reach the pass; an app's settings override the general ones")
    func ac19_limitsReachThePass() throws {
        let directory = try TemporaryDirectory()
        for (word, expected) in [
            ("cut", .cut), ("refuse", .refuse), ("quarantine", .quarantine), ("allow", .allow),
        ]
            as [(String, LimitConsequence)]
        {
            let limits = ["name_length", "properties", "property_key_length", "property_value_length"]
            let text = """
                agent.state_directory = "\(directory.path)"
                [limits]
                event_names = 7
                beyond_event_names = "\(expected == .cut ? "refuse" : word)"
                \(limits.map { "\($0) = 9\nbeyond_\($0) = \"\(word)\"" }.joined(separator: "\n"))
                [apps.shop.limits]
                property_value_length = 500
                beyond_property_value_length = "allow"
                [apps.bank.limits]
                name_length = 0
                """
            let settings = try Settings.read([ConfigurationText(file: "t.toml", text: text)]).settings
            let host = HostFacts(settings, version: "1", log: Log(KeptLog()))
            let events = settings.intakeSettings(cap: 1 << 20, isCollecting: true, country: nil, host: host)
                .events
            let all = events.defaults.limits
            #expect(all.eventNames == Limit(7, expected == .cut ? .refuse : expected))
            for limit in [all.nameLength, all.properties, all.propertyKeyLength, all.propertyValueLength] {
                #expect(limit == Limit(9, expected))
            }
            var shop = all
            shop.propertyValueLength = Limit(500, .allow)
            #expect(events.apps["shop"]?.limits == shop)
            var bank = all
            bank.nameLength.value = 0
            #expect(events.apps["bank"]?.limits == bank)
        }
    }
}
