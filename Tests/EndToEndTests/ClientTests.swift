import EventLoops
import Glibc
import Model
import SpoolshipClient
import Synchronization
import TestKit
import Testing

/// The calls that an app has heard.
private final class Heard: Sendable {
    private let calls = Mutex<[String]>([])

    /// All calls: the name, and the value of the only parameter.
    var all: [String] { calls.withLock { $0 } }

    func add(_ name: String, _ parameters: DataLayerValue) {
        guard case .object(let members) = parameters, let value = members.first?.value else { return }
        calls.withLock { $0.append("\(name) \(value)") }
    }
}

extension EndToEnd {
    @Suite("The client library and a running agent")
    struct ClientTests {
        /// How many events: 50,000, or what `SPOOLSHIP_CLIENT_EVENTS` says.
        static let events = getenv("SPOOLSHIP_CLIENT_EVENTS").flatMap { Int(String(cString: $0)) } ?? 50_000

        /// The program that writes, beside the built tests.
        private static let writer = program("client-writer")

        private static func program(_ name: String) -> String {
            let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
            return "/\(root)/.build/debug/\(name)"
        }

        @Test("two processes of eight threads write while the agent reads: every event arrives, once")
        func twoProcesses() throws {
            let bench = try Workbench()
            bench.settings["queue.max_size"] = "\"64MiB\""
            bench.settings["dispatch.batch_events"] = "1000"
            try bench.startReceiver()
            try bench.startAgent()
            let each = Self.events / 2
            let start = SystemTime().bootTime
            // The second one's files are complete at once; small ones, so that many are renamed, read and removed.
            let writers = try [("one", "append"), ("two", "drop")].map { name, style in
                try RunningProgram(
                    Self.writer, [bench.spool, name, "8", "\(each)", style, "60000"],
                    output: "\(bench.path)/\(name)")
            }
            for writer in writers {
                #expect(try writer.exit(within: .seconds(600)) == 0, "\(writer.printed)")
                let report = try JSONValue(parsing: Array(writer.printed.utf8))
                #expect(report["written"]?.integer == each && report["refusals"]?.integer == 0, "\(report)")
            }
            try bench.waitUntilDelivered(2 * each, within: .seconds(600))
            let keys = ["one", "two"].flatMap { name in (0..<each).map { "\(name)-\($0)" } }
            try bench.expectOnce(Set(keys), member: "key")
            print("client: \(2 * each) events from two processes in \(SystemTime().bootTime - start)")
        }

        @Test(
            "ga05: dispatch over the socket returns when the destination has the events, and no file stays in the spool"
        )
        func dispatch() async throws {
            let bench = try Workbench()
            bench.settings["dispatch.interval"] = "\"1d\""
            try bench.startReceiver()
            try bench.startAgent()
            var settings = ClientSettings(directory: bench.spool)
            settings.controlSocket = "\(bench.path)/control.sock"
            for style in [ClientSettings.Style.append, .dropFiles] {
                settings.style = style
                let client = try AnalyticsClient(settings)
                for number in 0..<10 {
                    try client.trackEvent("x", withProperties: ["key": .string("\(style)-\(number)")])
                }
                #expect(
                    await client.dispatchAndWait()
                        == DispatchReport(result: .good, confirmedBy: .destinations, reason: ""))
                #expect(try names(in: bench.spool).allSatisfy { $0.hasPrefix(".") })
                let again = await client.dispatchAndWait()
                #expect(again.result == .noData && again.reason.hasSuffix("empty"))
                try client.close()
            }
            let keys = [ClientSettings.Style.append, .dropFiles].flatMap { style in
                (0..<10).map { "\(style)-\($0)" }
            }
            try bench.expectOnce(Set(keys), member: "key")
        }

