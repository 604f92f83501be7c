/// What waits, in one line for each app: the line of whoever has had the least time comes first, those that are level take
/// turns, and each line is first in, first out.
struct FairQueue<Element> {
    /// A line's place among the others.
    private struct Turn: Comparable {
        /// What its app had used when that was looked at last; never more than it has used.
        var spent: Int64
        /// When the line got its place.
        var number: UInt64

        static func < (left: Turn, right: Turn) -> Bool { (left.spent, left.number) < (right.spent, right.number) }
    }

    private var lines: [String: FIFO<Element>] = [:]
    private var turns = Heap<Turn, String>()
    private var nextNumber: UInt64 = 0
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    var lineCount: Int { lines.count }

    func count(of line: String) -> Int { lines[line]?.count ?? 0 }

    var values: some Sequence<Element> { lines.values.lazy.flatMap { $0.values } }

    mutating func append(_ element: Element, to line: String) {
        lineUp(line)
        lines[line, default: FIFO()].append(element)
        count += 1
    }

    /// Puts back what was taken out: it is the next of its line, when the others have had their turns.
    mutating func putBack(_ element: Element, to line: String) {
        lineUp(line)
        lines[line, default: FIFO()].prepend(element)
        count += 1
    }

    private mutating func lineUp(_ line: String) {
        if lines[line] == nil { takePlace(line, spent: 0) }
    }

    private mutating func takePlace(_ line: String, spent: Int64) {
        turns.add(line, Turn(spent: spent, number: nextNumber))
        nextNumber += 1
    }

    /// What the app of the first line has used; nil when nothing waits.
    mutating func least(_ shares: Shares) -> Int64? { arrange(shares)?.spent }

    /// Brings the line to the front whose turn it is: an app's time only grows, so that it is enough to look at the first.
    private mutating func arrange(_ shares: Shares) -> Turn? {
        while let (turn, line) = turns.first {
            let spent = shares.spent(by: line)
            if spent <= turn.spent { return turn }
            turns.moveFirst(to: Turn(spent: spent, number: turn.number))
        }
        return nil
    }

    /// Takes out the first of the line whose turn it is, of those whose first may be taken.
    mutating func popFirst(
        _ shares: Shares = Shares(), where mayBeTaken: (String, Element) -> Bool = { _, _ in true }
    ) -> (line: String, element: Element)? {
        var passedOver: [(key: Turn, item: String)] = []
        defer { for (turn, line) in passedOver { turns.add(line, turn) } }
        while arrange(shares) != nil, let (turn, line) = turns.popFirst(), let element = lines[line]?.first {
            guard mayBeTaken(line, element) else {
                passedOver.append((turn, line))
                continue
            }
            _ = lines[line]?.popFirst()
            count -= 1
            if lines[line]?.isEmpty == false { takePlace(line, spent: turn.spent) } else { lines[line] = nil }
            return (line, element)
        }
        return nil
    }
}
