internal import Control
internal import EventLoops

/// How far a backfill has come, at what rate, and how long it will take. Pure: the time is passed in.
struct BackfillProgress {
    /// The rate is that of so long before now.
    private static let window = Duration.seconds(20)

    /// The size of all files in bytes, as they lie on the disk.
    let total: Int64
    private(set) var done: Int64 = 0
    private(set) var events = 0
    /// Why nothing goes on, if so.
    var obstacle: String?
    private let start: BootInstant
    private var samples: [(time: BootInstant, done: Int64, events: Int)]

    /// - Parameter done: bytes that earlier runs have taken.
    init(total: Int64, at now: BootInstant) {
        self.total = total
        start = now
        samples = [(now, 0, 0)]
    }

    /// Counts bytes that an earlier run has taken: they are no part of the rate.
    mutating func skip(_ bytes: Int64) {
        done += bytes
        for index in samples.indices { samples[index].done += bytes }
    }

    /// Notes how far it has come.
    mutating func reached(_ done: Int64, events: Int, at now: BootInstant) {
        self.done = done
        self.events += events
        if now - (samples.last?.time ?? start) >= .seconds(1) { samples.append((now, done, self.events)) }
        while samples.count > 2, now - samples[0].time > BackfillProgress.window { samples.removeFirst() }
    }

    /// `42 %, 12,431 events, 8,123/s, 3.2 MiB/s, 1m12s left`.
    func text(at now: BootInstant) -> String {
        var parts = ["\(total > 0 ? min(100, done * 100 / total) : 100) %", HumanText.plural(events, "event")]
        if let obstacle { return (parts + ["waiting: \(obstacle)"]).joined(separator: ", ") }
        let first = samples.first ?? (start, 0, 0)
        let seconds = Double((now - first.time) / .milliseconds(1)) / 1000
        if seconds >= 1, done > first.done {
            let bytes = Double(done - first.done) / seconds
            parts += [HumanText.rate(Double(events - first.events) / seconds), "\(HumanText.bytes(Int(bytes)))/s"]
            if done < total { parts.append("\(HumanText.duration(.seconds(Double(total - done) / bytes))) left") }
        }
        return parts.joined(separator: ", ")
    }
}
