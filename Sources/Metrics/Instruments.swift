internal import Synchronization

/// Counters distinguished by labels: one family. The lock is held for an access, never while anything waits.
package final class CounterSet: MetricCollector {
    private let family: MetricFamily
    private let counts = Mutex<[[String]: Int]>([:])

    package init(_ family: Exposition.Family) { self.family = MetricFamily.table[keyPath: family] }

    /// Counts in the series of these labels; beyond the family's limit new series are left out.
    package func add(_ labels: [String] = [], _ number: Int = 1) {
        precondition(labels.count == family.labels.count, "\(family.name) has \(family.labels.count) labels")
        counts.withLock { counts in
            guard counts[labels] != nil || counts.count <= MetricFamily.seriesLimit else { return }
            counts[labels, default: 0] += number
        }
    }

    /// Forgets series by their labels.
    package func keep(where isKept: ([String]) -> Bool) { counts.withLock { $0 = $0.filter { isKept($0.key) } } }

    package subscript(labels: String...) -> Int { counts.withLock { $0[labels] ?? 0 } }

    package func collect(into exposition: inout Exposition) {
        let counts = counts.withLock { $0 }
        for (labels, count) in counts.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
            exposition.set(family, labels, to: count)
        }
    }
}

/// Observations counted by size: one histogram. The lock is held for a few additions, never while anything waits.
package final class HistogramSet: MetricCollector {
    private let family: MetricFamily
    private let series = Mutex<[[String]: Exposition.Buckets]>([:])

    package init(_ family: Exposition.Family) {
        self.family = MetricFamily.table[keyPath: family]
        precondition(self.family.kind == .histogram, "\(self.family.name) is not a histogram")
    }

    /// Counts an observation in the series of these labels; beyond the family's limit new series are left out.
    package func observe(_ labels: [String] = [], _ value: Double) {
        precondition(labels.count == family.labels.count, "\(family.name) has \(family.labels.count) labels")
        let place = family.buckets.firstIndex { value <= $0 } ?? family.buckets.count
        let none = Exposition.Buckets(counts: Array(repeating: 0, count: family.buckets.count + 1), sum: 0)
        series.withLock { series in
            guard series[labels] != nil || series.count <= MetricFamily.seriesLimit else { return }
            series[labels, default: none].count(value, at: place)
        }
    }

    package func observe(_ labels: [String] = [], _ duration: Duration) {
        observe(labels, duration / .seconds(1))
    }

    /// Forgets series by their labels.
    package func keep(where isKept: ([String]) -> Bool) { series.withLock { $0 = $0.filter { isKept($0.key) } } }

    package func collect(into exposition: inout Exposition) {
        let series = series.withLock { $0 }
        for (labels, buckets) in series.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
            exposition.set(family, labels, to: buckets)
        }
    }
}
