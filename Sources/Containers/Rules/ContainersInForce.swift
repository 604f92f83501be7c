internal import Synchronization

/// The containers whose rules apply now, in configuration order (tm17): written by whoever opens and refreshes them, read
/// by the intake between two events.
///
/// Any thread may do either. A new version takes over as a whole.
public final class ContainersInForce: Sendable {
    private struct State {
        var containers: [CompiledContainer]
        var publications = 1
    }
    private let published: Mutex<State>

    /// Containers in force; none at first.
    public init(_ containers: [CompiledContainer] = []) { published = Mutex(State(containers: containers)) }

    /// The containers in force, in configuration order.
    public var current: [CompiledContainer] { published.withLock { $0.containers } }

    /// Puts these in force, from the next event on.
    public func publish(_ containers: [CompiledContainer]) {
        published.withLock { state in
            state.containers = containers
            state.publications += 1
        }
    }

    /// The containers in force, if they were published after the reader looked last.
    ///
    /// - Parameter seen: what the reader saw last, 0 at first; brought up to date.
    public func news(since seen: inout Int) -> [CompiledContainer]? {
        published.withLock { state in
            guard state.publications != seen else { return nil }
            seen = state.publications
            return state.containers
        }
    }
}
