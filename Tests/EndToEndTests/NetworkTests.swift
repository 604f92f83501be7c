import EventLoops
import Glibc
import Model
import TestKit
import Testing

/// A network of its own for programs of a test: nothing outside is touched. Gone with its owner.
final class NetworkNamespace {
    private let holder: RunningProgram

    init(in path: String, name: String) throws {
        holder = try RunningProgram(
            "unshare", ["--net", "sh", "-c", "ip link set lo up && echo ready && exec sleep 3600"],
            output: "\(path)/\(name).log")
        try wait(.seconds(20), "a network namespace: \(holder.printed)") { holder.printed.contains("ready") }
    }

    deinit { holder.kill9() }

    var process: pid_t { holder.process }

    /// What runs a program in it, by replacing itself with it.
    var wrapper: [String] { ["nsenter", "--net=/proc/\(process)/ns/net"] }

    /// Runs `ip` in it.
    func ip(_ words: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
        let done = try run(wrapper[0], [wrapper[1], "ip"] + words.split(separator: " ").map(String.init))
        #expect(done.code == 0, "ip \(words): \(done.text)", sourceLocation: sourceLocation)
    }

    static let canBeMade = getuid() == 0 && (try? run("unshare", ["--net", "ip", "link"]).code) == 0
}

extension EndToEnd {
    @Suite("Network changes")
    struct NetworkTests {
        @Test(
            "ac15: link down: offline, no attempts and no failures; link up with a new default route: all is sent at once",
            .enabled(
                if: NetworkNamespace.canBeMade,
                "NOT TESTED: needs root (CAP_SYS_ADMIN) for unshare(1), and iproute2"))
        func ac15_linkAndRoute() throws {
            let bench = try Workbench()
            let here = try NetworkNamespace(in: bench.path, name: "here")
            let there = try NetworkNamespace(in: bench.path, name: "there")
            try here.ip("link add v0 type veth peer name v1 netns \(there.process)")
            for (space, words) in [
                (here, "addr add 10.9.8.1/24 dev v0"), (there, "addr add 10.9.8.2/24 dev v1"),
                (there, "link set v1 up"), (here, "link set v0 up"),
            ] { try space.ip(words) }

            let certificates = try Certificates(in: bench.path)
            try certificates.issue("\(bench.path)/server", names: ["IP:10.9.8.2"])
            func receiver() throws -> FaultyReceiver {
                try FaultyReceiver(
                    in: bench.path, address: "10.9.8.2", port: 8443, certificate: "\(bench.path)/server",
                    store: bench.events, under: there.wrapper)
            }
            bench.settings["destination.url"] = "\"https://10.9.8.2:8443/\""
            bench.settings["destination.tls.ca_file"] = "\"\(certificates.caFile)\""
            // Only the network's return may hurry it.
            bench.settings["retry.intervals"] = #"{ waits = ["10m"], jitter = 0 }"#
            var running: FaultyReceiver? = try receiver()
            try bench.startAgent(waits: false, under: here.wrapper)
            func state() throws -> String? {
                let status = try bench.command("status", "--json")
                guard status.code == 0 else { return nil }
                return try JSONValue(parsing: status.text)["destinations"]?.array?.first?["state"]?.string
            }
            func figures() throws -> Figures {
                let address = "http://127.0.0.1:\(bench.statsPort)/metrics"
                return Figures(try run(here.wrapper[0], [here.wrapper[1], "curl", "-s", address]).text)
            }
            func expectDelivered(_ count: Int, sourceLocation: SourceLocation = #_sourceLocation) throws {
                try wait(
                    .seconds(60), "\(count) events: \(bench.agentLog.suffix(2000))",
                    sourceLocation: sourceLocation,
                    every: .milliseconds(100)
                ) { try figures().total("spoolship_deliveries_acknowledged_total") == count }
                #expect(try figures().imbalances == [], sourceLocation: sourceLocation)
            }
            let failures = "spoolship_delivery_failures_total"
            try wait(.seconds(30), "the agent: \(bench.agentLog)") { try state() != nil }
            try bench.append(keyed(0..<60), to: "app.jsonl")
            try expectDelivered(60)

            try here.ip("link set v0 down")
            try wait(.seconds(30), "the agent to notice", every: .milliseconds(100)) {
                try state() == "offline"
            }
            try bench.append(keyed(60..<120), to: "app.jsonl")
            try wait(.seconds(30), "the events in the queue", every: .milliseconds(100)) {
                try figures().total("spoolship_deliveries_queued") == 60
            }
            // Longer than the interval: now they would have gone.
            let before = SystemTime().bootTime
            try wait(.seconds(30), "two intervals", every: .milliseconds(100)) {
                SystemTime().bootTime - before > .seconds(2)
            }
            #expect(try figures().total(failures) == 0)
            #expect(try state() == "offline")
            try here.ip("link set v0 up")
            try expectDelivered(120)
            #expect(try figures().total(failures) == 0)

            // A receiver that is down costs a retry in ten minutes; a default route that appears asks at once.
            running = nil
            #expect(running == nil)
            try bench.append(keyed(120..<180), to: "app.jsonl")
            try wait(.seconds(60), "a failure: \(bench.agentLog)", every: .milliseconds(100)) {
                try figures().total(failures) > 0
            }
            running = try receiver()
            try here.ip("route add default via 10.9.8.2")
            try expectDelivered(180)
            try bench.expectOnce(Set((0..<180).map { "e\($0)" }), member: "key")
        }
    }
}
