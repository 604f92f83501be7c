internal import EventLoops

/// A wait that survives a restart: its length, and the time of day when it ends, both in milliseconds.
///
/// The length bounds what is left: a clock set back during the restart never prolongs the wait. A clock set
/// forward ends it.
enum KeptWait {
    /// Text of a wait that begins now.
    static func value(of wait: Duration, at now: Moment) -> String {
        "\(wait.nanosecondsClamped / 1_000_000) \((now.wall + wait).milliseconds)"
    }

    /// What is left of a wait; nil for a malformed text.
    static func left(of value: String, at now: Moment) -> Duration? {
        let numbers = value.split(separator: " ").compactMap { Int64($0) }
        guard numbers.count == 2 else { return nil }
        let left = Timestamp(milliseconds: numbers[1]) - now.wall
        return max(.zero, min(left, .milliseconds(max(0, min(numbers[0], 1 << 50)))))
    }
}
