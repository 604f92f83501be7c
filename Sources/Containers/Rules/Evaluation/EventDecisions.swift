internal import EventLoops
internal import Model

/// What the tags have decided about an event: everything but its text.
struct EventDecisions {
    /// The event's priority.
    private(set) var priority = Priority.normal
    /// The destinations that containers chose, sorted; nil leaves the choice to the configuration.
    private(set) var destinations: [String]?
    /// Calls of functions that tags asked for, to be made when the event is durable.
    private(set) var calls: [FunctionCall] = []
    /// Calls that tags gave to the event's app.
    private(set) var offers: [AppCall] = []

    /// Whether tags asked for calls.
    var hasCalls: Bool { !calls.isEmpty || !offers.isEmpty }

    /// Begins an event with its own priority. An empty field is not written, which costs less.
    @inline(__always)
    mutating func begin(_ priority: Priority) {
        self.priority = priority
        if destinations != nil {
            destinations = nil
        }
    }

    /// Forgets the calls of the last event or push.
    @inline(__always)
    mutating func forgetCalls() {
        if !calls.isEmpty {
            calls = []
        }
        if !offers.isEmpty {
            offers = []
        }
    }

    /// Adds destinations, each once.
    mutating func ship(to names: [String]) { destinations = Set((destinations ?? []) + names).sorted() }

    /// Replaces the priority.
    mutating func prioritise(_ priority: Priority) { self.priority = priority }

    /// Adds a call.
    mutating func call(_ call: FunctionCall) { calls.append(call) }

    /// Adds a call for the app.
    mutating func offer(_ call: AppCall) { offers.append(call) }
}
