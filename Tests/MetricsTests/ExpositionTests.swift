import TestKit
import Testing

@testable import Metrics

@Suite("Exposition")
struct ExpositionTests {
    private struct Collector: MetricCollector {
        let add: @Sendable (inout Exposition) -> Void
        func collect(into exposition: inout Exposition) { add(&exposition) }
    }

    private func text(
        _ format: ExpositionFormat = .prometheusText, _ add: @escaping @Sendable (inout Exposition) -> Void
    )
        -> String
    {
        format.write(Exposition(from: [Collector(add: add)]))
    }

    @Test("the Accept header decides, with its qualities; the default is Prometheus text")
    func negotiation() {
        let prometheus =
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
            + "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
        #expect(ExpositionFormat(accept: prometheus) == .openMetrics)
        #expect(ExpositionFormat(accept: nil) == .prometheusText)
        #expect(ExpositionFormat(accept: "") == .prometheusText)
        #expect(ExpositionFormat(accept: "text/html,*/*;q=0.8") == .prometheusText)
        #expect(
            ExpositionFormat(accept: "application/openmetrics-text; version=2.0.0, text/plain")
                == .prometheusText)
        #expect(
            ExpositionFormat(accept: "application/openmetrics-text;q=0.1, text/plain;q=0.2")
                == .prometheusText)
        #expect(ExpositionFormat(accept: "application/openmetrics-text;q=0") == .prometheusText)
        #expect(
            ExpositionFormat(accept: "text/plain, application/openmetrics-text ; version=\"1.0.0\"")
                == .openMetrics)
        #expect(ExpositionFormat(accept: String(repeating: ",;=q", count: 5000)) == .prometheusText)
    }

    @Test("label values cannot break out of their quotes")
    func escaping() throws {
        let hostile = "a\"b\\c\nspoolship_ready 1"
        for format in ExpositionFormat.allCases {
            let text = text(format) { $0.set(\.inFlight, [hostile], to: 1) }
            #expect(
                text.contains(#"spoolship_delivery_in_flight{destination="a\"b\\c\nspoolship_ready 1"} 1"#))
            #expect(!text.contains("\nspoolship_ready 1"))
        }
        // Such as `curl` shows on a terminal.
        let coloured = text { $0.set(\.inFlight, ["ü\u{1B}[31m\u{9B}1m\u{202E}"], to: 1) }
        #expect(coloured.contains(#"{destination="ü\\u001b[31m\\u009b1m\\u202e"} 1"#))
    }

    @Test("a metric family has at most a thousand series, and says how many are missing")
    func fault25_labelExplosion() throws {
        let text = text { exposition in
            for number in 0..<5000 { exposition.set(\.inFlight, ["d\(number)"], to: number) }
            for number in 0..<5000 { exposition.set(\.inFlight, ["d\(number % 10)"], to: 7) }
        }
        #expect(text.split(separator: "\n").count { $0.hasPrefix("spoolship_delivery_in_flight{") } == 1000)
        #expect(text.contains("\nspoolship_metrics_series_suppressed 4000\n"))
        #expect(text.contains("spoolship_delivery_in_flight{destination=\"d9\"} 7\n"))
    }

    @Test("a value outside a label's closed list becomes `other`")
    func closedLabels() {
        #expect(
            text { $0.set(\.quarantined, ["typo"], to: 3) }.contains(
                "spoolship_quarantined_total{reason=\"other\"} 3\n")
        )
    }

    @Test("histograms are cumulative and end at infinity")
    func histograms() {
        let histograms = HistogramSet(\.attemptSeconds)
        for milliseconds in [1, 2, 2000, 3_600_000] {
            histograms.observe(["main"], .milliseconds(milliseconds))
        }
        let text = ExpositionFormat.prometheusText.write(Exposition(from: [histograms]))
        for line in [
            #"_bucket{destination="main",le="0.001"} 1"#, #"_bucket{destination="main",le="0.005"} 2"#,
            #"_bucket{destination="main",le="1.0"} 2"#, #"_bucket{destination="main",le="2.5"} 3"#,
            #"_bucket{destination="main",le="+Inf"} 4"#, #"_count{destination="main"} 4"#,
            #"_sum{destination="main"} 3602.003"#,
        ] {
            #expect(text.contains("spoolship_delivery_duration_seconds\(line)\n"), "\(line)")
        }
    }

    @Test("counters work from several threads, and numbers have a form that both formats read")
    func numbers() throws {
        let counters = CounterSet(\.retries)
        counters.add(["main"], 41)
        counters.add(["main"])
        let exposition = Exposition(from: [counters])
        #expect(exposition.value(\.retries, ["main"]) == 42)
        let text = text {
            $0.set(\.dispatchInterval, to: 0.5)
            $0.set(\.queueBytes, to: Int.max)
            $0.set(\.spoolLagSeconds, to: Double.nan)
            $0.set(\.queueMaxBytes, to: -Double.infinity)
        }
        #expect(text.contains("spoolship_dispatch_interval_seconds 0.5\n"))
        #expect(text.contains("spoolship_queue_bytes 9223372036854775807\n"))
        #expect(text.contains("spoolship_spool_lag_seconds NaN\n"))
        #expect(text.contains("spoolship_queue_max_bytes -Inf\n"))
    }

    @Test("OpenMetrics ends with its mark, and its headers name counters without _total")
    func openMetricsForm() {
        let text = text(.openMetrics) { $0.set(\.sentBytes, ["main"], to: 5) }
        #expect(text.hasSuffix("# EOF\n"))
        #expect(
            text.contains(
                "# TYPE spoolship_delivery_sent_bytes counter\n# UNIT spoolship_delivery_sent_bytes bytes\n"))
        #expect(text.contains("\nspoolship_delivery_sent_bytes_total{destination=\"main\"} 5\n"))
    }

    @Test("metrics describe the process itself")
    func processFigures() throws {
        let exposition = Exposition(from: [ProcessCollector()])
        for family: Exposition.Family in [
            \.processCPU, \.processResident, \.processPrivate, \.processVirtual, \.processOpenDescriptors,
            \.processMaxDescriptors,
        ] {
            #expect(try #require(exposition.value(family)) > 0, "\(MetricFamily.table[keyPath: family].name)")
        }
        let start = try #require(exposition.value(\.processStart))
        let (_, now) = try runShell("date +%s")
        let seconds = try #require(Double(now.split(separator: "\n").joined()))
        #expect(start <= seconds + 1 && start > seconds - 86_400)
    }
}

extension Exposition {
    /// The figure of a series; nil when there is none or it is a histogram.
    fileprivate func value(_ family: Family, _ labels: [String] = []) -> Double? {
        let family = MetricFamily.table[keyPath: family]
        switch series(of: family).first(where: { $0.labels == labels })?.value {
        case .integer(let number): return Double(number)
        case .real(let number): return number
        case .buckets, nil: return nil
        }
    }
}
