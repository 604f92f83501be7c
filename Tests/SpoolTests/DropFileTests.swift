import Glibc
import Model
import Spool
import TestKit
import Testing

@Suite("Drop files", .timeLimit(.minutes(5)))
struct DropFileTests {
    @Test("a file that is renamed in is read at once, as lines, and removed")
    func renamedFilesAreTaken() async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory("shop")
        let reader = try await spool.start()
        spool.write("{\n  \"name\": \"a b\",\n  \"x\": [1, 2]\n}\n", to: "shop/.one.json")
        spool.rename("shop/.one.json", to: "shop/one.json")
        spool.write("[{\"n\":1},\n {\"n\":2}]", to: "shop/two.json.tmp")
        spool.rename("shop/two.json.tmp", to: "shop/two.json")
        await spool.untilLines(["{  \"name\": \"a b\",  \"x\": [1, 2]}", "{\"n\":1}", "{\"n\":2}"])
        await spool.until("the files are removed") { spool.names(in: "shop").isEmpty }
        await spool.until("the records go") { spool.queue.with { $0.done.isEmpty } }
        let first = try #require(spool.queue.with { $0.lines.first { $0.path == "shop/one.json" } })
        #expect(first.app == "shop")
        await reader.stop()
    }

    @Test(
        "events before a text's first error are accepted, and the rest is one quarantine record with its position",
        arguments: [
            (#"[{"a":1},,{"b":2}]"#, [#"{"a":1}"#], 9), (#"[,{"a":1}]"#, [], 1),
            (#"[{"a":1},]"#, [#"{"a":1}"#], 9),
            (#"{"a":1}{"b":2}"#, [#"{"a":1}"#], 7), (#"[{"a":1} {"b":2}]"#, [#"{"a":1}"#], 9), ("[,]", [], 1),
            ("[][]", [], 2), (#"[{"a":1},{"b":2 3},{"c":4}]"#, [#"{"a":1}"#], 9), (" \n\t", [], 0),
            ("{\"a\":1}\n{\"b\":2}\nno event\n", [#"{"a":1}"#, #"{"b":2}"#], 16),
        ] as [(String, [String], Int64)])
    func faultyTextsAreOneRecord(text: String, events: [String], rest: Int64) async throws {
        let spool = try SpoolHarness()
        let reader = try await spool.start { $0.secondTry = .milliseconds(1) }
        spool.write(text, to: ".x")
        spool.rename(".x", to: "x.json")
        await spool.until("it is removed") { spool.names().isEmpty && !spool.queue.quarantined.isEmpty }
        #expect(spool.queue.lines == events)
        let record = try #require(spool.queue.quarantined.first)
        #expect(spool.queue.quarantined.count == 1)
        #expect(record.reason == (text.allSatisfy(\.isWhitespace) ? .cutShort : .notJSON))
        #expect(record.offset == rest && record.length == Int64(text.utf8.count) - rest)
        #expect(record.content == Array(text.utf8.dropFirst(Int(rest))))
        await reader.stop()
    }

    @Test("values of a valid array are handed over one by one, however deep; an empty array has none")
    func valuesAreHandedOverOneByOne() async throws {
        let spool = try SpoolHarness()
        let reader = try await spool.start()
        let deep = String(repeating: "[", count: 100_000) + String(repeating: "]", count: 100_000)
        spool.write("[{\"a\":1},\(deep),{\"b\":2}]", to: ".x")
        spool.rename(".x", to: "x.json")
        spool.write("[]\n", to: ".y")
        spool.rename(".y", to: "y.json")
        await spool.untilLines(["{\"a\":1}", deep, "{\"b\":2}"])
        await spool.until("both are removed") { spool.names().isEmpty }
        #expect(spool.queue.quarantined.isEmpty)
        await reader.stop()
    }

    @Test("hidden names, .tmp and .part are left alone")
    func unfinishedNamesAreLeftAlone() async throws {
        let spool = try SpoolHarness()
        for name in [".a.json", "b.json.tmp", "c.json.part", "d.txt", ".e.jsonl"] {
            spool.write("{}\n", to: name)
        }
        spool.write("{\"n\":1}\n", to: "z.json")
        let reader = try await spool.start()
        await spool.untilLines(["{\"n\":1}"])
        await spool.until("z.json is removed") { !spool.exists("z.json") && spool.names().count == 5 }
        await reader.stop()
    }

    @Test("a file written in place is read once it is quiet and closed")
    func filesWrittenInPlaceSettle() async throws {
        let spool = try SpoolHarness()
        let reader = try await spool.start()
        let held = open("\(spool.path)/x.json", O_WRONLY | O_CREAT | O_APPEND, 0o660)
        write(held, "[{\"n\":1},", 9)
        await spool.pause(.milliseconds(300))
        #expect(spool.queue.lines.isEmpty)
        write(held, "{\"n\":2}]", 8)
        close(held)
        await spool.untilLines(["{\"n\":1}", "{\"n\":2}"])
        await spool.until("it is removed") { spool.names().isEmpty }
        #expect(spool.queue.quarantined.isEmpty)
        await reader.stop()
    }

    @Test("an incomplete text is read again once, and then its rest is quarantined")
    func cutTextsAreTriedOnceMore() async throws {
        let spool = try SpoolHarness()
        let reader = try await spool.start { $0.secondTry = .seconds(8) }
        for name in ["stays", "grows"] {
            spool.write("[{\"\(name)\":1}, {\"a", to: ".\(name)")
            spool.rename(".\(name)", to: "\(name).json")
        }
        await spool.untilLines(["{\"stays\":1}", "{\"grows\":1}"])
        let grows = try #require(spool.names().first { $0.hasSuffix("grows.json") })
        spool.append("\":2}]", to: grows)
        await spool.untilLines(["{\"stays\":1}", "{\"grows\":1}", "{\"a\":2}"])
        await spool.until("the other is quarantined") { !spool.queue.quarantined.isEmpty }
        let record = try #require(spool.queue.quarantined.first)
        #expect(record.reason == .cutShort)
        #expect(record.path == "stays.json")
        #expect(String(decoding: record.content, as: UTF8.self).hasSuffix("{\"a"))
        await spool.until("both are removed") { spool.names().isEmpty }
        await reader.stop()
    }

    @Test("a large file is read in several commits, continues after a restart, and nothing is repeated")
    func largeFilesGoOnAfterARestart() async throws {
        let spool = try SpoolHarness()
        let events = (0..<30_000).map { "{\"number\":\($0),\"text\":\"some text, [brackets] and {braces}\"}" }
        spool.write("[\n" + events.joined(separator: ",\n") + "\n]\n", to: ".x")
        spool.rename(".x", to: "x.json")
        spool.queue.with { $0.failsAfter = 4 }
        var reader = try await spool.start {
            $0.commitBytes = 100_000
            $0.linger = .zero
            $0.settleTime = .milliseconds(5)
        }
        await spool.until("it has failed") { spool.queue.with { $0.commits } == 4 }
        await reader.stop()
        spool.queue.with { $0.failsAfter = nil }
        #expect((1..<30_000).contains(spool.queue.lines.count))
        reader = try await spool.start { $0.settleTime = .milliseconds(5) }
        await spool.until("all arrive") { spool.queue.lines.count >= events.count }
        let odd = zip(spool.queue.lines, events).enumerated().first { $0.element.0 != $0.element.1 }
        #expect(
            spool.queue.lines.count == events.count && odd == nil,
            "the first difference is at \(String(describing: odd))")
        await spool.until("it is removed") { spool.names().isEmpty }
        await reader.stop()
        #expect(spool.queue.with { $0.checkpoints.isEmpty })
    }

    @Test(
        "a file that was partly read, and is absent at a start, continues when it returns",
        arguments: [false, true])
    func awayReadInPart(isKept: Bool) async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory("shop")
        let events = (0..<5_000).map { "{\"number\":\($0)}" }
        spool.write(events.joined(separator: "\n") + "\n", to: "shop/.x")
        spool.rename("shop/.x", to: "shop/x.json")
        spool.queue.with { $0.failsAfter = 2 }
        func start() async throws -> SpoolReader {
            try await spool.start {
                $0.commitBytes = 20_000
                $0.linger = .zero
                $0.settleTime = .milliseconds(5)
                if isKept { $0.afterRead = .keep }
            }
        }
        var reader = try await start()
        await spool.until("it has failed") { spool.queue.with { $0.commits } == 2 }
        await reader.stop()
        spool.queue.with { $0.failsAfter = nil }
        let read = spool.queue.lines.count
        #expect((1..<events.count).contains(read))
        // Its directory, or the file alone: once away for a whole life of an agent, and back while the next one runs.
        let (place, aside) = isKept ? ("shop/x.json", "shop/.aside") : ("shop", ".aside")
        spool.rename(place, to: aside)
        for other in ["first\n", "second\n"] {
            reader = try await start()
            spool.append(other, to: "other.jsonl")
            await spool.until("the rest of the spool is read") {
                spool.queue.lines.last == String(other.dropLast()) && reader.figures.unreadBytes == 0
            }
            if other == "first\n" { await reader.stop() }
        }
        spool.rename(aside, to: isKept ? "shop/y.json" : place)
        await spool.until("all arrive") { spool.queue.lines.count >= events.count + 2 }
        await spool.pause(.milliseconds(50))
        let lines = spool.queue.lines.filter { $0.hasPrefix("{") }
        let isExact = lines == events
        #expect(isExact, "\(lines.count) lines, \(read) of them before")
        await reader.stop()
    }

    @Test("a queued file is not read again, even if a power cut undid its claim or its removal")
    func doneRecordsPreventRepetition() async throws {
        let spool = try SpoolHarness()
        spool.write("{\"n\":1}", to: ".a")
        spool.rename(".a", to: "a.json")
        // Another name for the file, hidden, so that it can come back as if nothing had happened to it.
        var reader = try await spool.start { $0.settleTime = .milliseconds(5) }
        await spool.until("it is removed") { spool.queue.lines.count == 1 && spool.names().isEmpty }
        await reader.stop()
        let before = spool.queue.with { $0.done }
        // Records of files that are gone go too.
        reader = try await spool.start()
        await spool.until("the record goes") { spool.queue.with { $0.done.isEmpty } }
        await reader.stop()
        #expect(before.count <= 1)

        // The file is in the queue and its record too, and it is there under its first name.
        spool.write("{\"n\":2}", to: ".b")
        let handle = spool.handle(of: ".b")
        spool.rename(".b", to: "b.json")
        spool.queue.with {
            $0.done = [DoneRecord(claim: Array(".spoolship.0000000000000000.b.json".utf8), handle: handle)]
        }
        spool.write("{\"n\":3}", to: "c.json")
        reader = try await spool.start { $0.settleTime = .milliseconds(5) }
        await spool.untilLines(["{\"n\":1}", "{\"n\":3}"])
        await spool.until("it is removed") { spool.names().isEmpty }
        await spool.until("the records go") { spool.queue.with { $0.done.isEmpty } }
        await reader.stop()
    }

    @Test("a file that an app replaces at that moment is never removed unread or read twice")
    func replacedFilesAreRead() async throws {
        let spool = try SpoolHarness()
        let reader = try await spool.start { $0.linger = .milliseconds(1) }
        var expected: Set<String> = []
        var returned = 0
        for number in 0..<3000 {
            let hidden = ".draft-\(number)"
            spool.write("{\"n\":\(number)}", to: hidden)
            expected.insert("{\"n\":\(number)}")
            // At one stroke: the app gets back the file that was there and has not been claimed.
            guard
                try #require(FileExchange.put("\(spool.path)/\(hidden)", at: "\(spool.path)/same.json"))
                    == .returned
            else { continue }
            returned += 1
            let file = open("\(spool.path)/\(hidden)", O_RDONLY)
            var bytes = [UInt8](repeating: 0, count: 64)
            let count = Glibc.read(file, &bytes, bytes.count)
            close(file)
            expected.remove(String(decoding: bytes[..<max(0, count)], as: UTF8.self))
            spool.remove(hidden)
        }
        #expect(returned < 3000)
        await spool.untilLines(Array(expected))
        await spool.until("all are gone") { spool.names().isEmpty }
        #expect(Set(spool.queue.lines) == expected && spool.queue.lines.count == expected.count)
        await reader.stop()
    }

    @Test("many small files share commits")
    func smallFilesShareCommits() async throws {
        let spool = try SpoolHarness()
        let names = (0..<3000).map { "\($0).json" }
        for name in names { spool.write("{\"f\":\"\(name)\"}", to: name) }
        let reader = try await spool.start { $0.settleTime = .milliseconds(1) }
        await spool.untilLines(names.map { "{\"f\":\"\($0)\"}" })
        await spool.until("they are removed") { spool.names().isEmpty }
        #expect(spool.queue.with { $0.commits } < 100)
        await reader.stop()
    }
}
