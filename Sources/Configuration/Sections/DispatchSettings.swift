public import Model

/// `[dispatch]`: when batches are sent, and how large they are. Destinations may set most of it for
/// themselves.
public struct DispatchSettings: SettingsSection {
    /// Time between batches that are not full; or off.
    package var interval = DispatchInterval.standard
    /// Largest share of a wait that is left out; nil for half of an interval that nobody has set, and nothing
    /// of one that was set.
    package var jitter: Double?
    /// Number of waiting events at which they are sent without waiting for the interval; 0 if only that
    /// decides.
    package var batchEvents = 50
    /// Most events of a batch.
    package var batchMostEvents = 5_000
    /// Most bytes of a batch before compression, 1 MiB; a larger single event is a batch of its own.
    package var batchSize = 1 << 20
    /// Simultaneous requests to each destination.
    package var parallelBatches = 3
    /// How long a critical event waits for others to join its batch.
    package var criticalDelay = Duration.seconds(3)
    /// Without effect: older configurations need it where `critical_delay` is zero.
    package var allowsZeroDelay = false
    /// Whether a full batch is sent at once. Only older configurations turn it off here.
    package var batchOnSize = true

    /// Value of `batch_events.full`: 0 if a full batch waits for the interval, too.
    private var fullAt: Int {
        get { batchOnSize ? batchEvents : 0 }
        set { batchEvents = newValue }
    }

    static let entries: [Entry<DispatchSettings>] = [
        .pair(
            "interval", .init("every", \.interval, DispatchInterval.settingType),
            .init("jitter", \.jitter, optional: jitterType),
            "Longer saves requests, shorter sends sooner; off sends only by `spoolship dispatch` and `drain`."
                + " 1m for destinations of type s3; `spoolship interval` overrides all. jitter is the largest"
                + " share of the wait that is left out, at each agent's own point, so that a fleet does not"
                + " send at one moment: 0.5 where no interval is set, 0 where one is."),
        .pair(
            "batch_events",
            .init("full", \.fullAt, .count(1...100_000, zero: "only the interval decides")),
            .init("max", \.batchMostEvents, batchEventsType),
            "As soon as full events wait, they are sent; fewer wait for the interval. A batch holds all "
                + "that wait, up to max and batch_size. Higher makes fewer requests; with full = 0 they "
                + "come at known times, however much waits. Both are 50000 for type s3, 50 for format "
                + "app_center, 25 for ga4. For a pager { max = 1 }."
        ),
        .setting("batch_most_events", \.batchMostEvents, batchEventsType, "Now batch_events.max.")
            .renamed(to: "batch_events.max"),
        .setting("batch_on_size", \.batchOnSize, .boolean, "Now batch_events.full = 0.")
            .renamed(to: "batch_events.on_size"),
        .setting(
            "batch_size", \.batchSize, batchSizeType,
            "A batch's size before compression. Lower it for a destination with a small body limit. At most a"
                + " thirty-second of queue.max_size is in force (320KiB of 10MiB); `spoolship check --print`"
                + " shows the value. 8MiB for type s3, 512KiB for nats."),
        .setting(
            "parallel_batches", \.parallelBatches, parallelBatchesType,
            "Simultaneous requests to each destination. Raise it if latency is high, lower it for a weak "
                + "receiver."
        ),
        .setting(
            "critical_delay", \.criticalDelay, criticalDelayType,
            "How long a critical event may wait for others to join its batch. With 0 each critical event may"
                + " be a request of its own."),
        .setting("allow_zero_delay", \.allowsZeroDelay, .boolean, "Without effect.").retired(
            "critical_delay may be 0s without it"),
    ]

    /// Types of settings that a destination may set for itself within the same bounds (`OwnSettings`).
    static let jitterType = ValueType<Double>.number(0...1)
    static let batchEventsType = ValueType<Int>.count(1...100_000)
    static let batchSizeType = ValueType<Int>.size(1 << 10...64 << 20)
    static let parallelBatchesType = ValueType<Int>.count(1...64)
    static let criticalDelayType = ValueType<Duration>.duration(
        .milliseconds(100) ... .seconds(86_400), zero: "at once")
}

extension DispatchInterval {
    /// Reads an interval: `off`, 0 or a negative number is off, otherwise a duration.
    ///
    /// - Throws: a problem that says what to write.
    public init(text: String) throws(Problem) {
        // A number stays a number, so that 0 and negative numbers reach the type as they do from TOML.
        let value = Int64(text).map { TOMLNode.Value.integer($0) } ?? .string(text)
        self = try relaying(try DispatchInterval.settingType.parse(TOMLNode(value: value))) {
            (error: Problem) in
            Problem(error.code, "interval \(error.message)")
        }
    }

    /// The interval as it is written: `off`, `6s`.
    public var text: String {
        switch self {
        case .off: "off"
        case .every(let duration): DurationText.print(duration)
        }
    }
}

extension DispatchInterval {
    /// A duration, or off; 0 and negative numbers are off too.
    static var settingType: ValueType<DispatchInterval> {
        ValueType("duration", range: "1s to 1d, or \"off\"") { node throws(Problem) in
            switch node.value {
            case .string("off"): return .off
            // A number in quotes counts as a number: `interval = "0"` is a frequent way to write off.
            case .string(let text) where Int64(text).map { $0 <= 0 } ?? false: return .off
            case .integer(let number) where number <= 0: return .off
            case .double(let number) where number <= 0: return .off
            default: break
            }
            let duration = try node.duration()
            // `0s` is off, too.
            if duration <= .zero { return .off }
            guard DispatchInterval.range.contains(duration) else {
                throw Problem(.outOfRange, "is \(DurationText.print(duration)); must be 1s to 1d, or \"off\"")
            }
            return .every(duration)
        } print: {
            .string($0.text)
        }
    }
}
