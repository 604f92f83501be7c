internal import CLinux
internal import Glibc

/// A point on the clock that counts from the machine's start, suspended time included: for waits.
///
/// Nobody can set this clock, so a wait neither ends early nor hangs when the time of day is corrected.
/// Its points mean nothing in another boot: what must survive a restart is a `Timestamp`.
public struct BootInstant: Sendable, Hashable, Comparable {
    /// Nanoseconds since the machine started.
    public let nanoseconds: Int64

    /// A point so many nanoseconds after the machine's start.
    public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    /// Whether the left point comes first.
    public static func < (left: BootInstant, right: BootInstant) -> Bool { left.nanoseconds < right.nanoseconds }
    /// The point so much later, at most the end of the range.
    public static func + (left: BootInstant, right: Duration) -> BootInstant {
        BootInstant(nanoseconds: left.nanoseconds.addingSaturating(right.nanosecondsClamped))
    }
    /// The time from the right point to the left one.
    public static func - (left: BootInstant, right: BootInstant) -> Duration {
        .nanoseconds(left.nanoseconds.subtractingSaturating(right.nanoseconds))
    }
}

/// A point in time of day (UTC): for what events say, and for what must survive a restart.
public struct Timestamp: Sendable, Hashable, Comparable {
    /// Nanoseconds since 1970-01-01T00:00:00Z, leap seconds not counted; enough for the years 1678 to 2262.
    public let nanoseconds: Int64

    /// A point so many nanoseconds after 1970-01-01T00:00:00Z.
    public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    /// A point so many milliseconds after 1970-01-01T00:00:00Z; what is beyond the range becomes its end.
    public init(milliseconds: Int64) {
        nanoseconds = milliseconds.multipliedSaturating(by: 1_000_000)
    }

    /// A point as the kernel gives it; beyond the range, as anyone may date a file, it becomes the range's end.
    public init(seconds: Int, nanoseconds: Int) {
        self.nanoseconds = Int64(seconds).multipliedSaturating(by: 1_000_000_000).addingSaturating(Int64(nanoseconds))
    }

    /// Milliseconds since 1970-01-01T00:00:00Z, rounded down.
    public var milliseconds: Int64 { nanoseconds.floored(by: 1_000_000).quotient }

    /// Whether the left point comes first.
    public static func < (left: Timestamp, right: Timestamp) -> Bool { left.nanoseconds < right.nanoseconds }
    /// The point so much later, at most the end of the range.
    public static func + (left: Timestamp, right: Duration) -> Timestamp {
        Timestamp(nanoseconds: left.nanoseconds.addingSaturating(right.nanosecondsClamped))
    }
    /// The point so much earlier, at least the beginning of the range.
    public static func - (left: Timestamp, right: Duration) -> Timestamp {
        // The negative of the least number is none.
        Timestamp(nanoseconds: left.nanoseconds.addingSaturating(-max(-.max, right.nanosecondsClamped)))
    }
    /// The time from the right point to the left one.
    public static func - (left: Timestamp, right: Timestamp) -> Duration {
        .nanoseconds(left.nanoseconds.subtractingSaturating(right.nanoseconds))
    }
}

/// Where time comes from. Code that needs time takes one of these; tests pass a clock that they move by hand.
public protocol TimeSource: Sendable {
    /// Now, on the clock for waits.
    var bootTime: BootInstant { get }
    /// Now, in time of day.
    var wallTime: Timestamp { get }
}

/// The kernel's clocks.
public struct SystemTime: TimeSource {
    /// The clocks need no setting up.
    public init() {}

    /// `CLOCK_BOOTTIME`.
    public var bootTime: BootInstant { BootInstant(nanoseconds: SystemTime.read(CLOCK_BOOTTIME)) }

    /// `CLOCK_REALTIME`.
    public var wallTime: Timestamp { Timestamp(nanoseconds: SystemTime.read(CLOCK_REALTIME)) }

    /// `CLOCK_MONOTONIC` in microseconds, which systemd asks for when a reload begins.
    public var monotonicMicroseconds: Int64 { SystemTime.read(CLOCK_MONOTONIC) / 1000 }

    private static func read(_ clock: Int32) -> Int64 {
        var time = timespec()
        guard clock_gettime(clock, &time) == 0 else { preconditionFailure("the kernel has no clock \(clock)") }
        // bounded: by the type that they become.
        return Timestamp(seconds: time.tv_sec, nanoseconds: time.tv_nsec).nanoseconds
    }
}

extension Duration {
    /// The length in nanoseconds; what does not fit becomes the nearest that does, and can be negated.
    public var nanosecondsClamped: Int64 {
        let (seconds, attoseconds) = components
        let whole = seconds.multipliedSaturating(by: 1_000_000_000)
        return max(-.max, whole.addingSaturating(attoseconds / 1_000_000_000))
    }
}
