internal import EventLoops

/// What is to be done later, soonest first.
struct Agenda<Item> {
    private var heap = Heap<BootInstant, Item>()

    /// When the first is due; nil when there is nothing to do.
    var next: BootInstant? { heap.first?.key }

    var count: Int { heap.count }

    mutating func add(_ item: Item, at deadline: BootInstant) { heap.add(item, deadline) }

    /// Takes out the first if it is due.
    mutating func popDue(_ now: BootInstant) -> Item? {
        guard let next, next <= now else { return nil }
        return heap.popFirst()?.item
    }
}
