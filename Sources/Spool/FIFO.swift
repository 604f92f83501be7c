/// First in, first out.
struct FIFO<Element> {
    private var elements: [Element?] = []
    private var head = 0

    var count: Int { elements.count - head }
    var isEmpty: Bool { count == 0 }

    var first: Element? { head < elements.count ? elements[head] : nil }

    var values: some Sequence<Element> { elements[head...].lazy.compactMap { $0 } }

    mutating func append(_ element: Element) { elements.append(element) }

    /// Puts an element before all others; cheap for what was taken out last.
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
