internal import Control
internal import EventLoops
internal import Model

/// The progress of a backfill: its share, its rate, and how long the rest will take. The time is passed in,
/// so that tests need no clock.
struct BackfillProgress {
    /// The rate is the average of the last 20 seconds: long enough to be steady, short enough to follow a
    /// change.
    private static let window = Duration.seconds(20)

    /// The size of all files in bytes, as they are on the disk (compressed files count compressed).
    let total: ByteCount
    /// Number of these bytes that the agent has accepted.
    private(set) var taken: ByteCount = 0
    /// How many events were read in this run.
    private(set) var events = 0
    /// Why the agent accepts nothing now; nil while it accepts lines.
    var obstacle: String?
    /// When the run began.
    private let start: BootInstant
    /// The state at earlier times, at least a second apart; the first is where the window of the rate begins.
    private var samples: [(time: BootInstant, done: ByteCount, events: Int)]

    /// - Parameter total: the size of all files in bytes.
    init(total: Int64, at now: BootInstant) {
        self.total = ByteCount(total)
        start = now
        samples = [(now, 0, 0)]
    }

    /// Counts bytes that an earlier run has shipped. They must not raise the rate, so all samples are moved
    /// along.
    mutating func skip(_ bytes: Int64) {
        let bytes = ByteCount(bytes)
        taken += bytes
        for index in samples.indices { samples[index].done += bytes }
    }

    /// Records that a position was reached.
    ///
    /// - Parameters:
    ///   - done: the position in all files together, in bytes.
    ///   - events: how many events were read since the last call.
    mutating func reached(_ done: Int64, events: Int, at now: BootInstant) {
        let done = ByteCount(done)
        taken = done
        self.events += events
        if now - (samples.last?.time ?? start) >= .seconds(1) {
            samples.append((now, done, self.events))
        }
        while samples.count > 2, now - samples[0].time > BackfillProgress.window { samples.removeFirst() }
    }

    /// The line that is shown: `42 %, 12,431 events, 8,123/s, 3.2 MiB/s, 1m12s left`.
    func text(at now: BootInstant) -> String {
        // The sizes of sparse files can be anything up to 2^63 - 1: their sum is calculated as `Double`, and
        // bounded.
        let share = total > 0 ? min(100, Int(100 * (Double(taken.value) / Double(total.value)))) : 100
        var parts = ["\(share) %", HumanText.plural(events, "event")]
        if let obstacle { return (parts + ["waiting: \(obstacle)"]).joined(separator: ", ") }
        let first = samples.first ?? (start, 0, 0)
        let seconds = Double((now - first.time) / .milliseconds(1)) / 1000
        if seconds >= 1, taken > first.done {
            let bytes = min(1e15, Double((taken - first.done).value) / seconds)
            parts += [
                HumanText.rate(Double(events - first.events) / seconds), "\(HumanText.bytes(Int(bytes)))/s",
            ]
            if taken < total {
                parts.append(
                    "\(HumanText.duration(.seconds(min(1e9, Double((total - taken).value) / bytes)))) left")
            }
        }
        return parts.joined(separator: ", ")
    }
}
