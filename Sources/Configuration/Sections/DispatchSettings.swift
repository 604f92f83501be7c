public import Model

/// `[dispatch]`: when batches are sent, and how large they are.
public struct DispatchSettings: SettingsSection {
    package var interval = DispatchInterval.standard
    package var batchEvents = 50
    package var batchMostEvents = 5_000
    /// The most bytes of a batch, uncompressed, one larger event excepted.
    package var batchSize = 1 << 20
    package var parallelBatches = 3
    package var criticalDelay = Duration.seconds(3)
    package var allowZeroDelay = false
    package var batchOnSize = true

    static let entries: [Entry<DispatchSettings>] = [
        .setting(
            "interval", \.interval, .dispatchInterval,
            "Longer saves requests, shorter sends sooner; off sends only by `spoolship dispatch` and `drain`."),
        .setting(
            "batch_events", \.batchEvents, batchEventsType,
            "As soon as this many events wait, they are sent; fewer wait for the interval. Higher makes fewer requests."
        ),
        .setting(
            "batch_most_events", \.batchMostEvents, batchEventsType,
            "The most events in a batch: all that wait, up to this and batch_size. 1 sends a request for each event."
        ),
        .setting(
            "batch_size", \.batchSize, batchSizeType,
            "A batch's size before compression. Lower it for a destination with a small body limit. At most a"
                + " thirty-second of queue.max_size is in force (320KiB of 10MiB); `spoolship check --print`"
                + " shows the value."),
        .setting(
            "parallel_batches", \.parallelBatches, parallelBatchesType,
            "Simultaneous requests to each destination. Raise it if latency is high, lower it for a weak receiver."),
        .setting(
            "critical_delay", \.criticalDelay, criticalDelayType,
            "How long a critical event may wait for others to join its batch. 0 needs allow_zero_delay."),
        .setting(
            "allow_zero_delay", \.allowZeroDelay, .boolean,
            "Allows critical_delay = \"0s\": a critical event that comes alone is sent alone."),
        .setting(
            "batch_on_size", \.batchOnSize, .boolean,
            "false: only the interval decides. Requests come at known times, however much waits."),
    ]

    // A destination may set these for itself, within the same bounds.
    static let batchEventsType = ValueType<Int>.count(1...100_000)
    static let batchSizeType = ValueType<Int>.size(1 << 10...64 << 20)
    static let parallelBatchesType = ValueType<Int>.count(1...64)
    static let criticalDelayType = ValueType<Duration>.duration(
        .milliseconds(100) ... .seconds(86_400), zero: "at once")
}

extension DispatchInterval {
    /// Reads `off`, 0 or a negative number as off, else a duration; throws a `Problem` that says what to write.
    public init(text: String) throws(Problem) {
        let value = Int64(text).map { TOMLNode.Value.integer($0) } ?? .string(text)
        self = try relaying(try ValueType.dispatchInterval.parse(TOMLNode(value: value))) { (error: Problem) in
            Problem(error.code, "interval \(error.message)")
        }
    }

    /// As it is written: `off`, `6s`.
    public var text: String {
        switch self {
        case .off: "off"
        case .every(let duration): DurationText.print(duration)
        }
    }
}

extension ValueType where Value == DispatchInterval {
    static var dispatchInterval: ValueType {
        ValueType("duration", range: "1s to 1d, or \"off\"") { node throws(Problem) in
            switch node.value {
            case .string("off"): return .off
            case .string(let text) where Int64(text).map { $0 <= 0 } ?? false: return .off
            case .integer(let number) where number <= 0: return .off
            case .double(let number) where number <= 0: return .off
            default: break
            }
            let duration = try node.duration()
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
