// Metrics: the agent's figures, and their text for Prometheus.
//
// What the module promises:
// * Every metric is declared once, in the table of MetricFamily+All.swift. The golden file, the
//   documentation, the dashboard and the alerts are compared with that table by tests.
// * Names and labels are an interface: alerts of other people depend on them.
// * Memory is bounded: a family has at most 1000 series, and a closed label only its declared values.
// * Collecting reads published figures and never waits for another loop.
//
// Its parts:
// * `MetricFamily` (this file) is the declaration of one metric; `MetricTable` has all of them.
// * `CounterSet` and `HistogramSet` count where events happen. They are thread-safe.
// * `MetricCollector` is implemented by everything that supplies figures; most collectors are in the agent
//   (`Sources/Agent/Figures`) and copy the modules' snapshots.
// * `Exposition` is the set of samples of one answer, `ExpositionFormat` writes it as text.
// * `ProcessCollector` reads the process's own figures from /proc.
//
// Its rules:
// * A counter only grows: since the database was made if the queue keeps it, otherwise since the start of
//   the process. `help` says which.
// * Times are in seconds, sizes in bytes, and names end with their unit.
// * The module knows neither HTTP nor what is counted.
//
// Begin with `MetricTable`, then `Exposition.put`.

/// One metric: its name, its meaning, and the labels that distinguish its series.
///
/// Source: prometheus.io, "Metric and label naming".
package struct MetricFamily: Sendable, Hashable {
    /// The kind of a metric, which decides how its samples are written.
    package enum Kind: String, Sendable, CaseIterable {
        /// A count that only grows. It starts at 0 with the process or with the database.
        case counter
        /// A value that rises and falls.
        case gauge
        /// Observations, counted in buckets by size.
        case histogram
        /// A constant 1; its labels carry the information.
        case info
    }

    /// A label with the values that it may have.
    package struct Label: Sendable, Hashable {
        package let name: String
        /// All values that the label can have; other values become `other`. Nil if the configuration names
        /// them.
        package let values: [String]?

        /// A label whose values the configuration names, such as destinations and containers.
        package static func open(_ name: String) -> Label { Label(name: name, values: nil) }

        /// A label with a fixed set of values.
        package static func closed(_ name: String, _ values: [String]) -> Label {
            Label(name: name, values: values)
        }

        static func closed(_ name: String, _ values: String...) -> Label { Label(name: name, values: values) }
    }

    /// Name in Prometheus' text format. A counter ends in `_total`, an info in `_info`.
    package let name: String
    /// The kind of the metric.
    package let kind: Kind
    /// One sentence: what the metric counts, and in which unit.
    package let help: String
    /// The labels, in the order in which samples give their values.
    package let labels: [Label]
    /// Upper bounds of a histogram's buckets, rising, without infinity.
    package let buckets: [Double]

    /// Most series of a family; further series are left out and counted. An open label with unexpected
    /// values must not fill the memory of the agent or of Prometheus.
    package static let seriesLimit = 1000

    init(_ kind: Kind, _ name: String, _ help: String, _ labels: [Label] = [], buckets: [Double] = []) {
        self.name = name
        self.kind = kind
        self.help = help
        self.labels = labels
        self.buckets = buckets
    }

    /// The unit that the name ends with; nil for plain counts.
    package var unit: String? {
        let stem = openMetricsName
        return ["seconds", "bytes"].first { stem.hasSuffix("_\($0)") }
    }

    /// The family's name in OpenMetrics, where `_total` and `_info` belong to the samples' names.
    var openMetricsName: String {
        switch kind {
        case .counter: String(name.dropLast("_total".count))
        case .info: String(name.dropLast("_info".count))
        case .gauge, .histogram: name
        }
    }
}
