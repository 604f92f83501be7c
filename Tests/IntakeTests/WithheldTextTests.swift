import Containers
import Events
import Model
import TestKit
import Testing

@testable import Intake

/// Lines of text beside containers that hide members by their paths.
extension IntakeRuleTests {
    static let hiding = """
        {"id": "GTM-1", "version": 1, "rules": {"all": {"conditions": []}},
         "tags": [{"name": "hide", "type": "redact", "rules": ["all"], "paths": ["**.email"]}]}
        """
    static let scrubbing = """
        {"id": "GTM-1", "version": 1, "rules": {"all": {"conditions": []}},
         "tags": [{"name": "hide", "type": "redact", "rules": ["all"], "pattern": ["email"]}]}
        """

    /// Apps whose lines are of text: `lines`, `blocks`, `docker`, `cri`, `journal`.
    private static var textOptions: EventOptions {
        var options = EventOptions.withoutSessions
        for app in ["lines", "blocks", "docker", "cri", "journal"] {
            var settings = options.defaults
            settings.kind = .log
            settings.text = app == "blocks" ? .blocks : .lines
            settings.format = LineWrapper(rawValue: app)
            settings.isJournal = app == "journal"
            options.apps[app] = settings
        }
        return options
    }

    /// Records with a member `email` somewhere in them, drawn, and what may become of their lines. The hidden values are made of
    /// `Q` and `7`, which nothing else has.
    private struct Drawn {
        var random: SplitMix64

        mutating func pick(_ texts: String...) -> String { texts.randomElement(using: &random) ?? "" }
        mutating func chance(_ of: Int) -> Bool { Int.random(in: 0..<of, using: &random) == 0 }

