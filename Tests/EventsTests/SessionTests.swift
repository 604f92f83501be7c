@testable import Events
import EventLoops
import Model
import TestKit
import Testing

/// A pass whose sessions are looked at: each step is a line at a time, the answer is its session and what was generated.
private struct SessionReading: ~Copyable {
    var pass: EventPass
    var source: EventSource
    var random: SplitMix64
    var now = Reading.now

    init(_ mode: SessionMode, seed: UInt64 = 1, memory: [String: [UInt8]] = [:]) {
        var options = EventOptions()
        options.session.mode = mode
        var random = SplitMix64(seed: seed)
        pass = EventPass(options: options)
        pass.restore(memory, using: &random)
        source = pass.source(app: "shop", using: &random)
        self.random = random
    }

    /// The session's id in the event's line, and the line of the session's start if one was generated.
    mutating func read(
        _ members: String = "", after seconds: Double = 0, file: [UInt8]? = [1], wasClosed: Bool = false
    ) -> (session: String?, start: String?) {
        now = now + .milliseconds(Int(seconds * 1000))
        pass.begin(
            source, producer: file, wasClosed: wasClosed, at: now, isSynchronised: true, using: &random)
        return readOn(members)
    }

    /// The next line of the same block.
    mutating func readOn(_ members: String = "") -> (session: String?, start: String?) {
        let line = Array((#"{"name":"a"\#(members.isEmpty ? "" : ",")\#(members)}"# + "\n").utf8)
        return line.withUnsafeBufferPointer { block in
            guard let base = block.baseAddress else { return (nil, nil) }
            let verdict = pass.read(base, from: 0, to: block.count)
            var starts = LineBuffer()
            if verdict.startsSession { pass.writeSessionStart(into: &starts) }
            var event = LineBuffer()
            pass.write(into: &event)
            let start = String(decoding: starts.bytes, as: UTF8.self)
            return (
                SessionReading.session(String(decoding: event.bytes, as: UTF8.self)),
                start.isEmpty ? nil : start
            )
        }
    }

    static func session(_ line: String) -> String? {
        guard let range = line.firstRange(of: #""session_id":""#) else { return nil }
        return String(line[range.upperBound...].prefix { $0 != "\"" })
    }
}

@Suite("Sessions")
struct SessionTests {
    @Test("ac21: automatic: a new producer gets a session, whose start is an event, once")
    func ac21_newProducer() throws {
        var reading = SessionReading(.automatic)
        let first = reading.read()
        let id = try #require(first.session)
        #expect(UUIDv7(id) != nil)
        let start = try #require(first.start)
        #expect(
            start.hasPrefix(
                #"{"type":"start_session","name":"start_session","timestamp":"2026-11-20T10:00:00.000Z","app":"shop","session_id":"\#(id)","observed_at":"#
            ))
        #expect(start.hasSuffix("\"}\n") && failure(String(start.dropLast())) == nil)
        #expect(reading.read(after: 1) == (id, nil))
        #expect(reading.pass.counts.sessions == ["automatic": 1])
        let other = reading.read(file: [2])
        #expect(other.session != id && other.start != nil)
    }

    @Test("sessions at extreme times, and a later change of the mode, stop no producer")
    func extremeTimes() {
        let years = [
            "0000-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59", "1677-09-21T00:12:43Z",
            "1970-01-01T00:00:00Z",
            "2262-04-11T23:47:16.854775807Z", "2262-04-12T00:00:00Z", "9999-12-31T23:59:59-23:59",
        ]
        let modes: [SessionMode] = [.manual, .automatic, .off]
        for first in years {
            for second in years {
                for (before, after) in modes.flatMap({ one in modes.map { (one, $0) } }) {
                    var old = SessionReading(before)
                    _ = old.read(#""type":"start_session","timestamp":"\#(first)","process":"p""#)
                    _ = old.read(#""timestamp":"\#(second)","process":"p""#, wasClosed: true)
                    _ = old.read(#""type":"start_session","timestamp":"\#(second)""#)
                    let memory = old.pass.takeMemory().compactMapValues { $0 }
                    var new = SessionReading(after, memory: memory)
                    for closed in [false, true] {
                        _ = new.read(#""timestamp":"\#(second)","process":"p""#, wasClosed: closed)
                        _ = new.read(#""timestamp":"\#(first)""#, file: nil, wasClosed: closed)
                        _ = new.read(#""type":"start_session","timestamp":"\#(first)""#)
                        #expect(
                            new.read(#""process":"p""#, after: 1, wasClosed: closed).session?.isEmpty != true)
                    }
                }
            }
        }
    }

    @Test("ac21: a silence of 20 s ends a session only if the producer is gone")
    func ac21_silence() throws {
        var reading = SessionReading(.automatic)
        let id = reading.read().session
        #expect(reading.read(after: 30).session == id)
        #expect(reading.read(after: 3600).session == id)
        #expect(reading.read(after: 19.999, wasClosed: true) == (id, nil))
        let next = reading.read(after: 20, wasClosed: true)
        #expect(next.session != id && next.start != nil)
        // Drop files without a process: silence alone decides, for the app as a whole.
        let dropped = reading.read(file: nil)
        #expect(dropped.session != next.session)
        #expect(reading.read(after: 19, file: nil).session == dropped.session)
        #expect(reading.read(after: 20, file: nil).session != dropped.session)
    }

    @Test("ac21: processes of one file have separate sessions; events without a process belong to the file's")
    func ac21_processes() {
        var reading = SessionReading(.automatic)
        let one = reading.read(#""pid":1"#).session
        let two = reading.read(#""process":"web.2""#).session
        let none = reading.read().session
        #expect(Set([one, two, none]).count == 3)
        #expect(reading.read(#""pid":1"#, file: [9]).session == one)
        #expect(reading.read(#""process":"web.2","pid":77"#).session == two)
        #expect(reading.read(#""pid":null"#).session == none)
        #expect(reading.read(#""pid":{"a":1}"#).session == none)
    }

    @Test("a launch begins a session at once with a pid or a new file, else after the timeout")
    func launches() {
        var reading = SessionReading(.automatic)
        let first = reading.read(#""pid":1"#).session
        #expect(reading.read(#""pid":2"#, after: 1, wasClosed: true).session != first)
        // Without a pid the file is all that is known: a program may open it for each line.
        let file = reading.read(file: [7]).session
        #expect(reading.read(after: 5, file: [7], wasClosed: true).session == file)
        #expect(reading.read(after: 1, file: [8]).session != file)
        #expect(reading.read(after: 20, file: [7], wasClosed: true).session != file)
        // Nobody saw a close that happened while the agent was stopped.
        let memory = reading.pass.takeMemory().compactMapValues { $0 }
        var next = SessionReading(.automatic, seed: 2, memory: memory)
        next.now = reading.now
        let before = reading.read(file: [7]).session
        #expect(next.read(after: 3600, file: [7]).session == before)
        #expect(next.read(after: 20, file: [7], wasClosed: true).session != before)
    }

    @Test("ac21: in one block each event has the session of its process, or of the file")
    func ac21_processesInOneBlock() {
        var reading = SessionReading(.automatic)
        let id = reading.read().session
        let processes = #""process":"p""#
        #expect(reading.read(processes).start != nil && reading.read(processes, after: 1).start == nil)
        #expect(reading.read(after: 1) == (id, nil))
        let other = reading.readOn(processes)
        #expect(other.session != id && other.start == nil)
        #expect(reading.readOn() == (id, nil))
    }

    @Test("ac21: an event between a session's first and last event belongs to it")
    func ac21_outOfOrder() {
        var reading = SessionReading(.automatic)
        let id = reading.read().session
        #expect(reading.read(after: 300).session == id)
        for seconds in [100, 299, 1, 0] {
            let late = #""timestamp":"\#(Reading.now + .seconds(seconds))""#
            #expect(reading.read(late, wasClosed: true) == (id, nil))
        }
        #expect(reading.pass.counts.sessions == ["automatic": 1])
    }

    @Test(
        "ac21: of each producer the current session and 32 earlier ones are remembered, also after a restart")
    func ac21_past() {
        var reading = SessionReading(.manual)
        for index in 0..<40 {
            _ = reading.read(#""type":"start_session","session_id":"s\#(index)""#, after: index == 0 ? 0 : 10)
        }
        let memory = reading.pass.takeMemory().compactMapValues { $0 }
        var after = SessionReading(.manual, seed: 2, memory: memory)
        after.now = reading.now
        for index in 0..<40 {
            let time = #""timestamp":"\#(Reading.now + .seconds(10 * index + 5))""#
            let expected = index < 7 ? nil : "s\(index)"
            #expect(reading.read(time).session == expected && after.read(time).session == expected)
        }
    }

    @Test("ac21: a session's own id must be plain text of at most 64 bytes")
    func ac21_ownIDs() {
        var reading = SessionReading(.manual)
        let longest = String(repeating: "x", count: 64)
        for (id, begins) in [
            ("7", false), (#""a\u0062""#, false), (#""\#(longest)x""#, false), (#""\#(longest)""#, true),
        ] {
            let before = reading.pass.counts
            _ = reading.read(#""type":"start_session","session_id":\#(id)"#, after: 1)
            #expect(
                reading.pass.counts.sessions["manual"] ?? 0 == (before.sessions["manual"] ?? 0)
                    + (begins ? 1 : 0))
            #expect(
                reading.pass.counts[.ignoredSessionStart] == before[.ignoredSessionStart] + (begins ? 0 : 1))
        }
        var automatic = SessionReading(.automatic)
        #expect(automatic.read(#""type":"start_session","session_id":"mine""#) == ("mine", nil))
        #expect(automatic.pass.counts.sessions.isEmpty)
    }

    @Test("ac21: memory that was truncated, or is of another version, gives its whole entries")
    func ac21_cutMemory() throws {
        var reading = SessionReading(.manual)
        for index in 0..<3 {
            _ = reading.read(#""type":"start_session","session_id":"s\#(index)""#, after: index == 0 ? 0 : 10)
        }
        let (key, bytes) = try #require(
            reading.pass.takeMemory().compactMapValues { $0 }.first { $0.key.hasPrefix("session/") })
        let time = #""timestamp":"\#(Reading.now + .seconds(25))""#
        for length in 0...bytes.count {
            for version: UInt8 in [1, 2] {
                var cut = Array(bytes.prefix(length))
                if !cut.isEmpty { cut[0] = version }
                var after = SessionReading(.manual, memory: [key: cut])
                after.now = reading.now
                // The present session comes first.
                let isWhole = version == 1 && length >= 2 + 17 + 2
                #expect(after.read(time).session == (isWhole ? "s2" : nil), "\(length)")
            }
        }
        var long = Array(bytes.prefix(19)) + [UInt8](repeating: 0x61, count: 65)
        long[18] = 65
        var after = SessionReading(.manual, memory: [key: long])
        #expect(after.read(after: 30).session == nil)
    }

    @Test("ac21: a producer that was displaced within a block gets a new session")
    func ac21_madeRoomInBlock() {
        var reading = SessionReading(.automatic)
        let id = reading.read().session
        #expect(reading.read(after: 1) == (id, nil))
        let others = (0..<1100).map { reading.readOn(#""pid":\#($0)"#).session }
        let again = reading.readOn()
        #expect(Set(others).count == 1100 && !others.contains(again.session))
        #expect(again.start != nil)
        #expect(again.session != id && reading.readOn() == (again.session, nil))
    }

    @Test("ac21: an event's own session always wins, and starts none of the agent's")
    func ac21_ownSession() {
        var reading = SessionReading(.automatic)
        #expect(reading.read(#""session_id":"mine""#) == ("mine", nil))
        #expect(reading.pass.counts.sessions.isEmpty)
        #expect(reading.pass.takeMemory().keys.allSatisfy { !$0.hasPrefix("session/") })
    }

    @Test(
        "ac21: an event with a null session has none, in every mode; null in a session start counts as absent"
    )
    func ac21_nullSession() throws {
        for mode in [SessionMode.automatic, .manual, .off] {
            var reading = SessionReading(mode)
            #expect(reading.read(#""session_id":null"#) == (nil, nil))
            #expect(reading.pass.counts[.unusableID] == 0 && reading.pass.counts.sessions.isEmpty)
            let started = reading.read(#""type":"start_session","session_id":null"#, after: 1)
            #expect((started.session != nil) == (mode != .off))
            #expect(reading.read(after: 1).session == started.session)
            #expect(reading.read(#""session_id":null"#, after: 1) == (nil, nil))
        }
    }

    @Test("ac21: late events get the session of their time, up to a day back")
    func ac21_lateEvents() {
        var reading = SessionReading(.automatic)
        func at(_ seconds: Int) -> String {
            #""timestamp":"\#(Reading.now + .seconds(seconds))""#
        }
        let first = reading.read().session
        let second = reading.read(after: 3600, wasClosed: true).session
        #expect(first != second)
        #expect(reading.read(at(10), after: 1).session == first)
        #expect(reading.read(at(1800), after: 1).session == first)
        #expect(reading.read(at(3595), after: 1).session == second)
        #expect(reading.read(at(-10), after: 1).session == nil)
        #expect(reading.read(at(-7200), after: 1).session == nil)
        #expect(reading.read(after: 1).session == second)
        // A backlog that is read for the first time is cut into its own sessions.
        let early = reading.read(at(0), file: [3], wasClosed: true).session
        let late = reading.read(at(100), file: [3], wasClosed: true).session
        #expect(early != nil && early != late)
        #expect(reading.read(at(5), file: [3], wasClosed: true).session == early)
        #expect(reading.read(at(3600 - 86_500), file: [4]).session == nil)
        #expect(reading.read(at(90_000), file: [5]).session != nil)
        #expect(reading.read(file: [5]).start == nil)
    }

    @Test("ac21: a session that began while the clock was ahead ends when it is corrected")
    func ac21_clockAhead() {
        var reading = SessionReading(.automatic)
        reading.now = reading.now + .seconds(86_400)
        let ahead = reading.read()
        reading.now = Reading.now
        let right = reading.read()
        #expect(
            ahead.session != nil && right.session != nil && right.session != ahead.session
                && right.start != nil)
        #expect(reading.read(after: 1) == (right.session, nil))
    }

    @Test("ac21: sessions are durable, and a start is not announced again after a restart")
    func ac21_restart() {
        var before = SessionReading(.automatic)
        let old = before.read().session
        let id = before.read(after: 100, wasClosed: true).session
        let drop = before.read(file: nil).session
        let memory = before.pass.takeMemory().compactMapValues { $0 }
        #expect(before.pass.takeMemory().isEmpty)
        var after = SessionReading(.automatic, seed: 2, memory: memory)
        after.now = before.now
        #expect(after.read(after: 60) == (id, nil))
        #expect(after.read(after: 60, file: nil).session != drop)
        let late = #""timestamp":"\#(Reading.now + .seconds(5))""#
        #expect(after.read(late).session == old)
        #expect(after.read(after: 60, wasClosed: true).session != id)
    }

    @Test("a line that is read twice before it is written still announces its session")
    func announcedOnlyWhenWritten() {
        var reading = SessionReading(.automatic)
        var random = SplitMix64(seed: 2)
        reading.pass.begin(
            reading.source, producer: [1], at: Reading.now, isSynchronised: true, using: &random)
        let line = Array("{\"name\":\"a\"}\n".utf8)
        line.withUnsafeBufferPointer { block in
            for _ in 0..<2 {
                #expect(reading.pass.read(block.baseAddress!, from: 0, to: block.count).startsSession)
            }
        }
        // Of an event that belongs to none it is not the session.
        let late = Array("{\"name\":\"a\",\"timestamp\":\"2026-11-18T10:00:00Z\"}\n".utf8)
        late.withUnsafeBufferPointer { block in
            #expect(!reading.pass.read(block.baseAddress!, from: 0, to: block.count).startsSession)
        }
        line.withUnsafeBufferPointer { block in
            #expect(reading.pass.read(block.baseAddress!, from: 0, to: block.count).startsSession)
            var buffer = LineBuffer()
            reading.pass.writeSessionStart(into: &buffer)
            #expect(!reading.pass.read(block.baseAddress!, from: 0, to: block.count).startsSession)
        }
    }

    @Test("ac21: manual: no session until one is started, by an event or a command")
    func ac21_manual() throws {
        var reading = SessionReading(.manual)
        #expect(reading.read() == (nil, nil))
        #expect(reading.read(#""pid":7"#) == (nil, nil))
        let started = reading.read(#""type":"start_session""#, after: 1)
        let id = try #require(started.session)
        #expect(started.start == nil)
        #expect(reading.read(after: 600, wasClosed: true).session == id)
        #expect(reading.read(#""pid":7"#).session == id)
        let own = reading.read(#""type":"start_session","pid":7"#, after: 1).session
        #expect(own != id && reading.read(#""pid":7"#).session == own && reading.read().session == id)
        #expect(reading.read(#""type":"start_session","session_id":"mine""#, after: 1).session == "mine")
        #expect(reading.read(after: 1).session == "mine" && reading.read(#""pid":7"#).session == "mine")
        let late = #""timestamp":"\#(Reading.now + .seconds(300))""#
        #expect(reading.read(late).session == id)
        #expect(reading.pass.counts.sessions == ["manual": 3])

        let now = reading.now + .seconds(1)
        var random = SplitMix64(seed: 2)
        #expect(reading.pass.startSession(reading.source, at: now, isSynchronised: true, using: &random))
        var buffer = LineBuffer()
        reading.pass.writeSessionStart(into: &buffer)
        let line = String(decoding: buffer.bytes, as: UTF8.self)
        let commanded = try #require(SessionReading.session(line))
        #expect(reading.read(after: 1).session == commanded && reading.read(#""pid":7"#).session == commanded)
        let memory = reading.pass.takeMemory().compactMapValues { $0 }
        var after = SessionReading(.manual, seed: 3, memory: memory)
        after.now = reading.now
        #expect(after.read(#""pid":7"#).session == commanded)
    }

    @Test(
        "ac21: automatic: neither a start_session event nor the command starts a session; off: nothing does")
    func ac21_automaticIgnoresStarts() {
        var reading = SessionReading(.automatic)
        let id = reading.read().session
        #expect(reading.read(#""type":"start_session""#, after: 1) == (id, nil))
        #expect(reading.pass.counts[.ignoredSessionStart] == 1)
        var random = SplitMix64(seed: 2)
        #expect(
            !reading.pass.startSession(reading.source, at: reading.now, isSynchronised: true, using: &random))
        let first = reading.read(#""type":"start_session""#, file: [7])
        #expect(first.session != id && first.start == nil)
        #expect(reading.read(file: [7]) == (first.session, nil))
        var off = SessionReading(.off)
        #expect(off.read() == (nil, nil) && off.read(#""type":"start_session""#) == (nil, nil))
        #expect(off.read(#""session_id":"x""#).session == "x")
    }

    @Test("ac21: at most 1,024 producers are remembered, and an app's flood does not displace others")
    func ac21_bounded() {
        var reading = SessionReading(.automatic)
        let flood = reading.source
        var random = SplitMix64(seed: 2)
        let quiet = reading.pass.source(app: "quiet", using: &random)
        reading.source = quiet
        let id = reading.read().session
        reading.source = flood
        for pid in 0..<3000 { #expect(reading.read(#""pid":\#(pid)"#, after: 0.001).start != nil) }
        reading.source = quiet
        #expect(reading.read() == (id, nil))
        let memory = reading.pass.takeMemory()
        #expect(memory.compactMapValues { $0 }.count { $0.key.hasPrefix("session/") } == 1024)
        reading.source = flood
        #expect(reading.read(#""pid":2999"#).start == nil)
        #expect(reading.read(#""pid":1"#).start != nil)
        #expect(reading.pass.takeMemory().values.contains { $0 == nil })
    }

    @Test("while tags hide what distinguishes sessions, none is stored, and stored ones are removed")
    func hiddenMemory() {
        var reading = SessionReading(.manual)
        _ = reading.read(#""type":"start_session","session_id":"SECRET","process":"SECRET""#)
        let stored = reading.pass.takeMemory().filter { $0.key.hasPrefix("session/") }
        #expect(stored.keys.contains { $0.contains("SECRET") } && stored.values.allSatisfy { $0 != nil })
        _ = reading.read(#""type":"start_session","session_id":"SECRET2","process":"SECRET2""#)
        let removed = reading.pass.takeMemory { _ in (true, true) }
        #expect(removed.filter { $0.key.hasPrefix("session/") } == stored.mapValues { _ in nil })
        #expect(reading.pass.takeMemory { _ in (true, true) }.isEmpty)
        // In memory the sessions go on.
        #expect(reading.read(#""process":"SECRET2""#).session == "SECRET2")
    }

    @Test("sessions agree with a plain model, on random events")
    func againstModel() {
        var random = SplitMix64(seed: Seeds.one(21))
        for round in 0..<200 {
            var reading = SessionReading(.automatic, seed: UInt64(round))
            var model: [Int: (id: String?, last: Timestamp)] = [:]
            for _ in 0..<50 {
                let file = Int.random(in: 0..<3, using: &random)
                let pause: Double = [0.0, 1, 19.999, 20, 45].randomElement(using: &random) ?? 0
                let wasClosed = Bool.random(using: &random)
                let found = reading.read(after: pause, file: [UInt8(file)], wasClosed: wasClosed)
                let isNew = model[file].map { wasClosed && reading.now - $0.last >= .seconds(20) } ?? true
                guard isNew == (found.start != nil), isNew || model[file]?.id == found.session else {
                    Issue.record("round \(round): a session \(isNew ? "should" : "should not") have begun")
                    return
                }
                model[file] = (found.session, reading.now)
            }
        }
    }

    @Test("a session forgotten by id or process begins again, and nothing of it is stored; others continue")
    func forgotten() throws {
        var reading = SessionReading(.automatic)
        let mine = try #require(reading.read(#""process":"4711""#).session)
        let other = try #require(reading.read(#""process":"17""#).session)
        let third = try #require(reading.read().session)
        _ = reading.pass.takeMemory()
        reading.pass.forgetSessions { $0 == Array("\"4711\"".utf8) || $0 == Array(third.utf8) }
        let memory = reading.pass.takeMemory()
        #expect(memory.keys.sorted() == ["session/shop/file/01", "session/shop/process/\"4711\""])
        #expect(memory.values.allSatisfy { $0 == nil })
        #expect(reading.read(#""process":"17""#).session == other)
        let (again, start) = reading.read(#""process":"4711""#)
        #expect(again != nil && again != mine && start != nil)
        #expect(reading.read().session != third)
    }

    @Test("room for more producers is made while there are sessions, and each keeps its own")
    func roomGrows() {
        var sessions = Sessions()
        var places: [Int] = []
        for index in 0..<Sessions.maxProducers {
            let place = sessions.slotIndex(of: Sessions.key(app: "app\(index)"), app: "app\(index)")
            sessions.begin(place, at: Int64(index), id: [UInt8(index % 251), UInt8(index / 251)], now: 2000)
            places.append(place)
        }
        #expect(Set(places).count == Sessions.maxProducers)
        #expect(sessions.evictions == 0)
        for (index, place) in places.enumerated() {
            #expect(sessions.known(Sessions.key(app: "app\(index)")) == place)
            let session = sessions.current(place)
            #expect(session.start == Int64(index))
            #expect(session.id == [UInt8(index % 251), UInt8(index / 251)])
        }
        #expect(sessions.changes { _ in false }.count == Sessions.maxProducers)
        // All places are taken: the next producer gets that of the least recent one.
        #expect(sessions.slotIndex(of: Sessions.key(app: "late"), app: "late") == places[0])
        #expect(sessions.known(Sessions.key(app: "app0")) == nil && sessions.evictions == 1)
    }

    @Test("however many apps have had sessions, those without any are forgotten")
    func appsAreBounded() {
        var sessions = Sessions()
        for index in 0..<10_000 {
            let place = sessions.slotIndex(of: Sessions.key(app: "app\(index)"), app: "app\(index)")
            sessions.begin(place, at: Int64(index), id: [1], now: Int64(index))
        }
        #expect(sessions.apps.count <= 2 * Sessions.maxProducers)
        // Hidden sessions of an app that is left are still found by its name.
        let changes = sessions.changes { $0 == "app9999" }
        #expect(changes["session/app9999"] == nil && changes["session/app9998"] != nil)
    }
}
