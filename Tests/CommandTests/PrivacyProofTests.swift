import CSQLite
import EventLoops
import Glibc
import Model
import TestKit
import Testing

@testable import spoolship

@Suite("The proof's search")
struct PrivacyProofTests {
    @Test("a marker is found in each of forty spellings, alone and between others")
    func spellings() {
        let marker = "marker4711@example.com"
        var spelled: [String] = []
        for (place, character) in marker.enumerated() {
            let code = character.unicodeScalars.first?.value ?? 0
            let (before, after) = (marker.prefix(place), marker.dropFirst(place + 1))
            let four = "00" + String(code, radix: 16)
            spelled.append("\(before)\\u\(four)\(after)")
            spelled.append("\(before)\\u\(four.uppercased())\(after)")
        }
        let all = marker.unicodeScalars.map { String($0.value, radix: 16) }
        spelled += [
            marker, all.map { "\\u00\($0)" }.joined(), all.map { "%\($0)" }.joined(),
            all.map { "&#x\($0);" }.joined(), all.map { "\\x\($0)" }.joined(),
        ]
        #expect(spelled.count >= 40)
        for text in spelled {
            #expect(ProofSearch.mentions(of: marker, in: Array("{\"a\":\"\(text)\"}".utf8)) == 1, "\(text)")
        }
        let together = Array(spelled.joined(separator: "\n").utf8)
        #expect(ProofSearch.mentions(of: marker, in: together) == spelled.count)
        #expect(ProofSearch.mentions(of: marker, in: Array("marker4711\\u0041example.com".utf8)) == 0)
    }

    @Test("what is unread or unsent is on its way; what is set aside, rejected or held is not")
    func onTheWay() throws {
        let status = try JSONValue(
            parsing: """
                {"spool":{"lag_bytes":465},"destinations":[
                {"name":"proof-1-file","set_aside":{},"lanes":[{"queued":0},{"queued":0}]},
                {"name":"proof-1-loki","set_aside":{"a":5,"b":2},"lanes":[{"queued":1},{"queued":9}]},
                {"name":"proof-1-ga4","set_aside":{"a":9},"lanes":[{"queued":0},{"queued":9}]},
                {"name":"proof-1-rejecting","lanes":[{"queued":7}]},{"name":"proof-1-holding","lanes":[{"queued":7}]}]}
                """)
        #expect(PrivacyProof.onTheWay(status, "proof-1-") == ["465 bytes unread", "3 events for loki"])
        #expect(PrivacyProof.onTheWay(["spool": ["lag_bytes": 0], "destinations": []], "proof-1-").isEmpty)
    }

    @Test("a receiver to which nothing came, late events and what was not searched are no proof")
    func verdicts() {
        let receiver = ProofPlace(name: "receiver, ndjson", kind: .receiver, controls: 3)
        #expect(receiver.verdict(isLate: false) == .notFound)
        #expect(receiver.verdict(isLate: true) == .notProved)
        #expect(ProofPlace(name: "receiver, ndjson", kind: .receiver).verdict(isLate: false) == .nothingCame)
        #expect(ProofPlace(name: "tap", kind: .output).verdict(isLate: false) == .nothingCame)
        // Most lines of the quarantine are kept as shapes; a table without any shows nothing.
        let quarantine = ProofPlace(name: "quarantine", kind: .lines)
        #expect(quarantine.verdict(isLate: false) == .nothingCame)
        let shapes = quarantine + ProofPlace(name: "quarantine", rows: 2)
        #expect(shapes.verdict(isLate: false) == .notFound && shapes.verdict(isLate: true) == .notProved)
        #expect(shapes.evidence == "2 lines, as shapes without values")
        // No event is expected in the log.
        #expect(ProofPlace(name: "log (journal)").verdict(isLate: false) == .notFound)
        let unread = ProofPlace(name: "receiver, ndjson", kind: .receiver, controls: 3, isSearched: false)
        #expect(unread.verdict(isLate: true) == .notSearched)
        let found = receiver + ProofPlace(name: "part", found: 2, isSearched: false)
        #expect(found.verdict(isLate: true) == .found(2) && found.controls == 3 && !found.isSearched)
    }

    @Test("only a proof exits with 0: what got no event is named, and so is what was not searched")
    func exitCodes() {
        func exit(_ places: [ProofPlace], late: [String] = []) -> (code: ExitCode, message: String)? {
            PrivacyCommand.failure(of: PrivacyProof.Findings(places: places, late: late)).map {
                ($0.code, $0.message)
            }
        }
        let log = ProofPlace(name: "log (journal)")
        let loki = ProofPlace(name: "receiver, loki", kind: .receiver, controls: 3)
        let otlp = ProofPlace(name: "receiver, otlp", kind: .receiver)
        let tap = ProofPlace(name: "tap", kind: .output)
        #expect(exit([log, loki]) == nil)
        #expect(exit([log, loki, otlp, tap])?.code == .temporaryFailure)
        let named = "no event came to receiver, otlp; tap,"
        #expect(exit([log, loki, otlp, tap])?.message.hasPrefix(named) == true)
        #expect(exit([log, otlp])?.message.hasPrefix("no event arrived") == true)
        #expect(exit([loki], late: ["3 events"])?.message.contains("3 events") == true)
        let quarantine = ProofPlace(name: "quarantine", kind: .lines)
        #expect(exit([loki, quarantine])?.message.hasPrefix("no event came to quarantine") == true)
        #expect(exit([loki, ProofPlace(name: "quarantine", kind: .lines, rows: 1)]) == nil)
        let unread = ProofPlace(name: "queue", isSearched: false)
        #expect(exit([loki, unread])?.message.contains("could not be searched: queue") == true)
        let found = ProofPlace(name: "queue", found: 1)
        #expect(exit([loki, otlp, found, unread], late: ["1 event"])?.code == .negative)
    }

