import EventLoops
import Model
import Receiver
import TestKit
import Testing

@testable import Outputs

@Suite("Format template")
struct TemplateFormatTests {
    private func body(_ event: String, _ lines: String = sampleLines) throws -> String {
        var settings = BodySettings()
        settings.event = try BodyTemplate(event)
        (settings.begin, settings.separator, settings.end) = ("[", ",", "]")
        return try encoded(TemplateEncoder(settings, host: "h"), lines)
    }

    @Test(
        "each placeholder gives its part of an event",
        arguments: [
            (
                "{{event}}",
                #"{"name":"a\"b","timestamp":"2026-11-20T10:00:00.5Z","app":"web","id":"1","n":[1, 2],"t":"x\ny"}"#
            ),
            (
                "{{base64}}",
                "eyJuYW1lIjoiYVwiYiIsInRpbWVzdGFtcCI6IjIwMjYtMTEtMjBUMTA6MDA6MDAuNVoiLCJhcHAiOiJ3ZWIiLCJpZCI6IjEiLCJuIjpbMSwgMl0sInQiOiJ4XG55In0="
            ),
            ("{{json:n}}", "[1, 2]"), ("{{json:absent}}", "null"), ("{{text:t}}", #"x\u000ay"#),
            ("{{text:n}}", "[1, 2]"), ("{{text:absent}}", ""),
            ("{{app}}", "web"), ("{{name}}", #"a\"b"#), ("{{host}}", "h"), ("{{id}}", "web/1"),
            ("{{level}}", ""), ("{{time}}", "2026-11-20T10:00:00.500Z"), ("{{seconds}}", "1795168800.500"),
            ("{{milliseconds}}", "1795168800500"), ("{{nanoseconds}}", "1795168800500000000"),
            ("$5 {x} $", "$5 {x} $"),
        ])
    func placeholders(template: String, expected: String) throws {
        let line =
            #"{"name":"a\"b","timestamp":"2026-11-20T10:00:00.5Z","app":"web","id":"1","n":[1, 2],"t":"x\ny"}"#
        #expect(try body(template, line + "\n") == "[\(expected)]")
    }

    @Test(
        "{{text:message}} of a record is its message under any name that loggers use, as in OTLP's body",
        arguments: [
            (#"{"name":"log","host_name":"h","msg":"a\"b"}"#, #"a\"b"#),
            (#"{"name":"log","host_name":"h","@m":"c"}"#, "c"),
            (#"{"name":"log","host_name":"h","record":{"message":"d"}}"#, "d"),
            (#"{"name":"log","host_name":"h","message":"e","msg":"f"}"#, "e"),
            (#"{"name":"log","host_name":"h","message":7}"#, "7"),
            (#"{"name":"log","host_name":"h"}"#, ""),
            // The members of an event are its own.
            (#"{"name":"bought","properties":{"msg":"g"}}"#, ""),
            (#"{"name":"bought","properties":{"message":"h"}}"#, "h"),
        ])
    func message(line: String, expected: String) throws {
        #expect(try body("{{text:message}}", line + "\n") == "[\(expected)]")
    }

    @Test("content of events stays within its quotes in a JSON body")
    func hostile() throws {
        let lines = (0..<32).map { number in
            #"{"name":"\u00\#(number < 16 ? "0" : "")\#(String(number, radix: 16))\"},{\"x\":1","app":"a\"\\","id":"\#(number)"}"#
                + "\n"
        }.joined()
        let text = try body(#"{"n":"{{name}}","t":"{{text:name}}","a":"{{app}}","e":{{event}}}"#, lines)
        let elements = try #require(slice(text)?.elements)
        #expect(elements.count == 32)
        for element in elements {
            #expect(element.members?.map(\.key) == ["n", "t", "a", "e"])
            #expect(element["n"]?.string == element["e"]?["name"]?.string && element["a"]?.string == #"a"\"#)
        }
    }

    @Test("an unknown placeholder is refused", arguments: ["{{apps}}", "{{json:}}", "{{app"])
    func unknown(text: String) {
        #expect(throws: BodyTemplate.Mistake.self) { try BodyTemplate(text) }
    }

    @Test("the method is configurable, and an answer must match `accept`")
    func accepts() async throws {
        let bench = try Bench()
        let seen = Seen()
        let answers = [
            "200 OK|{\"accepted\" : true}", "200 OK|{\"accepted\":false}", "204 Empty|",
            "202 Yes|{\"accepted\":true}",
        ]
        let peer = try ScriptedPeer(bench.identity()) { connection in
            while let (head, _) = connection.request() {
                seen.note(head)
                let parts = answers[seen.all.count - 1].split(
                    separator: "|", omittingEmptySubsequences: false)
                connection.write(
                    "HTTP/1.1 \(parts[0])\r\nContent-Length: \(parts[1].utf8.count)\r\n\r\n\(parts[1])")
            }
        }
        defer { peer.stop() }
        var body = BodySettings()
        body.event = try BodyTemplate("{{event}}")
        body.method = .put
        let output = try bench.output(to: peer.url, format: TemplateEncoder(body)) {
            $0.http.format = .template(body)
            $0.http.accept.statuses = [200, 202]
            $0.http.accept.body = #""accepted": true"#
        }
        #expect(await output.send(try Sample.batch(1)) == .acknowledged)
        #expect(
            retried(await output.send(try Sample.batch(1)))?.message.hasSuffix(
                "lacks the text of accept.body") == true)
        #expect(
            retried(await output.send(try Sample.batch(1)))?.message.contains("not in accept.status") == true)
        #expect(await output.send(try Sample.batch(1)) == .acknowledged)
        #expect(seen.all.count == 4 && seen.all.allSatisfy { $0.hasPrefix("PUT / HTTP/1.1") })
    }
}
