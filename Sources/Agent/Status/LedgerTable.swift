internal import Control
internal import Model

/// The ledger of some destinations as lines of text: a row for each destination, or for each of its
/// priorities.
struct LedgerTable: Sendable {
    /// Figures with a column; all others are named after the row if they are not zero, because most are zero.
    private static let columns = ["accepted", "acknowledged", "queued"]

    /// Whether rows have a priority.
    private let isByPriority: Bool
    /// The cells of each row: a name, a priority, three figures, and the other figures in words.
    private let rows: [[String]]

    /// - Parameter byPriority: whether critical and normal events have separate rows.
    init(_ destinations: [StatusReport.Destination], byPriority: Bool) {
        isByPriority = byPriority
        rows = destinations.flatMap { destination in
            let critical = destination.ledger(.critical)
            let normal = destination.ledger(.normal)
            guard byPriority else {
                return [LedgerTable.row(destination.name, "", LedgerTable.sum(critical, normal))]
            }
            return [
                LedgerTable.row(destination.name, "critical", critical),
                LedgerTable.row("", "normal", normal),
            ]
        }
    }

    /// The heading and the rows.
    ///
    /// - Parameter title: adds the style of a heading.
    func lines(title: (String) -> String) -> [String] {
        let heading = ["ledger", "", "accepted", "acknowledged", "waiting", ""]
        let all = [heading] + rows
        let names = all.map { $0[0].count }.max() ?? 0
        // Rows of many destinations have long names, and fit into a terminal of 80 columns.
        let widths = (2...4).map { column in
            isByPriority ? 15 : 2 + (all.map { $0[column].count }.max() ?? 0)
        }
        func line(_ cells: [String]) -> String {
            cells[0].padded(onRight: names) + (isByPriority ? "  " + cells[1].padded(onRight: 8) : "")
                + zip(cells[2...4], widths).map { $0.padded(onLeft: $1) }.joined()
                + (cells[5].isEmpty ? "" : "  " + cells[5])
        }
        return [title(line(heading))] + rows.map(line)
    }

    /// The sum of two ledgers, figure by figure.
    private static func sum(_ first: Ledger, _ second: Ledger) -> Ledger {
        var sum = first
        for (_, path) in Ledger.figures { sum[keyPath: path] += second[keyPath: path] }
        return sum
    }

    /// The cells of a row.
    private static func row(_ name: String, _ priority: String, _ ledger: Ledger) -> [String] {
        let figures = [ledger.accepted, ledger.acknowledged, ledger.queued].map { HumanText.count($0) }
        let others = Ledger.figures.filter { !columns.contains($0.name) && ledger[keyPath: $0.path] > 0 }.map
        {
            "\(HumanText.count(ledger[keyPath: $0.path])) \($0.name.replacingAll("_", with: "-"))"
        }
        return [name, priority] + figures + [others.joined(separator: ", ")]
    }
}

extension String {
    /// The text followed by spaces up to a width.
    func padded(onRight width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }

    /// The text after spaces up to a width.
    func padded(onLeft width: Int) -> String { String(repeating: " ", count: max(0, width - count)) + self }
}
