internal import EventLoops

/// The present time on both clocks. Waits use the boot clock; what must survive a restart uses the time of
/// day.
struct Moment: Sendable, Hashable {
    /// Time since boot, CLOCK_BOOTTIME (clock_gettime(2)): cannot be set, and counts a suspended machine.
    let boot: BootInstant
    /// Time of day; may jump in both directions.
    let wall: Timestamp
}

extension Moment {
    init(_ time: some TimeSource) { self.init(boot: time.bootTime, wall: time.wallTime) }
}

/// The earliest of several times that lie in the future: when the one timer has to fire.
struct NextPoint {
    private let now: BootInstant
    /// The earliest time so far; nil if no time lies ahead.
    private(set) var point: BootInstant?

    init(after now: BootInstant) { self.now = now }

    /// Considers a time. A time that has passed, or nil, changes nothing: otherwise the timer would fire
    /// without end.
    mutating func take(_ candidate: BootInstant?) {
        guard let candidate, candidate > now else { return }
        point = min(point ?? candidate, candidate)
    }
}
