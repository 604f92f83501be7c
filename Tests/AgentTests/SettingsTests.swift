import Configuration
import Delivery
import Events
import Logs
import Model
import TestKit
import Testing

@testable import Agent

@Suite("Settings for the modules")
struct SettingsTests {
    @Test("the routes of a destination's proxy count where it has one")
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
                "a": .address([192, 0, 2, 7]), "b": .address([192, 0, 2, 8]), "c": .local,
                "d": .address([0x20, 0x01, 0x0d, 0xb8] + Array(repeating: 0, count: 11) + [1]),
            ])
    }

    @Test("the first country rule that fits the app and the host decides, before the host's own country")
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
    @Test("ac19: each limit and each consequence of the configuration reaches the pass, and an app's own goes first")
    func ac19_limitsReachThePass() throws {
        let directory = try TemporaryDirectory()
        for (word, expected) in [("cut", .cut), ("refuse", .refuse), ("quarantine", .quarantine), ("allow", .allow)]
            as [(String, Events.LimitConsequence)]
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
            let events = settings.intakeSettings(cap: 1 << 20, isCollecting: true, country: nil, host: host).events
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
