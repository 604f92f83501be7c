internal import Control
internal import EventLoops
internal import Model

/// How far a backfill has come, at what rate, and how long it will take. Pure: the time is passed in.
struct BackfillProgress {
    /// The rate is that of so long before now.
    private static let window = Duration.seconds(20)

    /// The size of all files in bytes, as they are on the disk.
    let total: ByteCount
    private(set) var taken: ByteCount = 0
    private(set) var events = 0
    /// Why nothing goes on, if so.
    var obstacle: String?
    private let start: BootInstant
    private var samples: [(time: BootInstant, done: ByteCount, events: Int)]

    init(total: Int64, at now: BootInstant) {
        self.total = ByteCount(total)
        start = now
        samples = [(now, 0, 0)]
    }

    /// Counts bytes that an earlier run has taken: they are no part of the rate.
    mutating func skip(_ bytes: Int64) {
        let bytes = ByteCount(bytes)
        taken += bytes
        for index in samples.indices { samples[index].done += bytes }
    }

    mutating func reached(_ done: Int64, events: Int, at now: BootInstant) {
        let done = ByteCount(done)
        taken = done
        self.events += events
        if now - (samples.last?.time ?? start) >= .seconds(1) { samples.append((now, done, self.events)) }
        while samples.count > 2, now - samples[0].time > BackfillProgress.window { samples.removeFirst() }
    }

    /// `42 %, 12,431 events, 8,123/s, 3.2 MiB/s, 1m12s left`.
    func text(at now: BootInstant) -> String {
        // Of files that hold nothing the sizes are what their owner likes.
        let share = total > 0 ? min(100, Int(100 * (Double(taken.value) / Double(total.value)))) : 100
        var parts = ["\(share) %", HumanText.plural(events, "event")]
        if let obstacle { return (parts + ["waiting: \(obstacle)"]).joined(separator: ", ") }
        let first = samples.first ?? (start, 0, 0)
        let seconds = Double((now - first.time) / .milliseconds(1)) / 1000
        if seconds >= 1, taken > first.done {
            let bytes = min(1e15, Double((taken - first.done).value) / seconds)
            parts += [HumanText.rate(Double(events - first.events) / seconds), "\(HumanText.bytes(Int(bytes)))/s"]
            if taken < total {
                parts.append("\(HumanText.duration(.seconds(min(1e9, Double((total - taken).value) / bytes)))) left")
            }
        }
        return parts.joined(separator: ", ")
    }
}
