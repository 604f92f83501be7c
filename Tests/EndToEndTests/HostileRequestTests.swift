import EventLoops
import Glibc
import Model
import TestKit
import Testing

extension EndToEnd {
    /// The whole control API under requests that make no sense: no request ends the agent, each is answered.
    @Suite("Hostile requests")
    struct HostileRequestTests {
        /// Every route of docs/control-api.md.
        private static func routes() throws -> [(method: String, path: String)] {
            let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
            return try contents(of: "/\(root)/docs/control-api.md").split(separator: "\n").compactMap {
                line in
                guard line.hasPrefix("| `"), let request = line.split(separator: "`").dropFirst().first else {
                    return nil
                }
                let parts = request.split(separator: " ")
                return parts.count == 2 ? (String(parts[0]), String(parts[1])) : nil
            }
        }

        private static let names = [
            "destination", "wait", "timeout_ms", "token", "ttl_ms", "until_restart", "on", "interval_ms",
            "persist",
            "enabled", "app", "code", "level", "key", "file", "offset", "from", "end", "reason", "detail",
            "length",
            "ids", "priority", "limit", "after", "id", "type", "container", "document", "url", "name",
        ]

        private static let texts = [
            "", "0", "-1", "1", "100", "9223372036854775807", "-9223372036854775808", "9223372036854775808",
            "4611686018427387904", "4611686018427387903", "1e308", "1.5", "NaN", "main", "shop", "app",
            "manual",
            "normal", "critical", "not_json", "off", "debug", "DE", "k1", "../../etc/passwd", "a/b", ".",
            "\u{0}",
            "\u{1B}[2J", "é\u{202E}", "1/0/1.2.3", "main/0/9223372036854775807.9223372036854775807",
            "main/1/-1.-9223372036854775808", String(repeating: "x", count: 1025), "{\"id\":\"GTM-1\"}",
            "http://127.0.0.1:1/",
        ]

        private static func value(_ random: inout SplitMix64, depth: Int = 0) -> JSONValue {
            switch Int.random(in: 0..<(depth < 3 ? 10 : 7), using: &random) {
            case 0: .null
            case 1: .bool(.random(using: &random))
            case 2:
                .integer(
                    [0, 1, -1, 100, 1000, .max, .min, .max - 1, 86_400_001].randomElement(using: &random) ?? 0
                )
            case 3:
                .double([0, -0.5, 1e300, .leastNonzeroMagnitude, 9.3e18].randomElement(using: &random) ?? 0)
            case 4...6: .string(texts.randomElement(using: &random) ?? "")
            case 7, 8:
                .array(
                    (0..<Int.random(in: 0..<4, using: &random)).map { _ in value(&random, depth: depth + 1) })
            default: .object([JSONValue.Member("a", value(&random, depth: depth + 1))])
            }
        }

