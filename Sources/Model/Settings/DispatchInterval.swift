/// When events are sent unprompted: never, or at the latest this long after they were accepted.
///
/// Source: Google Analytics' dispatch interval and App Center's transmission interval (ac02, ga02).
public enum DispatchInterval: Sendable, Hashable, CustomStringConvertible {
    /// Nothing is sent unprompted; only `dispatch` and `drain` send.
    case off
    /// Events wait at most so long, from 1 s to 86,400 s.
    case every(Duration)

    /// The shortest and the longest interval.
    public static let range: ClosedRange<Duration> = .seconds(1) ... .seconds(86_400)

    /// 6 s.
    public static let standard = DispatchInterval.every(.seconds(6))

    /// `off`, or the duration.
    public var description: String {
        switch self {
        case .off: "off"
        case .every(let duration): "\(duration)"
        }
    }
}
