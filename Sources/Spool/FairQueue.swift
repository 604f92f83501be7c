/// What waits, in one line for each app: the lines take turns, and each is first in, first out.
///
/// So that an app waits for one piece of work of each other app, however much that one has.
struct FairQueue<Element> {
    private var lines: [String: Queue<Element>] = [:]
    /// The lines that are not empty, the next one first.
    private var turns = Queue<String>()
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    /// How many lines are not empty.
    var lineCount: Int { lines.count }

    /// How many wait in a line.
    func count(of line: String) -> Int { lines[line]?.count ?? 0 }

    /// All that waits, in no order.
    var values: some Sequence<Element> { lines.values.lazy.flatMap { $0.values } }

    mutating func append(_ element: Element, to line: String) {
        lineUp(line)
        lines[line, default: Queue()].append(element)
        count += 1
    }

    /// Puts back what was taken out: it is the next of its line, when the others have had their turns.
    mutating func putBack(_ element: Element, to line: String) {
        lineUp(line)
        lines[line, default: Queue()].prepend(element)
        count += 1
    }

    private mutating func lineUp(_ line: String) {
        if lines[line] == nil { turns.append(line) }
    }

    /// Takes out the first of the line whose turn it is.
    mutating func popFirst() -> (line: String, element: Element)? {
        guard let line = turns.popFirst(), let element = lines[line]?.popFirst() else { return nil }
        count -= 1
        if lines[line]?.isEmpty == false { turns.append(line) } else { lines[line] = nil }
        return (line, element)
    }
}
