internal import EventLoops
internal import Model

extension DispatchInterval {
    /// The text that is kept beyond a restart.
    var kept: String {
        switch self {
        case .off: "off"
        case .every(let duration): "\(duration.nanosecondsClamped / 1_000_000) ms"
        }
    }

    /// The interval of a kept text; nil for any other.
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
