internal import Control

/// Whether events are collected, and what is being done about it. One command at a time: two, one in each
/// direction, could end with events collected and none sent.
struct CollectionSwitch {
    /// What is under way.
    enum Work {
        /// A command to enable or disable is running.
        case switching
        /// Queued events are being deleted because collection was turned off. After a large backlog this
        /// takes minutes.
        case discarding
    }

    /// Whether events are collected; stored in the queue.
    private(set) var isOn: Bool
    private(set) var work: Work?

    init(isOn: Bool = true) { self.isOn = isOn }

    /// Begins a command; refused while something is under way. `end` must follow.
    mutating func begin() throws(ControlRefusal) {
        switch work {
        case nil: work = .switching
        case .switching?:
            throw CollectionSwitch.busy("another enable or disable is running")
        case .discarding?:
            throw CollectionSwitch.busy("queued events are still being deleted")
        }
    }

    private static func busy(_ what: String) -> ControlRefusal {
        ControlRefusal(409, "discarding", "\(what); try again later")
    }

    /// The queue has stored the switch.
    mutating func turn(on isOn: Bool) { self.isOn = isOn }

    /// Queued events are being deleted, by a command or because an earlier process ended meanwhile.
    mutating func beginDiscarding() { work = .discarding }

    /// The command, or the deletion, is over.
    mutating func end() { work = nil }
}
