import Glibc
import Model
import TestKit
import Testing

extension EndToEnd {
    @Suite("Versions over a fleet, live")
    struct LiveFleetTests {
        /// The queries of docs/fleet.md, in their order.
        private func documented() throws -> [String] {
            let page = try contents(of: "\(GoldenFile.root)/docs/fleet.md")
            return page.split(separator: "```promql\n").dropFirst().map {
                String(
                    $0.split(separator: "```", maxSplits: 1)[0].split(separator: "\n").joined(separator: " "))
            }
        }

        private func bench(_ version: Int) throws -> Workbench {
            let bench = try Workbench()
            let file = "\(bench.path)/GTM-1234"
            try write(#"{"id": "GTM-1234", "version": \#(version)}"#, to: file)
            try #require(chmod(file, 0o644) == 0)
            bench.settings["container.id"] = "\"GTM-1234\""
            bench.settings["container.default_file"] = "\"\(file)\""
            try bench.startReceiver()
            try bench.startAgent()
            return bench
        }

        @Test(
            "the documented queries list versions, sources and outdated servers; mixed versions fire an alert"
        )
        func mixed() throws {
            let old = try bench(7)
            let new = try bench(8)
            let prometheus = try LivePrometheus(old, and: new)
            let queries = try documented()
            try #require(queries.count == 5)
            try wait(.seconds(60), "both agents") {
                try prometheus.query("spoolship_container_version").count == 2
            }
            let versions = try prometheus.query(queries[0]).map {
                ($0.labels["version"]?.string ?? "", $0.value)
            }
            #expect(versions.sorted { $0.0 < $1.0 }.map { "\($0.0): \($0.1)" } == ["7: 1", "8: 1"])
            let sources = try prometheus.query(queries[1])
            #expect(
                sources.map { $0.labels["source"]?.string } == ["default"] && sources.map(\.value) == ["2"])
            let behind = try prometheus.query(queries[2])
            #expect(behind.map { $0.labels["instance"]?.string } == ["127.0.0.1:\(old.statsPort)"])
            #expect(try prometheus.query(queries[3]).isEmpty)
            #expect(try prometheus.query(queries[4]).isEmpty)
            try prometheus.expect(fires: "SpoolshipContainerVersionsDiffer")

            try write(#"{"id": "GTM-1234", "version": 8}"#, to: "\(old.path)/GTM-1234")
            #expect(try old.command("reload").code == 0)
            try prometheus.expect(resolves: "SpoolshipContainerVersionsDiffer")
            #expect(try prometheus.query(queries[0]).map(\.value) == ["2"])
        }
    }
}
