import Model
import TestKit
import Testing

@testable import Spool

@Suite("Cutting blocks into lines")
struct LineCutterTests {
    private func piece(_ cutter: LineCutter, _ text: [UInt8]) -> LineCutter.Piece {
        text.withUnsafeBytes { cutter.piece(of: $0) }
    }

    /// The lines of a text, line feeds included; the last may have none.
    private func lines(_ text: [UInt8]) -> [ArraySlice<UInt8>] {
        var lines: [ArraySlice<UInt8>] = []
        var rest = text[...]
        while !rest.isEmpty {
            let end = rest.firstIndex(of: 0x0A).map { $0 + 1 } ?? rest.endIndex
            lines.append(rest[..<end])
            rest = rest[end...]
        }
        return lines
    }

    /// What a block begins with, line by line: the run of whole lines up to one that is too long.
    private func expected(_ text: [UInt8], _ longest: Int) -> LineCutter.Piece {
        let lines = lines(text)
        let run = lines.prefix { $0.last == 0x0A && $0.count <= longest + 1 }
        guard let end = run.last?.endIndex else {
            guard text.count > longest else { return .partial(text.count) }
            return .tooLong(lines[0].count, isWhole: lines[0].last == 0x0A)
        }
        return .lines(end)
    }

    @Test("lines of many lengths are cut as by a plain model", arguments: Seeds.list(0..<20))
    func plain(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<500 {
            let longest = Int.random(in: 1...12, using: &random)
            let text = (0..<Int.random(in: 1...60, using: &random)).map { _ in
                Int.random(in: 0..<5, using: &random) == 0 ? 0x0A : UInt8(ascii: "x")
            }
            #expect(
                piece(LineCutter(longest: longest), text) == expected(text, longest),
                "\(text), \(longest), \(Seeds.again(seed))")
        }
    }

    @Test("records of several lines end where the runtime says so", arguments: Seeds.list(0..<20))
    func wrapped(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let pieces = ["a", " ", "P", "F", #"\\"#, #"\""#, #"\n"#, "{"]
        for _ in 0..<300 {
            var ends: [Bool] = []
            var text: [UInt8] = []
            let format: LineWrapper = Bool.random(using: &random) ? .cri : .docker
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                let content = (0..<Int.random(in: 0...4, using: &random)).map { _ in
                    pieces.randomElement(using: &random) ?? "a"
                }
                let isLast = Bool.random(using: &random)
                let isWrapped = Int.random(in: 0..<5, using: &random) > 0
                if !isWrapped {
                    text += Array("no\n".utf8)
                } else if format == .cri {
                    text += Array(
                        "2026-11-20T10:00:00Z stdout \(isLast ? "F" : "P") \(content.joined())\n".utf8)
                } else {
                    let log = content.filter { $0 != #"\n"# }.joined() + (isLast ? #"\n"# : "a")
                    let blank = Bool.random(using: &random) ? " " : ""
                    text += Array("{\(blank)\"log\"\(blank):\(blank)\"\(log)\",\"stream\":\"stdout\"}\n".utf8)
                }
                ends.append(isLast || !isWrapped)
            }
            let all = lines(text)
            let last = all.indices.last { ends[$0] }.map { all[$0].endIndex }
            for longest in [70, 1_000] {
                var cutter = LineCutter(longest: longest)
                cutter.format = format
                let found = piece(cutter, text)
                let otherwise: LineCutter.Piece =
                    text.count <= longest ? .partial(text.count) : .lines(text.count)
                #expect(
                    found == last.map { .lines($0) } ?? otherwise, "\(String(decoding: text, as: UTF8.self))")
            }
        }
    }

    @Test(
        "no block ends where a piece of either stream waits for the rest of its line",
        arguments: Seeds.list(0..<20))
    func streams(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for format in LineWrapper.allCases {
            for _ in 0..<100 {
                var text: [UInt8] = []
                var open: Set<String> = []
                var last = 0
                for number in 0..<Int.random(in: 1...12, using: &random) {
                    let stream = Bool.random(using: &random) ? "stdout" : "stderr"
                    let isLast = Bool.random(using: &random)
                    if format == .cri {
                        text += Array("2026-11-20T10:00:00Z \(stream) \(isLast ? "F" : "P") \(number)\n".utf8)
                    } else {
                        text += Array(
                            "{\"log\":\"a\\\"\(isLast ? "\\n" : "\\\\n")\",\"stream\":\"\(stream)\"}\n".utf8)
                    }
                    if isLast { open.remove(stream) } else { open.insert(stream) }
                    if open.isEmpty { last = text.count }
                }
                let cutter = LineCutter(longest: 10_000, format: format)
                #expect(
                    piece(cutter, text) == (last > 0 ? .lines(last) : .partial(text.count)),
                    "\(Seeds.again(seed))")
            }
        }
    }

    @Test("a piece without its rest delays at most 64 lines of the other stream")
    func abandoned() {
        let piece = Array("2026-11-20T10:00:00Z stdout P x\n".utf8)
        let line = Array("2026-11-20T10:00:00Z stderr F x\n".utf8)
        let cutter = LineCutter(longest: 10_000, format: .cri)
        let most = piece + Array(repeating: line, count: 64).joined()
        #expect(self.piece(cutter, most) == .partial(most.count))
        #expect(self.piece(cutter, most + line) == .lines(most.count + line.count))
    }

    /// Lines of two streams, and which of them begin a record: each `x` does.
    private func wrapped(
        _ format: LineWrapper, _ stream: String, _ text: String, second: Int = 0
    ) -> [UInt8] {
        let time = "2026-11-20T10:00:\(second < 10 ? "0" : "")\(second)Z"
        if format == .cri { return Array("\(time) \(stream) F \(text)\n".utf8) }
        return Array("{\"log\":\"\(text)\\n\",\"stream\":\"\(stream)\",\"time\":\"\(time)\"}\n".utf8)
    }

    /// A cutter of wrapped lines, among which a record begins with an `x` or a tab.
    private func joining(_ format: LineWrapper) -> LineCutter {
        LineCutter(
            longest: 1 << 20, format: format,
            recordStart: RecordStart(name: "x") { line, _ in
                line.first == UInt8(ascii: "x") || line.first == UInt8(ascii: "\t")
            })
    }

    @Test(
        "no block ends in a record of several wrapped lines, of either stream",
        arguments: LineWrapper.allCases, Seeds.list(0..<20))
    func wrappedRecords(format: LineWrapper, seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<100 {
            var text: [UInt8] = []
            // Where each record begins, and where its last line ends; the last of a stream may go on.
            var records: [(stream: String, start: Int, end: Int)] = []
            for _ in 0..<Int.random(in: 1...12, using: &random) {
                let stream = Bool.random(using: &random) ? "stdout" : "stderr"
                // The tab of Docker's lines is escaped.
                let first = format == .docker ? ["x", "\\t", "\\\"", ""] : ["x", "\t", "-", ""]
                let content = first.randomElement(using: &random) ?? ""
                let begins = content == first[0] || content == first[1]
                let start = text.count
                text += wrapped(format, stream, content)
                if !begins, let last = records.lastIndex(where: { $0.stream == stream }) {
                    records[last].end = text.count
                } else {
                    records.append((stream, start, text.count))
                }
            }
            for stream in ["stdout", "stderr"] {
                if let last = records.lastIndex(where: { $0.stream == stream }) { records[last].end = .max }
            }
            var expected = text.count
            while let torn = records.first(where: { $0.start < expected && expected < $0.end }) {
                expected = torn.start
            }
            #expect(
                piece(joining(format), text) == (expected > 0 ? .lines(expected) : .partial(text.count)),
                "\(String(decoding: text, as: UTF8.self)), \(Seeds.again(seed))")
        }
    }

    @Test(
        "a record of one stream delays the other by at most two seconds and 64 lines",
        arguments: LineWrapper.allCases)
    func wrappedRecordEnds(format: LineWrapper) {
        let record = wrapped(format, "stderr", "x") + wrapped(format, "stderr", "-", second: 1)
        func others(_ count: Int, second: Int) -> [UInt8] {
            (0..<count).flatMap { _ in wrapped(format, "stdout", "x", second: second) }
        }
        let cutter = joining(format)
        let line = others(1, second: 2).count
        let early = record + others(64, second: 2)
        #expect(piece(cutter, early) == .partial(early.count))
        // The last line of the other stream may go on itself.
        #expect(piece(cutter, early + others(1, second: 2)) == .lines(early.count))
        #expect(piece(cutter, record + others(2, second: 3)) == .lines(record.count + line))
    }

    @Test(
        "a record that gets lines all the time delays the other stream by at most ten seconds",
        arguments: LineWrapper.allCases)
    func longRecord(format: LineWrapper) {
        var text = wrapped(format, "stderr", "x")
        for second in 1...9 {
            text += wrapped(format, "stderr", "-", second: second)
            text += wrapped(format, "stdout", "x", second: second)
        }
        #expect(piece(joining(format), text) == .partial(text.count))
        let last = wrapped(format, "stdout", "x", second: 10)
        #expect(piece(joining(format), text + last) == .lines(text.count))
    }

    @Test(
        "many overlapping records, of which the last is open: the block ends before their chain",
        arguments: LineWrapper.allCases)
    func chain(format: LineWrapper) {
        let record = wrapped(format, "stderr", "x") + wrapped(format, "stderr", "-")
        // Each record of a stream begins in one of the other stream.
        var links: [UInt8] = []
        for _ in 0..<500 {
            links += wrapped(format, "stdout", "x") + wrapped(format, "stderr", "-")
            links += wrapped(format, "stderr", "x") + wrapped(format, "stdout", "-")
        }
        let text = record + links
        #expect(piece(joining(format), text) == .partial(text.count))
        let before = wrapped(format, "stdout", "x") + record
        let line = wrapped(format, "stdout", "x").count
        #expect(piece(joining(format), before + links) == .lines(line))
    }

    @Test("docker: the escapes of a record do not count towards its 64 KiB")
    func escapes() {
        let line = wrapped(.docker, "stdout", String(repeating: "\\u003c", count: 1000))
        let text = wrapped(.docker, "stdout", "x") + Array(repeating: line, count: 64).joined()
        #expect(piece(joining(.docker), text) == .partial(text.count))
        #expect(piece(joining(.docker), text + wrapped(.docker, "stdout", "x")) == .lines(text.count))
    }

    @Test("a line that is not wrapped ends the records before it")
    func unwrappedBetween() {
        let text = wrapped(.cri, "stdout", "x") + Array("no\n".utf8)
        #expect(piece(joining(.cri), text) == .lines(text.count))
    }

    @Test("text that may continue waits for more, up to 64 KiB, and objects before it do not wait")
    func text() {
        var cutter = LineCutter(longest: 1 << 20)
        cutter.joinsText = true
        let line = [UInt8](repeating: UInt8(ascii: "x"), count: 999) + [0x0A]
        let object = Array("{\"a\":1}\n".utf8)
        for count in [1, 64] {
            let text = Array(repeating: line, count: count).joined()
            #expect(piece(cutter, Array(text)) == .partial(text.count))
            #expect(piece(cutter, object + text) == .lines(object.count))
            #expect(piece(cutter, text + object) == .lines(text.count + object.count))
        }
        let long = Array(Array(repeating: line, count: 70).joined())
        #expect(piece(cutter, long) == .lines(long.count))
        #expect(piece(cutter, object + long) == .lines(object.count + long.count))
    }

    @Test(
        "a record that may continue waits for more, up to 64 KiB and 500 lines; records before it do not wait"
    )
    func records() {
        var cutter = LineCutter(longest: 1 << 20)
        cutter.recordStart = RecordStart(name: "x") { line, _ in line.first == UInt8(ascii: "x") }
        let first = Array("x first\n".utf8)
        let more = Array(" more\n".utf8)
        #expect(piece(cutter, first) == .partial(first.count))
        #expect(piece(cutter, first + more + more) == .partial(first.count + 2 * more.count))
        #expect(piece(cutter, first + more + first) == .lines(first.count + more.count))
        #expect(piece(cutter, first + more + first + more) == .lines(first.count + more.count))
        // Lines before the first beginning are of a record whose beginning was read already.
        #expect(piece(cutter, more + more) == .partial(2 * more.count))
        let many = Array(Array(repeating: more, count: 501).joined())
        #expect(piece(cutter, first + many) == .lines(first.count + many.count))
        let long = [UInt8](repeating: UInt8(ascii: " "), count: 999) + [0x0A]
        let large = Array(Array(repeating: long, count: 70).joined())
        #expect(piece(cutter, first + large) == .lines(first.count + large.count))
    }

    @Test("the previous line can decide where a record begins")
    func previous() {
        var cutter = LineCutter(longest: 1 << 20)
        cutter.recordStart = RecordStart(name: "y") { line, previous in
            line.first == UInt8(ascii: "t")
                || line.first == UInt8(ascii: "u") && previous.first != UInt8(ascii: "t")
        }
        #expect(piece(cutter, Array("t\nu\ns\nt\nu\n".utf8)) == .lines(6))
        #expect(piece(cutter, Array("t\nu\ns\nu\ns\n".utf8)) == .lines(6))
    }
}
