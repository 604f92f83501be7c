internal import Configuration
internal import EventLoops

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