        private static func encoded(_ text: String) -> String {
            text.utf8.map { "%" + ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        }

        /// A whole request as it goes over the socket.
        private static func request(
            _ routes: [(method: String, path: String)], _ random: inout SplitMix64
        ) -> (text: String, line: String) {
            let route = routes.randomElement(using: &random) ?? ("GET", "/v1/status")
            var path = route.path
            while let open = path.firstIndex(of: "{"), let end = path.firstIndex(of: "}") {
                path.replaceSubrange(open...end, with: encoded(texts.randomElement(using: &random) ?? ""))
            }
            var query: [String] = []
            // What a backfill cannot do without, so that requests come as far as their numbers.
            if route.path == "/v1/backfill" {
                for (name, value) in [
                    ("key", "k1"), ("file", "/f"), ("app", "shop"), ("end", "1:2"), ("offset", "0"),
                ]
                where Int.random(in: 0..<8, using: &random) > 0 {
                    query.append("\(name)=\(value)")
                }
            }
            for _ in 0..<Int.random(in: 0..<4, using: &random) {
                let name = names.randomElement(using: &random) ?? ""
                query.insert("\(name)=\(encoded(texts.randomElement(using: &random) ?? ""))", at: 0)
            }
            var body: String
            switch Int.random(in: 0..<12, using: &random) {
            case 0: body = String(repeating: "[", count: Int.random(in: 1..<100_000, using: &random))
            case 1: body = String(repeating: "{\"a\":", count: 1000)
            case 2: body = "\(value(&random))"
            case 3: body = "{\"name\":\"e\"}\n{\"name\":\"f\"}\n"
            case 4: body = ""
            default:
                body =
                    "\(JSONValue.object((0..<Int.random(in: 0..<4, using: &random)).map { _ in JSONValue.Member(names.randomElement(using: &random) ?? "", value(&random)) }))"
            }
            if route.path == "/v1/backfill", Bool.random(using: &random) { body = "{\"name\":\"e\"}\n" }
            let method = Int.random(in: 0..<20, using: &random) == 0 ? "PATCH" : route.method
            let target = query.isEmpty ? path : "\(path)?\(query.joined(separator: "&"))"
            let line = "\(method) \(target) HTTP/1.1"
            return (
                "\(line)\r\nHost: x\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)",
                "\(line) \(body.prefix(300))"
            )
        }

        /// Sends bytes and reads the first of the answer; what streams is left in the middle.
        private static func ask(_ socketPath: String, _ text: String) throws -> String? {
            let socket = try Descriptor(
                checking: Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0),
                "socket")
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: socketPath.utf8.prefix(107)) }
            let connected = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(socket.raw, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
            guard connected == 0 else { return nil }
            var limit = timeval(tv_sec: 15, tv_usec: 0)
            _ = setsockopt(socket.raw, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
            var rest = Array(text.utf8)[...]
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes {
                    send(socket.raw, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
                // An answer may have come before all was sent.
                guard count > 0 else { break }
                rest = rest.dropFirst(count)
            }
            var answer = [UInt8](repeating: 0, count: 4096)
            let count = recv(socket.raw, &answer, answer.count, 0)
            return count > 0 ? String(decoding: answer[..<count], as: UTF8.self) : nil
        }

        @Test("no request ends the agent, whatever its numbers, types, depth and names, and each is answered")
        func fuzz() throws {
            let bench = try Workbench()
            // Nothing leaves this machine: nobody listens there.
            bench.settings["agent.log"] = "\"error\""
            try bench.startReceiver()
            try bench.startAgent()
            let socket = "\(bench.path)/control.sock"
            let seconds = getenv("CONTROL_FUZZ_SECONDS").flatMap { Int(String(cString: $0)) } ?? 4
            let seed =
                getenv("CONTROL_FUZZ_SEED").flatMap { UInt64(String(cString: $0)) } ?? Seeds.one(1)
            var random = SplitMix64(seed: seed)
            let routes = try Self.routes()
            #expect(routes.count > 30)
            // What was found once, each time.
            let found = [
                "POST /v1/backfill?key=k1&file=%2ff&app=shop&end=1&offset=9223372036854775807 HTTP/1.1\r\nHost: x\r\n"
                    + "Content-Length: 26\r\n\r\n{\"name\":\"e\"}\n{\"name\":\"f\"}\n",
                "POST /v1/pause HTTP/1.1\r\nHost: x\r\nContent-Length: 30\r\n\r\n{\"ttl_ms\":9223372036854775807 }",
            ]
            for text in found {
                #expect(try Self.ask(socket, text)?.hasPrefix("HTTP/1.1 400 ") == true, "\(text)")
            }
            let end = SystemTime().bootTime + .seconds(seconds)
            var count = 0
            while SystemTime().bootTime < end {
                let (text, line) = Self.request(routes, &random)
                let answer = try Self.ask(socket, text)
                count += 1
                try #require(
                    bench.agent?.exitStatus() == nil,
                    "seed \(seed), request \(count) ended the agent: \(line)")
                guard let answer else {
                    Issue.record("seed \(seed), request \(count) was not answered: \(line)")
                    break
                }
                #expect(answer.hasPrefix("HTTP/1.1 "), "seed \(seed): \(line): \(answer)")
                #expect(!answer.hasPrefix("HTTP/1.1 500"), "seed \(seed): \(line): \(answer)")
            }
            #expect(count > 20)
            #expect(try bench.command("status").code == 0)
            #expect(try fetch("http://127.0.0.1:\(bench.statsPort)/healthz").status == 200)
        }

        @Test("a control socket that was removed is opened again on a readiness check, and reported")
        func removedSocket() throws {
            let bench = try Workbench()
            try bench.startReceiver()
            try bench.startAgent()
            #expect(try bench.command("status").code == 0)
            unlink("\(bench.path)/control.sock")
            #expect(try bench.command("status").code == 69)
            try wait(.seconds(20), "the socket again") {
                _ = try fetch("http://127.0.0.1:\(bench.statsPort)/readyz")
                return try bench.command("status").code == 0
            }
            #expect(bench.agentLog.contains("a port did not answer and was opened again"))
            #expect(try bench.figures().total("spoolship_http_listeners_reopened_total") == 1)
        }
    }
}
