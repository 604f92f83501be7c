/// When events are sent unprompted: never, or at the latest this long after their acceptance. The same
/// idea is called dispatch interval in Google Analytics and transmission interval in App Center.
public enum DispatchInterval: Sendable, Hashable, CustomStringConvertible {
    /// Nothing is sent unprompted, only by `dispatch` and `drain`.
    case off
    /// Events wait at most this long, from 1 s to 86,400 s.
    case every(Duration)

    /// Shortest and longest interval.
    public static let range: ClosedRange<Duration> = .seconds(1) ... .seconds(86_400)

    /// The default: 6 s.
    public static let standard = DispatchInterval.every(.seconds(6))

    /// `off`, or the duration.
    public var description: String {
        switch self {
        case .off: "off"
        case .every(let duration): "\(duration)"
        }
    }
}
