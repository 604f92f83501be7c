internal import Model

/// The second copy of the counts: destinations and their ledgers in the row of `total`, and the totals
/// in a row of `ledger` that belongs to no destination.
///
/// The two tables are on different pages. If either page is damaged, a salvage still knows how many
/// events were queued, and so how many are lost.
struct LedgerCopy {
    /// The ledger of one lane, with the destination's name.
    struct Entry {
        let lane: LaneKey
        let name: String
        let ledger: Ledger
    }

    /// The lanes in the order in which they were written.
    private(set) var entries: [Entry] = []

    /// A line for each lane: the numbers, then the destination's name.
    static func text(of lanes: [Lane]) -> String {
        var text = ""
        for lane in lanes {
            text += "\(lane.destination) \(lane.priority.rawValue)"
            for figure in Ledger.figures { text += " \(lane.ledger[keyPath: figure.path])" }
            text += " \(lane.name.text)\n"
        }
        return text
    }

    /// Reads what `text(of:)` wrote; nil for any other text, which means damage.
    init?(_ text: String) {
        guard !text.isEmpty else { return nil }
        for line in text.split(separator: "\n") {
            let fields = line.split(separator: " ", maxSplits: 2 + Ledger.figures.count)
            let numbers = fields.dropLast().compactMap { Int64($0) }
            guard fields.count == 3 + Ledger.figures.count, numbers.count == fields.count - 1,
                numbers.allSatisfy({ (0...1 << 53).contains($0) }), let name = fields.last,
                let priority = Priority(rawValue: UInt8(truncatingIfNeeded: numbers[1]))
            else { return nil }
            var ledger = Ledger()
            for (figure, number) in zip(Ledger.figures, numbers.dropFirst(2)) {
                ledger[keyPath: figure.path] = Int(number)
            }
            let lane = LaneKey(destination: numbers[0], priority: priority)
            entries.append(Entry(lane: lane, name: String(name), ledger: ledger))
        }
    }
}
