import EventLoops
import Foundation
import Model
import TestKit
import Testing
import TextFormats
import TimeZones

@testable import Events

@Suite("Records: objects written for other programs")
struct RecordTests {
    private func options(_ change: (inout AppOptions) -> Void = { _ in }) throws -> EventOptions {
        var options = EventOptions()
        options.hostName = "web-17"
        options.zone = try TimeZoneLoader().load(LoggerLine.zone)
        change(&options.defaults)
        return options
    }

    @Test(
        "lines of real loggers arrive whole, with their own times and severities",
        arguments: LoggerLine.all.indices)
    func loggers(index: Int) throws {
        let known = LoggerLine.all[index]
        var reading = Reading(try options(known.settings))
        let (verdict, output) = reading.read(known.line)
        let line = try #require(output, "\(known.logger)")
        let isRecord = reading.pass.isRecord
        #expect(verdict.kind == .accepted && isRecord)
        let time = known.time.map { text in
            Array(text.utf8).withUnsafeBufferPointer { TimestampText.parse($0) }
        }
        #expect(verdict.eventTime == time ?? Reading.now, "\(known.logger)")
        #expect(reading.pass.counts[.noTime] == (known.time == nil ? 1 : 0))
        #expect(reading.severity?.level == known.level, "\(known.logger)")
        // All that it has is in what leaves; a time that not every receiver reads is the one exception.
        let own = String(known.line.dropLast())
        let rewritten = [
            #""timestamp":"2026-11-20 10"#, #""timestamp":1795168800"#, #""timestamp":"1795168800"#, "+0100",
            "+0000",
        ]
        if !rewritten.contains(where: { own.contains($0) }) {
            #expect(line.hasPrefix(own + ","), "\(line)")
        }
        #expect(failure(String(line.dropLast())) == nil)
        // What leaves says the time where every receiver looks.
        var again = Reading()
        let second = again.read(String(line.dropLast())).verdict
        if known.time != nil { #expect(second.eventTime == time ?? Reading.now, "\(line)") }
    }

    @Test("no name, time or severity is derived from hidden members; other members replace them")
    func hiddenSources() throws {
        var reading = Reading(
            try options {
                $0.kind = .log
                $0.nameMembers = ["who"]
                $0.timeMembers = ["when.at"] + $0.timeMembers
                $0.levelMembers = ["sev"]
            })
        let line =
            #"{"when":{"at":"2026-11-20T09:00:00Z"},"who":"SECRET","sev":"error","when.at":"2026-11-20T09:00:00Z"}"#
        let before = try #require(reading.read(line).output)
        for copy in [#""name":"SECRET""#, #""timestamp":"2026-11-20T09"#, #""severity":"error""#] {
            #expect(before.contains(copy), "\(before)")
        }
        let hidden = [["who"], ["when", "at"], ["when.at"], ["sev"]]
        reading.pass.hiding = (
            1, { names in hidden.contains(names.map { String(decoding: $0, as: UTF8.self) }) }
        )
        let after = try #require(reading.read(line).output)
        #expect(
            after.contains(#""name":"log""#) && !after.contains("timestamp") && !after.contains("severity"),
            "\(after)")
        #expect(reading.pass.counts[.noTime] == 1)
        let other = try #require(
            reading.read(#"{"when":{"at":"2026-11-20T09:00:00Z"},"ts":"2026-11-20T08:00:00Z"}"#).output)
        #expect(other.contains(#""timestamp":"2026-11-20T08"#), "\(other)")
        // Where nothing is hidden any more they count again.
        reading.pass.hiding = nil
        #expect(reading.read(line).output?.contains(#""name":"SECRET""#) == true)
    }

    @Test("docs/existing-logs.md has exactly one row for each logger, with its time and severity")
    func page() throws {
        let page = try String(contentsOfFile: "\(GoldenFile.root)/docs/existing-logs.md", encoding: .utf8)
        let table = page.split(separator: "\n").drop { !$0.hasPrefix("| logger or server ") }.dropFirst(2)
        let rows = table.prefix { $0.hasPrefix("| ") }
        #expect(rows.count == LoggerLine.all.count)
        for (row, known) in zip(rows, LoggerLine.all) {
            let cells = row.split(separator: "|").map { $0.drop { $0 == " " } }
            #expect(
                cells[0].hasPrefix(known.logger + " ") && cells[2].hasPrefix("none") == (known.level == nil),
                "\(row)")
        }
    }

    @Test("a record read in place gets its file's path, unless it has one or the app omits it")
    func filePath() throws {
        func output(_ line: String, path: String, adds: Bool = true) throws -> String {
            var reading = Reading(try options { $0.addsFilePath = adds })
            reading.path = path
            return try #require(reading.read(line).output)
        }
        let added = #","log.file.path":"/var/log/a \"b\".log","id":""#
        #expect(try output(#"{"msg":"x"}"#, path: #"/var/log/a "b".log"#).contains(added))
        #expect(try output("{}", path: "/l").contains(#","log.file.path":"/l","#))
        // An app's file in the spool has a path of its own, which says nothing to others.
        #expect(try !output(#"{"msg":"x"}"#, path: "shop/a.log").contains("log.file.path"))
        #expect(try !output(#"{"msg":"x"}"#, path: "/l", adds: false).contains("log.file.path"))
        let own = try output(#"{"log.file.path":"mine","msg":"x"}"#, path: "/l")
        #expect(own.contains(#""log.file.path":"mine""#) && !own.contains(#""/l""#))
        #expect(try !output(#"{"name":"n","timestamp":1795168800123}"#, path: "/l").contains("log.file.path"))
    }

    @Test("docs/existing-logs.md lists the members with time and severity, in their order")
    func pageOfMembers() throws {
        let page = try String(contentsOfFile: "\(GoldenFile.root)/docs/existing-logs.md", encoding: .utf8)
        for (start, end, members) in [
            ("**The time** is the first", "RFC 3339", AppOptions.usualTimes),
            ("**The severity** is the first", ": a word", Severity.usualMembers),
        ] {
            let text = try #require(page.range(of: start)).upperBound
            let rest = page[text...]
            let list = rest[..<(try #require(rest.range(of: end)).lowerBound)]
            let named = list.split(separator: "`").enumerated().filter { $0.offset % 2 == 1 }.map {
                String($0.element)
            }
            #expect(named == members)
        }
    }

    @Test("a thousand apps with their own members: each finds its own time only")
    func manyMembers() throws {
        var options = EventOptions()
        for number in 0..<1000 {
            var app = AppOptions()
            (app.kind, app.timeMembers) = (.log, ["when\(number)", "at.time\(number)"])
            options.apps["app\(number)"] = app
        }
        let now = Timestamp(milliseconds: 1_795_168_900_000)
        for number in [0, 1, 20, 21, 22, 23, 500, 999] {
            var reading = Reading(options, app: "app\(number)")
            let late =
                #"{"when5":"2026-11-20T09:00:00Z","when999x":1,"when\#(number)":"2026-11-20T10:00:00Z"}"#
            #expect(
                reading.read(late, at: now).verdict.eventTime == Timestamp(milliseconds: 1_795_168_800_000))
            #expect(
                reading.read(#"{"at":{"time\#(number)":1795168801}}"#, at: now).verdict.eventTime.milliseconds
                    % 10_000
                    == 1000)
            #expect(
                reading.read(#"{"when\#(number + 1)":"2026-11-20T10:00:00Z"}"#, at: now).verdict.eventTime
                    == now)
        }
    }

    @Test("words and numbers of severity members are understood")
    func meanings() throws {
        for (line, level) in [
            (#"{"level":"DEBUG-4"}"#, "trace"), (#"{"level":"INFO+2"}"#, "info"),
            (#"{"level":"ERROR+99"}"#, "fatal"),
            (#"{"level":"WARN-x"}"#, nil), (#"{"level":"disk-4"}"#, nil), (#"{"levelno":10}"#, "debug"),
            (#"{"label":"warning"}"#, "warn"), (#"{"label":30}"#, nil), (#"{"priority":"Warning"}"#, "warn"),
            (#"{"priority":"critical"}"#, nil), (#"{"priority":3}"#, nil), (#"{"level":3}"#, nil),
            (#"{"version":"1.1","level":3}"#, "error"), (#"{"version":"2.0.1","level":3}"#, nil),
            (#"{"version":"1.1","level":30}"#, "info"), (#"{"version":1.1,"level":3}"#, nil),
        ] as [(String, String?)] {
            var reading = Reading(try options())
            _ = reading.read(line)
            #expect(reading.severity?.level.rawValue == level, "\(line)")
        }
    }

    @Test("docs/existing-logs.md lists the meaning of each word and number, in the order of the six levels")
    func pageOfLevels() throws {
        let page = try String(contentsOfFile: "\(GoldenFile.root)/docs/existing-logs.md", encoding: .utf8)
        let rows = page.split(separator: "\n").drop { !$0.hasPrefix("| level | words") }.dropFirst(2).prefix(
            6)
        #expect(rows.count == 6)
        for (row, level) in zip(rows, SeverityLevel.allCases) {
            let cells = row.split(separator: "|").map {
                $0.split(separator: " ").map { $0.filter { $0 != "`" } }
            }
            #expect(cells[0] == [level.rawValue] && cells.count == 6)
            for (cell, scale) in zip(cells.dropFirst(), [SeverityScale.auto, .auto, .auto, .syslog, .python])
            {
                for word in cell where word != "–" {
                    #expect(Severity(text: word.uppercased(), in: scale)?.level == level, "\(word)")
                }
            }
        }
    }

    @Test("with the defaults of files read in place every shape is whole, most have their time and severity")
    func shapesByDefault() throws {
        var whole: [String] = []
        var withoutTime: [String] = []
        var withoutSeverity: [String] = []
        for known in LoggerLine.all {
            var reading = Reading(try options { $0.kind = .log })
            let (verdict, output) = reading.read(known.line)
            let isRecord = reading.pass.isRecord
            if verdict.kind == .accepted, isRecord, let output, failure(String(output.dropLast())) == nil {
                whole.append(known.logger)
            }
            let time = known.time.map { text in
                Array(text.utf8).withUnsafeBufferPointer { TimestampText.parse($0) }
            }
            if verdict.eventTime != time ?? Reading.now { withoutTime.append(known.logger) }
            if reading.severity?.level != known.level { withoutSeverity.append(known.logger) }
        }
        #expect(LoggerLine.all.count >= 75 && whole.count == LoggerLine.all.count)
        #expect(withoutTime.count <= 10, "\(withoutTime)")
        #expect(withoutSeverity.count <= 7, "\(withoutSeverity)")
    }

    /// A line that a real program has written: scripts/logger-lines.
    private struct RealLine: Decodable {
        let logger: String
        let version: String
        let level: String
        let from: Int
        let to: Int
        let line: String
    }

    @Test("lines of real programs get their own time and severity with the settings in docs/existing-logs.md")
    func realLines() throws {
        let path = "\(GoldenFile.root)/Tests/EventsTests/Fixtures/logger-lines.jsonl"
        let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
        #expect(lines.count > 25)
        for text in lines {
            let real = try JSONDecoder().decode(RealLine.self, from: Data(text.utf8))
            let known = try #require(LoggerLine.all.first { $0.logger == real.logger }, "\(real.logger)")
            var options = try options(known.settings)
            options.zone = .utc
            var reading = Reading(options)
            let (verdict, output) = reading.read(
                real.line, at: Timestamp(milliseconds: Int64(real.to + 60) * 1_000))
            let isRecord = reading.pass.isRecord
            #expect(verdict.kind == .accepted && isRecord, "\(text)")
            #expect(
                (real.from * 1_000...real.to * 1_000).contains(Int(verdict.eventTime.milliseconds)), "\(text)"
            )
            #expect((reading.severity?.level.rawValue ?? "-") == real.level, "\(text)")
            #expect(output.map { failure(String($0.dropLast())) == nil } == true)
        }
    }

    @Test("a record gets name, timestamp, app, host_name, observed_at and id, and nothing else")
    func additions() throws {
        var reading = Reading(try options())
        let line = #"{"level":30,"time":1795168800123,"msg":"x"}"#
        let output = try #require(reading.read(line).output)
        let id = output.dropLast(3).suffix(36)
        #expect(
            output == String(line.dropLast())
                + #","name":"log","timestamp":"2026-11-20T10:00:00.123Z","app":"shop","host_name":"web-17","#
                + #""observed_at":"2026-11-20T10:00:00.000Z","id":"\#(id)"}"# + "\n")
    }

    @Test("members with the agent's names are data, and the agent uses other names: record_id for the id")
    func givingWay() throws {
        var reading = Reading(try options { $0.country = CountryCode("DE") })
        let line =
            #"{"app":"other","id":5,"country":"none","session_id":7,"device":[],"observed_at":0,"host_name":"h","#
            + #""timestamp":"soon","priority":"P1","x":1}"#
        let output = try #require(reading.read(line).output)
        #expect(output.hasPrefix(String(line.dropLast()) + #","name":"log","record_id":""#), "\(output)")
        #expect(!output.contains("observed_at\":\"") && !output.contains("\"timestamp\":\"2"))
        let both = try #require(reading.read(#"{"id":1,"record_id":2}"#).output)
        #expect(
            both.hasPrefix(#"{"id":1,"record_id":2,"name":"log","#) && both.contains(#","spoolship_id":""#),
            "\(both)")
        // A null is as good as nothing.
        let null = try #require(reading.read(#"{"id":null,"host_name":null,"x":1}"#).output)
        #expect(
            null.hasPrefix(#"{"x":1,"name":"log","app":"shop","country":"DE","host_name":"web-17","#),
            "\(null)")
        #expect(null.contains(#","id":""#))
        // Nobody writes as another where others write too.
        var shared = Reading(try options(), isShared: true)
        #expect(
            try #require(shared.read(#"{"app":"other","x":1}"#).output).hasPrefix(
                #"{"x":1,"name":"log","app":"shop""#))
        #expect(shared.pass.counts[.replacedApp] == 1)
    }

    @Test("a record keeps what limits would truncate in an event")
    func noLimits() throws {
        var reading = Reading(try options { $0.limits = .appCenter })
        let members = (0..<60).map { #""m\#($0)":"\#(String(repeating: "x", count: 300))""# }.joined(
            separator: ",")
        let line = #"{"properties":{\#(members)},\#(members)}"#
        #expect(try #require(reading.read(line).output).hasPrefix(line.dropLast()))
        for index in 0..<500 { #expect(reading.read(#"{"message":"\#(index)"}"#).verdict.kind == .accepted) }
    }

    @Test("kind = \"log\": each object is a record, whatever name and type it has")
    func logKind() throws {
        var reading = Reading(try options { $0.kind = .log })
        for line in [
            #"{"name":"child","level":30}"#, #"{"type":"data_layer","a":1}"#, #"{"type":"start_session"}"#,
        ] {
            #expect(try #require(reading.read(line).output).hasPrefix(line.dropLast()))
            let isRecord = reading.pass.isRecord
            #expect(isRecord)
        }
        #expect(reading.pass.counts[.unusableName] == 0)
    }

    @Test("an event without timestamp gets its time from the same members; one with a timestamp keeps it")
    func events() throws {
        var reading = Reading(try options())
        let (verdict, output) = reading.read(#"{"name":"a","ts":1795168700}"#)
        let isRecord = reading.pass.isRecord
        #expect(verdict.eventTime == Timestamp(milliseconds: 1_795_168_700_000) && !isRecord)
        #expect(
            try #require(output).hasPrefix(
                #"{"name":"a","ts":1795168700,"timestamp":"2026-11-20T09:58:20.000Z","app""#)
        )
        let own = reading.read(#"{"name":"a","timestamp":"2026-11-20T09:00:00Z","ts":1795168700}"#)
        #expect(own.verdict.eventTime == Timestamp(milliseconds: 1_795_165_200_000))
    }

    @Test("the first usable time counts; before 2000 or three days ahead is not usable")
    func usableTimes() throws {
        for (line, expected) in [
            (#"{"time":12,"ts":1795168700}"#, 1_795_168_700_000),
            (#"{"time":"yesterday","date":"1795168700"}"#, 1_795_168_700_000),
            (#"{"time":4795168700,"t":1795168700}"#, 1_795_168_700_000),
            (#"{"time":{"$date":{"$numberLong":"1795168700000"}}}"#, 1_795_168_700_000),
            (#"{"time":"2026-11-20T10:58:20"}"#, 1_795_168_700_000),
            (#"{"time":"2026-11-20 10:58:20,000"}"#, 1_795_168_700_000),
            (#"{"time":"2026-11-20T10:58:20+01"}"#, 1_795_168_700_000),
            (#"{"time":"2026-11-20 10:58:20 +0100"}"#, 1_795_168_700_000),
            (#"{"time":"2026-07-20T10:58:20"}"#, 1_784_537_900_000),
            (#"{"time":"2026-11-20 09:58:20 UTC"}"#, 1_795_168_700_000),
            (#"{"time":"2026-11-20 10:58"}"#, 1_795_168_680_000),
            (#"{"time":"2026-11-20 00:00:00"}"#, 1_795_129_200_000),
            (#"{"time":"2026-11-20T09:58Z"}"#, 1_795_168_680_000),
            (#"{"time":"2026-11-20T09:58:20,5z"}"#, 1_795_168_700_500),
            (#"{"time":"2026-11-20 10:58:20+1"}"#, Reading.now.milliseconds),
            (#"{"time":"2026-11-20 10:58:20+"}"#, Reading.now.milliseconds),
            (#"{"time":[],"ts":null,"t":{}}"#, Reading.now.milliseconds),
            (#"{"time":"2026-13-20T10:58:20"}"#, Reading.now.milliseconds),
        ] {
            var reading = Reading(try options { _ in })
            #expect(reading.read(line).verdict.eventTime == Timestamp(milliseconds: expected), "\(line)")
        }
        var reading = Reading(try options())
        let output = try #require(reading.read(#"{"timestamp":"2026-11-20 10:58:20,5","x":1}"#).output)
        #expect(output.hasPrefix(#"{"timestamp":"2026-11-20T09:58:20.500Z","x":1,"#), "\(output)")
    }

    @Test("a rule on severity applies to it and worse ones")
    func severityRules() throws {
        var options = try options()
        options.priorityRules = [PriorityRule(level: .error, priority: .critical)]
        var reading = Reading(options)
        for (line, isCritical) in [
            (#"{"level":50,"msg":"x"}"#, true), (#"{"level":60}"#, true), (#"{"level":40}"#, false),
            (#"{"msg":"x"}"#, false),
            (#"{"name":"a","level":"ERROR"}"#, true), (#"{"name":"a","severity":"warn"}"#, false),
            (#"{"PRIORITY":"3"}"#, true),
            (#"{"PRIORITY":"4"}"#, false), (#"{"level":3}"#, false), (#"{"log.level":"CRITICAL"}"#, true),
            (#"{"log":{"level":"alert"}}"#, true), (#"{"s":"F"}"#, true),
            (#"{"level":"?","severity":"panic"}"#, true),
        ] {
            #expect((reading.read(line).verdict.priority == .critical) == isCritical, "\(line)")
        }
    }

    @Test("severity, name and time from configured members are written where receivers expect them")
    func configuredMembers() throws {
        var reading = Reading(
            try options {
                $0.levelMembers = ["meta.level"]
                $0.timeMembers = ["meta.when"]
                $0.nameMembers = ["meta.op"]
            })
        let line = #"{"meta":{"level":"WARN","when":"2026-11-20T09:58:20Z","op":"pay"},"x":1}"#
        let output = try #require(reading.read(line).output)
        #expect(
            output.hasPrefix(
                line.dropLast()
                    + #","name":"pay","timestamp":"2026-11-20T09:58:20.000Z","severity":"warn","app":"#),
            "\(output)")
    }

    @Test(
        "invalid UTF-8 becomes U+FFFD in records; an event with it is quarantined, unless configured otherwise"
    )
    func bytes() throws {
        var reading = Reading(try options())
        let path = Array(#"{"request":"GET /%"#.utf8) + [0xFF, 0xC3] + Array(#"","status":200}"#.utf8)
        let output = try #require(reading.read(bytes: path + [0x0A]).output)
        #expect(
            String(decoding: output, as: UTF8.self).hasPrefix(
                #"{"request":"GET /%"# + "\u{FFFD}\u{FFFD}" + #"","status":200,"#))
        let event = Array(#"{"name":"a"#.utf8) + [0xFF] + Array(#""}"#.utf8) + [0x0A]
        #expect(reading.read(bytes: event).verdict.kind == .quarantined)
        #expect(
            reading.pass.problem?.reason == .notUTF8 && reading.pass.problem?.detail == "not UTF-8 at byte 10"
        )
        var asked = Reading(try options { $0.repairsUTF8 = true })
        #expect(asked.read(bytes: event).verdict.kind == .accepted)
        var refused = Reading(try options { $0.repairsUTF8 = false })
        #expect(refused.read(bytes: path + [0x0A]).verdict.kind == .quarantined)
        #expect(reading.pass.counts[.repairedUTF8] == 1 && asked.pass.counts[.repairedUTF8] == 1)
    }

    @Test(
        "not_utf8 = quarantine keeps lines of every kind as they are, also where text is sent",
        arguments: [
            ("", #"{"msg":"caf*"}"#), ("", "caf*"), ("logfmt", "level=info msg=caf*"),
            ("logfmt", #"{"msg":"caf*"}"#), ("cri", "2026-11-20T10:00:00Z stdout F caf*"),
            ("cri", #"2026-11-20T10:00:00Z stdout F {"msg":"caf*"}"#),
            ("docker", #"{"log":"caf*\n","stream":"stdout","time":"2026-11-20T10:00:00Z"}"#),
        ])
    func bytesAreKept(format: String, line: String) throws {
        var reading = Reading(
            try options {
                $0.text = .lines
                $0.repairsUTF8 = false
                $0.format = LineWrapper(rawValue: format)
                if format == "logfmt" {
                    var settings = TextFormatSettings()
                    settings.parse = format
                    $0.textFormat = try? TextFormat(settings)
                }
            })
        let bytes = line.utf8.map { $0 == UInt8(ascii: "*") ? 0xE9 : $0 } + [0x0A]
        #expect(reading.read(bytes: bytes).verdict.kind == .quarantined)
        #expect(reading.pass.problem?.reason == .notUTF8)
        #expect(reading.pass.counts[.wrappedText] == 0 && reading.pass.counts.parsed == 0)
        let good = line.utf8.filter { $0 != UInt8(ascii: "*") } + [0x0A]
        #expect(reading.read(bytes: good).verdict.kind == .accepted)
    }

    @Test("a byte order mark at the beginning of any line is ignored")
    func byteOrderMark() throws {
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        var reading = Reading(try options { $0.text = .lines })
        for count in 1...3 {
            let marks = Array(repeating: mark, count: count).joined()
            let event = try #require(reading.read(bytes: marks + Array("{\"name\":\"a\"}\n".utf8)).output)
            #expect(event.starts(with: "{\"name\":\"a\"".utf8))
            let text = try #require(reading.read(bytes: marks + Array("text\n".utf8)).output)
            #expect(text.starts(with: "{\"message\":\"text\"".utf8))
            #expect(reading.read(bytes: marks + [0x0A]).verdict.kind == .blank)
        }
        var plain = Reading(try options())
        #expect(plain.read(bytes: mark + Array("no JSON\n".utf8)).verdict.kind == .quarantined)
        #expect(plain.read(bytes: mark.dropLast() + Array("{}\n".utf8)).verdict.kind == .quarantined)
    }

    @Test("text = \"lines\": a line that is not JSON becomes the message of a record")
    func text() throws {
        var reading = Reading(try options { $0.text = .lines })
        for (line, message) in [
            ("plain text", #""plain text""#), (#"a "quoted" \ one"# + "\t", #""a \"quoted\" \\ one\t""#),
            (#"{"cut":"#, #""{\"cut\":""#), ("[1,2]", #""[1,2]""#), ("with return\r", #""with return""#),
        ] {
            let output = try #require(reading.read(line).output)
            #expect(output.hasPrefix(#"{"message":\#(message),"name":"log","app":"#), "\(output)")
        }
        let broken = try #require(reading.read(bytes: [0x61, 0xFF, 0x0A]).output)
        #expect(String(decoding: broken, as: UTF8.self).hasPrefix("{\"message\":\"a\u{FFFD}\","))
        #expect(reading.read("  ").verdict.kind == .blank)
        #expect(reading.read(bytes: [0, 0, 0x61, 0x0A]).verdict.kind == .quarantined)
        #expect(reading.pass.counts[.wrappedText] == 6 && reading.pass.counts[.repairedUTF8] == 1)
    }

    @Test("no line grows beyond maxAddition, and each result is an object: random lines, settings and bytes")
    func grows() throws {
        var documents = JSONDocuments(seed: 29)
        var random = SplitMix64(seed: Seeds.one(29))
        for round in 0..<40 {
            var reading = Reading(
                try options {
                    $0.kind = Bool.random(using: &random) ? .log : .event
                    $0.text = .allCases.randomElement(using: &random) ?? .lines
                    $0.levelMembers = ["a", "b.c"]
                    $0.levelScale = .python
                    $0.nameMembers = Bool.random(using: &random) ? ["a", "name", "b.c"] : []
                })
            for _ in 0..<500 {
                var line = documents.next()
                if Bool.random(using: &random) {
                    line.insert(contentsOf: Array(#"{"a":"9","t":1795168800.5,"id":1,"#.utf8), at: 0)
                }
                line.removeAll { $0 == 0x0A }
                let (verdict, output) = reading.read(bytes: line + [0x0A])
                guard verdict.kind == .accepted, let output else { continue }
                #expect(output.last == 0x0A && failure(Array(output.dropLast())) == nil, "round \(round)")
                #expect(output.count - reading.pass.length <= reading.pass.maxAddition)
            }
        }
    }

    @Test("addresses are removed from records too, wherever they are")
    func addresses() throws {
        var options = try options()
        options.addressMember = "ip"
        options.removesAddress = true
        var reading = Reading(options)
        for line in [
            #"{"ip":"192.0.2.7","x":1}"#, #"{"ip":"192.0.2.7","ip":"192.0.2.8"}"#,
            #"{"properties":{"ip":"192.0.2.7","a":1}}"#,
            #"{"name":"a","ip":7,"properties":{"ip":"192.0.2.7"}}"#,
            #"{"ip":7,"properties":{"\u0069p":"192.0.2.7"}}"#,
        ] {
            let output = try #require(reading.read(line).output)
            #expect(!output.contains("192.0.2") && failure(String(output.dropLast())) == nil, "\(output)")
        }
    }
}
