internal import EventLoops
internal import Model

/// The machines of all destinations, and which of them have to be advanced.
///
/// To advance a destination costs 20 µs, and most inputs concern one of them. So only those are advanced that
/// an input has changed, and those for which a time has come. The result is the same as if all were advanced
/// with each input: an unchanged machine does nothing before its `DestinationMachine.Times.change`. All
/// changes go through this type, so that none of them can be missed.
struct Destinations: Sendable {
    /// What is known of a destination's next change.
    private struct Plan {
        /// Whether the destination has changed since it was advanced.
        var isTouched = true
        var times = DestinationMachine.Times()
    }

    /// All names, ascending.
    private(set) var names: [DestinationName] = []
    /// The machines, in the order of their names.
    private var machines: [DestinationMachine] = []
    /// One plan for each machine, in the same order. Apart from the machines, which are large: all plans are
    /// read for each input.
    private var plans: [Plan] = []

    /// A copy of a machine; setting nil removes it.
    subscript(name: DestinationName) -> DestinationMachine? {
        get { index(of: name).map { machines[$0] } }
        set {
            let known = index(of: name)
            switch (newValue, known) {
            case (let new?, let index?):
                machines[index] = new
                plans[index].isTouched = true
            case (let new?, nil):
                let index = lowerBound(of: name)
                names.insert(name, at: index)
                machines.insert(new, at: index)
                plans.insert(Plan(), at: index)
            case (nil, let index?):
                names.remove(at: index)
                machines.remove(at: index)
                plans.remove(at: index)
            case (nil, nil): break
            }
        }
    }

    // MARK: Changes

    /// Changes a machine in place; does nothing if the name is unknown.
    @inline(__always)
    mutating func update(_ name: DestinationName, _ change: (inout DestinationMachine) -> Void) {
        guard let index = index(of: name) else { return }
        plans[index].isTouched = true
        change(&machines[index])
    }

    /// Changes all machines in place.
    mutating func updateAll(_ change: (DestinationName, inout DestinationMachine) -> Void) {
        touchAll()
        for index in names.indices { change(names[index], &machines[index]) }
    }

    /// Changes what is only reported, and on which no decision of the machine depends.
    mutating func updateReport(_ name: DestinationName, _ change: (inout DestinationMachine) -> Void) {
        if let index = index(of: name) {
            change(&machines[index])
        }
    }

    /// Hands the queue's summaries to their machines. A destination whose lanes are unchanged is not touched:
    /// summaries of all destinations come along with each answer of the queue.
    mutating func show(_ lanes: [DestinationName: Lanes], at now: Moment) {
        for (name, lanes) in lanes {
            guard let index = index(of: name), machines[index].update(lanes, at: now) else { continue }
            plans[index].isTouched = true
        }
    }

    // MARK: Advancing

    /// Something outside the machine has changed that decides what a destination may send.
    ///
    /// - Parameter name: the destination; nil for all.
    mutating func touch(_ name: DestinationName?) {
        guard let name else { return touchAll() }
        if let index = index(of: name) {
            plans[index].isTouched = true
        }
    }

    mutating func touchAll() { for index in plans.indices { plans[index].isTouched = true } }

    /// The destinations that have to be advanced now, in the order of their names.
    func due(at now: BootInstant) -> [DestinationName] {
        var due: [DestinationName] = []
        for (index, plan) in plans.enumerated() where plan.isTouched || plan.times.isDue(at: now) {
            due.append(names[index])
        }
        return due
    }

    /// Lets one destination start what it may, adds its effects to a list, and plans when it is next.
    mutating func advance(
        _ name: DestinationName, _ gate: Gate, at now: Moment, to effects: inout [DeliveryEffect]
    ) {
        guard let index = index(of: name) else { return }
        machines[index].advance(gate, at: now)
        machines[index].moveEffects(to: &effects)
        plans[index] = Plan(isTouched: false, times: machines[index].times(gate, at: now))
    }

    /// Adds the times at which destinations need the timer.
    func addTimers(to next: inout NextPoint) { for plan in plans { next.take(plan.times.timer) } }

    // MARK: Questions

    func contains(_ name: DestinationName) -> Bool { index(of: name) != nil }

    /// A property of a machine, without copying the machine; nil if the name is unknown.
    @inline(__always)
    func look<Result>(_ name: DestinationName, _ say: (DestinationMachine) -> Result?) -> Result? {
        guard let index = index(of: name) else { return nil }
        // The subscript of an array may copy the element that it returns, that of a buffer never does.
        return machines.withUnsafeBufferPointer { say($0[index]) }
    }

    /// Whether any machine meets a condition.
    @inline(__always)
    func contains(where isSo: (DestinationMachine) -> Bool) -> Bool {
        machines.withUnsafeBufferPointer { machines in
            for index in machines.indices where isSo(machines[index]) { return true }
            return false
        }
    }

    private func index(of name: DestinationName) -> Int? {
        let index = lowerBound(of: name)
        return index < names.count && names[index] == name ? index : nil
    }

    /// Index of the first name that is not before a name.
    private func lowerBound(of name: DestinationName) -> Int {
        var range = 0..<names.count
        while !range.isEmpty {
            let middle = range.lowerBound + range.count / 2
            range = names[middle] < name ? middle + 1..<range.upperBound : range.lowerBound..<middle
        }
        return range.lowerBound
    }
}
