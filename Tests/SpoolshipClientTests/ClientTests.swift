import Events
import Foundation
@testable import SpoolshipClient
import TestKit
import Testing

@Suite("The client library", .serialized)
struct ClientTests {
    private func names(_ directory: TemporaryDirectory) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: directory.path).filter { $0 != ".spoolship" }
            .sorted()
    }

    /// The events that an agent would find: whole lines of append files, elements of drop files.
    private func events(_ directory: TemporaryDirectory) throws -> [[String: Any]] {
        // Only what the agent reads is opened: any other name may be renamed between the list and the look.
        let visible = try names(directory).filter {
            $0.hasSuffix(".json") || $0.hasSuffix(".jsonl") || $0.hasSuffix(".jsonl.1")
        }
        return try visible.flatMap { name -> [[String: Any]] in
            let data = try Data(contentsOf: URL(fileURLWithPath: "\(directory.path)/\(name)"))
            if name.hasSuffix(".json") {
                return try #require(JSONSerialization.jsonObject(with: data) as? [[String: Any]])
            }
            // A file that was only just made is empty; what is in one ends with a whole line.
            #expect(data.isEmpty || data.last == 0x0A)
            return try data.split(separator: 0x0A).map { line in
                try #require(try JSONSerialization.jsonObject(with: line) as? [String: Any])
            }
        }
    }

    private func code(_ body: () throws(AnalyticsError) -> Void) -> AnalyticsError.Code? {
        do throws(AnalyticsError) {
            try body()
            return nil
        } catch {
            return error.code
        }
    }

    private func state(_ text: String, _ directory: TemporaryDirectory) throws {
        try FileManager.default.createDirectory(
            atPath: "\(directory.path)/.spoolship", withIntermediateDirectories: true)
        try text.write(toFile: "\(directory.path)/.spoolship/state", atomically: true, encoding: .utf8)
    }

    @Test("properties are literals, variables of the usual types or typed values; order and types are kept")
    func propertiesOfVariables() throws {
        let i = 7
        let (text, share, isNew, large, small) = ("é", 0.25, true, UInt64.max, Float(0.1))
        let properties: EventProperties = [
            "i": i, "text": text, "part": text.prefix(1), "share": share, "new": isNew, "large": large,
            "small": small,
            "literal": 12, "typed": PropertyValue.integer(3), "date": .date(milliseconds: 5),
            "short": .string("x"),
        ]
        let expected: [(String, PropertyValue)] = [
            ("i", .integer(7)), ("text", .string("é")), ("part", .string("é")), ("share", .double(0.25)),
            ("new", .boolean(true)), ("large", .double(0x1p64)), ("small", .double(0.1)),
            ("literal", .integer(12)), ("typed", .integer(3)), ("date", .date(milliseconds: 5)),
            ("short", .string("x")),
        ]
        #expect(properties.members.elementsEqual(expected) { $0.name == $1.0 && $0.value == $1.1 })
        var later = properties
        later["i"] = 8
        later["text"] = nil
        #expect(later["i"] == .integer(8) && later["text"] == nil)
    }

    @Test(
        "typed properties, priority, country and time follow the spool's protocol",
        arguments: [false, true])
    func eventsAreWritten(asDropFiles: Bool) throws {
        let directory = try TemporaryDirectory()
        var settings = ClientSettings(directory: directory.path)
        settings.style = asDropFiles ? .dropFiles : .append
        let client = try AnalyticsClient(settings)
        try client.setCountryCode("it")
        try client.trackEvent(
            "Video \"clicked\"\n",
            withProperties: [
                "text": "é😀\u{1}", "whole": 9_007_199_254_740_993, "number": 0.1, "yes": true,
                "time": .date(milliseconds: 1_795_168_800_123),
            ], flags: .critical)
        try client.flush()
        let event = try #require(try events(directory).first)
        #expect(event["name"] as? String == "Video \"clicked\"\n")
        #expect(event["priority"] as? String == "critical" && event["country"] as? String == "IT")
        #expect((event["pid"] as? NSNumber)?.int32Value == getpid() && event["session_id"] == nil)
        let properties = try #require(event["properties"] as? [String: Any])
        #expect(
            properties["text"] as? String == "é😀\u{1}"
                && properties["time"] as? String == "2026-11-20T10:00:00.123Z")
        #expect((properties["whole"] as? NSNumber)?.int64Value == 9_007_199_254_740_993)
        #expect((properties["number"] as? NSNumber)?.doubleValue == 0.1 && properties["yes"] as? Bool == true)
        let name = try #require(try names(directory).first)
        let mode = try FileManager.default.attributesOfItem(atPath: "\(directory.path)/\(name)")[
            .posixPermissions]
        #expect((mode as? NSNumber)?.intValue == 0o640)
        try client.close()
        #expect(code { () throws(AnalyticsError) in try client.trackEvent("x") } == .closed)
    }

    @Test("times are written correctly, also before 1970 and in leap years")
    func times() {
        for (milliseconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"), (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (Int64.max, "9999-12-31T23:59:59.999Z"), (Int64.min, "0000-01-01T00:00:00.000Z"),
        ] { #expect(timeText(milliseconds) == text) }
    }

    @Test("from many threads every event is written once, as a whole", arguments: [false, true])
    func threads(asDropFiles: Bool) async throws {
        let directory = try TemporaryDirectory()
        var settings = ClientSettings(directory: directory.path)
        settings.style = asDropFiles ? .dropFiles : .append
        settings.durability = .processEnd
        settings.bufferSize = 20_000
        settings.longestWait = .seconds(30)
        settings.fileSize = 100_000
        let client = try AnalyticsClient(settings)
        let each =
            ProcessInfo.processInfo.environment["SPOOLSHIP_EVENTS"].flatMap { Int($0) }.map { $0 / 8 } ?? 1000
        try await withThrowingTaskGroup(of: Void.self) { group in
            for thread in 0..<8 {
                group.addTask {
                    for index in 0..<each { try client.trackEvent("\(thread)/\(index)") }
                }
            }
            try await group.waitForAll()
        }
        try client.close(timeout: .seconds(60))
        let found = try events(directory).compactMap { $0["name"] as? String }
        #expect(found.count == 8 * each && Set(found).count == 8 * each)
        #expect(try names(directory).count > 1)
    }

    @Test("ac08: the agent's state file is obeyed, in the app's directory and above it")
    func ac08_state() throws {
        let directory = try TemporaryDirectory()
        func track(_ flags: Flags) throws -> AnalyticsError.Code? {
            // A client of its own: the state is looked at once a second.
            let client = try AnalyticsClient(ClientSettings(directory: directory.path))
            return code { () throws(AnalyticsError) in try client.trackEvent("x", flags: flags) }
        }
        #expect(try track(.normal) == nil)
        for (text, normal, critical) in [
            ("all\n", nil, nil), ("critical\nthe queue is full\n", .onlyCritical, nil),
            ("none\ndisabled", .refused, .refused),
            ("something new\n", nil, nil), ("", nil, nil),
        ] as [(String, AnalyticsError.Code?, AnalyticsError.Code?)] {
            try state(text, directory)
            #expect(try track(.normal) == normal && track(.critical) == critical, "\(text)")
        }
        try state("none\nthe disk is full\n", directory)
        mkdir("\(directory.path)/shop", 0o755)
        let client = try AnalyticsClient(ClientSettings(directory: "\(directory.path)/shop"))
        #expect(client.spoolState.accepting == .none && client.spoolState.reason == "the disk is full")
    }

    @Test(
        "ac08: a running client notices changes of the state file, both ways, without reading it in each call"
    )
    func ac08_changes() throws {
        let directory = try TemporaryDirectory()
        var settings = ClientSettings(directory: directory.path)
        settings.longestWait = .seconds(30)
        let client = try AnalyticsClient(settings)
        func track() -> AnalyticsError.Code? {
            code { () throws(AnalyticsError) in try client.trackEvent("x") }
        }
        #expect(track() == nil)
        try state("none\ndisabled", directory)
        let deadline = ContinuousClock.now + .seconds(30)
        while track() == nil, ContinuousClock.now < deadline { usleep(2000) }
        #expect(track() == .refused)
        try state("all\n", directory)
        while track() != nil, ContinuousClock.now < deadline { usleep(2000) }
        #expect(track() == nil)
        try client.close(timeout: .seconds(30))
    }

    @Test("ac16: events of a pause are durable and unseen, until resume or the next process releases them")
    func ac16_pause() throws {
        let directory = try TemporaryDirectory()
        let client = try AnalyticsClient(ClientSettings(directory: directory.path))
        try client.trackEvent("before")
        try client.flush()
        client.pause()
        client.pause()
        try client.trackEvent("kept")
        try client.flush()
        #expect(try events(directory).compactMap { $0["name"] as? String } == ["before"])
        #expect(try names(directory).contains { $0.hasSuffix(".jsonl.part") } && client.isPaused)
        client.resume()
        try client.trackEvent("after")
        try client.flush()
        #expect(
            Set(try events(directory).compactMap { $0["name"] as? String }) == ["before", "kept", "after"])
        // A process that did not live to release what it kept; no process has the highest number.
        try Data("{\"name\":\"old\"}\n".utf8).write(
            to: URL(fileURLWithPath: "\(directory.path)/app-2147483647-x-1.jsonl.part"))
        try Data("{\"name\":\"alive\"}\n".utf8).write(
            to: URL(fileURLWithPath: "\(directory.path)/app-\(getpid())-x-1.jsonl.part"))
        _ = try AnalyticsClient(ClientSettings(directory: directory.path))
        let released = Set(try events(directory).compactMap { $0["name"] as? String })
        #expect(released.contains("old") && !released.contains("alive"))
        client.pause()
        try client.trackEvent("closed while paused")
        try client.close()
        #expect(try events(directory).contains { $0["name"] as? String == "closed while paused" })
    }

    @Test("ac17: while disabled nothing is stored")
    func ac17_disabled() throws {
        let directory = try TemporaryDirectory()
        let client = try AnalyticsClient(ClientSettings(directory: directory.path))
        #expect(client.isEnabled)
        client.isEnabled = false
        try client.trackEvent("no")
        client.isEnabled = true
        try client.trackEvent("yes")
        try client.flush()
        #expect(try events(directory).compactMap { $0["name"] as? String } == ["yes"])
    }

    @Test("ac17: the switch persists for the client of that name and user; files of other users are ignored")
    func ac17_switchPersists() throws {
        let directory = try TemporaryDirectory()
        var settings = ClientSettings(directory: directory.path)
        for isEnabled in [false, true] {
            let client = try AnalyticsClient(settings)
            #expect(client.isEnabled != isEnabled)
            client.isEnabled = isEnabled
            try client.trackEvent("x")
            try client.flush()
            // It does not live to close: what `flush` has waited for is durable.
            #expect(try AnalyticsClient(settings).isEnabled == isEnabled)
            settings.name = "other"
            #expect(try AnalyticsClient(settings).isEnabled)
            settings.name = "app"
        }
        #expect(try names(directory).count { $0.hasSuffix(".disabled") } == 0)
        let file = "\(directory.path)/.app-\(geteuid()).disabled"
        try Data().write(to: URL(fileURLWithPath: file))
        if geteuid() == 0 {
            chown(file, 1, 1)
            #expect(try AnalyticsClient(settings).isEnabled)
        }
    }

    @Test("gathered events are in the spool, unseen; the interval, a flush or the next process releases them")
    func intervalStoresFirst() throws {
        let directory = try TemporaryDirectory()
        let deadline = ContinuousClock.now + .seconds(30)
        func wait(_ isThere: () throws -> Bool) rethrows {
            while try !isThere(), ContinuousClock.now < deadline { usleep(2000) }
        }
        func kept() throws -> Int {
            try names(directory).filter { $0.hasSuffix(".jsonl.part") }.reduce(0) { sum, name in
                // It may be released between the two looks.
                let text = try? Data(contentsOf: URL(fileURLWithPath: "\(directory.path)/\(name)"))
                return sum + (text?.count { $0 == 0x0A } ?? 0)
            }
        }
        var settings = ClientSettings(directory: directory.path)
        settings.fileSize = 1024
        let client = try AnalyticsClient(settings)
        try client.setTransmissionInterval(.seconds(86_400))
        // Several files of a kilobyte: all of them are released.
        for number in 1...40 { try client.trackEvent("kept \(number)") }
        try wait { try kept() == 40 }
        #expect(try kept() == 40 && events(directory).isEmpty)
        // The process is killed: what a client of a process without life left is the next one's to release.
        for name in try names(directory) {
            let path = "\(directory.path)/\(name)"
            let orphan = name.replacingOccurrences(of: "-\(getpid())-", with: "-2147483647-")
            try FileManager.default.copyItem(atPath: path, toPath: "\(directory.path)/\(orphan)")
        }
        let next = try AnalyticsClient(settings)
        #expect(try events(directory).count == 40)
        try client.flush()
        #expect(try kept() == 0 && events(directory).count == 80)
        try next.setTransmissionInterval(.milliseconds(50))
        try next.trackEvent("soon")
        try wait { try events(directory).count == 81 }
        #expect(try events(directory).count == 81 && kept() == 0)
    }

    @Test("ac21: sessions are the app's own only after it has requested that")
    func ac21_sessions() throws {
        let directory = try TemporaryDirectory()
        let client = try AnalyticsClient(ClientSettings(directory: directory.path))
        #expect(try !client.startSession())
        client.enableManualSessionTracker()
        try client.trackEvent("a")
        #expect(try client.startSession())
        try client.trackEvent("b")
        #expect(try client.startSession())
        try client.trackEvent("c")
        try client.flush()
        let found = try events(directory)
        #expect(found.map { $0["type"] as? String } == [nil, "start_session", nil, "start_session", nil])
        let sessions = found.map { $0["session_id"] as? String }
        // Null: the agent adds no session either.
        #expect(found[0]["session_id"] is NSNull)
        #expect(
            sessions[0] == nil && sessions[1] == sessions[2] && sessions[3] == sessions[4]
                && sessions[2] != sessions[4]
        )
        #expect(sessions[1].flatMap { UUID(uuidString: $0) } != nil)
    }

    @Test(
        "events gather for the interval, critical ones do not; a full buffer is an error within the given time"
    )
    func intervalAndBuffer() throws {
        let directory = try TemporaryDirectory()
        var settings = ClientSettings(directory: directory.path)
        settings.bufferSize = 4096
        settings.longestWait = .milliseconds(20)
        let client = try AnalyticsClient(settings)
        try client.setTransmissionInterval(.seconds(3600))
        #expect(client.transmissionInterval == .seconds(3600))
        try client.trackEvent("normal")
        #expect(try events(directory).isEmpty)
        try client.trackEvent("critical", flags: .critical)
        let deadline = ContinuousClock.now + .seconds(20)
        while try events(directory).count < 2, ContinuousClock.now < deadline { usleep(2000) }
        #expect(try events(directory).count == 2)
        #expect(
            code { () throws(AnalyticsError) in try client.setTransmissionInterval(.seconds(-1)) }
                == .invalidSetting)
        #expect(
            code { () throws(AnalyticsError) in try client.setTransmissionInterval(.seconds(86_401)) }
                == .invalidSetting)
        #expect(code { () throws(AnalyticsError) in try client.setCountryCode("ITA") } == .invalidSetting)
        #expect(code { () throws(AnalyticsError) in try client.trackEvent("") } == .invalidEvent)
        #expect(
            code { () throws(AnalyticsError) in
                try client.trackEvent("x", withProperties: ["x": .double(.nan)])
            }
                == .invalidEvent)
        let large: EventProperties = ["x": .string(String(repeating: "x", count: 5000))]
        #expect(
            code { () throws(AnalyticsError) in try client.trackEvent("x", withProperties: large) }
                == .invalidEvent)
    }

    @Test("a missing or removed spool is an error that says so; no accepted event is lost")
    func missingSpool() throws {
        #expect(
            code { () throws(AnalyticsError) in
                _ = try AnalyticsClient(ClientSettings(directory: "/nonexistent"))
            }
                == .spoolMissing)
        let directory = try TemporaryDirectory()
        let spool = "\(directory.path)/spool"
        mkdir(spool, 0o755)
        var settings = ClientSettings(directory: spool)
        settings.bufferSize = 1024
        settings.longestWait = .milliseconds(10)
        settings.name = "a b"
        #expect(code { () throws(AnalyticsError) in _ = try AnalyticsClient(settings) } == .invalidSetting)
        settings.name = "worker_1"
        let client = try AnalyticsClient(settings)
        rmdir(spool)
        try client.trackEvent("kept")
        #expect(
            code { () throws(AnalyticsError) in try client.flush(timeout: .milliseconds(300)) }
                == .spoolMissing)
        var refusal: AnalyticsError.Code?
        for _ in 0..<20 where refusal == nil {
            refusal = code { () throws(AnalyticsError) in try client.trackEvent("more") }
        }
        #expect(refusal == .spoolMissing)
        mkdir(spool, 0o755)
        try client.flush(timeout: .seconds(30))
        let found = try FileManager.default.contentsOfDirectory(atPath: spool)
        let text = try String(contentsOfFile: "\(spool)/\(try #require(found.first))", encoding: .utf8)
        #expect(text.contains("\"name\":\"kept\"") && found.count == 1)
    }

    @Test("the shared client can be used after start, started once, and started again after stop")
    func shared() throws {
        let directory = try TemporaryDirectory()
        #expect(!Analytics.isEnabled)
        #expect(code { () throws(AnalyticsError) in try Analytics.trackEvent("x") } == .notStarted)
        try Analytics.start(ClientSettings(directory: directory.path))
        #expect(Analytics.isEnabled)
        #expect(
            code { () throws(AnalyticsError) in try Analytics.start(ClientSettings(directory: directory.path))
            }
                == .alreadyStarted)
        try Analytics.trackEvent("x", withProperties: ["a": 1], flags: .critical)
        try Analytics.push(["event": "openScreen"])
        try Analytics.push("Home", forKey: "screenName")
        try Analytics.stop()
        let found = try events(directory)
        #expect(found.map { $0["name"] as? String } == ["x", nil, nil] && !Analytics.isEnabled)
        #expect(found.last?["screenName"] as? String == "Home")
    }

    @Test("settings before start apply from the first event; a stop forgets them")
    func settingsBeforeStart() throws {
        let directory = try TemporaryDirectory()
        Analytics.enableManualSessionTracker()
        try Analytics.setCountryCode("it")
        try Analytics.setTransmissionInterval(.seconds(3600))
        #expect(
            code { () throws(AnalyticsError) in try Analytics.setTransmissionInterval(.seconds(86_401)) }
                == .invalidSetting)
        #expect(code { () throws(AnalyticsError) in try Analytics.setCountryCode("XX") } == .invalidSetting)
        try Analytics.start(ClientSettings(directory: directory.path))
        try Analytics.trackEvent("first", withProperties: nil)
        try Analytics.track("second", properties: ["a": 1], flags: .default)
        #expect(Analytics.dispatchInterval == .seconds(3600))
        #expect(try Analytics.startSession())
        #expect(try events(directory).isEmpty)
        try Analytics.stop()
        let found = try events(directory)
        #expect(found.map { $0["name"] as? String } == ["first", "second", "start_session"])
        #expect(found.allSatisfy { $0["country"] as? String == "IT" })
        #expect(found[0]["session_id"] is NSNull && found[2]["session_id"] is String)
        let second = try TemporaryDirectory()
        Analytics.dispatchInterval = .zero
        try Analytics.start(ClientSettings(directory: second.path))
        #expect(Analytics.dispatchInterval == .zero)
        try Analytics.trackEvent("third", flags: .critical)
        try Analytics.stop()
        let third = try #require(try events(second).first)
        #expect(third["session_id"] == nil && third["country"] == nil)
        try Analytics.start(ClientSettings(directory: second.path))
        #expect(Analytics.dispatchInterval == nil)
        try Analytics.stop()
    }

    @Test("ac23: the countries that the agent knows are accepted, and after a refusal the previous one stays")
    func ac23_countries() throws {
        let directory = try TemporaryDirectory()
        let client = try AnalyticsClient(ClientSettings(directory: directory.path))
        let letters = (UInt8(ascii: "A")...UInt8(ascii: "Z")).map { String(UnicodeScalar($0)) }
        for code in letters.flatMap({ first in letters.map { first + $0 } }) {
            let refusal = self.code { () throws(AnalyticsError) in try client.setCountryCode(code) }
            #expect((refusal == nil) == (CountryCode(code) != nil), "\(code)")
        }
        try client.setCountryCode("de")
        for wrong in ["XX", "ITA", "", "1T", "ß"] {
            #expect(code { () throws(AnalyticsError) in try client.setCountryCode(wrong) } == .invalidSetting)
        }
        try client.trackEvent("a")
        try client.setCountryCode(nil)
        try client.trackEvent("b")
        try client.flush()
        #expect(try events(directory).map { $0["country"] as? String } == ["DE", nil])
    }

    @Test("a finished append file is renamed and then removed: a full one, the last, and a dead process's")
    func finishedFiles() throws {
        let directory = try TemporaryDirectory()
        // One of a process that has ended, one of a process that lives, and two of other programs.
        let foreign = ["app-\(getpid())-x-1.jsonl", "app-20261129-x.jsonl", "app-2147483647-x-1.log"]
        for name in ["app-2147483647-x-1.jsonl"] + foreign {
            try Data("{\"name\":\"old\"}\n".utf8).write(to: URL(fileURLWithPath: "\(directory.path)/\(name)"))
        }
        var settings = ClientSettings(directory: directory.path)
        settings.fileSize = 1024
        let client = try AnalyticsClient(settings)
        #expect(try Set(names(directory)) == Set(["app-2147483647-x-1.jsonl.1"] + foreign))
        for number in 1...40 {
            try client.trackEvent("\(number)")
            try client.flush()
        }
        func own() throws -> [String] {
            try names(directory).filter { $0.hasPrefix("app-\(getpid())-") && !foreign.contains($0) }
        }
        #expect(try own().count > 2 && own().count { $0.hasSuffix(".jsonl") } == 1)
        try client.close()
        #expect(try own().allSatisfy { $0.hasSuffix(".jsonl.1") })
        #expect(try events(directory).count { $0["name"] as? String != "old" } == 40)
    }

    @Test("tm11: a push is a line of the data layer, in order with the events; an invalid one is refused")
    func pushes() throws {
        let directory = try TemporaryDirectory()
        let client = try AnalyticsClient(ClientSettings(directory: directory.path))
        try client.push([
            "event": "openScreen", "screenName": "Home", "cart": ["items": [1, 2.5, "x", nil, true]],
        ])
        try client.trackEvent("between")
        try client.push(12, forKey: "count")
        try client.flush()
        let found = try events(directory)
        #expect(found.map { $0["type"] as? String } == ["data_layer", nil, "data_layer"])
        let first = found[0] as NSDictionary
        let expected: NSDictionary = [
            "type": "data_layer", "event": "openScreen", "screenName": "Home",
            "cart": ["items": [1, 2.5, "x", NSNull(), true] as [Any]],
        ]
        #expect(first == expected && found[2] as NSDictionary == ["type": "data_layer", "count": 12])
        var deep: DataLayerValue = 1
        for _ in 0..<64 { deep = ["x": deep] }
        for wrong in ["text", [:], [1], ["type": "event"], ["x": .double(.infinity)], deep]
            as [DataLayerValue]
        {
            #expect(code { () throws(AnalyticsError) in try client.push(wrong) } == .invalidEvent)
        }
    }

    /// Plays the agent that removes what it has read, until the body is over.
    private func withReader(
        _ directory: TemporaryDirectory, _ body: () async throws -> Void
    ) async throws {
        let path = directory.path
        let reader = Task.detached {
            while !Task.isCancelled {
                for name in (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
                where name.hasSuffix(".json") || name.hasSuffix(".jsonl.1") { unlink("\(path)/\(name)") }
                try? await Task.sleep(for: .milliseconds(2))
            }
        }
        defer { reader.cancel() }
        try await body()
    }

    @Test(
        "ga05: dispatch without the socket: good once the events are queued, no data without any, error without agent"
    )
    func ga05_dispatch() async throws {
        let directory = try TemporaryDirectory()
        var settings = ClientSettings(directory: directory.path)
        settings.controlSocket = "\(directory.path)/nowhere.sock"
        for style in [ClientSettings.Style.append, .dropFiles] {
            settings.style = style
            let client = try AnalyticsClient(settings)
            try client.trackEvent("x")
            // Nothing reads yet.
            let late = await client.dispatchAndWait(timeout: .seconds(2))
            #expect(
                late.result == .error && late.confirmedBy == .spool && late.reason.contains("does it run"))
            try await withReader(directory) {
                let good = await client.dispatchAndWait()
                #expect(good.result != .error && good.confirmedBy == .queue)
                #expect(
                    await client.dispatchAndWait()
                        == DispatchReport(result: .noData, confirmedBy: .queue, reason: "empty"))
                client.pause()
                try client.trackEvent("kept")
                #expect(
                    await client.dispatchAndWait()
                        == DispatchReport(result: .noData, confirmedBy: .spool, reason: "paused"))
                client.resume()
            }
            try client.close()
            for name in try names(directory) { unlink("\(directory.path)/\(name)") }
        }
    }

    @Test("ga05: dispatches run one at a time: the next one begins when the previous one has ended")
    func ga05_oneAtATime() async throws {
        let directory = try TemporaryDirectory()
        var settings = ClientSettings(directory: directory.path)
        settings.controlSocket = "\(directory.path)/nowhere.sock"
        settings.style = .dropFiles
        let client = try AnalyticsClient(settings)
        try client.trackEvent("x")
        let (ends, end) = AsyncStream.makeStream(of: ContinuousClock.Instant.self)
        var iterator = ends.makeAsyncIterator()
        var waits: [Duration] = []
        // Nothing reads: each dispatch takes all of its time. Requests share one that has not begun when both
        // are made, and nobody sees when it begins: then the next try waits longer between them.
        for attempt in 1...10 where waits.last.map({ $0 < .milliseconds(600) }) ?? true {
            client.dispatch(timeout: .milliseconds(700)) { _ in end.yield(ContinuousClock.now) }
            try await Task.sleep(for: .milliseconds(50 * attempt))
            client.dispatch(timeout: .milliseconds(700)) { _ in end.yield(ContinuousClock.now) }
            let first = try #require(await iterator.next())
            let second = try #require(await iterator.next())
            waits.append(second - first)
        }
        #expect(waits.last.map { $0 >= .milliseconds(600) } == true, "\(waits)")
        try client.close()
    }

    @Test("ga05: a dispatch during the write of a critical event hands over the events after it")
    func ga05_behindCritical() async throws {
        let directory = try TemporaryDirectory()
        var settings = ClientSettings(directory: directory.path)
        settings.controlSocket = nil
        let client = try AnalyticsClient(settings)
        client.dispatchInterval = .seconds(600)
        try await withReader(directory) {
            for _ in 0..<100 {
                try client.trackEvent("critical", flags: .critical)
                try client.trackEvent("normal")
                let report = await client.dispatchAndWait(timeout: .seconds(20))
                #expect(report.result != .error, "\(report)")
                if report.result == .error { break }
            }
        }
        try client.close()
    }

    @Test(
        "ga02: with dispatch interval off nothing is sent by itself, not even critical events, until dispatch"
    )
    func ga02_manualDispatch() async throws {
        let directory = try TemporaryDirectory()
        var settings = ClientSettings(directory: directory.path)
        settings.controlSocket = nil
        let client = try AnalyticsClient(settings)
        client.dispatchInterval = .milliseconds(999)
        #expect(client.dispatchInterval == .zero)
        try client.trackEvent("critical", flags: .critical)
        try client.trackEvent("normal")
        let deadline = ContinuousClock.now + .seconds(30)
        func kept() throws -> Int {
            try names(directory).filter { $0.hasSuffix(".part") }.reduce(0) { sum, name in
                sum
                    + (try Data(contentsOf: URL(fileURLWithPath: "\(directory.path)/\(name)")).count {
                        $0 == 0x0A
                    })
            }
        }
        while try kept() < 2, ContinuousClock.now < deadline { usleep(2000) }
        #expect(try kept() == 2 && events(directory).isEmpty)
        try await withReader(directory) { #expect(await client.dispatchAndWait().result != .error) }
        #expect(try names(directory).isEmpty)
        client.dispatchInterval = .seconds(100_000)
        #expect(client.dispatchInterval == .seconds(86_400))
        client.dispatchInterval = nil
        #expect(client.transmissionInterval == .zero)
    }

    @Test("ga05: in the result for several destinations an error wins over success; reasons are included")
    func ga05_reports() {
        func report(_ status: Int, _ body: String) -> DispatchReport {
            DispatchReport(answer: AgentSocket.Answer(status: status, body: body))
        }
        func line(_ name: String, _ outcome: String, _ reason: String?) -> String {
            "{\"destination\":\"\(name)\",\"outcome\":\"\(outcome)\",\"reason\":\(reason.map { "\"\($0)\"" } ?? "null")}\n"
        }
        let end = "{\"exit_code\":0,\"obstacles\":{},\"waiting\":0}\n"
        #expect(
            report(200, line("a", "no_data", "paused") + end)
                == DispatchReport(result: .noData, confirmedBy: .destinations, reason: "a: paused"))
        #expect(
            report(200, line("a", "no_data", "held") + line("b", "good", nil) + end)
                == DispatchReport(result: .good, confirmedBy: .destinations, reason: "a: held"))
        #expect(
            report(200, line("b", "good", nil) + line("a", "error", "500") + end)
                == DispatchReport(result: .error, confirmedBy: .destinations, reason: "a: 500"))
        #expect(report(503, "").result == .error && report(503, "").confirmedBy == .queue)
    }

    @Test("properties keep their order; the last value of a name wins")
    func properties() {
        var properties: EventProperties = ["b": 1, "a": "x", "b": 2.5]
        #expect(properties.members.map(\.name) == ["b", "a"] && properties["b"] == 2.5)
        properties["b"] = nil
        properties.setEventProperty(true, forKey: "c")
        #expect(properties == ["a": "x", "c": true] && properties != ["c": true, "a": "x"])
        #expect(EventProperties(["b": "1", "a": "2"]).members.map(\.name) == ["a", "b"])
    }
}
