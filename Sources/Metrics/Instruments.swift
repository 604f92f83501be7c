internal import Synchronization

/// The counters of one family, distinguished by labels. Thread-safe: the lock is held for one access.
package final class CounterSet: MetricCollector {
    private let family: MetricFamily
    private let counts = Mutex<[[String]: Int]>([:])

    package init(_ family: Exposition.Family) { self.family = MetricFamily.table[keyPath: family] }

    /// Adds to the series of these labels. One series more than the limit is kept, so that the answer
    /// reports that series are missing; further ones are dropped.
    package func add(_ labels: [String] = [], _ number: Int = 1) {
        precondition(labels.count == family.labels.count, "\(family.name) has \(family.labels.count) labels")
        counts.withLock { counts in
            guard counts[labels] != nil || counts.count <= MetricFamily.seriesLimit else { return }
            counts[labels, default: 0] += number
        }
    }

    /// Removes the series whose labels are not kept, such as those of destinations that a reload has
    /// removed.
    package func keep(where isKept: ([String]) -> Bool) {
        counts.withLock { $0 = $0.filter { isKept($0.key) } }
    }

    /// Value of a series; 0 if it does not exist.
    package subscript(labels: String...) -> Int { counts.withLock { $0[labels] ?? 0 } }

    /// Copies the counts out of the lock, and then sets them in the order of their labels.
    package func collect(into exposition: inout Exposition) {
        let counts = counts.withLock { $0 }
        for (labels, count) in counts.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
            exposition.set(family, labels, to: count)
        }
    }
}

/// The histograms of one family, distinguished by labels. Thread-safe: the lock is held for a few
/// additions.
package final class HistogramSet: MetricCollector {
    private let family: MetricFamily
    private let series = Mutex<[[String]: Exposition.Buckets]>([:])

    package init(_ family: Exposition.Family) {
        self.family = MetricFamily.table[keyPath: family]
        precondition(self.family.kind == .histogram, "\(self.family.name) is not a histogram")
    }

    /// Counts an observation in the series of these labels; the limit is that of `CounterSet.add`.
    package func observe(_ labels: [String] = [], _ value: Double) {
        precondition(labels.count == family.labels.count, "\(family.name) has \(family.labels.count) labels")
        let bucket = family.buckets.firstIndex { value <= $0 } ?? family.buckets.count
        let none = Exposition.Buckets(counts: Array(repeating: 0, count: family.buckets.count + 1), sum: 0)
        series.withLock { series in
            guard series[labels] != nil || series.count <= MetricFamily.seriesLimit else { return }
            series[labels, default: none].count(value, at: bucket)
        }
    }

    /// Counts a duration in seconds.
    package func observe(_ labels: [String] = [], _ duration: Duration) {
        observe(labels, duration / .seconds(1))
    }

    /// Removes the series whose labels are not kept.
    package func keep(where isKept: ([String]) -> Bool) {
        series.withLock { $0 = $0.filter { isKept($0.key) } }
    }

    package func collect(into exposition: inout Exposition) {
        let series = series.withLock { $0 }
        for (labels, buckets) in series.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
            exposition.set(family, labels, to: buckets)
        }
    }
}
