internal import EventLoops

/// Now, on both clocks: waits go by the first, what must survive a restart by the second.
struct Moment: Sendable, Hashable {
    /// The clock that nobody can set.
    let boot: BootInstant
    /// The time of day.
    let wall: Timestamp

    init(boot: BootInstant, wall: Timestamp) {
        self.boot = boot
        self.wall = wall
    }

    init(_ time: some TimeSource) {
        boot = time.bootTime
        wall = time.wallTime
    }
}
