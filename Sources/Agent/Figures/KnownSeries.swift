internal import Configuration
internal import Metrics
internal import Model
internal import Queue

/// Every counter whose labels are known, as 0 from the start; the collectors after it set what was counted.
///
/// `increase()` sees nothing of a series' first sample: a counter that comes into being with the first late event, or the
/// first lost one, could not tell of it.
struct KnownSeries: MetricCollector {
    let settings: @Sendable () -> Settings
    let queue: QueueStore

    func collect(into exposition: inout Exposition) {
        let settings = settings()
        let open = [
            "destination": settings.destinations.map(\.name), "deadline": settings.deadlines.map(\.name),
            "container": settings.containers.map(\.id), "function": settings.functions.keys.sorted(),
        ]
        for family in MetricFamily.all where family.kind == .counter {
            let values = family.labels.compactMap { $0.values ?? open[$0.name] }
            guard values.count == family.labels.count else { continue }
            for labels in KnownSeries.combinations(values) { exposition.set(family, labels, to: 0) }
        }
        for reason in ["no_destination", "disabled", "purged", "moved"] { exposition.set(\.discards, [reason], to: 0) }
        exposition.set(\.destinations, to: settings.destinations.count)
        for (name, _) in queue.snapshot.orphans {
            for state in DestinationStateName.allCases {
                exposition.set(\.destinationState, [name.text, state.rawValue], to: state == .orphaned)
            }
        }
    }

    /// Each value of the first list with each of the second, and so on.
    static func combinations(_ lists: [[String]]) -> [[String]] {
        lists.reduce([[]]) { found, list in found.flatMap { head in list.map { head + [$0] } } }
    }
}
