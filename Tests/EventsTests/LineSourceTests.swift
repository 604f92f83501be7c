import EventLoops
import Model
import TestKit
import Testing
import TextFormats

@testable import Events

/// From lines to the objects that are judged, without the judge.
@Suite("What a line is before it is judged")
struct LineSourceTests {
    /// Reads a block: the objects that its lines became, and the counts.
    private func read(
        _ lines: String, path: String = "", _ change: (inout AppOptions) throws -> Void = { _ in }
    ) rethrows -> (objects: [String], counts: EventCounts) {
        var options = EventOptions()
        try change(&options.defaults)
        let state = AppState("shop", seed: 1, options, WatchedNames([]))
        var source = LineSource(nameRows: 64)
        source.begin(state, producer: nil, path: path, readsParsed: true, at: Reading.now)
        var counts = EventCounts()
        var objects: [String] = []
        let bytes = Array(lines.utf8)
        bytes.withUnsafeBufferPointer { block in
            guard let base = block.baseAddress else { return }
            var position = 0
            while position < block.count {
                let start = position
                switch source.read(base, from: position, to: block.count, &counts) {
                case .object(let next):
                    objects.append(LineSourceTests.object(of: &source))
                    position = next
                case .joined(let next, let ahead, _):
                    objects.append(LineSourceTests.object(of: &source))
                    source.wrapping.noteReadAhead(ahead, of: start)
                    position = next
                case .refused(let problem, let next):
                    objects.append("\(problem.reason)")
                    position = next
                case .blank(let next):
                    position = next
                }
                precondition(position > start && position <= block.count)
            }
        }
        return (objects, counts)
    }

    /// The object that the scanner has read, in the block or in a copy.
    private static func object(of source: inout LineSource) -> String {
        let range = source.scanner.open...source.scanner.close
        return String(decoding: range.map { source.scanner.base[$0] }, as: UTF8.self)
    }

    @Test("an object stays as it is; blank lines and byte order marks are skipped")
    func plain() {
        let read = read("{\"name\":\"a\"}\n\n  \n\u{FEFF}{\"name\":\"b\"}\r\n") { $0.text = .quarantine }
        #expect(read.objects == [#"{"name":"a"}"#, #"{"name":"b"}"#])
        #expect(read.counts[.wrappedText] == 0)
    }

    @Test("what is no object goes to the quarantine with its reason, or becomes a message, as the app says")
    func text() {
        let lines = "hello \"you\"\n[1]\n"
        #expect(read(lines) { $0.text = .quarantine }.objects == ["notJSON", "notAnObject"])
        let messages = read(lines) { $0.text = .lines }
        #expect(messages.objects == [#"{"message":"hello \"you\""}"#, #"{"message":"[1]"}"#])
        #expect(messages.counts[.wrappedText] == 2)
    }

    @Test("lines of a block of text are one message, until an object begins")
    func blocks() {
        let read = read("Traceback:\n  File \"a\"\nError\n{\"name\":\"a\"}\nlast\n") { $0.text = .blocks }
        #expect(
            read.objects == [
                #"{"message":"Traceback:\n  File \"a\"\nError"}"#, #"{"name":"a"}"#, #"{"message":"last"}"#,
            ])
    }

    @Test("a wrapped line is what the program wrote: an object, or text with its stream")
    func wrapped() {
        let docker = read(
            #"{"log":"{\"name\":\"a\"}\n","stream":"stdout","time":"2026-11-20T10:00:00Z"}"# + "\n"
                + #"{"log":"text\n","stream":"stderr","time":"2026-11-20T10:00:00Z"}"# + "\n"
        ) {
            ($0.format, $0.text) = (.docker, .lines)
        }
        #expect(docker.objects == [#"{"name":"a"}"#, #"{"message":"text","stream":"stderr"}"#])
        let cri = read("2026-11-20T10:00:00Z stdout F {\"name\":\"a\"}\n") { $0.format = .cri }
        #expect(cri.objects == [#"{"name":"a"}"#])
    }

    @Test("pieces of a line are joined across lines of the other stream, each of which is read once")
    func pieces() {
        let time = "2026-11-20T10:00:00Z"
        let read = read(
            "\(time) stdout P {\"name\":\n\(time) stderr F {\"name\":\"b\"}\n\(time) stdout F \"a\"}\n"
        ) {
            $0.format = .cri
        }
        #expect(read.objects == [#"{"name":"a"}"#, #"{"name":"b"}"#])
    }

    @Test("a line in the app's format becomes an object; another one is a message")
    func parsed() throws {
        let read = try read("4531 Server initialized\nanother\n") {
            var format = TextFormatSettings()
            format.pattern = "^(?P<pid>[0-9]+) (?P<message>.*)"
            $0.textFormat = try TextFormat(format)
            $0.text = .lines
        }
        try #require(read.objects.count == 2)
        #expect(read.objects[0].contains(#""message":"Server initialized""#))
        #expect(read.objects[1].contains(#""message":"another""#))
    }

    @Test("invalid UTF-8 in a record is replaced and counted; an event's bytes are not changed unasked")
    func repaired() {
        var options = EventOptions()
        options.defaults.kind = .log
        let state = AppState("shop", seed: 1, options, WatchedNames([]))
        var source = LineSource(nameRows: 64)
        source.begin(state, producer: nil, path: "", readsParsed: true, at: Reading.now)
        var counts = EventCounts()
        let bytes = Array("{\"msg\":\"a".utf8) + [0xFF] + Array("\"}\n".utf8)
        var object = ""
        bytes.withUnsafeBufferPointer { block in
            guard let base = block.baseAddress else { return }
            guard case .object = source.readAsIs(base, 0, block.count, &counts) else { return }
            object = LineSourceTests.object(of: &source)
        }
        #expect(object == "{\"msg\":\"a\u{FFFD}\"}" && counts[.repairedUTF8] == 1)
    }
}
