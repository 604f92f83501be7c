internal import Model

/// The fate of each event of a batch whose destination answered event by event.
///
/// The answer is not trusted: places outside the batch are ignored; of an event named twice the rejection counts.
struct PartialAnswer: Sendable {
    /// What becomes of each event, in the batch's order.
    private(set) var fates: [Settlement.Disposition]
    /// What the destination rejected, in the batch's order.
    let rejected: [RejectedEvent]

    init(events: Int, rejected: [RejectedEvent], retry: [Int]) {
        let named = Dictionary(rejected.map { ($0.index, $0) }) { $1 }
        let again = Set(retry)
        self.rejected = (0..<events).compactMap { named[$0] }
        fates = (0..<events).map { place in
            if let event = named[place] { return .deadLetter(event.failure) }
            return again.contains(place) ? .again(group: 0) : .acknowledged
        }
    }

    /// The places of the events that the destination has.
    var acknowledged: [Int] { fates.indices.filter { fates[$0] == .acknowledged } }

    /// Keeps rejected events: they go again, in a batch of the group.
    mutating func keep(_ events: [RejectedEvent], group: Int) {
        for event in events { fates[event.index] = .again(group: group) }
    }
}

extension Settlement {
    /// Gives each event of a batch its fate.
    init(_ batch: TrackedBatch, _ fates: [Disposition]) {
        var parts: [Part] = []
        for (place, fate) in fates.enumerated() {
            if let last = parts.last, last.disposition == fate {
                parts[parts.count - 1].events = last.events.lowerBound..<place + 1
            } else {
                parts.append(Part(place..<place + 1, fate))
            }
        }
        self.init(batch: batch.header.id, parts: parts)
    }
}
