internal import Synchronization

/// A bound for all bodies that are being received, over all connections of the servers that share it.
/// Thread-safe.
package final class BodyRoom: Sendable {
    /// Most bytes.
    let most: Int
    /// Bytes that have arrived, of requests that are not complete.
    private let used = Atomic<Int>(0)

    /// - Parameter most: most bytes.
    package init(bytes most: Int) { self.most = most }

    /// A server has more or fewer bytes than before; false if all servers together have more than the bound.
    func change(by bytes: Int) -> Bool { used.add(bytes, ordering: .relaxed).newValue <= most }
}
