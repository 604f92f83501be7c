internal import EventLoops

/// What is to be done later, soonest first: a binary heap.
struct Agenda<Item> {
    private var heap: [(deadline: BootInstant, item: Item)] = []

    /// When the first is due; nil when there is nothing to do.
    var next: BootInstant? { heap.first?.deadline }

    var count: Int { heap.count }

    mutating func add(_ item: Item, at deadline: BootInstant) {
        heap.append((deadline, item))
        var index = heap.count - 1
        while index > 0, heap[index].deadline < heap[(index - 1) / 2].deadline {
            heap.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    /// Takes out the first if it is due.
    mutating func popDue(_ now: BootInstant) -> Item? {
        guard let first = heap.first, first.deadline <= now else { return nil }
        heap.swapAt(0, heap.count - 1)
        heap.removeLast()
        var index = 0
        while true {
            var least = index
            for child in [2 * index + 1, 2 * index + 2]
            where child < heap.count && heap[child].deadline < heap[least].deadline { least = child }
            guard least != index else { break }
            heap.swapAt(index, least)
            index = least
        }
        return first.item
    }
}
