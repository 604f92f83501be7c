internal import EventLoops
internal import Model
internal import Synchronization

/// The last hour in figures, about one sample a minute: for the plots of the status page and the estimate of when the cap is reached.
///
/// A pure value. Nothing wakes up to sample: code that has figures adds them, and an idle hour has few samples.
struct StatusHistory: Sendable, Equatable {
    struct Sample: Sendable, Equatable {
        var at: Timestamp
        var accepted: Int
        var acknowledged: Int
        var queued: Int
        var bytes: Int
    }

    /// How far it goes back.
    static let length: Duration = .seconds(3600)

    /// The samples, oldest first; the first may be before the hour, so that its first minute has a beginning.
    private(set) var samples: [Sample] = []

    /// Takes a sample. Within a minute the newest replaces the one before; a clock that was set back starts again.
    mutating func add(_ sample: Sample) {
        if let last = samples.last, sample.at < last.at { samples.removeAll() }
        if samples.count >= 2, sample.at - samples[samples.count - 2].at <= .seconds(60) { samples.removeLast() }
        samples.append(sample)
        let start = sample.at - StatusHistory.length
        while samples.count > 2, samples[1].at <= start { samples.removeFirst() }
    }

    /// How fast the queue grew over the last ten minutes, in bytes a second; nil until a minute is known.
    var growth: Double? {
        guard let last = samples.last, let first = samples.first(where: { last.at - $0.at <= .seconds(600) }) else {
            return nil
        }
        let seconds = Double((last.at - first.at).nanosecondsClamped) / 1e9
        return seconds >= 60 ? Double(last.bytes - first.bytes) / seconds : nil
    }
}

/// The history that several parts of the agent add to. From any thread; the lock is held for a few additions only.
final class StatusRecorder: Sendable {
    private let state = Mutex(StatusHistory())

    func add(_ sample: StatusHistory.Sample) { state.withLock { $0.add(sample) } }

    /// Takes a sample if the last one is a minute old: for code that has figures often.
    func addIfDue(at now: Timestamp, _ sample: () -> StatusHistory.Sample) {
        state.withLock { history in
            if let last = history.samples.last, now - last.at < .seconds(60), now >= last.at { return }
            history.add(sample())
        }
    }

    var history: StatusHistory { state.withLock { $0 } }
}
