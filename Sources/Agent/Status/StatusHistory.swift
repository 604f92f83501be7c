internal import EventLoops
internal import Model
internal import Synchronization

/// The figures of the last hour, about one sample a minute: for the plots of the status page, and to estimate
/// when the queue reaches its cap.
///
/// A pure value. No timer takes samples: code that has figures anyway adds them, and an idle hour has few
/// samples.
struct StatusHistory: Sendable, Equatable {
    /// The sums over all lanes at one moment.
    struct Sample: Sendable, Equatable {
        /// When the sample was taken.
        var at: Timestamp
        /// Deliveries accepted since the queue was made.
        var accepted: Int
        /// Deliveries acknowledged since the queue was made.
        var acknowledged: Int
        /// Deliveries that wait.
        var queued: Int
        /// Size of the queue.
        var bytes: Int
    }

    /// How long samples are kept.
    static let length: Duration = .seconds(3600)

    /// The samples, oldest first. The first may be older than an hour, so that a plot begins at its left
    /// edge.
    private(set) var samples: [Sample] = []

    /// Adds a sample. A sample within a minute replaces the one before, so the number of samples is bounded.
    /// If the clock was set back, all older samples are removed.
    mutating func add(_ sample: Sample) {
        if let last = samples.last, sample.at < last.at {
            samples.removeAll()
        }
        if samples.count >= 2, sample.at - samples[samples.count - 2].at <= .seconds(60) {
            samples.removeLast()
        }
        samples.append(sample)
        let start = sample.at - StatusHistory.length
        while samples.count > 2, samples[1].at <= start { samples.removeFirst() }
    }

    /// Growth of the queue over the last ten minutes, in bytes a second; nil until samples span a minute.
    var growth: Double? {
        guard let last = samples.last, let first = samples.first(where: { last.at - $0.at <= .seconds(600) })
        else {
            return nil
        }
        let seconds = Double((last.at - first.at).nanosecondsClamped) / 1e9
        return seconds >= 60 ? Double(last.bytes - first.bytes) / seconds : nil
    }
}

/// Holds the history that several parts of the agent add to. From any thread; the lock is held for a few
/// additions only.
final class StatusRecorder: Sendable {
    private let state = Mutex(StatusHistory())

    func add(_ sample: StatusHistory.Sample) { state.withLock { $0.add(sample) } }

    /// Takes a sample if the last one is a minute old or the clock was set back: for code that runs often.
    func addIfDue(at now: Timestamp, _ sample: () -> StatusHistory.Sample) {
        state.withLock { history in
            if let last = history.samples.last, now - last.at < .seconds(60), now >= last.at { return }
            history.add(sample())
        }
    }

    /// A copy of the history.
    var history: StatusHistory { state.withLock { $0 } }
}
