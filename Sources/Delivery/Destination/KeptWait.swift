internal import EventLoops

/// A wait that survives a restart: its length and the time of day when it ends, in milliseconds.
///
/// A clock that was set back never makes it longer than it was; one that was set forward ends it.
enum KeptWait {
    static func value(of wait: Duration, at now: Moment) -> String {
        "\(wait.nanosecondsClamped / 1_000_000) \((now.wall + wait).milliseconds)"
    }

    /// How much of it is left; nil for a text that is none.
    static func left(of value: String, at now: Moment) -> Duration? {
        let numbers = value.split(separator: " ").compactMap { Int64($0) }
        guard numbers.count == 2 else { return nil }
        let left = Timestamp(milliseconds: numbers[1]) - now.wall
        return max(.zero, min(left, .milliseconds(max(0, min(numbers[0], 1 << 50)))))
    }
}
