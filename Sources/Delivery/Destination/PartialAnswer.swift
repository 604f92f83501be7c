internal import Model

/// The fate of each event of a batch whose destination answered event by event.
///
/// The answer is not trusted: places outside the batch are ignored, and of an event that is named twice the rejection
/// counts.
struct PartialAnswer: Sendable {
    private enum Fate: Equatable {
        case acknowledged
        case rejected(RejectedEvent)
        case again
    }

    private var fates: [Fate]

    init(events: Int, rejected: [RejectedEvent], retry: [Int]) {
        fates = Array(repeating: .acknowledged, count: events)
        for index in retry where fates.indices.contains(index) { fates[index] = .again }
        for event in rejected where fates.indices.contains(event.index) {
            fates[event.index] = .rejected(event)
        }
    }

    /// How many events the destination has.
    var acknowledged: Int { fates.count { $0 == .acknowledged } }

    /// How many it wants again.
    var retry: Int { fates.count { $0 == .again } }

    /// What it rejected, in the batch's order.
    var rejected: [RejectedEvent] {
        fates.compactMap { fate -> RejectedEvent? in if case .rejected(let event) = fate { event } else { nil } }
    }

    /// The settlement's parts; without dead letters, rejected events go again too.
    func parts(deadLetters: Bool) -> [Settlement.Part] {
        var parts: [Settlement.Part] = []
        for (index, fate) in fates.enumerated() {
            let disposition: Settlement.Disposition =
                switch fate {
                case .acknowledged: .acknowledged
                case .rejected(let event): deadLetters ? .deadLetter(event.failure) : .again(group: 0)
                case .again: .again(group: 0)
                }
            if let last = parts.last, last.disposition == disposition {
                parts[parts.count - 1].events = last.events.lowerBound..<index + 1
            } else {
                parts.append(Settlement.Part(index..<index + 1, disposition))
            }
        }
        return parts
    }
}
