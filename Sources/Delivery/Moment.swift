internal import EventLoops

/// Now, on both clocks: waits go by the first, what must survive a restart by the second.
struct Moment: Sendable, Hashable {
    /// The clock that nobody can set.
    let boot: BootInstant
    let wall: Timestamp
}

extension Moment {
    init(_ time: some TimeSource) { self.init(boot: time.bootTime, wall: time.wallTime) }
}

/// The earliest of some points that are ahead.
struct NextPoint {
    private let now: BootInstant
    /// Nil: none is ahead.
    private(set) var point: BootInstant?

    init(after now: BootInstant) { self.now = now }

    /// Takes one into account; what has passed, or is nil, changes nothing.
    mutating func take(_ candidate: BootInstant?) {
        guard let candidate, candidate > now else { return }
        point = min(point ?? candidate, candidate)
    }
}
