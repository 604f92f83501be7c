import EventLoops
import Model
import TestKit
import Testing

@testable import Events

@Suite("Records with unusual members")
struct UnusualRecordTests {
    private func reading(_ change: (inout EventOptions) -> Void) -> Reading {
        var options = EventOptions()
        options.defaults.kind = .log
        change(&options)
        return Reading(options)
    }

    @Test("a record beyond the maximum age expires, one of exactly that age does not")
    func expiry() {
        var reading = reading { $0.maxAge = .seconds(60) }
        let seconds = Reading.now.milliseconds / 1000
        for (age, kind) in [(61, .expired), (60, .accepted)] as [(Int64, Verdict.Kind)] {
            #expect(reading.read(#"{"ts":\#(seconds - age)}"#).verdict.kind == kind)
        }
    }

    @Test("a record's own name, time or address is data; null is not")
    func ownMembers() throws {
        var reading = reading {
            $0.defaults.nameMembers = ["op"]
            $0.addressMember = "ip"
        }
        reading.pass.useCountries { $0 == "192.0.2.1" ? CountryCode("IT") : nil }
        for (line, start) in [
            (#"{"name":"child","op":"pay"}"#, #"{"name":"child","op":"pay","app":"#),
            (#"{"name":null,"op":"pay"}"#, #"{"op":"pay","name":"pay","app":"#),
            (
                #"{"timestamp":null,"op":"pay","ts":1795168700}"#,
                #"{"op":"pay","ts":1795168700,"name":"pay","timestamp":"2026-11-20T09:58:20.000Z","app":"#
            ),
            (
                #"{"op":"p","ip":"192.0.2.1"}"#,
                #"{"op":"p","ip":"192.0.2.1","name":"p","country":"IT","app":"#
            ),
            (#"{"op":"p","ip":1,"ip":2}"#, #"{"op":"p","ip":1,"ip":2,"name":"p","app":"#),
        ] {
            #expect(try #require(reading.read(line).output).hasPrefix(start), "\(line)")
        }
    }

    @Test("of a record's properties only the address is removed")
    func addressAlone() throws {
        var reading = reading {
            $0.addressMember = "ip"
            $0.removesAddress = true
        }
        let output = try #require(reading.read(#"{"properties":{"a":1,"ip":"192.0.2.7", "b":2}}"#).output)
        #expect(output.hasPrefix(#"{"properties":{"a":1, "b":2},"name":"log""#), "\(output)")
    }

    @Test("a path leads through objects, also with escaped names, and not through lists")
    func paths() {
        var reading = reading { $0.defaults.levelMembers = ["meta.level"] }
        for (line, level) in [
            (#"{"meta":{"level":"error"}}"#, .error), (#"{"meta":{"l\u0065vel":"error"}}"#, .error),
            (#"{"meta":["level","error"]}"#, nil), (#"{"meta":"level"}"#, nil),
        ] as [(String, SeverityLevel?)] {
            _ = reading.read(line)
            #expect(reading.severity?.level == level, "\(line)")
        }
    }

    @Test("a journal entry whose message is not text is not withheld")
    func journal() {
        var reading = reading { $0.defaults.isJournal = true }
        reading.pass.withheld = .members
        for (message, kind) in [("7", .accepted), ("null", .accepted), (#""{\"a\":1}""#, .quarantined)]
            as [(String, Verdict.Kind)]
        {
            #expect(reading.read(#"{"message":\#(message),"x":1}"#).verdict.kind == kind, "\(message)")
        }
    }

    @Test(
        "after a text that ends before a hidden value no object is sent, whatever is before or in it",
        arguments: [#"{"a":1}"#, "\u{FEFF}" + #"{"a":1}"#, #"{"a":"?"}"#])
    func valueOnItsOwnLine(_ line: String) {
        var reading = reading { $0.defaults.text = .lines }
        reading.pass.withheld = .members
        #expect(reading.read(line).verdict.kind == .accepted)
        _ = reading.read(#""secret":"#)
        // A byte that is not UTF-8 in place of the question mark.
        let bytes = Array((line + "\n").utf8).map { $0 == UInt8(ascii: "?") ? 0xFF : $0 }
        #expect(reading.read(bytes: bytes).verdict.kind == .quarantined)
        #expect(reading.pass.problem?.reason == .unredactable)
        #expect(reading.read(line).verdict.kind == .accepted)
    }

    @Test("a wrapped object with invalid UTF-8 is repaired, and stays an object")
    func wrapped() throws {
        var reading = reading {
            $0.defaults.format = .cri
            $0.defaults.text = .lines
        }
        let line = Array(#"2026-11-20T10:00:00Z stdout F {"a":""#.utf8) + [0xFF] + Array("\"}\n".utf8)
        let output = try #require(reading.read(bytes: line).output)
        #expect(String(decoding: output, as: UTF8.self).hasPrefix("{\"a\":\"\u{FFFD}\",\"name\":\"log\""))
    }

    @Test("repeated members that are only read stay; a crash without a valid name is named crash")
    func eventsBeside() throws {
        var reading = Reading()
        for (line, start) in [
            (
                #"{"name":"a","host_name":"x","host_name":"y"}"#,
                #"{"name":"a","host_name":"x","host_name":"y","app":"#
            ),
            (#"{"type":"crash","name":"","x":1}"#, #"{"type":"crash","x":1,"name":"crash","app":"#),
            (#"{"type":"crash","name":7}"#, #"{"type":"crash","name":"crash","app":"#),
        ] {
            #expect(try #require(reading.read(line).output).hasPrefix(start), "\(line)")
        }
    }
}
