import Glibc
import Model
import TestKit
import Testing

/// A real Prometheus that scrapes a bench's agent every second and judges it by the shipped rules, hours made seconds.
final class LivePrometheus {
    let port: Int
    private let program: RunningProgram

    /// - Parameter others: further benches whose agents are scraped as well.
    init(_ bench: Workbench, and others: Workbench...) throws {
        port = try freePort()
        let home = "\(bench.path)/prometheus"
        try #require(mkdir(home, 0o755) == 0)
        try write(
            FastRules.transform(try contents(of: "\(GoldenFile.root)/monitoring/alerts.yml")),
            to: "\(home)/alerts.yml")
        let targets = ([bench] + others).map { "\"127.0.0.1:\($0.statsPort)\"" }.joined(separator: ", ")
        let configuration = """
            global: {scrape_interval: 1s, evaluation_interval: 1s}
            rule_files: [alerts.yml]
            scrape_configs:
              - job_name: spoolship
                static_configs: [{targets: [\(targets)]}]

            """
        try write(configuration, to: "\(home)/prometheus.yml")
        program = try RunningProgram(
            "prometheus",
            [
                "--config.file=\(home)/prometheus.yml", "--storage.tsdb.path=\(home)/data",
                "--log.level=warn",
                "--web.listen-address=127.0.0.1:\(port)",
            ], output: "\(home)/log")
        let page = "http://127.0.0.1:\(port)/-/ready"
        try wait(.seconds(60), "Prometheus: \(program.printed)") { try fetch(page).status == 200 }
        try wait(.seconds(30), "the first scrape") { try samples(of: "up") != [] }
    }

    /// The alerts that fire now, by name; those that only wait for their `for:` are `pending`.
    func alerts() throws -> (firing: Set<String>, pending: Set<String>, text: String) {
        let answer = try fetch("http://127.0.0.1:\(port)/api/v1/alerts")
        let list = try JSONValue(parsing: answer.body)["data"]?["alerts"]?.array ?? []
        func names(_ state: String) -> Set<String> {
            Set(
                list.filter { $0["state"]?.string == state }.compactMap { $0["labels"]?["alertname"]?.string }
            )
        }
        return (names("firing"), names("pending"), answer.body)
    }

    /// What a query gives now: the labels and the value of each sample.
    func query(_ text: String) throws -> [(labels: JSONValue, value: String)] {
        let allowed = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_".utf8)
        let encoded = text.utf8.map { byte in
            allowed.contains(byte)
                ? String(UnicodeScalar(byte)) : "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }
        let answer = try fetch("http://127.0.0.1:\(port)/api/v1/query?query=\(encoded.joined())")
        let parsed = try JSONValue(parsing: answer.body)
        try #require(parsed["status"] == "success", "\(text): \(answer.body)")
        return (parsed["data"]?["result"]?.array ?? []).map {
            ($0["metric"] ?? .null, $0["value"]?.array?.last?.string ?? "")
        }
    }

    /// The newest values of a series' samples.
    func samples(of name: String) throws -> [String] {
        let answer = try fetch("http://127.0.0.1:\(port)/api/v1/query?query=\(name)")
        let list = try JSONValue(parsing: answer.body)["data"]?["result"]?.array ?? []
        return list.compactMap { $0["value"]?.array?.last?.string }
    }

    /// Waits until all of these fire.
    func expect(fires names: String..., sourceLocation: SourceLocation = #_sourceLocation) throws {
        var last = ""
        try wait(
            .seconds(90), "\(names) to fire: \(last)", sourceLocation: sourceLocation,
            every: .milliseconds(300)
        ) {
            let found = try alerts()
            last = found.text
            return found.firing.isSuperset(of: names)
        }
    }

    /// Waits until none of these fires, or is about to.
    func expect(resolves names: String..., sourceLocation: SourceLocation = #_sourceLocation) throws {
        var last = ""
        try wait(
            .seconds(120), "\(names) to resolve: \(last)", sourceLocation: sourceLocation,
            every: .milliseconds(300)
        ) {
            let found = try alerts()
            last = found.text
            return found.firing.union(found.pending).isDisjoint(with: names)
        }
    }
}
