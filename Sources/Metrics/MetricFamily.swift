//  Metrics: the agent's figures.
//  Promise: every family is in one table (MetricFamily+All.swift); labels are bounded; collecting reads published
//  figures and never waits for another loop.
//  It knows nothing of HTTP, nor of what is counted.

/// One metric: its name, what it means, and which labels tell its series apart.
///
/// All families are declared in one table, with which the golden file, the documentation, the dashboard and the alerts
/// are compared.
/// Source: prometheus.io, "Metric and label naming".
package struct MetricFamily: Sendable, Hashable {
    package enum Kind: String, Sendable, CaseIterable {
        /// Only grows, and starts at 0 with the process or with the database.
        case counter
        case gauge
        /// Counts of observations by size.
        case histogram
        /// A constant 1 whose labels are the message.
        case info
    }

    package struct Label: Sendable, Hashable {
        package let name: String
        /// All values that it can have; nil when the configuration names them. Others become `other`.
        package let values: [String]?

        /// A label whose values the configuration names: destinations, containers.
        package static func open(_ name: String) -> Label { Label(name: name, values: nil) }

        package static func closed(_ name: String, _ values: [String]) -> Label { Label(name: name, values: values) }

        static func closed(_ name: String, _ values: String...) -> Label { Label(name: name, values: values) }
    }

    /// The name in Prometheus' text: of a counter with `_total`, of an info with `_info`.
    package let name: String
    package let kind: Kind
    /// One sentence: what it counts, and in which unit.
    package let help: String
    /// What tells its series apart, in their order.
    package let labels: [Label]
    /// The upper bounds of a histogram's buckets, growing, without infinity.
    package let buckets: [Double]

    /// More series than this of one family are counted and left out.
    package static let seriesLimit = 1000

    init(_ kind: Kind, _ name: String, _ help: String, _ labels: [Label] = [], buckets: [Double] = []) {
        (self.name, self.kind, self.help, self.labels, self.buckets) = (name, kind, help, labels, buckets)
    }

    /// The unit by the name's end; nil for plain counts.
    package var unit: String? {
        let stem = openMetricsName
        return ["seconds", "bytes"].first { stem.hasSuffix("_\($0)") }
    }

    /// The family's name in OpenMetrics, where `_total` and `_info` belong to the sample.
    var openMetricsName: String {
        switch kind {
        case .counter: String(name.dropLast("_total".count))
        case .info: String(name.dropLast("_info".count))
        case .gauge, .histogram: name
        }
    }
}