        mutating func secret() -> [String] {
            switch Int.random(in: 0..<6, using: &random) {
            case 0: ["[", #""QQQ""#, ",", #""Q{Q""#, "]"]
            case 1: ["{", #""x""#, ":", #""QQ\"Q""#, "}"]
            default: [pick(#""QQQQ""#, #""Q{QQ\\""#, #""Q}Q: \"Q\",Q""#, "77777", #""\u0041QQQ""#)]
            }
        }

        mutating func value() -> [String] {
            [pick(#""a""#, #""{""#, #""}: \"b\", ""#, "1", "null", "[]", #""\\""#, #""é""#)]
        }

        /// An object's tokens.
        mutating func object(_ depth: Int = 0) -> [String] {
            let count = Int.random(in: 0...3, using: &random)
            var members = (0..<count).map { _ in [pick(#""a""#, #""b c""#, #""\"{""#), ":"] + value() }
            let inner =
                depth < 3 && chance(3)
                ? [#""in""#, ":"] + (chance(2) ? object(depth + 1) : ["["] + object(depth + 1) + ["]"])
                : [pick(#""email""#, #""em\u0061il""#), ":"] + secret()
            members.insert(inner, at: Int.random(in: 0...count, using: &random))
            return ["{"] + members.joined(separator: [","]) + ["}"]
        }

        mutating func record() -> String { object().joined(separator: chance(3) ? " " : "") }

        /// What a program's output is by accident.
        mutating func output() -> [String] {
            let (one, two) = (record(), record())
            let cut = one.unicodeScalars.count
            func end(_ count: Int) -> String {
                String(String.UnicodeScalarView(one.unicodeScalars.suffix(count)))
            }
            func beginning(_ count: Int) -> String {
                String(String.UnicodeScalarView(one.unicodeScalars.prefix(count)))
            }
            let place = Int.random(in: 0...cut, using: &random)
            switch Int.random(in: 0..<13, using: &random) {
            case 11:
                // Broken anywhere between tokens, as printers with a margin do.
                return object().reduce(into: [""]) { lines, token in
                    if chance(2) { lines.append("") }
                    lines[lines.count - 1] += token + pick("", " ")
                }
            case 12:
                // As servers log the body of a request, and browsers put it into an address.
                let (quote, colon) = [
                    ("\\x22", ":"), ("\\x22", "\\x3a"), ("\\u0022", "\\u003A"), ("\"", "\\u003a"),
                    ("%22", "%3A"),
                    ("%2522", "%253a"),
                    ("&quot;", ":"), ("&quot;", "&colon;"), ("&#34;", "&#58;"), ("&#x22;", "&#x3A;"),
                ][Int.random(in: 0..<10, using: &random)]
                return [
                    pick("POST ", "GET /?q=", "\"")
                        + one.replacing("\"", with: quote).replacing(":", with: colon)
                ]
            case 0: return [beginning(place) + two]
            case 1: return [one + pick("", " ", ", ") + two]
            case 2: return ["[\(one),\(two)]"]
            case 3: return [String(one.dropLast()) + #","half":"\ud83d"}"#]
            case 4: return ["\u{FEFF}" + one]
            case 5: return [pick("INFO got ", "x=", "[1] ") + one + pick("", " end", ";")]
            case 6: return [beginning(place)]
            case 7: return [end(place)]
            case 8:
                let value = secret().joined()
                let before = pick("saved (", "x ", "data=", "row|", "} ", "[1] ")
                return [before + #""email": "# + value + pick(")", "|", "")]
            case 9:
                let begin = pick(
                    "\u{1B}[1;39m", "\u{1B}[?25h", "\u{1B}]8;;http://a/\u{7}", "\u{1B}]8;id=1;a\u{1B}\\")
                return [object().map { "\(begin)\($0)\u{1B}[0m" }.joined()]
            default:
                var lines = [""]
                for token in object() {
                    if "}]".contains(token) { lines.append("") }
                    lines[lines.count - 1] += token
                    if "{[,".contains(token) { lines.append("") }
                }
                let colour = pick("", "", "\u{1B}[34;1m", "\u{1B}(B")
                return lines.map { "  \(colour)\($0)\(colour)" }
            }
        }

        /// A line as it comes from the journal.
        func entry(_ text: String) -> String {
            guard let members = (try? JSONValue(parsing: text))?.members else {
                return
                    (["timestamp": "2026-11-20T10:00:00Z", "message": .string(text), "process.pid": 7]
                    as JSONValue)
                    .description
            }
            let own: [JSONValue.Member] = [
                .init("process.pid", 7), .init("__REALTIME_TIMESTAMP", 1_795_168_800_000_000),
            ]
            return JSONValue.object(members + own).description
        }

        /// The output as a runtime wraps it: in pieces, between which there may be other lines, and the last of which may lack its end.
        mutating func wrapped(_ output: [String], _ format: LineWrapper) -> [String] {
            func line(_ text: String, _ stream: String, isLast: Bool) -> String {
                if format == .cri { return "2026-11-20T10:00:00Z \(stream) \(isLast ? "F" : "P") \(text)" }
                let log = JSONValue.string(text + (isLast ? "\n" : ""))
                return (["log": log, "stream": .string(stream), "time": "2026-11-20T10:00:00Z"] as JSONValue)
                    .description
            }
            var lines: [String] = []
            for text in output {
                // Lines are cut where they are long.
                guard output.count == 1, chance(3) else {
                    // A kill takes the end of one line, not of each that an object is spread over.
                    let isKilled = chance(4) && output.count == 1
                    lines.append(line(text, "stdout", isLast: !isKilled))
                    continue
                }
                var rest = text.unicodeScalars[...]
                let whole = record()
                var left = Int.random(in: 1...3, using: &random)
                // A record that is itself in pieces.
                if chance(2) { rest = whole.unicodeScalars[...] }
                while left > 0 {
                    let piece = rest.prefix(Int.random(in: 0...rest.count, using: &random))
                    lines.append(line(String(piece), "stdout", isLast: false))
                    if chance(2) { lines.append(line("other", "stderr", isLast: true)) }
                    rest = rest.dropFirst(piece.count)
                    left -= 1
                }
                lines.append(line(String(rest), "stdout", isLast: true))
            }
            return lines
        }
    }

    @Test(
        "whatever is wrong with a line of text, hidden values are neither sent nor quarantined",
        arguments: Seeds.list(1...24))
    func hiddenInText(seed: UInt64) async throws {
        var drawn = Drawn(random: SplitMix64(seed: seed))
        try await withHost(events: Self.textOptions) { host in
            try await host.publish(Self.hiding)
            for _ in 0..<40 {
                let app = drawn.pick("lines", "blocks", "docker", "cri", "journal")
                let output = drawn.output()
                let lines =
                    LineWrapper(rawValue: app).map { drawn.wrapped(output, $0) }
                    ?? (app == "journal" ? output.map(drawn.entry) : output)
                try await host.takeAndCommit(lines, app: app)
                for sent in try await host.lines(of: "main", .normal) {
                    let (line, message) = ("\(sent)", sent["message"]?.string ?? "")
                    #expect(!line.contains("Q") && !message.contains("77"), "\(app): \(lines) gave \(line)")
                }
            }
            for kept in try await host.quarantined() {
                let content = String(decoding: kept.content, as: UTF8.self)
                #expect(!content.contains("Q") && !content.contains("77"), "\(kept.reason): \(content)")
                #expect(kept.content.count < kept.length, "it would be taken for the whole line")
            }
        }
    }

    @Test("text is sent while containers hide members; a doubtful line is quarantined under its own reason")
    func plainText() async throws {
        let plain = [
            #"127.0.0.1 - - [25/Nov/2026:10:00:00 +0000] "GET /a HTTP/1.1" 200 612 "-" "curl/8.5""#,
            "Saved Order{id=5, email='x'}", #"[INFO] Get "https://example.com": dial tcp: timeout"#,
            #"level=info msg="said \"hello\"" took=5ms"#, #"Running ["nginx", "-g", "daemon off;"]"#,
            #"  File "a.py", line 1, in <module>"#, #"open "a.txt": no such file"#,
            "KeyError: {'email': 'x'}", "}",
            "just text", " 1  0  0 123456  10:00", "GET /?q=%22quoted%22&n=1", "- item", "----",
        ]
        let doubtful = [
            #"got {"email":"SECRET"} from x"#, #"[{"email":"SECRET"}]"#, #"x={\"email\":\"SECRET\"}"#,
            #"saved ("email":"SECRET")"#, #"row|"email": 77|"#, #"  "SECRET", "SECRET","#,
            #"["SECRET", "b"],"#,
            #": "SECRET""#, #""SECRET"],"#, #"web[1]:     "SECRET""#, #"web[1]: "SECRET","#,
            "4900101, 4900102,",
            #"10.0.0.1 - POST / 200 "{\x22email\x22:\x22SECRET\x22}""#,
            "GET /?q=%7B%22email%22%3A%22SECRET%22%7D",
            "{\u{1B}[34;1m\"email\"\u{1B}[0m\u{1B}[1;39m:\"SECRET\"\u{1B}[1;39m}\u{1B}[0m",
        ]
        try await withHost(events: Self.textOptions) { host in
            try await host.publish(Self.hiding)
            // A closing bracket alone ends an object that is spread over lines.
            try await host.takeAndCommit(plain.filter { $0 != "}" } + doubtful, app: "lines")
            let sent = try await host.lines(of: "main", .normal).compactMap { $0["message"]?.string }
            #expect(sent == plain.filter { $0 != "}" })
            #expect(try await host.quarantined().map(\.reason) == doubtful.map { _ in .unredactable })
            #expect(await host.counts().quarantined[.unredactable] == doubtful.count)
            // Patterns find in a text what they find in a member.
            try await host.publish(Self.scrubbing)
            try await host.takeAndCommit(doubtful + plain, app: "lines")
            #expect(try await host.lines(of: "main", .normal).count == doubtful.count + plain.count)
            try await host.publish()
            try await host.takeAndCommit(doubtful, app: "lines")
            #expect(try await host.lines(of: "main", .normal).count == doubtful.count)
        }
    }

    @Test("an address that is divided between two pieces is not sent, whether paths or patterns hide it")
    func seams() async throws {
        let wrapped = ["stdout P mail to ann@exa", "stderr P other", "stdout F mple.com", "stdout F text"].map
        {
            "2026-11-20T10:00:00Z \($0)"
        }
        for document in [Self.scrubbing, Self.hiding] {
            try await withHost(events: Self.textOptions) { host in
                try await host.publish(document)
                try await host.takeAndCommit(wrapped, app: "cri")
                #expect(
                    try await host.lines(of: "main", .normal).compactMap { $0["message"]?.string } == ["text"]
                )
            }
        }
    }

    @Test("a byte order mark and white space in a wrapped line are skipped")
    func wrappedMarks() async throws {
        try await withHost(events: Self.textOptions) { host in
            try await host.publish(Self.hiding)
            for text in ["\u{FEFF}", "\u{FEFF}\u{FEFF}", "  "] {
                try await host.takeAndCommit(
                    ["2026-11-20T10:00:00Z stdout F \(text){\"n\":1,\"email\":\"SECRET\"}"], app: "cri")
            }
            let sent = try await host.lines(of: "main", .normal)
            #expect(sent.map { $0["n"] } == [1, 1, 1] && sent.allSatisfy { $0["email"] == nil })
        }
    }

    @Test("a journal message that is not an object is text, and a truncated one is a piece")
    func journal() async throws {
        try await withHost(events: Self.textOptions) { host in
            try await host.publish(Self.hiding)
            try await host.takeAndCommit(
                [
                    #"{"timestamp":"2026-11-20T10:00:00Z","message":"plain"}"#,
                    #"{"timestamp":"2026-11-20T10:00:00Z","message":"{\"email\":\"SECRET\",\"m\":\"cut"}"#,
                    #"{"timestamp":"2026-11-20T10:00:00Z","message":"SECRET","_LINE_BREAK":"line-max"}"#,
                    #"{"timestamp":"2026-11-20T10:00:00Z","message":"SECRET","truncated_member":"message"}"#,
                    #"{"message":"was {\"a\":1}","email":"SECRET","__REALTIME_TIMESTAMP":1795168800000000}"#,
                ], app: "journal")
            let sent = try await host.lines(of: "main", .normal)
            #expect(sent.compactMap { $0["message"]?.string } == ["plain", #"was {"a":1}"#])
            #expect(sent.allSatisfy { !"\($0)".contains("SECRET") })
            let kept = try await host.quarantined()
            #expect(kept.map(\.reason) == [.unredactable, .unredactable, .unredactable])
            #expect(kept.allSatisfy { !String(decoding: $0.content, as: UTF8.self).contains("SECRET") })
        }
    }

    @Test("a wrapped line with an error is not quarantined in clear")
    func wrappedQuarantine() async throws {
        var events = Self.textOptions
        events.apps["docker"]?.text = .quarantine
        try await withHost(events: events) { host in
            try await host.publish(Self.hiding)
            try await host.takeAndCommit(
                [#"{"log":"{\"email\":\"SECRET\"\n","stream":"stdout","time":"2026-11-20T10:00:00Z"}"#],
                app: "docker")
            let kept = try await host.quarantined()
            #expect(kept.map(\.reason) == [.cutShort])
            #expect(kept.allSatisfy { !String(decoding: $0.content, as: UTF8.self).contains("SECRET") })
        }
    }
}
