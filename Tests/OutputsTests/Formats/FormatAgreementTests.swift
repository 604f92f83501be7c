import EventLoops
import Events
import Model
import TestKit
import Testing

@testable import Outputs

/// The formats that work on bytes write what their first versions wrote, which read each event's members
/// into texts.
@Suite("Formats agree with their first versions")
struct FormatAgreementTests {
    private static let seeds: [UInt64] = Seeds.list(1...6)

    /// A batch of random events, with the apps that the queue knows.
    private func batch(_ seed: UInt64, events: Int = 40) -> (lines: [UInt8], header: BatchHeader) {
        var random = RandomEvents(seed: seed)
        var lines: [UInt8] = []
        var apps: [String] = []
        for _ in 0..<events {
            lines += Array(random.event().utf8) + [0x0A]
            apps.append(random.pick(["web", "web", "web", "shop", "a\"b", ""]))
        }
        var header = header(events: events)
        if seed.isMultiple(of: 2) {
            header.apps = apps
        }
        return (lines, header)
    }

    /// The first place where two texts differ, for a message.
    private func difference(_ left: [UInt8], _ right: [UInt8]) -> String {
        guard left != right else { return "" }
        let place =
            zip(left, right).enumerated().first { $1.0 != $1.1 }?.offset ?? min(left.count, right.count)
        func part(_ bytes: [UInt8]) -> String {
            String(decoding: bytes[max(0, place - 120)..<min(bytes.count, place + 80)], as: UTF8.self)
        }
        return "byte \(place):\n\(part(left))\ninstead of\n\(part(right))"
    }

    @Test("OTLP, in both encodings", arguments: seeds)
    func otlp(seed: UInt64) throws {
        for round in 0..<10 as Range<UInt64> {
            let (lines, header) = batch(seed * 1000 + round)
            let events = try EventView.all(lines)
            let request = ReferenceMessage.request(events, in: header, version: "1.2", host: "h")
            let bytes = try OTLPEncoder(version: "1.2", host: "h").encode(lines, of: header)
            var text = JSONText()
            request.write(to: &text)
            let json = try OTLPEncoder(.json, version: "1.2", host: "h").encode(lines, of: header)
            #expect(difference(json, text.bytes) == "", "seed \(seed), round \(round)")
            #expect(difference(bytes, request.bytes) == "", "seed \(seed), round \(round)")
            if json != text.bytes || bytes != request.bytes { return }
        }
    }

    @Test("Loki, with and without structured metadata", arguments: seeds)
    func loki(seed: UInt64) throws {
        let some = StructuredMetadata.members(["trace_id", "log.level", "x.k", "level", "n", "9 a", "deep.k"])
        for round in 0..<10 as Range<UInt64> {
            let (lines, header) = batch(seed * 1000 + round)
            for metadata in [StructuredMetadata.none, .ids, some, .members(["level"])] {
                let old = try ReferenceLoki(host: "h", structuredMetadata: metadata).encode(lines, of: header)
                let new = try LokiEncoder(host: "h", structuredMetadata: metadata).encode(lines, of: header)
                #expect(difference(new, old) == "", "seed \(seed), round \(round)")
                if new != old { return }
            }
        }
    }

    @Test("Elasticsearch", arguments: seeds)
    func elasticsearch(seed: UInt64) throws {
        for round in 0..<10 as Range<UInt64> {
            let (lines, header) = batch(seed * 1000 + round)
            let old = try ReferenceElasticsearch().encode(lines, of: header)
            let new = try ElasticsearchEncoder().encode(lines, of: header)
            #expect(difference(new, old) == "", "seed \(seed), round \(round)")
            if new != old { return }
        }
    }

    @Test("all names that severities and OTLP look for are known names")
    func names() {
        for name in Severity.usualMembers {
            let first = name.split(separator: ".").first.map { String($0) } ?? ""
            #expect(EventName(name) != nil && EventName(first) != nil, "\(name)")
        }
        #expect(OTLPNames.shared.message.count == 10)
        #expect(Set(EventName.allCases.map { "\($0.text)" }).count == EventName.allCases.count)
    }

