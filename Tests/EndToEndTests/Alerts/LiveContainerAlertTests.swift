import Glibc
import TestKit
import Testing

extension EndToEnd {
    @Suite("Alerts of containers, live")
    struct LiveContainerAlertTests {
        @Test(
            "alerts fire for a missing document, invalid values, failing rules, a refusal and a forgotten draft"
        )
        func containers() throws {
            let bench = try Workbench()
            try bench.startReceiver()
            let nginx = try ContainerNginx(bench)
            try nginx.start(bench)
            let key = "\(bench.path)/signing.pem"
            let made = try run(spoolship, ["container", "keygen", key])
            try #require(made.code == 0, "\(made)")
            bench.settings["container.id"] = "\"GTM-1234\""
            bench.settings["container.url"] = "\"\(nginx.url)\""
            bench.settings["container.ca_file"] = "\"\(bench.caFile)\""
            bench.settings["container.public_key"] = "\"\(made.text.filter { $0 != "\n" })\""
            bench.settings["container.may_set"] = #"["dispatch.interval"]"#
            bench.settings["container.required"] = #"["document"]"#
            bench.settings["queue.max_size"] = "\"128KiB\""
            func publish(_ version: Int, interval: String = "2s", signs: Bool = true, _ more: String = "")
                throws
            {
                let file = "\(bench.path)/document.json"
                try write(
                    """
                    {"id": "GTM-1234", "version": \(version), "values": {"dispatch.interval": "\(interval)"}\(more)}
                    """, to: file)
                guard signs else { return try nginx.publish(try bytes(of: file)) }
                let output = "\(bench.path)/document.signed"
                let result = try run(
                    spoolship, ["container", "sign", file, "--key", key, "--output", output])
                try #require(result.code == 0, "\(result)")
                try nginx.publish(try bytes(of: output))
            }
            try bench.startAgent()
            let prometheus = try LivePrometheus(bench)
            try prometheus.expect(
                fires: "SpoolshipContainerEmpty", "SpoolshipContainerStale", "SpoolshipContainerAwaited")

            try publish(1, interval: "a while")
            #expect(try bench.command("container", "refresh").code == 0)
            try prometheus.expect(
                resolves: "SpoolshipContainerEmpty", "SpoolshipContainerStale", "SpoolshipContainerAwaited")
            try prometheus.expect(fires: "SpoolshipContainerSettingsRefused")

            try publish(
                2,
                """
                , "rules": {"all": {"conditions": [{"macro": "event", "starts_with": ""}]}}
                , "tags": [{"name": "elsewhere", "type": "ship", "destinations": ["nowhere"], "rules": ["all"]}]
                """)
            let refreshed = try bench.command("container", "refresh")
            #expect(refreshed.code == 0, "\(refreshed)")
            try prometheus.expect(resolves: "SpoolshipContainerSettingsRefused")
            try bench.append(keyed(0..<5), to: "app.jsonl")
            try prometheus.expect(fires: "SpoolshipContainerProblems")

            try publish(3, signs: false)
            #expect(try bench.command("container", "refresh").code == 75)
            try prometheus.expect(fires: "SpoolshipContainerRefused")
            try publish(4)
            #expect(try bench.command("container", "refresh").code == 0)
            try prometheus.expect(resolves: "SpoolshipContainerRefused", "SpoolshipContainerProblems")

            let long = String(repeating: "x", count: 200_000)
            try publish(
                5,
                """
                , "rules": {"all": {"conditions": [{"macro": "event", "starts_with": ""}]}}
                , "tags": [{"name": "too much", "type": "set", "path": "properties.long", "value": "\(long)", "rules": ["all"]}]
                """)
            let enlarged = try bench.command("container", "refresh")
            #expect(enlarged.code == 0, "\(enlarged)")
            try bench.append(keyed(5..<10), to: "app.jsonl")
            try prometheus.expect(fires: "SpoolshipEventsMadeTooLarge")
            try publish(6)
            #expect(try bench.command("container", "refresh").code == 0)
            try prometheus.expect(resolves: "SpoolshipEventsMadeTooLarge")

            let draft = "\(bench.path)/draft.json"
            try write(#"{"id": "GTM-1234", "version": 9}"#, to: draft)
            let preview = try bench.command("container", "preview", draft)
            #expect(preview.code == 0, "\(preview)")
            try prometheus.expect(fires: "SpoolshipPreviewForgotten")
            #expect(try bench.command("container", "preview", "--end").code == 0)
            try prometheus.expect(resolves: "SpoolshipPreviewForgotten")
        }
    }
}
