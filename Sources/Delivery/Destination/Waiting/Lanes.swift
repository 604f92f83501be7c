public import Model

/// One value for each priority.
public struct PerPriority<Value> {
    package var critical: Value
    package var normal: Value

    /// The value of a priority.
    public subscript(priority: Priority) -> Value {
        get { priority == .critical ? critical : normal }
        set { if priority == .critical { critical = newValue } else { normal = newValue } }
    }
}

extension PerPriority {
    /// The same value for both.
    public init(both value: Value) { self.init(critical: value, normal: value) }
}

extension PerPriority: Sendable where Value: Sendable {}
extension PerPriority: Equatable where Value: Equatable {}

/// The two lanes of a destination, as the queue summarises them.
public typealias Lanes = PerPriority<LaneSummary>

extension Lanes {
    /// Two empty lanes.
    public init() { self.init(both: LaneSummary()) }

    /// All events that wait, in batches or not.
    public var events: Int { critical.events + normal.events }
}

extension LaneSummary {
    /// All events that wait, in batches or not.
    var events: Int { waitingEvents + batchedEvents }
}

extension Priority {
    /// Both priorities, in the order in which they are sent.
    static let inOrder: [Priority] = [.critical, .normal]
}
