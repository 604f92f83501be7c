internal import EventLoops
internal import Model

extension DispatchInterval {
    /// Text that keeps the interval for the next start: `off`, or milliseconds such as `6000 ms`.
    var kept: String {
        switch self {
        case .off: "off"
        case .every(let duration): "\(duration.nanosecondsClamped / 1_000_000) ms"
        }
    }

    /// The interval of such a text; nil if the text is malformed or the interval is outside the allowed
    /// range.
    init?(kept: String) {
        let words = kept.split(separator: " ")
        if kept == "off" {
            self = .off
        } else if words.count == 2, words[1] == "ms", let milliseconds = Int64(words[0]),
            DispatchInterval.range.contains(.milliseconds(milliseconds))
        {
            self = .every(.milliseconds(milliseconds))
        } else {
            return nil
        }
    }
}
