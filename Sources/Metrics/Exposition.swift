/// Supplies figures. Reads what others have published, and never waits.
package protocol MetricCollector: Sendable {
    /// Adds samples, of any families.
    func collect(into exposition: inout Exposition)
}

/// The samples of one answer: collected from all collectors, then written in the order of the table.
///
/// Bounded whatever the collectors do: a family has at most `MetricFamily.seriesLimit` series, a closed
/// label has only its declared values, and of a series that is set twice the last value counts.
package struct Exposition: Sendable {
    /// A family as a field of the table, so that a misspelt name does not compile.
    package typealias Family = KeyPath<MetricTable, MetricFamily>

    /// The observations of one series of a histogram.
    package struct Buckets: Sendable, Equatable {
        /// Observations in each bucket, not cumulated; one more than the family has bounds, for those
        /// beyond the last.
        package var counts: [Int]
        /// Sum of all observations.
        package var sum: Double

        /// Adds an observation to a bucket.
        mutating func count(_ value: Double, at index: Int) {
            counts[index] += 1
            sum += value
        }
    }

    /// A sample's value. Whole numbers stay whole, because a double is exact only up to 2^53.
    enum Value: Sendable, Equatable {
        case integer(Int)
        case real(Double)
        case buckets(Buckets)
    }

    /// A sample: the values of the labels in the family's order, and the figure.
    struct Series: Sendable {
        let labels: [String]
        var value: Value
    }

    /// The samples of a family.
    private struct Samples: Sendable {
        var series: [Series] = []
        /// Index in `series` of each combination of labels.
        var indices: [[String]: Int] = [:]
    }

    /// The samples by the name of their family.
    private var samples: [String: Samples] = [:]
    /// Number of series that were left out, reported in the same answer.
    private(set) var suppressed = 0

    /// Collects from all collectors, in order: a later one overrides an earlier one.
    package init(from collectors: [any MetricCollector]) {
        for collector in collectors { collector.collect(into: &self) }
    }

    /// Sets a series for each value of the last label, in their order; `labels` are those before it.
    package mutating func set(_ family: Family, _ labels: [String] = [], by figures: [String: Int]) {
        for (value, figure) in figures.sorted(by: { $0.key < $1.key }) {
            set(family, labels + [value], to: figure)
        }
    }

    /// Sets a series for each case of the last label, so that the series with 0 exist too.
    package mutating func set<Case: CaseIterable & RawRepresentable<String>>(
        _ family: Family, _ labels: [String] = [], of cases: Case.Type, by figure: (Case) -> Int
    ) {
        for each in cases.allCases { set(family, labels + [each.rawValue], to: figure(each)) }
    }

    /// Sets several families without labels.
    package mutating func set(_ figures: KeyValuePairs<Family, Int>) {
        for (family, figure) in figures { set(family, to: figure) }
    }

    /// Sets a series to a whole number.
    package mutating func set(_ family: Family, _ labels: [String] = [], to value: Int) {
        set(MetricFamily.table[keyPath: family], labels, to: value)
    }

    package mutating func set(_ family: MetricFamily, _ labels: [String] = [], to value: Int) {
        put(family, labels, .integer(value))
    }

    /// Sets a series to a number with a fraction.
    package mutating func set(_ family: Family, _ labels: [String] = [], to value: Double) {
        put(MetricFamily.table[keyPath: family], labels, .real(value))
    }

    /// Sets a series to 1 or 0.
    package mutating func set(_ family: Family, _ labels: [String] = [], to value: Bool) {
        set(family, labels, to: value ? 1 : 0)
    }

    /// Sets a series of a histogram.
    package mutating func set(_ family: MetricFamily, _ labels: [String] = [], to buckets: Buckets) {
        put(family, labels, .buckets(buckets))
    }

    /// The samples of a family, in the order in which they were set.
    func series(of family: MetricFamily) -> [Series] { samples[family.name]?.series ?? [] }

    /// Adds or replaces a sample. A wrong number of labels is an error of the caller, and ends the process.
    private mutating func put(_ family: MetricFamily, _ labels: [String], _ value: Value) {
        precondition(labels.count == family.labels.count, "\(family.name) has \(family.labels.count) labels")
        if case .buckets(let buckets) = value {
            precondition(buckets.counts.count == family.buckets.count + 1, "\(family.name) has other buckets")
        }
        let labels = zip(family.labels, labels).map { label, value in
            label.values.map { $0.contains(value) ? value : "other" } ?? value
        }
        if let index = samples[family.name]?.indices[labels] {
            samples[family.name]?.series[index].value = value
        } else if samples[family.name, default: Samples()].series.count < MetricFamily.seriesLimit {
            let index = samples[family.name, default: Samples()].series.count
            samples[family.name, default: Samples()].series.append(Series(labels: labels, value: value))
            samples[family.name]?.indices[labels] = index
        } else {
            suppressed += 1
        }
    }
}
