/// Waiting elements, in one line (queue) for each app. The line of the app that has used the least time comes
/// first, lines with equal shares take turns, and each line is first in, first out.
///
/// The heap is ordered by shares as they were when a line was last looked at. Because shares only grow, an
/// outdated key is never too high, and it is enough to correct the first one.
struct FairQueue<Element> {
    /// The rank of a line among the others.
    private struct Turn: Comparable {
        /// The app's used time when the line was last looked at; never more than the app has used by now.
        var spent: Int64
        /// Order of arrival; decides between equal shares.
        var number: UInt64

        static func < (left: Turn, right: Turn) -> Bool {
            (left.spent, left.number) < (right.spent, right.number)
        }
    }

    private var lines: [String: FIFO<Element>] = [:]
    private var turns = Heap<Turn, String>()
    private var nextNumber: UInt64 = 0
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    var lineCount: Int { lines.count }

    func count(of line: String) -> Int { lines[line]?.count ?? 0 }

    /// All elements, line by line. An array, because a start pays more for the types of lazy sequences in
    /// sequences than for any copy.
    var values: [Element] {
        var all: [Element] = []
        for line in lines.values { all += line.values }
        return all
    }

    mutating func append(_ element: Element, to line: String) {
        lineUp(line)
        lines[line, default: FIFO()].append(element)
        count += 1
    }

    /// Puts an element back at the front of its line, whose turn comes after other lines with an equal share.
    mutating func putBack(_ element: Element, to line: String) {
        lineUp(line)
        lines[line, default: FIFO()].prepend(element)
        count += 1
    }

    /// Gives a line without elements a rank. Its share counts as 0 until `arrange` looks at it.
    private mutating func lineUp(_ line: String) {
        if lines[line] == nil {
            takePlace(line, spent: 0)
        }
    }

    /// Adds a line to the heap, behind lines with an equal share.
    private mutating func takePlace(_ line: String, spent: Int64) {
        turns.add(line, Turn(spent: spent, number: nextNumber))
        nextNumber += 1
    }

    /// The share that the app of the first line has used; nil if the queue is empty.
    mutating func least(_ shares: Shares) -> Int64? { arrange(shares)?.spent }

    /// Brings the line whose turn it is to the front of the heap, by correcting the first key until it is up
    /// to date.
    private mutating func arrange(_ shares: Shares) -> Turn? {
        while let (turn, line) = turns.first {
            let spent = shares.spent(by: line)
            if spent <= turn.spent { return turn }
            turns.moveFirst(to: Turn(spent: spent, number: turn.number))
        }
        return nil
    }

    /// Takes out the first element of the line whose turn it is. Lines whose first element is not admitted by
    /// `mayBeTaken` keep their rank and are skipped.
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
            if lines[line]?.isEmpty == false {
                takePlace(line, spent: turn.spent)
            } else {
                lines[line] = nil
            }
            return (line, element)
        }
        return nil
    }
}