    @Test("an app of logs has no pushes: none is written in its proof")
    func pushesOfLogs() {
        let marker = "marker4711@example.com"
        func lines(_ hasPushes: Bool) -> [String] {
            ProofEvents(
                events: [["name": "Proof"]], paths: [["properties", "email"]], marker: marker, control: "c",
                hasPushes: hasPushes
            ).lines
        }
        let push = "{\"type\":\"data_layer\",\"email\":\"\(marker)\"}"
        #expect(lines(true).contains(push) && !lines(false).contains(push))
    }

    @Test("files are searched as far as they can be read; what cannot be read is not searched")
    func unreadableFiles() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path
        let search = ProofSearch(directory: path, marker: "secret", control: "seen")
        try WholeFile.replace("\(path)/log", with: Array("secret seen seen".utf8), mode: 0o600)
        let log = search.searched(file: "log", "log")
        #expect(log.found == 1 && log.controls == 2 && log.isSearched)
        #expect(search.searched(file: "log", "log", for: "seen").found == 2)
        // A file that does not exist has nothing in it.
        #expect(search.searched(file: "none", "none").isSearched)
        // A loop of links can be named but not read, not even by root.
        try #require(symlink("loop", "\(path)/loop") == 0)
        #expect(!search.searched(file: "loop", "loop").isSearched)

        try #require(mkdir("\(path)/state", 0o700) == 0 && mkdir("\(path)/state/below", 0o700) == 0)
        try WholeFile.replace("\(path)/state/below/file", with: Array("secret".utf8), mode: 0o600)
        let state = search.files("state", as: "state")
        #expect(state.found == 1 && state.isSearched)
        try #require(symlink("loop", "\(path)/state/loop") == 0)
        let partly = search.files("state", as: "state")
        #expect(partly.found == 1 && !partly.isSearched)
        // Not a directory, so its names cannot be read.
        #expect(!search.files("log", as: "log").isSearched)
    }

    @Test("a table is searched only if it was read to its end")
    func unreadableTables() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path
        try #require(mkdir("\(path)/state", 0o700) == 0)
        let search = ProofSearch(directory: path, marker: "secret", control: "seen")
        #expect(search.tables().map(\.isSearched) == [false])

        let file = "\(path)/state/queue.sqlite"
        var database: OpaquePointer?
        try #require(sqlite3_open(file, &database) == SQLITE_OK)
        let rows = """
            PRAGMA page_size = 4096; CREATE TABLE chunk(lines TEXT);
            WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 200)
            INSERT INTO chunk SELECT 'seen ' || hex(zeroblob(500)) FROM n;
            """
        let code = sqlite3_exec(database, rows, nil, nil, nil)
        sqlite3_close(database)
        try #require(code == SQLITE_OK)
        let whole = search.tables()
        #expect(whole.map(\.name) == ["queue", "quarantine"] && whole.first?.controls == 200)
        #expect(whole.first?.isSearched == true)

        // Pages in the middle of the file are destroyed: reading the rows fails there.
        var bytes = try #require(try WholeFile.bytes(of: file, atMost: 1 << 24))
        for offset in 10 * 4096..<30 * 4096 { bytes[offset] = 0xFF }
        try WholeFile.replace(file, with: bytes, mode: 0o600)
        let damaged = search.tables()
        #expect(damaged.map(\.name) == ["queue", "quarantine"] && damaged.first?.isSearched == false)
        #expect(damaged.first.map { $0.controls < 200 } == true)
        #expect(damaged.first?.verdict(isLate: false) == .notSearched)
    }

    @Test("the proof waits as long as something moves, a minute at a standstill, and ten minutes in all")
    func patience() {
        var patience = ProofPatience()
        // Something moves once every 50 s.
        for time in stride(from: 0, through: 550, by: 10) {
            #expect(patience.step(["\(time / 50) events"], after: .seconds(time)) == .wait)
        }
        #expect(patience.step(["12 events"], after: .seconds(599)) == .wait)
        #expect(patience.step(["13 events"], after: .seconds(600)) == .giveUp(["13 events"]))

        patience = ProofPatience()
        #expect(patience.step(["7 events"], after: .seconds(5)) == .wait)
        #expect(patience.step(["7 events"], after: .seconds(64)) == .wait)
        #expect(patience.step(["7 events"], after: .seconds(65)) == .giveUp(["7 events"]))

        patience = ProofPatience()
        #expect(patience.step([], after: .seconds(5)) == .wait)
        #expect(patience.step([], after: .seconds(24)) == .wait)
        #expect(patience.step([], after: .seconds(25)) == .quiet)
    }

    @Test("an agent that does not answer for a moment changes nothing; one that never answers ends the proof")
    func unanswered() {
        var patience = ProofPatience()
        // Every other look has no answer, which must not count as a change each time.
        for time in 0..<60 {
            let found = time.isMultiple(of: 2) ? ["7 events"] : nil
            #expect(patience.step(found, after: .seconds(time)) == .wait)
        }
        #expect(patience.step(nil, after: .seconds(60)) == .giveUp(["7 events"]))

        patience = ProofPatience()
        for time in 0..<20 {
            #expect(patience.step(time == 0 ? [] : nil, after: .seconds(time)) == .wait)
        }
        // Without an answer the agent cannot be said to be quiet.
        #expect(patience.step(nil, after: .seconds(30)) == .wait)
        #expect(patience.step([], after: .seconds(31)) == .quiet)

        patience = ProofPatience()
        #expect(patience.step(nil, after: .seconds(59)) == .wait)
        #expect(patience.step(nil, after: .seconds(60)) == .giveUp(["the agent's answer"]))
    }
}