    @Test("objects with very many members, equal names among them, agree, too")
    func wide() throws {
        let members = (0..<300).map { #""m\#($0 % 250)":\#($0)"# }.joined(separator: ",")
        let line = Array(#"{"properties":{\#(members)},"x":{\#(members)},\#(members)}"#.utf8) + [0x0A]
        let events = try EventView.all(line)
        let old = ReferenceMessage.request(events, in: header(events: 1), version: "", host: "").bytes
        #expect(difference(try OTLPEncoder().encode(line, of: header(events: 1)), old) == "")
    }
}

/// Random events whose names are those that formats look for, often several times, with escapes and with
/// values of all kinds.
private struct RandomEvents {
    private var random: SplitMix64
    private static let names =
        EventName.allCases.map { "\($0.text)" } + [
            "a", "b", "n", "x", "deep", "9 a", "property.session.id", "member.a", "na\\u006de", "m\\\"q",
            "", "a name of more than sixteen bytes 1", "a name of more than sixteen bytes 2", "Grüße",
        ]
    private static let device = [
        "os_name", "host_name", "app_version", "host_name", "other", "os\\u005fname", "kernel",
    ]

    init(seed: UInt64) { random = SplitMix64(seed: seed) }

    mutating func pick<Value>(_ values: [Value]) -> Value { values[number(values.count)] }

    private mutating func number(_ limit: Int) -> Int { Int.random(in: 0..<limit, using: &random) }

    mutating func event() -> String {
        var members = usual()
        for _ in 0..<number(12) {
            let name = pick(RandomEvents.names)
            members.append(#""\#(name)":\#(value(of: name, depth: 3))"#)
        }
        if number(4) == 0 {
            members.shuffle(using: &random)
        }
        let blank = number(10) == 0 ? " " : ""
        return blank + "{" + blank + members.joined(separator: "," + blank) + blank + "}" + blank
    }

    /// Members that the agent adds, most of the time.
    private mutating func usual() -> [String] {
        var members: [String] = []
        if number(3) > 0 { members.append(#""name":"\#(pick(["log", "", "clicked", "a\\nb"]))""#) }
        if number(3) > 0 { members.append(#""app":"\#(pick(["web", "shop", "a/b%", "a\\\"b"]))""#) }
        if number(3) > 0 { members.append(#""timestamp":\#(time())"#) }
        if number(3) > 0 { members.append(#""observed_at":\#(time())"#) }
        if number(3) > 0 { members.append(#""id":"0192f3a4-0000-7abc-8def-00000000000\#(number(10))""#) }
        if number(3) == 0 { members.append(#""properties":\#(object(RandomEvents.names, depth: 2))"#) }
        if number(3) == 0 { members.append(#""device":\#(object(RandomEvents.device, depth: 1))"#) }
        if number(3) == 0 { members.append(#""host_name":"\#(pick(["h", "h", "other"]))""#) }
        return members
    }

    private mutating func time() -> String {
        pick([
            #""2026-11-20T10:00:00.123Z""#, #""2026-11-20T10:00:01.123456789Z""#, "1795168800",
            #""2026-11-20T10:00:00+01:00""#, "1795168800123", #""soon""#, "null",
            #""2026\u002d11-20T10:00:00Z""#,
        ])
    }

    private mutating func value(of name: String, depth: Int) -> String {
        switch number(12) {
        case 0 where depth > 0: return object(RandomEvents.names, depth: depth - 1)
        case 1 where depth > 0:
            return "["
                + (0..<number(4)).map { _ in value(of: name, depth: depth - 1) }.joined(separator: ", ") + "]"
        case 2: return pick(["true", "false", "null"])
        case 3, 4:
            return pick([
                "0", "-1", "7", "17", "50", "300", "12345678901234567891", "-9223372036854775808", "1e3",
                "0.5",
                "1e999", "-0", "123456789012345678", "1.0E-3", "1234567890123456789",
            ])
        case 5, 6:
            return "\"" + pick(["WARN", "info", "50", "Error", "3", "INFO+2", "loud", "crash", "1.1"]) + "\""
        case 7:
            return "\""
                + pick([
                    "0af7651916cd43dd8448eb211c80319c", "b7b4180a9a8ff321", "B7B4180A9A8FF321", "01",
                    "00-0af7651916cd43dd8448eb211c80319c-b7b4180a9a8ff321-01", "13237231638570595105",
                    "00000000000000000000000000000000", "01930000-0000-7000-0000-000000000007",
                ]) + "\""
        default:
            return "\""
                + pick([
                    "", "hello", "a\\nb", "tab\\tq\\\"u", "\\u00e9\\ud83d\\ude00", "Grüße aus Köln",
                    "\\/path",
                    "0123456789abcdef0123456789", String(repeating: "x", count: number(300)),
                    String(repeating: "é", count: 600 + number(3)), String(repeating: "\\u000a", count: 40),
                    String(repeating: "y", count: 1 + number(20_000)),
                ]) + "\""
        }
    }

    private mutating func object(_ names: [String], depth: Int) -> String {
        var members: [String] = []
        for _ in 0..<number(6) {
            let name = pick(names)
            members.append(#""\#(name)": \#(value(of: name, depth: depth))"#)
        }
        return "{" + members.joined(separator: ",") + "}"
    }
}
