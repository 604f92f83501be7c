/// A queue, first in, first out, with constant amortised cost: elements are removed by moving `head`, and the
/// space before `head` is reclaimed when it is more than half of the array.
struct FIFO<Element> {
    /// The elements; those before `head` are nil, so that removed ones are freed at once.
    private var elements: [Element?] = []
    /// Index of the first element.
    private var head = 0

    var count: Int { elements.count - head }
    var isEmpty: Bool { count == 0 }

    var first: Element? { head < elements.count ? elements[head] : nil }

    var values: some Sequence<Element> { elements[head...].lazy.compactMap { $0 } }

    mutating func append(_ element: Element) { elements.append(element) }

    /// Puts an element in front of all others; cheap for the element that was taken out last.
    mutating func prepend(_ element: Element) {
        if head > 0 {
            head -= 1
            elements[head] = element
        } else {
            elements.insert(element, at: 0)
        }
    }

    mutating func popFirst() -> Element? {
        guard head < elements.count else { return nil }
        defer {
            elements[head] = nil
            head += 1
            if head == elements.count {
                elements.removeAll(keepingCapacity: head < 1024)
                head = 0
            } else if head > 512, head * 2 > elements.count {
                elements.removeFirst(head)
                head = 0
            }
        }
        return elements[head]
    }
}
