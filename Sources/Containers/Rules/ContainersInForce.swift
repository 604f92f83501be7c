internal import Synchronization

/// The containers whose rules apply now, in configuration order (tm17): written by the code that opens and refreshes
/// them, read by the intake between two events.
///
/// Any thread may do either. A new version takes over as a whole.
public final class ContainersInForce: Sendable {
    private let published: Mutex<Current>

    /// What is in force, and what is awaited.
    public struct Current: Sendable {
        /// The containers, in configuration order.
        public var containers: [CompiledContainer]
        /// Containers without which events are not to be read.
        public var awaited: [AwaitedContainer] = []
        /// Counts what was published.
        fileprivate var publication = 1
    }

    package init(_ containers: [CompiledContainer] = [], awaiting awaited: [AwaitedContainer] = []) {
        published = Mutex(Current(containers: containers, awaited: awaited))
    }

    /// Nothing that is known yet: until the first publication no event is to be read.
    public static func opening() -> ContainersInForce {
        ContainersInForce(awaiting: [AwaitedContainer(id: "", apps: [])])
    }

    /// Puts these in force, from the next event on.
    public func publish(_ containers: [CompiledContainer], awaiting awaited: [AwaitedContainer] = []) {
        published.withLock {
            $0 = Current(containers: containers, awaited: awaited, publication: $0.publication + 1)
        }
    }

    /// What is in force, if it was published after what the reader saw last (0 at first), which is brought up to date.
    public func news(since seen: inout Int) -> Current? {
        published.withLock { current in
            guard current.publication != seen else { return nil }
            seen = current.publication
            return current
        }
    }
}

/// A container without which events must not be read: it is required, or being opened, and no document of it is in force.
public struct AwaitedContainer: Sendable, Equatable {
    /// Its id; empty while the configuration is being taken up.
    public let id: String
    /// The apps that it concerns; empty for all.
    public let apps: Set<String>

    package init(id: String, apps: Set<String>) {
        self.id = id
        self.apps = apps
    }
}
