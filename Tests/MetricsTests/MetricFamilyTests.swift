import Model
import TestKit
import Testing

@testable import Metrics

/// One series for each combination of closed labels; open labels have one harmless value.
struct EveryFamily: MetricCollector {
    static let names = [
        "destination": "main", "app": "shop", "reason": "rule:bots", "code": "503",
        "deadline": "daily", "version": "1.0.0", "commit": "0123abc", "toolchain": "Swift 6.3",
    ]

    /// A value that follows from a series' name alone (FNV-1a), so that a new family changes no other line of the
    /// golden files.
    private static func value(of family: MetricFamily, _ labels: [String]) -> Int {
        let name = ([family.name] + labels).joined(separator: "\n")
        let hash = name.utf8.reduce(UInt32(2_166_136_261)) { ($0 ^ UInt32($1)) &* 16_777_619 }
        return Int(hash % 100_000)
    }

    func collect(into exposition: inout Exposition) {
        for family in MetricFamily.all where family != MetricFamily.table.seriesSuppressed {
            var combinations: [[String]] = [[]]
            for label in family.labels {
                let values = label.values ?? [EveryFamily.names[label.name] ?? "?"]
                combinations = combinations.flatMap { start in values.map { start + [$0] } }
            }
            for labels in combinations {
                switch family.kind {
                case .histogram:
                    let counts = (0...family.buckets.count).map { $0 * 2 }
                    exposition.set(family, labels, to: Exposition.Buckets(counts: counts, sum: 12.5))
                case .info: exposition.set(family, labels, to: 1)
                case .counter, .gauge:
                    exposition.set(family, labels, to: EveryFamily.value(of: family, labels))
                }
            }
        }
    }
}

@Suite("Metric families")
struct MetricFamilyTests {
    @Test(
        "the golden files have every family, as Prometheus text and as OpenMetrics",
        arguments: ExpositionFormat.allCases)
    func goldenFile(format: ExpositionFormat) throws {
        let exposition = Exposition(from: [EveryFamily()])
        let name = format == .openMetrics ? "openmetrics.txt" : "metrics.txt"
        let difference = try GoldenFile("Tests/MetricsTests/Fixtures/\(name)").difference(
            from: format.write(exposition))
        #expect(difference == nil)
    }

    @Test("each app with its own figures, and all others together, have a series within the limit")
    func apps() { #expect([String: AppCounts].most + 1 <= MetricFamily.seriesLimit) }

    @Test("a collector sets each family, which the golden files alone would not show")
    func everyFamilyIsSet() throws {
        let fields = Mirror(reflecting: MetricFamily.table).children.compactMap(\.label)
        #expect(fields.count > 100)
        // Only where a metric is set: other key paths have the same names. The families' own table does not
        // count, nor do the types that it is read by.
        let files = "grep -rlE --include='*.swift' 'Exposition|CounterSet|HistogramSet' Sources"
        let places = [
            #"(set|Set)\( ?\\\.[A-Za-z0-9]+"#, #"\\\.[A-Za-z0-9]+:"#, #"", \\(MetricTable)?\.[A-Za-z0-9]+\)"#,
            #"MetricFamily\.table\.[A-Za-z0-9]+"#,
        ]
        let search =
            "\(files) | grep -v MetricFamily | xargs cat | tr -s ' \\n' ' '"
            + " | grep -oE '\(places.joined(separator: "|"))'"
        let (code, output) = try runShell("cd '\(GoldenFile.root)' && \(search)")
        try #require(code == 0)
        let used = Set(
            output.split(separator: "\n").compactMap { place in
                place.split { !$0.isLetter && !$0.isNumber }.last
            })
        for field in fields { #expect(used.contains(field[...]), "\(field) has no collector") }
    }

    @Test("promtool accepts the golden file")
    func promtoolIsSilent() throws {
        let path = GoldenFile("Tests/MetricsTests/Fixtures/metrics.txt").path
        let (code, output) = try runShell("promtool check metrics < '\(path)'")
        #expect(code == 0)
        #expect(output == "")
    }

    @Test("docs/metrics.md agrees with the table of families")
    func documentation() throws {
        #expect(try GoldenFile("docs/metrics.md").difference(from: MetricDocumentation.markdown) == nil)
    }

    @Test("names follow Prometheus' rules, and no two families share one")
    func names() {
        let families = MetricFamily.all
        #expect(Set(families.map(\.name)).count == families.count)
        for family in families {
            #expect(family.name.allSatisfy { "abcdefghijklmnopqrstuvwxyz_".contains($0) }, "\(family.name)")
            #expect(
                family.name.hasPrefix("spoolship_") || family.name.hasPrefix("process_"), "\(family.name)")
            #expect(family.name.hasSuffix("_total") == (family.kind == .counter), "\(family.name)")
            #expect(family.name.hasSuffix("_info") == (family.kind == .info), "\(family.name)")
            #expect(family.help.hasSuffix("."), "\(family.name)")
            #expect(
                family.buckets == family.buckets.sorted()
                    && family.buckets.isEmpty == (family.kind != .histogram))
            for word in ["dropped", "drop_", "_ms", "_kb"] {
                #expect(!family.name.contains(word), "\(family.name)")
            }
        }
    }
}

/// The page that lists all metrics.
enum MetricDocumentation {
    static var markdown: String {
        var text = """
            # Metrics

            The metrics at `http://127.0.0.1:9464/metrics`, in Prometheus' text format or, by `Accept`, OpenMetrics 1.0.
            This page is generated from the table in `Sources/Metrics/MetricFamily+All.swift`; a test compares them.

            Counters whose description does not say "since the start" are kept in the database: they survive restarts
            and crashes, and change in the transaction that they count.

            | metric | type | labels | meaning |
            | --- | --- | --- | --- |

            """
        for family in MetricFamily.all {
            let labels = family.labels.map { label in
                label.values.map { "`\(label.name)`: \($0.joined(separator: ", "))" } ?? "`\(label.name)`"
            }
            text +=
                "| `\(family.name)` | \(family.kind.rawValue) | \(labels.joined(separator: "; ")) | \(family.help) |\n"
        }
        return text
    }
}
