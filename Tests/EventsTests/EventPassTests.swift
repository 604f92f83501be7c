@testable import Events
import EventLoops
import Model
import TestKit
import Testing

/// An event's line without what was added to it, and what was added.
func split(_ output: String) -> (kept: String, added: String)? {
    guard let range = output.firstRange(of: ",\"app\":\"shop\"") else { return nil }
    return (output[..<range.lowerBound] + "}", String(output[range.lowerBound...]))
}

/// An event's line without what was added to it.
func kept(_ output: String?) throws -> String {
    let output = try #require(output)
    return try #require(split(output)).kept
}

@Suite("The pass over a line")
struct EventPassTests {
    @Test("members are added before the closing bracket, and all other bytes are unchanged")
    func additions() throws {
        var reading = Reading()
        let line =
            #"{"name":"Video clicked", "x" : [1.50, -0e+1, "\u00e9"],"properties":{"n":12345678901234567890}}"#
        let output = try #require(reading.read(line).output)
        let (kept, added) = try #require(split(output))
        #expect(kept == line)
        let id = added.split(separator: "\"").dropLast().last.map(String.init) ?? ""
        #expect(added == #","app":"shop","observed_at":"2026-11-20T10:00:00.000Z","id":"\#(id)"}"# + "\n")
        #expect(UUIDv7(id) != nil)
        #expect(output.utf8.count <= line.utf8.count + reading.pass.maxAddition)
    }

    @Test("ids increase from event to event, across milliseconds and clocks set back")
    func idsGrow() throws {
        var reading = Reading()
        var last = UUIDv7(high: 0, low: 0)
        for step in 0..<5000 {
            let now = Reading.now + .milliseconds(step / 3000 * 5 - step / 4000 * 1000)
            let output = try #require(reading.read(#"{"name":"a"}"#, at: now).output)
            let id = try #require(UUIDv7(output.dropLast(3).suffix(36)))
            #expect(id > last)
            #expect(id.low >> 62 == 2 && id.high >> 12 & 15 == 7)
            last = id
        }
    }

    @Test("ids increment correctly across every carry")
    func idsCarry() {
        struct Ones: RandomNumberGenerator { mutating func next() -> UInt64 { .max } }
        var ones = Ones()
        var ids = EventIDs()
        ids.begin(at: Reading.now, using: &ones)
        let buffer = UnsafeMutablePointer<UInt8>.allocate(capacity: 36)
        defer { buffer.deallocate() }
        var last = UUIDv7(high: 0, low: 0)
        for _ in 0..<1000 {
            ids.write(to: buffer)
            let id = UUIDv7(String(decoding: UnsafeBufferPointer(start: buffer, count: 36), as: UTF8.self))
            guard let id, id > last, id.low >> 62 == 2, id.high >> 12 & 15 == 7 else {
                Issue.record("\(String(describing: id)) after \(last)")
                return
            }
            last = id
        }
    }

    @Test("members that the event has stay")
    func ownMembersStay() throws {
        var reading = Reading()
        let line =
            #"{"name":"a","id":"x1","session_id":"s","country":"IT","device":{"model":"m"},"observed_at":"2026-11-20T09:00:00Z","app":"shop"}"#
        #expect(reading.read(line).output == line + "\n")
        let number = #"{"name":"a","id":7,"session_id":8,"app":"shop","observed_at":"2026-11-20T09:00:00Z"}"#
        #expect(reading.read(number).output == number + "\n")
        // A time as `timestamp` may have it.
        for time in ["1763629200", "1763629200123", "1763629200.5"] {
            let line = #"{"name":"a","id":7,"app":"shop","observed_at":\#(time)}"#
            #expect(reading.read(line).output == line + "\n")
        }
        #expect(reading.pass.counts.oddities.allSatisfy { $0 == 0 })
    }

