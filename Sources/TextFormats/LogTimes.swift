internal import EventLoops
internal import Glibc
internal import TimeZones

/// The times of a log of this machine: their zone, the current time, and the time that was read last.
///
/// The next line often has the same text as the last one, and parsing is dearer than comparing.
struct LogTimes {
    /// The zone for times that do not name one. Setting it forgets the last time, whose text may now mean
    /// another time.
    var zone = TimeZoneRules.utc {
        didSet {
            isUTC = zone.isAlwaysUTC
            forget()
        }
    }
    /// Whether `zone` is UTC; a shortcut, because then no rules of a zone are needed.
    private var isUTC = true
    /// The current time. Times without a year or a date mean the one that is nearest to it. Setting it
    /// forgets the last time.
    var now = Timestamp(nanoseconds: 0) {
        didSet { forget() }
    }
    /// Text of the time that was read last; empty if none is known.
    private var lastText: [UInt8] = []
    /// The time that `lastText` says.
    private var lastTime = Timestamp(nanoseconds: 0)

    /// The time of a text; nil if it is not one. Letters of zones are accepted, as `TextTime` says.
    @inline(__always)
    mutating func time(of text: Bytes) -> Timestamp? {
        if text.count == lastText.count, text.count > 0,
            lastText.withUnsafeBytes({
                memcmp($0.baseAddress.unsafelyUnwrapped, text.start, text.count) == 0
            })
        {
            return lastTime
        }
        let time = TextTime.parse(text, zone: zone, isUTC: isUTC, now: now, takesLetters: true)
        guard let time else { return nil }
        remember(time, text)
        return time
    }

    /// Keeps a time with its text. Out of line, because most lines do not come here.
    @inline(never)
    private mutating func remember(_ time: Timestamp, _ text: Bytes) {
        lastText.removeAll(keepingCapacity: true)
        lastText.append(contentsOf: text.buffer)
        lastTime = time
    }

    private mutating func forget() { lastText.removeAll(keepingCapacity: true) }
}
