public import EventLoops
internal import Synchronization

/// Clocks that stand still until a test moves them.
public final class ManualTime: TimeSource {
    private struct State {
        var boot: Int64
        var wall: Int64
    }

    private let state: Mutex<State>

    /// Clocks at the given points.
    ///
    /// - Parameter wall: default 2026-11-20T10:00:00Z.
    public init(wall: Timestamp = Timestamp(milliseconds: 1_795_168_800_000)) {
        state = Mutex(State(boot: 1_000_000_000, wall: wall.nanoseconds))
    }

    /// Now, on the clock for waits.
    public var bootTime: BootInstant { BootInstant(nanoseconds: state.withLock { $0.boot }) }

    /// Now, in time of day.
    public var wallTime: Timestamp { Timestamp(nanoseconds: state.withLock { $0.wall }) }

    /// Lets time pass, on both clocks.
    public func advance(by duration: Duration) {
        state.withLock {
            $0.boot += duration.nanosecondsClamped
            $0.wall += duration.nanosecondsClamped
        }
    }

    /// Sets the time of day, as an administrator or NTP does; the clock for waits goes on.
    public func step(to wall: Timestamp) {
        state.withLock { $0.wall = wall.nanoseconds }
    }
}
