internal import Synchronization

/// The containers whose rules apply now, in configuration order (tm17): written by whoever opens and refreshes them, read
/// by the intake between two events.
///
/// Any thread may do either. A new version takes over as a whole.
public final class ContainersInForce: Sendable {
    private let published: Mutex<[CompiledContainer]>

    /// Containers in force; none at first.
    public init(_ containers: [CompiledContainer] = []) { published = Mutex(containers) }

    /// The containers in force, in configuration order.
    public var current: [CompiledContainer] { published.withLock { $0 } }

    /// Puts these in force, from the next event on.
    public func publish(_ containers: [CompiledContainer]) { published.withLock { $0 = containers } }
}
