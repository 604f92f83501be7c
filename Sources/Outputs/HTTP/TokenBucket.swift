internal import EventLoops

/// Holds a rate: a bucket that fills steadily, holds a second's worth, and is emptied by what is done.
///
/// A pure value: time comes in, waits come out.
struct TokenBucket {
    private let perSecond: Double
    private var available: Double
    private var last: BootInstant

    init(perSecond: Double, at now: BootInstant) {
        self.perSecond = perSecond
        available = max(perSecond, 1)
        last = now
    }

    /// Takes an amount, now or in advance, and says how long to wait before using it.
    ///
    /// Amounts larger than the bucket wait too, and later ones behind them: the rate holds in the long run.
    mutating func take(_ amount: Double, at now: BootInstant) -> Duration {
        let passed = Double(max(0, (now - last).nanosecondsClamped)) / 1e9
        last = now
        available = min(max(perSecond, 1), available + passed * perSecond) - amount
        guard available < 0 else { return .zero }
        return .nanoseconds(Int64(min(-available / perSecond, 86_400) * 1e9))
    }
}
