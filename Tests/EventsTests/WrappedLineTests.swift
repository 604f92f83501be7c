import EventLoops
import Model
import TestKit
import Testing
import TextFormats

@testable import Events

@Suite("Lines wrapped by a container runtime")
struct WrappedLineTests {
    private func options(_ format: LineWrapper?, _ text: TextHandling = .lines) -> EventOptions {
        var options = EventOptions()
        options.defaults.kind = .log
        options.defaults.text = text
        options.defaults.format = format
        return options
    }

    /// What the lines of a block become: what was added at the end is left out.
    private func read(
        _ text: String, _ format: LineWrapper?, path: String = "", as handling: TextHandling = .lines
    ) -> [(line: String, time: Timestamp)] {
        read(text, options(format, handling), path: path).map { line, time in
            let end = line.firstRange(of: ",\"name\":\"log\"")?.lowerBound
            return (end.map { String(line[..<$0]) } ?? line, time)
        }
    }

    /// The same, as a whole.
    private func read(
        _ text: String, _ options: EventOptions, path: String = ""
    ) -> [(line: String, time: Timestamp)] {
        var reading = Reading(options)
        let bytes = Array((text + "\n").utf8)
        return bytes.withUnsafeBufferPointer { block in
            guard let base = block.baseAddress else { return [] }
            var found: [(line: String, time: Timestamp)] = []
            var position = 0
            reading.pass.begin(
                reading.source, path: path, at: Reading.now, isSynchronised: true, using: &reading.random)
            while position < block.count {
                let verdict = reading.pass.read(base, from: position, to: block.count)
                precondition(verdict.next > position && verdict.next <= block.count)
                position = verdict.next
                guard verdict.kind == .accepted else {
                    found.append(("\(verdict.kind)", verdict.eventTime))
                    continue
                }
                reading.buffer.removeAll()
                reading.pass.write(into: &reading.buffer)
                let line = String(decoding: reading.buffer.bytes, as: UTF8.self)
                found.append((line, verdict.eventTime))
            }
            return found
        }
    }

    private func time(_ text: String) -> Timestamp? {
        Array(text.utf8).withUnsafeBufferPointer { TimestampText.parse($0) }
    }

