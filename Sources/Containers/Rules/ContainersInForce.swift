internal import Synchronization

/// The containers whose rules apply now, in the order of the configuration. The code that opens and refreshes
/// containers publishes them; the intake reads them between two events.
///
/// Any thread may do both. A publication takes effect as a whole.
public final class ContainersInForce: Sendable {
    /// The last publication.
    private let published: Mutex<Current>

    /// What is in force, and what is awaited.
    public struct Current: Sendable {
        /// The containers, in the order of the configuration.
        public var containers: [CompiledContainer]
        /// Containers without which events must not be read.
        public var awaited: [AwaitedContainer] = []
        /// Number of the publication, by which readers notice a new one.
        fileprivate var publication = 1
    }

    /// These containers, as the first publication.
    package init(_ containers: [CompiledContainer] = [], awaiting awaited: [AwaitedContainer] = []) {
        published = Mutex(Current(containers: containers, awaited: awaited))
    }

    /// Containers before the configuration was read: no event may be read until the first publication.
    public static func opening() -> ContainersInForce {
        ContainersInForce(awaiting: [AwaitedContainer(id: "", apps: [])])
    }

    /// Puts containers in force, from the next event on.
    public func publish(_ containers: [CompiledContainer], awaiting awaited: [AwaitedContainer] = []) {
        published.withLock {
            $0 = Current(containers: containers, awaited: awaited, publication: $0.publication + 1)
        }
    }

    /// The last publication, if it is newer than number `seen` (0 at first), which is updated; otherwise nil.
    public func news(since seen: inout Int) -> Current? {
        published.withLock { current in
            guard current.publication != seen else { return nil }
            seen = current.publication
            return current
        }
    }
}

/// A container without which events must not be read: it is required or being opened, and no document of it
/// is in force.
public struct AwaitedContainer: Sendable, Equatable {
    /// Id of the container; empty while the configuration is being read.
    public let id: String
    /// The apps that it concerns; empty for all.
    public let apps: Set<String>
    /// True if it is not known what this container hides: nothing of an app may be kept as it came. False
    /// only for `reload`.
    package let mayHide: Bool

    /// A container for which reading waits.
    package init(id: String, apps: Set<String>) {
        self.init(id: id, apps: apps, mayHide: true)
    }

    private init(id: String, apps: Set<String>, mayHide: Bool) {
        self.id = id
        self.apps = apps
        self.mayHide = mayHide
    }

    /// A reload that is being applied: no event may be read, but the containers in force are those before
    /// it or those after it, so what they hide is known.
    public static let reload = AwaitedContainer(id: "", apps: [], mayHide: false)

    package func concerns(_ app: String) -> Bool { apps.isEmpty || apps.contains(app) }
}
