import EventLoops
import Glibc
import TestKit
import Testing

extension EndToEnd {
    @Suite("Certificates renewed while the agent runs")
    struct CertificateTests {
        private func bench() throws -> Workbench {
            let bench = try Workbench()
            bench.settings["retry.intervals"] = #"["200ms", "300ms", "500ms"]"#
            bench.settings["retry.probe_interval"] = "\"1s\""
            try bench.startReceiver()
            return bench
        }

        /// Waits until nginx shows another certificate than before.
        private func expectRenewed(_ nginx: TLSNginx, _ old: String) throws {
            nginx.reload()
            try wait(.seconds(30), "nginx to show another certificate") { try nginx.serial() != old }
        }

        /// Files are looked at when something is sent, once a second at most: sends events until that shows.
        private func send(
            _ bench: Workbench, _ next: inout Int, until what: String, _ condition: () throws -> Bool
        ) throws {
            try wait(.seconds(60), "\(what): \(bench.agentLog.suffix(2000))", every: .milliseconds(500)) {
                try bench.append(keyed(next..<next + 10), to: "app.jsonl")
                next += 10
                return try condition()
            }
            try bench.waitUntilDelivered(next)
        }

        @Test(
            "a renewed certificate, a replaced authority, a broken and repaired ca_file: each event arrives once"
        )
        func fault23_serverCertificate() throws {
            let bench = try bench()
            let first = try Certificates(in: bench.path, name: "first")
            let second = try Certificates(in: bench.path, name: "second")
            let server = "\(bench.path)/server"
            let ca = "\(bench.path)/trusted.pem"
            try write(first.caText, to: ca)
            try first.issue(server)
            let nginx = try TLSNginx(in: bench.path, certificate: server, before: bench.receiverPort)
            bench.settings["destination.url"] = "\"https://127.0.0.1:\(nginx.port)/\""
            bench.settings["destination.tls.ca_file"] = "\"\(ca)\""
            try bench.startAgent()
            try bench.append(keyed(0..<100), to: "app.jsonl")
            try bench.waitUntilDelivered(100)

            // Under the same authority: nobody notices.
            var serial = try nginx.serial()
            try first.issue(server)
            try expectRenewed(nginx, serial)
            try bench.append(keyed(100..<200), to: "app.jsonl")
            try bench.waitUntilDelivered(200)
            let failures = #"spoolship_delivery_failures_total{destination="main",kind="tls"}"#
            #expect(try bench.figures().value(failures) == 0)

            // Under another one: refused until it is trusted here, without a restart.
            serial = try nginx.serial()
            try second.issue(server)
            try expectRenewed(nginx, serial)
            // A worker of nginx's that is leaving may still take what comes on a connection that is open.
            var next = 200
            try wait(.seconds(30), "a refusal: \(bench.agentLog)") {
                try bench.append(keyed(next..<next + 10), to: "app.jsonl")
                next += 10
                return try bench.figures().value(failures) > 0
            }
            try write(second.caText, to: ca)
            try bench.waitUntilDelivered(next)
            #expect(bench.agentLog.contains("certificates reread"))

            // What is no certificate changes nothing.
            try write("no certificate\n", to: ca)
            try send(bench, &next, until: "a warning") { bench.agentLog.contains("the last good one stays") }
            let expiry =
                #"spoolship_destination_certificate_expiry_timestamp_seconds{destination="main",certificate="ca"}"#
            let wall = Int(SystemTime().wallTime.milliseconds / 1000)
            #expect(try bench.figures().value(expiry) > wall + 3000 * 86_400)
            try bench.expectOnce(Set((0..<next).map { "e\($0)" }), member: "key")
        }

        @Test("a renewed client certificate is used with its key; a mismatched pair leaves the last good one")
        func fault23_clientCertificate() throws {
            let bench = try bench()
            let certificates = try Certificates(in: bench.path)
            let server = "\(bench.path)/server"
            let client = "\(bench.path)/client"
            try certificates.issue(server)
            try certificates.issue(client, names: [], until: .seconds(3600), isClient: true)
            let nginx = try TLSNginx(
                in: bench.path, certificate: server, before: bench.receiverPort,
                clientAuthority: certificates.caFile)
            bench.settings["destination.url"] = "\"https://127.0.0.1:\(nginx.port)/\""
            bench.settings["destination.tls.ca_file"] = "\"\(certificates.caFile)\""
            bench.settings["destination.tls.certificate"] =
                "{ file = \"\(client).pem\", key_file = \"\(client).key\" }"
            try bench.startAgent()
            try bench.append(keyed(0..<50), to: "app.jsonl")
            try bench.waitUntilDelivered(50)
            let gauge =
                #"spoolship_destination_certificate_expiry_timestamp_seconds{destination="main",certificate="client"}"#
            let early = try bench.figures().value(gauge)
            let wall = Int(SystemTime().wallTime.milliseconds / 1000)
            #expect((wall + 3000..<wall + 3700).contains(early))

            // A key that does not fit yet: the renewal is half done.
            try certificates.issue("\(bench.path)/other", names: [], until: .seconds(7200), isClient: true)
            try write(try contents(of: "\(bench.path)/other.key"), to: "\(client).key")
            var next = 50
            try send(bench, &next, until: "a warning") { bench.agentLog.contains("the last good one stays") }
            #expect(try bench.figures().value(gauge) == early)

            try write(try contents(of: "\(bench.path)/other.pem"), to: "\(client).pem")
            try send(bench, &next, until: "the new certificate") {
                try bench.figures().value(gauge) > early + 3000
            }
            // It is used for the connections that are made from now on.
            try send(bench, &next, until: "nginx to see it") { Set(nginx.clients).count == 2 }
            try bench.expectOnce(Set((0..<next).map { "e\($0)" }), member: "key")
        }
    }
}