    @Test("docker: JSON is a record with its own time, text a message with the runtime's; parts are joined")
    func docker() {
        let lines = read(
            #"""
            {"log":"{\"level\":30,\"time\":1795168800123,\"msg\":\"a \\\"b\\\"\"}\n","stream":"stdout","time":"2026-11-20T10:00:00.5Z"}
            {"log":"plain \u003ctext\u003e\r\n","stream":"stderr","time":"2026-11-20T10:00:01.123456789Z"}
            {"log":"{\"msg\":\"first ","stream":"stdout","time":"2026-11-20T10:00:02Z"}
            {"log":"second \\n","stream":"stdout","time":"2026-11-20T10:00:03Z"}
            {"log":"third\"}\n","stream":"stdout","attrs":{"tag":"x"},"time":"2026-11-20T10:00:04Z"}
            {"log":"of one stream ","stream":"stdout","time":"2026-11-20T10:00:05Z"}
            {"log":"of the other\n","stream":"stderr","time":"2026-11-20T10:00:06Z"}
            {"other":"not docker's"}
            no JSON
            {"log":"cut off","stream":"stdout","time":"2026-11-20T10:00:07Z"}
            """#, .docker)
        #expect(
            lines.map(\.line) == [
                #"{"level":30,"time":1795168800123,"msg":"a \"b\""}"#.dropLast().description,
                #"{"message":"plain <text>","stream":"stderr""#, #"{"msg":"first second \nthird""#,
                #"{"message":"of one stream ","stream":"stdout""#,
                #"{"message":"of the other","stream":"stderr""#,
                #"{"other":"not docker's""#, #"{"message":"no JSON""#,
                #"{"message":"cut off","stream":"stdout""#,
            ])
        #expect(lines[0].time == Timestamp(milliseconds: 1_795_168_800_123))
        #expect(lines[1].time == time("2026-11-20T10:00:01.123456789Z"))
        #expect(lines[2].time == time("2026-11-20T10:00:02Z") && lines[5].time == Reading.now)
    }

    @Test("cri: text follows the stream, and parts are joined; namespace, pod and container are in the path")
    func cri() {
        let lines = read(
            """
            2026-11-20T10:00:00.5+01:00 stdout F {"level":"error","msg":"x"}
            2026-11-20T10:00:01Z stderr P one\u{20}
            2026-11-20T10:00:02Z stderr P two\u{20}
            2026-11-20T10:00:03Z stderr F three
            2026-11-20T10:00:04Z stdout F\u{20}
            no such line
            2026-11-20T10:00:05Z stdout P \u{e9}
            """, .cri, path: "/var/log/pods/shop_cart-7d9_0a1b-2c/web/0.log")
        let pod = #","kubernetes":{"namespace":"shop","pod":"cart-7d9","container":"web"}"#
        #expect(
            lines.map(\.line) == [
                #"{"level":"error","msg":"x""#, #"{"message":"one two three","stream":"stderr""#,
                #"{"message":"","stream":"stdout""#, #"{"message":"no such line""#,
                "{\"message\":\"\u{e9}\",\"stream\":\"stdout\"",
            ])
        #expect(
            lines[0].time == time("2026-11-20T09:00:00.5Z") && lines[1].time == time("2026-11-20T10:00:01Z"))
        var reading = Reading(options(.cri))
        var random = SplitMix64(seed: 2)
        reading.pass.begin(
            reading.source, path: "/var/log/pods/shop_cart-7d9_0a1b-2c/web/0.log", at: Reading.now,
            isSynchronised: true, using: &random)
        func output(_ record: String, _ reading: inout Reading) -> String {
            let block = Array("2026-11-20T10:00:00Z stdout F \(record)\n".utf8)
            return block.withUnsafeBufferPointer { block in
                guard let base = block.baseAddress else { return "" }
                _ = reading.pass.read(base, from: 0, to: block.count)
                let (length, most) = (reading.pass.length, reading.pass.maxAddition)
                reading.buffer.removeAll()
                reading.pass.write(into: &reading.buffer)
                let line = String(decoding: reading.buffer.bytes, as: UTF8.self)
                #expect(line.utf8.count <= length + most + 1, "\(line)")
                return line
            }
        }
        #expect(output(#"{"a":1}"#, &reading).contains(pod))
        // Whose it is, what it prints does not say.
        #expect(output(#"{"app":"other"}"#, &reading).hasPrefix(#"{"name":"log","timestamp":"#))
        // What a record has stays, and comes once.
        let own = output(#"{"timestamp":"soon","kubernetes":{"mine":1}}"#, &reading)
        #expect(own.hasPrefix(#"{"timestamp":"soon","kubernetes":{"mine":1},"name":"log","app":"#), "\(own)")
    }

    /// Lines of a program's two streams, in pieces that alternate, and the records that they are, by their first pieces.
    private func alternating(_ format: LineWrapper, seed: UInt64) -> (lines: [String], records: [String]) {
        var random = SplitMix64(seed: seed)
        var (lines, records): ([String], [String]) = ([], [])
        var open: [String: Int] = [:]
        var left = 40
        while left > 0 || !open.isEmpty {
            let mayBegin = left > 0 && open.count < 2
            let begun = ["stdout", "stderr"].filter { mayBegin || open[$0] != nil }
            guard let stream = begun.randomElement(using: &random) else { continue }
            let isLast = Bool.random(using: &random)
            let text = "\(stream.last ?? " ")\(left)-\(lines.count)\(isLast ? "." : ",")"
            if format == .cri {
                lines.append("2026-11-20T10:00:00Z \(stream) \(isLast ? "F" : "P") \(text)")
            } else {
                let log = text + (isLast ? "\\n" : "")
                lines.append(#"{"log":"\#(log)","stream":"\#(stream)","time":"2026-11-20T10:00:00Z"}"#)
            }
            if let place = open[stream] {
                records[place] += text
            } else {
                open[stream] = records.count
                records.append(text)
                left -= 1
            }
            if isLast { open[stream] = nil }
        }
        return (lines, records)
    }

    @Test(
        "pieces of a line are one record, whatever the other stream writes in between",
        arguments: LineWrapper.allCases,
        Seeds.list(0..<50))
    func streams(format: LineWrapper, seed: UInt64) {
        let (lines, records) = alternating(format, seed: seed)
        let found = read(lines.joined(separator: "\n"), format).map(\.line).filter { $0 != "blank" }
        let expected = records.map {
            "{\"message\":\"\($0)\",\"stream\":\"\($0.first == "t" ? "stdout" : "stderr")\""
        }
        #expect(found == expected, "\(Seeds.again(seed))")
    }

    @Test("a piece whose line ends outside the block, or far behind it, is its own record")
    func unfinishedStreams() {
        func line(_ stream: String, _ tag: String, _ text: String) -> String {
            "2026-11-20T10:00:00Z \(stream) \(tag) \(text)"
        }
        func messages(_ lines: [String]) -> [String] {
            read(lines.joined(separator: "\n"), .cri).map(\.line).filter { $0 != "blank" }.map {
                String($0.split(separator: "\"")[3])
            }
        }
        #expect(messages([line("stdout", "P", "a"), line("stderr", "F", "b")]) == ["a", "b"])
        let others = (0..<65).map { line("stderr", "F", "\($0)") }
        let numbers = (0..<65).map { "\($0)" }
        #expect(
            messages([line("stdout", "P", "a")] + others + [line("stdout", "F", "b")]) == ["a"] + numbers + [
                "b"
            ])
        #expect(
            messages([line("stdout", "P", "a")] + others.dropLast() + [line("stdout", "F", "b")])
                == ["ab"] + numbers.dropLast())
    }

    @Test("a line of a container is parsed by the app's format, and json_in finds an object in it")
    func parsedInside() throws {
        var options = options(.docker)
        var format = TextFormatSettings()
        format.parse = "json_in:inner"
        options.defaults.textFormat = try TextFormat(format)
        var reading = Reading(options)
        func output(_ line: String) -> String { reading.read(line).output ?? "" }
        let inner = #"{\"inner\":\"{\\\"level\\\":\\\"warn\\\",\\\"a\\\":1}\"}"#
        let nested = output(#"{"log":"\#(inner)\n","stream":"stdout","time":"2026-11-20T09:59:00Z"}"#)
        #expect(nested.hasPrefix(#"{"level":"warn","a":1,"#), "\(nested)")
        #expect(nested.contains(#""timestamp":"2026-11-20T09:59:00.000Z""#))
        let plain = output(#"{"log":"{\"a\":2}\n","stream":"stdout","time":"2026-11-20T09:59:00Z"}"#)
        #expect(plain.hasPrefix(#"{"a":2,"#), "\(plain)")
        #expect(reading.pass.counts.parsed == 1 && reading.pass.counts.texts["shop"]?.notParsed == 1)
    }

    /// Records of Java, Python and Go programs, and of one that `firstLine` describes.
    private static let programs: [(parse: String?, firstLine: String?, records: [String])] = [
        (
            "java", nil,
            [
                "2026-11-20 09:59:00,413 ERROR [main] shop.Cart - no\njava.io.IOException: x\n\tat a.b(C.java:1)",
                "2026-11-20 09:59:01,000 INFO  [main] shop.Cart - yes",
            ]
        ),
        (
            "python", nil,
            [
                "2026-11-20 09:59:00,413 ERROR shop: no\nTraceback (most recent call last):\n  File \"a.py\"\nKeyError: 1",
                "2026-11-20 09:59:01,000 INFO shop: yes",
            ]
        ),
        (
            "go", nil,
            ["panic: no\n\ngoroutine 1 [running]:\nmain.main()\n\t/a.go:7 +0x1d", "2026/11/20 09:59:00 yes"]
        ),
        (nil, #"^\d{4}-"#, ["2026-11 a\n  b\n\n\tc \\ \"d\"", "2026-11 e"]),
    ]

    /// The lines of a runtime for a line of a program, in pieces of at most `most` characters.
    private func wrap(
        _ line: String, _ stream: String, _ format: LineWrapper, most: Int = .max
    ) -> [String] {
        var rest = line[...]
        var lines: [String] = []
        repeat {
            let piece = rest.prefix(most)
            rest = rest.dropFirst(piece.count)
            let time = "2026-11-20T10:00:00.\(100 + lines.count)Z"
            if format == .cri {
                lines.append("\(time) \(stream) \(rest.isEmpty ? "F" : "P") \(piece)")
            } else {
                let text = JSONText.quoted(String(piece) + (rest.isEmpty ? "\n" : ""))
                let log = String(decoding: text, as: UTF8.self)
                lines.append(#"{"log":\#(log),"stream":"\#(stream)","time":"\#(time)"}"#)
            }
        } while !rest.isEmpty
        return lines
    }

    private func options(
        _ format: LineWrapper?, parse: String?, firstLine: String?
    ) throws -> EventOptions {
        var options = options(format)
        var text = TextFormatSettings()
        text.parse = parse
        text.firstLine = firstLine
        options.defaults.textFormat = try TextFormat(text)
        return options
    }

    /// The message, stack and stream of what lines became, of those that are records.
    private func records(_ lines: [String], _ options: EventOptions) -> [[String: JSONValue]] {
        read(lines.joined(separator: "\n"), options).map(\.line).filter { $0.hasPrefix("{") }.map { line in
            let members = (try? JSONValue(parsing: Array(line.utf8)))?.members ?? []
            return Dictionary(members.map { ($0.key, $0.value) }) { _, last in last }.filter {
                !["id", "observed_at", "stream", "timestamp"].contains($0.key)
            }
        }
    }

    @Test(
        "the lines of a record in a container are joined by the app's format, as in a file without wrapping",
        arguments: LineWrapper.allCases, 0..<4)
    func joinedRecords(format: LineWrapper, program: Int) throws {
        let (parse, firstLine, all) = WrappedLineTests.programs[program]
        let plain = records(all, try options(nil, parse: parse, firstLine: firstLine))
        #expect(plain.count == all.count)
        let wrapped = try options(format, parse: parse, firstLine: firstLine)
        for most in [Int.max, 5] {
            let lines = all.joined(separator: "\n").split(separator: "\n", omittingEmptySubsequences: false)
                .flatMap { wrap(String($0), "stdout", format, most: most) }
            #expect(records(lines, wrapped) == plain, "\(most)")
        }
    }

    @Test(
        "records of two streams of a container, line by line in any order, are those of the two streams",
        arguments: LineWrapper.allCases, Seeds.list(0..<50))
    func joinedStreams(format: LineWrapper, seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        // Each stream's lines, and what they are without the other stream.
        var left: [String: [String]] = [:]
        var expected: [String] = []
        for stream in ["stdout", "stderr"] {
            for number in 0..<20 {
                let more = (0..<Int.random(in: 0...4, using: &random)).map { "\n\tat \(stream).\($0)" }
                let text = "\(stream)-\(number)" + more.joined()
                left[stream, default: []] += "2026-11-20 09:59:00,413 ERROR [main] shop.Cart - \(text)"
                    .split(separator: "\n").map(String.init)
                expected.append(text)
            }
        }
        var lines: [String] = []
        while let stream = left.keys.sorted().randomElement(using: &random) {
            let line = left[stream]?.removeFirst() ?? ""
            if left[stream]?.isEmpty == true { left[stream] = nil }
            lines += wrap(line, stream, format, most: Int.random(in: 0..<4, using: &random) == 0 ? 20 : .max)
        }
        let found = records(lines, try options(format, parse: "java", firstLine: nil)).map {
            $0["message"]?.string ?? ""
        }
        #expect(found.sorted() == expected.sorted(), "\(Seeds.again(seed))")
    }

    @Test(
        "lines of JSON among lines that a format joins are records, in a container as in a file",
        arguments: [nil] + LineWrapper.allCases.map(Optional.some))
    func jsonAmongText(format: LineWrapper?) throws {
        let text = ["2026-11-20 09:59:00,413 ERROR [main] shop.Cart - no", "\tat a.b(C.java:1)"]
        let objects = [#"{"level":"info","a":1}"#, "{\"level\":\"error\",\"a\":2}\r"]
        let lines = text + objects + text + objects.prefix(1) + [""] + text
        let found = records(
            format.map { format in lines.flatMap { wrap($0, "stdout", format) } } ?? lines,
            try options(format, parse: "java", firstLine: nil))
        let message = JSONValue.string("no\n\tat a.b(C.java:1)")
        #expect(found.map { $0["message"] } == [message, nil, nil, message, nil, message])
        #expect(found.map { $0["a"] } == [nil, 1, 2, nil, 1, nil])
    }

    @Test(
        "after a line that ends before a hidden value no object of the same stream is sent, whatever the format",
        arguments: ["nginx", "java"], LineWrapper.allCases)
    func hiddenValue(parse: String, format: LineWrapper) throws {
        var reading = Reading(try options(format, parse: parse, firstLine: nil))
        reading.pass.withheld = .members
        let name = wrap(#""password":"#, "stdout", format)[0]
        let value = wrap(#"{"k":"s3cret"}"#, "stdout", format)[0]
        let other = wrap(#"{"k":"s3cret"}"#, "stderr", format)[0]
        #expect(reading.read(name).verdict.kind == .quarantined)
        #expect(reading.read(other).verdict.kind == .accepted)
        #expect(reading.read(value).verdict.kind == .quarantined)
        #expect(reading.pass.problem?.reason == .unredactable)
        #expect(reading.read(value).verdict.kind == .accepted)
    }

    @Test(
        "so it is where text goes to the quarantine, behind an empty line, and for lines that are not wrapped",
        arguments: LineWrapper.allCases, [TextHandling.lines, .quarantine])
    func hiddenValueWithoutFormat(format: LineWrapper, text: TextHandling) {
        var reading = Reading(options(format, text))
        reading.pass.withheld = .members
        let (name, value) = (#""password":"#, #"{"k":"s3cret"}"#)
        for blank in ["", " ", "\r"] {
            #expect(reading.read(wrap(name, "stdout", format)[0]).verdict.kind == .quarantined)
            #expect(reading.read(wrap(blank, "stdout", format)[0]).verdict.kind == .blank)
            #expect(reading.read(wrap(value, "stdout", format)[0]).verdict.kind == .quarantined)
            #expect(reading.pass.problem?.reason == .unredactable)
            #expect(reading.read(wrap(value, "stdout", format)[0]).verdict.kind == .accepted)
        }
        #expect(reading.read(name).verdict.kind == .quarantined)
        #expect(reading.read(value).verdict.kind == .quarantined)
        #expect(reading.pass.problem?.reason == .unredactable)
        #expect(reading.read(value).verdict.kind == .accepted)
    }

    @Test("the empty end of a line in pieces holds nothing back")
    func emptyEnd() {
        var reading = Reading(options(.cri))
        reading.pass.withheld = .members
        let kinds = ["P abc", "F ", #"F {"k":1}"#].map {
            reading.read("2026-11-20T09:00:00Z stdout \($0)").verdict.kind
        }
        #expect(kinds == [.quarantined, .blank, .accepted])
        // It does if the line ends before a value.
        let held = [#"P "password":"#, "F ", #"F {"k":1}"#, #"F {"k":1}"#].map {
            reading.read("2026-11-20T09:00:00Z stdout \($0)").verdict.kind
        }
        #expect(held == [.quarantined, .blank, .quarantined, .accepted])
    }

    @Test("an empty line behind a line of JSON joins nothing to it, in a container as in a file")
    func emptyBehindJSON() throws {
        let lines = [#"{"a":1}"#, "", "\tat a.b(C.java:1)", #"{"a":2}"#, ""]
        for format in [nil, .cri, .docker] as [LineWrapper?] {
            let found = records(
                format.map { format in lines.flatMap { wrap($0, "stdout", format) } } ?? lines,
                try options(format, parse: "java", firstLine: nil))
            #expect(found.map { $0["a"] } == [1, nil, 2])
            #expect(found.map { $0["message"] } == [nil, "\n\tat a.b(C.java:1)", nil])
        }
    }

    @Test("the rest of a record that is refused when it is joined across streams is no record of its own")
    func refusedRest() {
        let lines = [
            "stdout P no", #"stderr F {"a":1}"#, #"stdout P {"b":"#, #"stderr F {"a":2}"#, "stdout F 2}", "",
        ]
        let found = read(
            lines.map { $0.isEmpty ? $0 : "2026-11-20T09:00:00Z \($0)" }.joined(separator: "\n"),
            options(.cri, .quarantine))
        #expect(found.map(\.line).filter { $0 == "quarantined" }.count == 3)
        #expect(found.count { $0.line.contains(#""b""#) } == 0)
        #expect(found.count { $0.line.contains(#""a""#) } == 2)
    }

    @Test("a record that is refused when it is joined across streams is counted once")
    func refusedJoined() throws {
        var options = try options(.cri, parse: "nginx", firstLine: nil)
        options.defaults.quarantinesUnmatched = true
        var reading = Reading(options)
        let lines = [
            "2026-11-20T09:00:00Z stdout P hel", #"2026-11-20T09:00:00Z stderr F {"a":1}"#,
            "2026-11-20T09:00:00Z stdout F lo", "",
        ]
        let (verdict, _) = reading.read(bytes: Array(lines.joined(separator: "\n").utf8))
        #expect(verdict.kind == .quarantined)
        #expect(reading.pass.counts.texts["shop"]?.notParsed == 1)
    }

    @Test("a joined record has the runtime's time of its first line, if it has none of its own")
    func joinedTime() throws {
        let lines = [
            "2026-11-20T09:00:00Z stderr F panic: no", "2026-11-20T09:00:01Z stderr F ",
            "2026-11-20T09:00:02Z stderr F goroutine 1 [running]:",
        ]
        let found = read(
            lines.joined(separator: "\n"), try options(.cri, parse: "go", firstLine: nil))
        #expect(found.map(\.time) == [time("2026-11-20T09:00:00Z")])
    }

    @Test("a record of a container is bounded like one of a file: 500 lines")
    func joinedBound() throws {
        let lines = ["2026-11 a"] + (0..<600).map { " \($0)" }
        let plain = records(lines, try options(nil, parse: nil, firstLine: #"^\d{4}-"#))
        let wrapped = records(
            lines.flatMap { wrap($0, "stdout", .cri) },
            try options(.cri, parse: nil, firstLine: #"^\d{4}-"#))
        #expect(plain.count == 2 && wrapped == plain)
    }

    @Test("docker: two objects in one entry are text, so that neither is lost")
    func twoObjects() {
        let line = #"{"log":"{\"a\":1}\n{\"b\":2}\n","stream":"stdout","time":"2026-11-20T10:00:00Z"}"#
        let expected = #"{"message":"{\"a\":1}\n{\"b\":2}","stream":"stdout""#
        #expect(read(line, .docker).map(\.line) == [expected])
    }

    @Test("cri: a path that is not from Kubernetes names no pod")
    func otherPaths() {
        for path in ["0.log", "web/0.log", "shop_cart/web/0.log", "a_b_c_d/web/0.log", "/"] {
            #expect(WrappedLine.pod(ofFile: path).isEmpty, "\(path)")
        }
        #expect(!WrappedLine.pod(ofFile: "shop_cart-7d9_0a1b/web/0.log").isEmpty)
    }

    @Test("blocks: successive lines of text are one message, up to a JSON line or 64 KiB")
    func blocks() {
        let trace = "Traceback (most recent call last):\n  File \"a.py\", line 1\n\n\tboom()\nKeyError: 'x'"
        let lines = read(
            "first\n{\"a\":1}\n{\"b\":2}\n\(trace)\r\n{\"c\":3}\n{broken\nafter\n", nil, as: .blocks)
        #expect(
            lines.map(\.line) == [
                #"{"message":"first""#, #"{"a":1"#, #"{"b":2"#,
                #"{"message":"Traceback (most recent call last):\n  File \"a.py\", line 1\n\n\tboom()\nKeyError: 'x'""#,
                #"{"c":3"#, #"{"message":"{broken\nafter""#,
            ])
        let long = read(
            Array(repeating: String(repeating: "x", count: 999), count: 100).joined(separator: "\n"), nil,
            as: .blocks)
        #expect(long.count == 2 && long.allSatisfy { $0.line.utf8.count < 66_000 })
        #expect(read("a\nb", nil, as: .lines).count == 2)
    }

    @Test(
        "random bytes in wrapped lines: each call makes progress, and results are objects on one line",
        arguments: Seeds.list(1...200))
    func random(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let pieces = [
            "{\"log\":\"", "\\n", "\"", "\\", "stdout", ",\"stream\":\"stdout\"",
            ",\"time\":\"2026-11-20T10:00:00Z\"}",
            "\n",
            "2026-11-20T10:00:00Z ", "stderr ", "P ", "F ", "{\"a\":1}", "x", "\r", " ", "\\u00e9", "\u{e9}",
        ]
        let text = (0..<40).map { _ in pieces.randomElement(using: &random) ?? "" }.joined()
        for format in [LineWrapper.docker, .cri] {
            for (line, _) in read(text, format) where line.hasPrefix("{") {
                #expect(!line.dropLast().contains("\n"), "\(line)")
            }
        }
    }

    @Test(
        "a runtime's time counts within the same bounds as a record's own: the time of reading replaces others"
    )
    func runtimesTimeIsBounded() {
        let lines = read(
            """
            2199-11-20T10:00:00Z stdout F far ahead
            1980-11-20T10:00:00Z stdout F long ago
            2026-11-19T10:00:00Z stdout F usual
            """, .cri)
        #expect(lines.count == 3)
        #expect(lines.map(\.time) == [Reading.now, Reading.now, time("2026-11-19T10:00:00Z")])
    }
}
