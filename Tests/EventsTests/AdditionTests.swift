@testable import Events
import EventLoops
import Model
import TimeZones
import Testing

/// Countries of two addresses.
private func twoCountries(_ address: String) -> CountryCode? {
    switch address {
    case "192.0.2.1": CountryCode("IT")
    case "2001:db8::1": CountryCode("JP")
    default: nil
    }
}

@Suite("Members added from the machine and the settings")
struct AdditionTests {
    @Test("ac22: the device is added, with the time zone's offset at the event's own time")
    func ac22_device() throws {
        var options = EventOptions()
        options.session.mode = .off
        options.device = DeviceText(
            members: [.init("os_name", "Debian \"12\"")], zone: try TimeZoneLoader().load("Europe/Rome"))
        options.apps["shop"] = AppOptions()
        options.apps["shop"]?.version = "1.2"
        var reading = Reading(options)
        for (time, offset) in [
            ("2026-11-20T10:00:00Z", 60), ("2026-10-26T10:00:00Z", 60), ("2026-11-20T09:00:00Z", 60),
        ] {
            let output = try #require(reading.read(#"{"name":"a","timestamp":"\#(time)"}"#).output)
            #expect(
                output.contains(
                    #""app":"shop","device":{"os_name":"Debian \"12\"","app_version":"1.2","time_zone_offset":\#(offset)},"observed_at":"#
                ))
        }
        // The same block holds events of both halves of the year.
        let summer = Timestamp(milliseconds: 1_792_922_400_000)
        for (time, offset) in [
            ("2026-10-25T00:59:59.9Z", 120), ("2026-10-25T01:00:00Z", 60), ("2026-10-24T10:00:00Z", 120),
            ("2026-10-25T01:00:00Z", 60),
        ] {
            let output = try #require(
                reading.read(#"{"name":"a","timestamp":"\#(time)"}"#, at: summer).output)
            #expect(output.contains(#""time_zone_offset":\#(offset)}"#), "\(time): \(output)")
        }
        #expect(
            try #require(reading.read(#"{"name":"a","device":{}}"#).output).hasPrefix(
                #"{"name":"a","device":{},"app""#)
        )
        options.device = DeviceText(members: [], zone: nil)
        options.apps = [:]
        reading.pass.configure(options)
        #expect(!(try #require(reading.read(#"{"name":"a"}"#).output).contains("device")))
    }

    @Test("ac23: the country is the event's, the one set, the app's or that of its address, which is removed")
    func ac23_order() throws {
        var options = EventOptions()
        options.session.mode = .off
        options.addressMember = "ip_address"
        var reading = Reading(options)
        reading.pass.useCountries(twoCountries)
        func start(_ line: String) throws -> String {
            let output = try #require(reading.read(line).output)
            let end = try #require(output.firstRange(of: #","observed_at""#)).lowerBound
            return String(output[..<end])
        }
        #expect(
            try start(#"{"name":"a","ip_address":"192.0.2.1"}"#)
                == #"{"name":"a","ip_address":"192.0.2.1","country":"IT","app":"shop""#)
        #expect(
            try start(#"{"name":"a","properties":{"ip_address":"2001:db8::1"}}"#)
                == #"{"name":"a","properties":{"ip_address":"2001:db8::1"},"country":"JP","app":"shop""#)
        #expect(
            try start(#"{"name":"a","country":"de","ip_address":"192.0.2.1"}"#)
                == #"{"name":"a","country":"DE","ip_address":"192.0.2.1","app":"shop""#)
        #expect(
            try start(#"{"name":"a","ip_address":"127.0.0.1"}"#)
                == #"{"name":"a","ip_address":"127.0.0.1","app":"shop""#)
        #expect(try start(#"{"name":"a","ip_address":7}"#) == #"{"name":"a","ip_address":7,"app":"shop""#)
        #expect(try start(#"{"name":"a"}"#) == #"{"name":"a","app":"shop""#)
        // What is no property of that name is no address, nor is that of the line before.
        for properties in [
            #"{"ip_address":"2001:db8::1","other":"192.0.2.1"}"#,
            #"{"other":"192.0.2.1","ip_address":"2001:db8::1"}"#,
        ] {
            #expect(try start(#"{"name":"a","properties":\#(properties)}"#).contains(#""country":"JP""#))
            for other in [
                #""x":"abcdefghijklmnopqrstuvwxyz abcdefghijkl""#,
                #""properties":["ip_address","192.0.2.1"]"#,
            ] {
                #expect(!(try start(#"{"name":"a",\#(other)}"#).contains("country")))
            }
        }
        #expect(reading.pass.counts[.unknownAddress] == 1)

        options.removesAddress = true
        reading.pass.configure(options)
        #expect(
            try start(#"{"ip_address":"192.0.2.1","name":"a"}"#)
                == #"{"name":"a","country":"IT","app":"shop""#)
        #expect(try start(#"{"name":"a","ip_\u0061ddress":"127.0.0.1" }"#) == #"{"name":"a","app":"shop""#)
        #expect(
            try start(#"{"name":"a","properties":{"x":1, "ip_\u0061ddress" : "2001:db8::1","y":2}}"#)
                == #"{"name":"a","properties":{"x":1,"y":2},"country":"JP","app":"shop""#)
        #expect(
            try start(#"{"name":"a","properties":{"ip_address":"192.0.2.1"}}"#)
                == #"{"name":"a","properties":{},"country":"IT","app":"shop""#)

        options.defaults.country = CountryCode("FR")
        reading.pass.configure(options)
        #expect(
            try start(#"{"name":"a","ip_address":"192.0.2.1"}"#)
                == #"{"name":"a","app":"shop","country":"FR""#)
        options.countryOverride = CountryCode("ES")
        reading.pass.configure(options)
        #expect(
            try start(#"{"name":"a","ip_address":"192.0.2.1"}"#)
                == #"{"name":"a","app":"shop","country":"ES""#)
        #expect(try start(#"{"name":"a","country":"it"}"#) == #"{"name":"a","country":"IT","app":"shop""#)
    }
}