        @Test("the samples of the three SDKs, on a server: each event arrives as it was tracked")
        func samples() throws {
            let bench = try Workbench()
            let file = "\(bench.path)/GTM-1234"
            let document = #"""
                {"id":"GTM-1234","version":3,"values":{"greeting":"hello","limit":20},
                 "macros":{"screen":{"type":"data_layer","path":"screenName"}},
                 "rules":{"purchase":{"conditions":[{"macro":"event","equals":"Purchase"}]}},
                 "tags":[{"name":"screen","type":"set","rules":["purchase"],"path":"properties.screen","value":{"macro":"screen"}}]}
                """#
            try WholeFile.replace(file, with: Array(document.utf8), mode: 0o644)
            bench.settings["container.id"] = "\"GTM-1234\""
            bench.settings["container.default_file"] = "\"\(file)\""
            bench.settings["dispatch.interval"] = "\"1d\""
            try bench.startReceiver()
            try bench.startAgent()
            let samples = try RunningProgram(
                Self.program("client-samples"), [bench.spool, "\(bench.path)/control.sock"],
                output: "\(bench.path)/samples")
            #expect(try samples.exit(within: .seconds(120)) == 0, "\(samples.printed)")
            #expect(
                samples.printed.split(separator: "\n") == [
                    "App Center: good, destinations", "Google Analytics: good, then no_data",
                    "Tag Manager: default, hello, 20, good",
                ])
            let lines = try bytes(of: bench.events).split(separator: 0x0A).map {
                try JSONValue(parsing: Array($0))
            }
            func event(_ name: String) -> JSONValue? { lines.first { $0["name"]?.string == name } }
            let session = event("start_session")?["session_id"]?.string
            #expect(session != nil && event("Video clicked")?["session_id"]?.string == session)
            #expect(event("Video clicked")?["properties"]?["Category"]?.string == "Music")
            #expect(event("Payment failed")?["priority"]?.string == "critical")
            #expect(event("Payment failed")?["country"]?.string == "IT")
            #expect(event("While paused") != nil && event("While disabled") == nil)
            #expect(lines.count { $0["name"]?.string == "screenview" } == 3)
            #expect(event("Purchase")?["properties"]?["screen"]?.string == "Home")
        }

        @Test(
            "tm04, tm07, tm09: a container over the socket: its values at the call, its opening, and the result of a refresh"
        )
        func container() async throws {
            let bench = try Workbench()
            let file = "\(bench.path)/GTM-1234"
            let document =
                #"{"id":"GTM-1234","version":7,"values":{"text é&":"hello","whole":7,"part":2.5,"flag":true}}"#
            try WholeFile.replace(file, with: Array(document.utf8), mode: 0o644)
            bench.settings["container.id"] = "\"GTM-1234\""
            bench.settings["container.default_file"] = "\"\(file)\""
            try bench.startReceiver()
            try bench.startAgent()
            let socket = "\(bench.path)/control.sock"
            let container = AgentContainer(id: "GTM-1234", socket: socket)
            #expect(try container.open(.immediate))
            #expect(try !container.open(.preferNonDefault, timeout: .milliseconds(50)))
            #expect(try !container.open(.preferFresh, timeout: .zero))
            #expect(try container.isDefault() && container.lastRefreshTime() == 0)
            #expect(
                try container.string(forKey: "text é&") == "hello" && container.integer(forKey: "whole") == 7)
            #expect(try container.double(forKey: "part") == 2.5 && container.double(forKey: "whole") == 7)
            #expect(try container.boolean(forKey: "flag") && !container.boolean(forKey: "none"))
            #expect(try container.string(forKey: "none").isEmpty && container.integer(forKey: "text é&") == 0)
            func code(_ container: AgentContainer) -> AnalyticsError.Code? {
                do throws(AnalyticsError) {
                    _ = try container.string(forKey: "x")
                    return nil
                } catch {
                    return error.code
                }
            }
            #expect(code(AgentContainer(id: "GTM-9", socket: socket)) == .invalidSetting)
            #expect(
                code(AgentContainer(id: "GTM-1234", socket: "\(bench.path)/nowhere")) == .agentUnavailable)
            // It has no url, which the end says; the beginning comes first.
            let ends = AsyncStream<AgentContainer.RefreshEnd?> { ends in
                container.refresh(began: { ends.yield(nil) }) { end in
                    ends.yield(end)
                    ends.finish()
                }
            }
            var seen: [AgentContainer.RefreshEnd?] = []
            for await end in ends { seen.append(end) }
            guard seen.count == 2, seen[0] == nil, case .failure(.unknownError, let message)? = seen[1],
                message.contains("no url")
            else {
                Issue.record("\(seen)")
                return
            }
        }

        /// Starts the agent with a container whose macros and tags call functions of an app.
        private func useFunctions(_ bench: Workbench) throws {
            let file = "\(bench.path)/GTM-1234"
            let document = #"""
                {"id":"GTM-1234","version":7,
                 "values":{"greeting":{"macro":"greeting"},"whole":7,"part":2.5,"flag":true},
                 "macros":{"user":{"type":"function_call","function":"user","by":"app","default":"nobody"},
                   "greeting":{"type":"function_call","function":"greet","by":"app","default":"hello","parameters":{"user":{"macro":"user"}}},
                   "screen":{"type":"event_member","path":"screenName"},"n":{"type":"event_property","path":"n"}},
                 "rules":{"open":{"conditions":[{"macro":"event","equals":"openScreen"}]},"bought":{"conditions":[{"macro":"event","equals":"Purchase"}]}},
                 "tags":[{"name":"s","type":"function","function":"shown","by":"app","parameters":{"screen":{"macro":"screen"}},"rules":["open"]},
                         {"name":"u","type":"set","path":"properties.user","value":{"macro":"user"},"rules":["bought"]},
                         {"name":"b","type":"function","function":"bought","by":"app","parameters":{"n":{"macro":"n"}},"rules":["bought"]}]}
                """#
            try WholeFile.replace(file, with: Array(document.utf8), mode: 0o644)
            bench.settings["container.id"] = "\"GTM-1234\""
            bench.settings["container.default_file"] = "\"\(file)\""
            try bench.startReceiver()
            try bench.startAgent()
        }

        @Test("tm14: functions of the app decide values and are called by tags, each call once")
        func functionCalls() throws {
            let bench = try Workbench()
            try useFunctions(bench)
            let socket = "\(bench.path)/control.sock"
            let container = AgentContainer(id: "GTM-1234", app: "default", socket: socket)
            #expect(try container.string(forKey: "greeting") == "hello")
            container.registerFunctionCallMacroHandler({ _, _ in "ann" }, forMacro: "user")
            container.registerFunctionCallMacroHandler(
                { name, parameters in
                    guard case .string(let user)? = parameters["user"] else { return nil }
                    return .string("\(name) \(user)")
                }, forMacro: "greet")
            #expect(try container.string(forKey: "greeting") == "greet ann")
            container.registerFunctionCallMacroHandler(nil, forMacro: "user")
            #expect(try container.string(forKey: "greeting") == "greet nobody")
            #expect(try AgentContainer(id: "GTM-1234", socket: socket).string(forKey: "greeting") == "hello")
            #expect(throws: AnalyticsError.self) {
                try AgentContainer(id: "GTM-1234", socket: socket)
                    .registerFunctionCallTagHandler({ _, _ in }, forTag: "shown")
            }

            var settings = ClientSettings(directory: bench.spool)
            settings.controlSocket = socket
            let client = try AnalyticsClient(settings)
            // Nobody listens yet: the call is lost, and counted.
            let lost = #"spoolship_container_problems_total{problem="app_not_listening"}"#
            try client.push(["event": "openScreen", "screenName": "Lost"])
            try client.track("Purchase", properties: ["n": 1])
            try client.flush()
            try wait(.seconds(60), "the lost calls to be counted") {
                try bench.figures().value(lost) == 2
            }
            let calls = Heard()
            for name in ["shown", "bought"] {
                try container.registerFunctionCallTagHandler(
                    { calls.add($0, $1) }, forTag: name)
            }
            try wait(.seconds(60), "the agent to give calls") { container.isListening }
            try client.push(["event": "openScreen", "screenName": "Home"])
            for number in 2...20 { try client.track("Purchase", properties: ["n": .integer(Int64(number))]) }
            try client.flush()
            try wait(.seconds(60), "20 calls; \(calls.all)") { calls.all.count >= 20 }
            #expect(
                calls.all.sorted()
                    == (["shown string(\"Home\")"] + (2...20).map { "bought integer(\($0))" }).sorted())
            try bench.waitUntilDelivered(20)
            // Nobody was asked for the events.
            let lines = try contents(of: bench.events).split(separator: "\n")
            #expect(lines.allSatisfy { $0.contains("\"user\":\"nobody\"") })
            // The agent was stopped: the client says why, waits, and connects again.
            let reasons = Heard()
            container.observeListening { reasons.add($0?.code.rawValue ?? "listening", ["": .null]) }
            #expect(try bench.stopAgent() == 0)
            try wait(.seconds(60), "the reason") { container.listeningProblem != nil }
            #expect(container.listeningProblem?.code == .agentUnavailable && !container.isListening)
            try bench.startAgent()
            try wait(.seconds(90), "the connection; \(reasons.all)") { container.isListening }
            try wait(.seconds(60), "the news; \(reasons.all)") {
                reasons.all.last?.hasPrefix("listening") == true
            }
            try client.push(["event": "openScreen", "screenName": "Again"])
            try client.flush()
            try wait(.seconds(60), "another call; \(calls.all)") {
                calls.all.last == "shown string(\"Again\")"
            }
            container.close()
            #expect(!container.isListening)
            try client.close()
        }

        /// A step of the tests' program for a module; what it printed.
        private func step(
            _ name: String, of program: String, _ module: String, _ steps: String, _ bench: Workbench,
            _ more: String...
        ) throws -> [Substring] {
            let root = "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
            let writer = try RunningProgram(
                "/usr/bin/env",
                [
                    "PYTHONDONTWRITEBYTECODE=1", program,
                    "\(root)/Tests/SpoolshipClientTests/Fixtures/\(steps)",
                    "\(root)/examples/\(module)", name, bench.spool, "\(bench.path)/control.sock",
                ] + more, output: "\(bench.path)/writer")
            #expect(try writer.exit(within: .seconds(300)) == 0, "\(writer.printed)")
            return writer.printed.split(separator: "\n")
        }

        @Test(
            "ga05: the modules for Python and Node.js can dispatch over the socket, too",
            arguments: [
                ("python3", "python/spoolship.py", "steps.py"), ("node", "node/spoolship.mjs", "steps.mjs"),
            ])
        func modules(_ program: String, _ module: String, _ steps: String) throws {
            let bench = try Workbench()
            bench.settings["dispatch.interval"] = "\"1d\""
            try bench.startReceiver()
            try bench.startAgent()
            #expect(try step("send", of: program, module, steps, bench, "x1") == ["good no_data"])
            #expect(try names(in: bench.spool).allSatisfy { $0.hasPrefix(".") })
            try bench.expectOnce(["x1"], member: "key")
        }

        @Test(
            "tm14: functions in Python and Node.js decide values and are called by tags, each call once",
            arguments: [
                ("python3", "python/spoolship.py", "steps.py"), ("node", "node/spoolship.mjs", "steps.mjs"),
            ])
        func moduleFunctions(_ program: String, _ module: String, _ steps: String) throws {
            let bench = try Workbench()
            try useFunctions(bench)
            #expect(
                try step("functions", of: program, module, steps, bench) == [
                    "hello 7 2.5 True", "greet ann", "greet nobody", "ValueError", "AgentUnavailable",
                    "['FileNotFoundError'] False FileNotFoundError", "True", "False",
                ])
            let lost = #"spoolship_container_problems_total{problem="app_not_listening"}"#
            #expect(try bench.figures().value(lost) == 0)
        }

        @Test(
            "with the spool on a full disk calls return in time with the reason, and accepted events are intact",
            .enabled(if: geteuid() == 0, "mounting a small file system takes root"))
        func fullSpool() throws {
            let directory = try TemporaryDirectory()
            try #require(mount("tmpfs", directory.path, "tmpfs", 0, "size=256k") == 0)
            defer { umount2(directory.path, 2) }
            let output = "\(directory.path).writer"
            defer { unlink(output) }
            let writer = try RunningProgram(
                Self.writer, [directory.path, "full", "4", "1000000", "append", "50", "65536"], output: output
            )
            #expect(try writer.exit(within: .seconds(120)) == 75, "\(writer.printed)")
            let report = try JSONValue(parsing: Array(writer.printed.utf8))
            #expect(report["failure"]?.string == "disk_full", "\(report)")
            // The bound is 50 ms; a busy machine may be slow to run a thread whose time is over.
            #expect((report["longest_ms"]?.integer ?? .max) < 5000, "\(report)")
            print(
                "client: a full spool, the longest call took \(report["longest_ms"]?.integer ?? -1) ms of 50")
            let name = try #require(try names(in: directory.path).first { $0.contains(".jsonl") })
            let text = try bytes(of: "\(directory.path)/\(name)")
            #expect(text.last == 0x0A && values(of: "key", in: text).count == text.count { $0 == 0x0A })
        }
    }
}

/// The names in a directory, `.` and `..` left out.
func names(in directory: String) throws -> [String] {
    let stream = try #require(opendir(directory))
    defer { closedir(stream) }
    var names: [String] = []
    while let entry = readdir(stream) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
            pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name != ".", name != ".." { names.append(name) }
    }
    return names.sorted()
}
