/// Supplies figures: reads what others have published, never waits.
package protocol MetricCollector: Sendable {
    /// Adds samples of any families.
    func collect(into exposition: inout Exposition)
}

/// The samples of one answer, collected from all collectors, then written in the order of the table.
///
/// Bounded whatever the collectors do: a family has at most `MetricFamily.seriesLimit` series, a closed label only its
/// own values (others become `other`), and a series that is given twice keeps the last figure.
package struct Exposition: Sendable {
    package typealias Family = KeyPath<MetricTable, MetricFamily>

    package struct Buckets: Sendable, Equatable {
        /// Observations in each bucket, not cumulated; one more than the family has bounds.
        package var counts: [Int]
        /// The sum of all observations.
        package var sum: Double

        mutating func count(_ value: Double, at place: Int) {
            counts[place] += 1
            sum += value
        }
    }

    enum Value: Sendable, Equatable {
        case integer(Int)
        case real(Double)
        case buckets(Buckets)
    }

    struct Series: Sendable {
        let labels: [String]
        var value: Value
    }

    private struct Samples: Sendable {
        var series: [Series] = []
        var places: [[String]: Int] = [:]
    }

    private var samples: [String: Samples] = [:]
    private(set) var suppressed = 0

    package init(from collectors: [any MetricCollector]) {
        for collector in collectors { collector.collect(into: &self) }
    }

    /// Sets a series for each value of the last label, in their order; `labels` are those before it.
    package mutating func set(_ family: Family, _ labels: [String] = [], by figures: [String: Int]) {
        for (value, figure) in figures.sorted(by: { $0.key < $1.key }) { set(family, labels + [value], to: figure) }
    }

    /// Sets a series for each case that the last label can have.
    package mutating func set<Case: CaseIterable & RawRepresentable<String>>(
        _ family: Family, _ labels: [String] = [], of cases: Case.Type, by figure: (Case) -> Int
    ) {
        for each in cases.allCases { set(family, labels + [each.rawValue], to: figure(each)) }
    }

    package mutating func set(_ figures: KeyValuePairs<Family, Int>) {
        for (family, figure) in figures { set(family, to: figure) }
    }

    package mutating func set(_ family: Family, _ labels: [String] = [], to value: Int) {
        set(MetricFamily.table[keyPath: family], labels, to: value)
    }

    package mutating func set(_ family: MetricFamily, _ labels: [String] = [], to value: Int) {
        put(family, labels, .integer(value))
    }

    package mutating func set(_ family: Family, _ labels: [String] = [], to value: Double) {
        put(MetricFamily.table[keyPath: family], labels, .real(value))
    }

    package mutating func set(_ family: Family, _ labels: [String] = [], to value: Bool) {
        set(family, labels, to: value ? 1 : 0)
    }

    package mutating func set(_ family: MetricFamily, _ labels: [String] = [], to buckets: Buckets) {
        put(family, labels, .buckets(buckets))
    }

    func series(of family: MetricFamily) -> [Series] { samples[family.name]?.series ?? [] }

    private mutating func put(_ family: MetricFamily, _ labels: [String], _ value: Value) {
        precondition(labels.count == family.labels.count, "\(family.name) has \(family.labels.count) labels")
        if case .buckets(let buckets) = value {
            precondition(buckets.counts.count == family.buckets.count + 1, "\(family.name) has other buckets")
        }
        let labels = zip(family.labels, labels).map { label, value in
            label.values.map { $0.contains(value) ? value : "other" } ?? value
        }
        if let place = samples[family.name]?.places[labels] {
            samples[family.name]?.series[place].value = value
        } else if samples[family.name, default: Samples()].series.count < MetricFamily.seriesLimit {
            let place = samples[family.name, default: Samples()].series.count
            samples[family.name, default: Samples()].series.append(Series(labels: labels, value: value))
            samples[family.name]?.places[labels] = place
        } else {
            suppressed += 1
        }
    }
}
