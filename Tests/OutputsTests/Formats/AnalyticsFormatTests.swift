import EventLoops
import Model
import Receiver
import TestKit
import Testing

@testable import Outputs

@Suite("Format ga4")
struct GA4Tests {
    @Test("a body has a client and its events, with valid names and parameters")
    func body() throws {
        let line = String(sampleLines.split(separator: "\n")[0]) + "\n"
        let session = GA4Encoder.sessionNumber("0192f3a4-0000-7abc-8def-0123456789ab")
        #expect(UInt64(session) != nil)
        #expect(
            try encoded(GA4Encoder(measurementID: "G-1"), line)
                == #"{"client_id":"11111111-2222-4333-8444-555555555555","events":[{"name":"Video_clicked","timestamp_micros":1795168800123000,"params":{"engagement_time_msec":1,"session_id":"\#(session)","Category":"Music","Count":3,"Ratio":0.5,"Paid":"true","At":"2026-11-20T09:00:00Z"}}]}"#
        )
    }

    @Test("an event has at most 25 parameters, texts of 100 characters, and no name twice")
    func bounds() throws {
        let properties = (0..<40).map { #""key \#($0)":"\#(String(repeating: "é", count: 150))""# }.joined(
            separator: ",")
        let text = try encoded(
            GA4Encoder(measurementID: "G-1"), #"{"name":"a","properties":{"key-0":1,\#(properties)}}"# + "\n")
        let parameters = try #require(slice(text)?["events"]?.elements?.first?["params"]?.members)
        #expect(parameters.count == 25 && Set(parameters.map(\.key)).count == 25)
        #expect(parameters.first { $0.key == "key_0" }?.value.integer == 1)
        #expect(parameters.last?.value.string?.count == 100)
    }

    @Test(
        "names are made valid",
        arguments: [
            ("Video clicked", "Video_clicked"), ("1st", "e_1st"), ("", "e_"), ("_x", "e__x"), ("é", "e__"),
        ])
    func names(name: String, expected: String) {
        #expect(GA4Encoder.eventName(name) == expected)
        #expect(GA4Encoder.eventName(String(repeating: "a", count: 99)).count == 40)
    }

    @Test(
        "reserved names are changed and counted, values without a place counted; engagement time is the app's"
    )
    func reservedNames() throws {
        let encoder = GA4Encoder(measurementID: "G-1")
        let line =
            #"{"name":"session_start","properties":{"ga_x":1,"firebase_conversion":1,"engagement_time_msec":4200,"l":[1],"ok":2}}"#
            + "\n"
        let event = try #require(slice(try encoded(encoder, line))?["events"]?.elements?.first)
        #expect(event["name"]?.string == "e_session_start")
        #expect(
            event["params"]?.text
                == #"{"engagement_time_msec":4200,"e_ga_x":1,"e_firebase_conversion":1,"ok":2}"#)
        #expect(try encoder.leftOut(Array(line.utf8)) == 4)
        #expect(try encoder.leftOut(Array(#"{"name":"a","properties":{"b":"c"}}"#.utf8) + [0x0A]) == 0)
    }

    @Test("requests are split by size, and each body has its own key, which is equal at every attempt")
    func requestsBySize() async throws {
        let bench = try Bench()
        let seen = Seen()
        let peer = try ScriptedPeer(bench.identity()) { connection in
            while let (head, body) = connection.request() {
                let key = head.split(separator: "\r\n").first { $0.hasPrefix("Idempotency-Key: ") } ?? ""
                seen.note("\(key.dropFirst(17))|\(body.count)|\(String(decoding: body, as: UTF8.self))")
                connection.write("HTTP/1.1 204 No Content\r\n\r\n")
            }
        }
        defer { peer.stop() }
        let output = try bench.output(to: peer.url, format: GA4Encoder(measurementID: "G-1")) {
            $0.compression = .none
        }
        // 24 texts of 100 characters that take six bytes each: 15 kB an event.
        let text = String(repeating: "\\u0001", count: 100)
        let properties = (0..<24).map { #""k\#($0)":"\#(text)""# }.joined(separator: ",")
        let lines = (0..<50).map { #"{"name":"e\#($0)","properties":{\#(properties)}}"# + "\n" }.joined()
        #expect(await output.send(batch(lines, 50)) == .acknowledged)
        let first = seen.all
        #expect(await output.send(batch(lines, 50)) == .acknowledged)
        #expect(Array(seen.all.dropFirst(first.count)) == first)
        let keys = first.map { $0.prefix { $0 != "|" } }
        #expect(Set(keys).count == keys.count && keys.count >= 6, "\(keys)")
        #expect(keys.allSatisfy { $0.hasPrefix("01930000-0000-7000-0000-000000000001-") })
        for request in first {
            let size = Int(request.split(separator: "|")[1]) ?? .max
            #expect(size <= 130_000)
        }
    }

    @Test("events older than 72 hours become dead letters with the reason; the others are sent")
    func tooOld() async throws {
        let bench = try Bench()
        let seen = Seen()
        let peer = try ScriptedPeer(bench.identity()) { connection in
            while let (_, body) = connection.request() {
                seen.note(String(decoding: body, as: UTF8.self))
                connection.write("HTTP/1.1 204 No Content\r\n\r\n")
            }
        }
        defer { peer.stop() }
        let output = try bench.output(to: peer.url, format: GA4Encoder(measurementID: "G-1")) {
            $0.compression = .none
        }
        let now = Sample.Time().wallTime.milliseconds / 1000
        let ages = [0, 73 * 3600, 71 * 3600, 90 * 3600]
        let lines = ages.map { #"{"name":"e\#($0)","timestamp":\#(now - Int64($0))}"# + "\n" }.joined()
        guard case .partial(let rejected, let retry) = await output.send(batch(lines, 4)) else {
            Issue.record("not partial")
            return
        }
        #expect(rejected.map(\.index) == [1, 3] && retry.isEmpty && rejected[0].failure.kind == .local)
        #expect(rejected[0].failure.message.contains("72 hours"))
        #expect(seen.all.count == 1 && !seen.last.contains("e262800") && seen.last.contains("e255600"))
        // While the clock is perhaps wrong, an age says nothing.
        var doubtful = batch(lines, 4)
        doubtful.isClockTrusted = false
        #expect(await output.send(doubtful) == .acknowledged)
        #expect(seen.last.contains("e262800") && seen.last.contains("e324000"))
    }

    @Test("members other than properties have a place in each format, and those without one are counted")
    func membersOfItsOwn() throws {
        let line =
            #"{"name":"a","app":"web","id":"i","priority":"critical","message":"down","level":"error","ctx":{"k":1},"#
            + #""properties":{"n":1}}"# + "\n"
        let analytics = GA4Encoder(measurementID: "G-1")
        let event = try #require(slice(try encoded(analytics, line))?["events"]?.elements?.first)
        let parameters = event["params"]?.members?.map(\.key)
        #expect(parameters == ["engagement_time_msec", "n", "message", "level"])
        #expect(event["params"]?["message"]?.string == "down")
        let center = AppCenterEncoder(installID: "i")
        let log = try #require(slice(try encoded(center, line))?["logs"]?.elements?.first)
        #expect(
            log["typedProperties"]?.elements?.compactMap { $0["name"]?.string } == ["n", "message", "level"])
        #expect(try analytics.leftOut(Array(line.utf8)) == 1 && center.leftOut(Array(line.utf8)) == 1)
    }

    @Test(
        "a batch of several clients becomes requests of one client and 25 events each; each event arrives once"
    )
    func severalRequests() async throws {
        let bench = try Bench()
        let seen = Seen()
        let peer = try ScriptedPeer(bench.identity()) { connection in
            while let (head, body) = connection.request() {
                seen.note("\(head.split(separator: "\r\n")[0])|\(String(decoding: body, as: UTF8.self))")
                connection.write("HTTP/1.1 204 No Content\r\n\r\n")
            }
        }
        defer { peer.stop() }
        let output = try bench.output(to: "\(peer.url)mp/collect", format: GA4Encoder(measurementID: "G-1")) {
            $0.compression = .none
            $0.token.inline = Secret("a&b")
        }
        let lines = (0..<60).map { #"{"name":"e\#($0)","client_id":"c\#($0 % 2)"}"# + "\n" }.joined()
        #expect(await output.send(batch(lines, 60)) == .acknowledged)
        #expect(seen.all.count == 4)
        var names: [String] = []
        for request in seen.all {
            let parts = request.split(separator: "|", maxSplits: 1)
            #expect(parts[0] == "POST /mp/collect?measurement_id=G-1&api_secret=a%26b HTTP/1.1")
            let events = try #require(slice(String(parts[1]))?["events"]?.elements)
            #expect(events.count <= 25)
            names += events.compactMap { $0["name"]?.string }
        }
        #expect(Set(names) == Set((0..<60).map { "e\($0)" }) && names.count == 60)
    }

    @Test("if a later request fails, only events that were not accepted are sent again")
    func laterRequestFails() async throws {
        let bench = try Bench()
        let peer = try ScriptedPeer(bench.identity()) { connection in
            var number = 0
            while connection.request() != nil {
                number += 1
                connection.write("HTTP/1.1 \(number == 2 ? 503 : 204) X\r\nContent-Length: 0\r\n\r\n")
            }
        }
        defer { peer.stop() }
        let output = try bench.output(to: peer.url, format: GA4Encoder(measurementID: "G-1"))
        let lines = (0..<60).map { #"{"name":"e\#($0)"}"# + "\n" }.joined()
        #expect(await output.send(batch(lines, 60)) == .partial(rejected: [], retry: Array(25..<60)))
    }

    private func batch(_ lines: String, _ count: Int) -> Batch {
        let part = Batch.Part(
            compression: .none, frame: Array(lines.utf8), bytes: lines.utf8.count, eventsInFrame: count,
            events: 0..<count)
        return Sample.batch([part])
    }
}

@Suite("Format app_center")
struct AppCenterTests {
    @Test("ac20: the body is an envelope of logs with typed properties, without null and nested ones")
    func ac20_body() throws {
        let text = try encoded(AppCenterEncoder(installID: "i"))
        let logs = try #require(slice(text)?["logs"]?.elements)
        let id = AppCenterEncoder.uuid("web/0192f3a4-0000-7abc-8def-000000000001")
        #expect(
            logs[0].text
                == #"{"type":"event","timestamp":"2026-11-20T10:00:00.123Z","sid":"0192f3a4-0000-7abc-8def-0123456789ab","id":"\#(id)","name":"Video clicked","typedProperties":[{"type":"string","name":"Category","value":"Music"},{"type":"long","name":"Count","value":3},{"type":"double","name":"Ratio","value":0.5},{"type":"boolean","name":"Paid","value":true},{"type":"dateTime","name":"At","value":"2026-11-20T09:00:00.000Z"}],"device":{"sdkName":"spoolship","sdkVersion":"0.1.0","osName":"Debian GNU/Linux","osVersion":"12","locale":"und","timeZoneOffset":60,"appVersion":"0","appBuild":"0","carrierCountry":"IT"}}"#
        )
        let placeholders =
            #"{"sdkName":"spoolship","sdkVersion":"0","osName":"Linux","osVersion":"0","locale":"und","timeZoneOffset":0,"appVersion":"0","appBuild":"0"}"#
        #expect(logs[1]["device"]?.text == placeholders)
        // An id that is no UUID becomes one, the same at every attempt.
        let made = AppCenterEncoder.uuid("01930000-0000-7000-0000-000000000001-1")
        #expect(
            logs[1]["id"]?.string == made
                && made != AppCenterEncoder.uuid("01930000-0000-7000-0000-000000000001-2"))
        #expect(made.split(separator: "-").map(\.count) == [8, 4, 4, 4, 12])
        #expect(try AppCenterEncoder(installID: "i").leftOut(Array(sampleLines.utf8)) == 2)
        let session = try encoded(
            AppCenterEncoder(installID: "i"),
            #"{"type":"start_session","name":"x","timestamp":"2026-11-20T10:00:00Z","session_id":"s"}"# + "\n"
        )
        let sid = AppCenterEncoder.uuid("s")
        #expect(
            session
                == #"{"logs":[{"type":"startSession","timestamp":"2026-11-20T10:00:00.000Z","sid":"\#(sid)","device":\#(placeholders)}]}"#
        )
    }

    @Test("the secret and the install id are headers, the version is in the address")
    func request() async throws {
        let bench = try Bench()
        let seen = Seen()
        let peer = try ScriptedPeer(bench.identity()) { connection in
            while let (head, _) = connection.request() {
                seen.note(head)
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            }
        }
        defer { peer.stop() }
        let output = try bench.output(to: "\(peer.url)logs", format: AppCenterEncoder(installID: "abc")) {
            $0.token.inline = Secret("app")
        }
        #expect(await output.send(try Sample.batch(3)) == .acknowledged)
        #expect(await output.takeLeftOutValues() == 0)
        let part = Batch.Part(
            compression: .none, frame: Array(sampleLines.utf8), bytes: sampleLines.utf8.count,
            eventsInFrame: 2,
            events: 0..<2)
        // Two properties of the sample have no type there (ac20).
        #expect(await output.send(Sample.batch([part])) == .acknowledged)
        #expect(await output.takeLeftOutValues() == 2)
        #expect(seen.last.hasPrefix("POST /logs?api-version=1.0.0 HTTP/1.1\r\n"))
        #expect(
            seen.last.contains("\r\nApp-Secret: app\r\n") && seen.last.contains("\r\nInstall-ID: abc\r\n"))
    }
}
