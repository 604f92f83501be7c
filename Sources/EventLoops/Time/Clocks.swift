internal import CLinux
internal import Glibc

/// A point on the clock that counts from the machine's boot, including time in suspend
/// (CLOCK_BOOTTIME). For waits.
///
/// This clock cannot be set, so a correction of the time of day neither ends a wait early nor prolongs
/// it. Its points have no meaning after a reboot: what must survive a restart is a `Timestamp`.
public struct BootInstant: Sendable, Hashable, Comparable {
    /// Nanoseconds since the machine booted.
    public let nanoseconds: Int64

    /// A point, given in nanoseconds after boot.
    public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    /// Whether the left point is earlier.
    public static func < (left: BootInstant, right: BootInstant) -> Bool {
        left.nanoseconds < right.nanoseconds
    }
    /// A later point; at most the end of the range.
    public static func + (left: BootInstant, right: Duration) -> BootInstant {
        BootInstant(nanoseconds: left.nanoseconds.addingSaturating(right.nanosecondsClamped))
    }
    /// The time from the right point to the left one.
    public static func - (left: BootInstant, right: BootInstant) -> Duration {
        .nanoseconds(left.nanoseconds.subtractingSaturating(right.nanoseconds))
    }
}

/// A point in time of day (UTC, CLOCK_REALTIME): for the times of events, and for what must survive a
/// restart.
public struct Timestamp: Sendable, Hashable, Comparable {
    /// Nanoseconds since 1970-01-01T00:00:00Z without leap seconds; the range covers the years 1678 to
    /// 2262.
    public let nanoseconds: Int64

    /// A point, given in nanoseconds after 1970-01-01T00:00:00Z.
    public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    /// A point, given in milliseconds after 1970-01-01T00:00:00Z; a value beyond the range becomes its
    /// end.
    public init(milliseconds: Int64) {
        nanoseconds = milliseconds.multipliedSaturating(by: 1_000_000)
    }

    /// A point as the kernel returns it. Anyone can date a file beyond the range, which becomes the end
    /// of the range.
    public init(seconds: Int, nanoseconds: Int) {
        self.nanoseconds = Int64(seconds).multipliedSaturating(by: 1_000_000_000).addingSaturating(
            Int64(nanoseconds))
    }

    /// Milliseconds since 1970-01-01T00:00:00Z, rounded down.
    public var milliseconds: Int64 { nanoseconds.floored(by: 1_000_000).quotient }

    /// Whether the left point is earlier.
    public static func < (left: Timestamp, right: Timestamp) -> Bool { left.nanoseconds < right.nanoseconds }
    /// A later point; at most the end of the range.
    public static func + (left: Timestamp, right: Duration) -> Timestamp {
        Timestamp(nanoseconds: left.nanoseconds.addingSaturating(right.nanosecondsClamped))
    }
    /// An earlier point; at least the beginning of the range.
    public static func - (left: Timestamp, right: Duration) -> Timestamp {
        // -Int64.min would overflow.
        Timestamp(nanoseconds: left.nanoseconds.addingSaturating(-max(-.max, right.nanosecondsClamped)))
    }
    /// The time from the right point to the left one.
    public static func - (left: Timestamp, right: Timestamp) -> Duration {
        .nanoseconds(left.nanoseconds.subtractingSaturating(right.nanoseconds))
    }
}

/// The source of time. Code that needs time is given one; tests pass a clock that they move by hand.
public protocol TimeSource: Sendable {
    /// The present point on the boot-time clock.
    var bootTime: BootInstant { get }
    /// The present time of day.
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

    /// `CLOCK_MONOTONIC` in microseconds, which systemd expects when a reload begins (MONOTONIC_USEC,
    /// sd_notify(3)).
    public var monotonicMicroseconds: Int64 { SystemTime.read(CLOCK_MONOTONIC) / 1000 }

    private static func read(_ clock: Int32) -> Int64 {
        var time = timespec()
        guard clock_gettime(clock, &time) == 0 else {
            preconditionFailure("the kernel has no clock \(clock)")
        }
        // bounded: by the type that they become.
        return Timestamp(seconds: time.tv_sec, nanoseconds: time.tv_nsec).nanoseconds
    }
}

extension Duration {
    /// The length in nanoseconds. A length that does not fit becomes the nearest that does and can be
    /// negated.
    public var nanosecondsClamped: Int64 {
        let (seconds, attoseconds) = components
        let whole = seconds.multipliedSaturating(by: 1_000_000_000)
        return max(-.max, whole.addingSaturating(attoseconds / 1_000_000_000))
    }
}
