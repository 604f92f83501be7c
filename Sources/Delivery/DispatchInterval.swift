internal import EventLoops
internal import Model

extension DispatchInterval {
    /// The interval that a duration means: zero and less is off.
    ///
    /// - Throws: `DeliveryError` with code `invalidInterval` above zero and below 1 s, or above a day.
    init(_ duration: Duration) throws(DeliveryError) {
        switch duration {
        case ...Duration.zero:
            self = .off
        case DispatchInterval.range:
            self = .every(duration)
        default:
            throw DeliveryError(
                .invalidInterval, "the dispatch interval is \(duration); give \"off\", or 1s to 1d with a unit")
        }
    }

    /// The text that is kept beyond a restart.
    var kept: String {
        switch self {
        case .off: "off"
        // bounded: an interval is a day at most.
        case .every(let duration): "\(duration.components.seconds * 1000 + duration.milliseconds) ms"
        }
    }

    /// The interval of a kept text; nil for any other.
    init?(kept: String) {
        if kept == "off" {
            self = .off
            return
        }
        let words = kept.split(separator: " ")
        guard words.count == 2, words[1] == "ms", let milliseconds = Int64(words[0]),
            let interval = try? DispatchInterval(.milliseconds(milliseconds))
        else { return nil }
        self = interval
    }
}

extension Duration {
    /// The part of the length below a second, in milliseconds.
    fileprivate var milliseconds: Int64 { components.attoseconds / 1_000_000_000_000_000 }
}
