internal import Configuration
internal import EventLoops
internal import Synchronization

/// How reloading went.
struct Reloads: Sendable {
    /// Why the last one failed; nil when it did not.
    var problem: String?
    /// When a configuration was last taken.
    var lastSuccess: Timestamp
    /// How many events had been discarded for want of a destination by then: those since are a reason not to be ready.
    var withoutDestination = 0
    /// The configuration that was taken.
    var configured: Settings
    /// The one of the start: of what needs a restart it is in force.
    let started: Settings
}

/// How reloading went: written by the agent, read from any thread.
final class SharedReloads: Sendable {
    private let reloads: Mutex<Reloads>

    init(_ configured: Settings, at time: Timestamp) {
        reloads = Mutex(Reloads(lastSuccess: time, configured: configured, started: configured))
    }

    func withLock<Value>(_ body: (inout sending Reloads) -> sending Value) -> sending Value {
        reloads.withLock(body)
    }
}