    @Test("an invalid id, session or time is removed and counted; null is not")
    func wrongTypesAreCounted() throws {
        var reading = Reading()
        for (place, value) in ["true", "{}", "[1]", #""""#].enumerated() {
            let output = try #require(
                reading.read(#"{"id":\#(value),"session_id":\#(value),"name":"a"}"#).output)
            #expect(output.hasPrefix(#"{"name":"a","app":"shop","observed_at":""#))
            #expect(reading.pass.counts[.unusableID] == 2 * place + 2)
        }
        for (place, value) in ["true", "{}", #""noon""#, "1e400"].enumerated() {
            let output = try #require(reading.read(#"{"name":"a","observed_at":\#(value)}"#).output)
            #expect(output.hasPrefix(#"{"name":"a","app":"shop","observed_at":"2026-11-20T10:00:00.000Z""#))
            #expect(reading.pass.counts[.unreadableTime] == place + 1)
        }
        let before = reading.pass.counts
        _ = reading.read(#"{"name":"a","id":null,"session_id":null,"observed_at":null}"#)
        #expect(reading.pass.counts.oddities == before.oddities)
    }

    @Test("null, empty and unreadable members count as absent")
    func emptyMembersAreReplaced() throws {
        var reading = Reading()
        let line =
            #"{"id":null,"session_id":"","name":"a","country":null,"device":null,"observed_at":"noon","app":null}"#
        let output = try #require(reading.read(line).output)
        #expect(
            output.hasPrefix(#"{"name":"a","app":"shop","observed_at":"2026-11-20T10:00:00.000Z","id":""#))
        #expect(reading.pass.counts[.replacedApp] == 0 && reading.pass.counts[.unknownCountry] == 0)
    }

    @Test("the app is that of the directory")
    func appsCannotPretend() throws {
        var reading = Reading()
        let line = #"{"app":"bank","name":"a"}"#
        #expect(try #require(reading.read(line).output).hasPrefix(#"{"name":"a","app":"shop","observed_at""#))
        #expect(reading.pass.counts[.replacedApp] == 1)
    }

    @Test("of members with equal names the last one counts, in any spelling, and the others are removed")
    func repeatedMembers() throws {
        var reading = Reading()
        let line =
            #"{"name":"a","x":1,"priority":"critical","n\u0061me":"b","priority" : "normal" ,"x":2, "name":"c" }"#
        let (verdict, output) = reading.read(line)
        #expect(verdict.priority == .normal)
        #expect(try #require(output).hasPrefix(#"{"x":1,"priority" : "normal" ,"x":2, "name":"c","app":"#))
        #expect(reading.pass.counts[.repeatedMember] == 3)
    }

    @Test("a country in any case is capitalised; an invalid one is removed and the app's is added")
    func ac23_country() throws {
        var options = EventOptions()
        options.defaults.country = CountryCode("de")
        var reading = Reading(options)
        #expect(try #require(reading.read(#"{"name":"a"}"#).output).contains(#","country":"DE","#))
        #expect(
            try #require(reading.read(#"{"name":"a","country":"it"}"#).output).hasPrefix(
                #"{"name":"a","country":"IT","app""#))
        for none in [#""ZZ""#, #""Italy""#, "7", #""I""#, "{}", #""""#] {
            let output = try #require(reading.read(#"{"country":\#(none),"name":"a"}"#).output)
            #expect(output.hasPrefix(#"{"name":"a","app":"shop","country":"DE","#))
        }
        #expect(reading.pass.counts[.unknownCountry] == 6)
        #expect(
            CountryCode("It")?.description == "IT" && CountryCode("UK") == nil && CountryCode("ITA") == nil)
    }

    @Test("an object without a name is a record: it gets the app's default name, and its data stays")
    func names() throws {
        var options = EventOptions()
        options.apps["shop"] = AppOptions()
        options.apps["shop"]?.defaultEventName = "log \"line\""
        var named = Reading(options)
        for (line, expected) in [
            (#"{}"#, #"{"name":"log \"line\"","app""#), (#"{ }"#, #"{"name":"log \"line\"","app""#),
            (#"{"name":""}"#, #"{"name":"","app""#), (#"{"name":7}"#, #"{"name":7,"app""#),
            (#"{"message":"x" }"#, #"{"message":"x","name":"log \"line\"","app""#),
            (#"{"message":"x","name":null}"#, #"{"message":"x","name":"log \"line\"","app""#),
        ] {
            #expect(try #require(named.read(line).output).hasPrefix(expected), "\(line)")
        }
        #expect(named.pass.counts.records == 6 && named.pass.counts[.unusableName] == 2)
    }

    @Test("carriage returns between tokens are removed; escaped line breaks in strings stay")
    func carriageReturns() throws {
        var reading = Reading()
        let text = "\r{\r  \"name\" :\r \"a\\nb\",\r\t\"properties\": {\r\"k\"\r:\r[1,\r2]\r}\r}\r  "
        let output = try #require(reading.read(text).output)
        #expect(output.hasPrefix("{  \"name\" : \"a\\nb\",\t\"properties\": {\"k\":[1,2]},\"app\""))
        #expect(
            output.split(separator: "\n", omittingEmptySubsequences: false).count == 2
                && !output.contains("\r"))
        let crlf = try #require(reading.read("{\"name\":\"a\"}\r").output)
        #expect(crlf.hasPrefix("{\"name\":\"a\",\"app\""))
        let (verdict, _) = reading.read("{\"name\":\"a\",\r\"b\":\r")
        #expect(verdict.kind == .quarantined && reading.pass.problem?.reason == .cutShort)
    }

    @Test("a bad line does not affect its neighbours")
    func fault20_badLinesAmongGoodOnes() {
        var reading = Reading()
        var block: [UInt8] = []
        let bad: [[UInt8]] = [
            Array("{\"name\":\"x".utf8), [0xFF, 0xFE], Array("{\"name\":\"\\".utf8), Array("{\"a\":[[[".utf8),
            [0x22],
            [0xE2, 0x82],
            Array("null".utf8), Array("{\"name\":\"\u{1}\"}".utf8),
        ]
        for line in bad {
            block += Array("{\"name\":\"good\"}".utf8) + [0x0A] + line + [0x0A] + [0x20, 0x0A]
        }
        var kinds: [Verdict.Kind] = []
        var random = SplitMix64(seed: 2)
        reading.pass.begin(reading.source, at: Reading.now, isSynchronised: true, using: &random)
        block.withUnsafeBufferPointer { block in
            var offset = 0
            while offset < block.count {
                let verdict = reading.pass.read(block.baseAddress!, from: offset, to: block.count)
                offset = verdict.next
                kinds.append(verdict.kind)
            }
        }
        #expect(kinds == bad.flatMap { _ in [.accepted, .quarantined, .blank] })
    }

    @Test("each kind of bad line has its reason")
    func reasons() {
        var options = EventOptions()
        options.defaults.repairsUTF8 = false
        var reading = Reading(options)
        for (line, reason) in [
            ("hello", .notJSON), ("{\"name\":\"a\"", .cutShort), ("[]", .notAnObject), ("{} {}", .notJSON),
            (#"{"a":"# + String(repeating: "[", count: 99), .tooDeep), (#"{"a":"\ud800"}"#, .notJSON),
        ] as [(String, QuarantineRecord.Reason)] {
            #expect(reading.read(line).verdict.kind == .quarantined)
            #expect(reading.pass.problem?.reason == reason)
        }
        #expect(
            reading.read(bytes: Array("{\"name\":\"".utf8) + [0xC0, 0x22, 0x7D, 0x0A]).verdict.kind
                == .quarantined)
        #expect(reading.pass.problem == Problem(reason: .notUTF8, limit: nil, detail: "not UTF-8 at byte 9"))
    }

    @Test("data layer pushes are not events")
    func dataLayer() {
        var reading = Reading()
        #expect(reading.read(#"{"type":"data_layer","x":1}"#).verdict.kind == .dataLayer)
        #expect(reading.read(#"{"type":"data_layers","x":1}"#).verdict.kind == .accepted)
    }
}
