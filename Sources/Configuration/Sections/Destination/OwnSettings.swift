public import Model

extension OwnSettings {
    /// The rows, with the bounds of the settings that they replace. Batching does not change how a receiver
    /// answers, so a reload with another value keeps what the agent learned about the receiver.
    static let entries = rows.map { row in
        var row = row
        row.use.changesAnswers = false
        return row
    }

    /// The rows before `changesAnswers` is cleared.
    private static let rows: [Entry<DestinationSettings>] = [
        .pair(
            "interval", .init("every", \.own.interval, optional: DispatchInterval.settingType),
            .init("jitter", \.own.jitter, optional: DispatchSettings.jitterType), listedThere
        ).listedElsewhere(),
        .pair(
            "batch_events", .init("full", \.own.batchEvents, optional: DispatchSettings.batchEventsType),
            .init("max", \.own.batchMostEvents, optional: DispatchSettings.batchEventsType),
            listedThere
        ).listedElsewhere(),
        .setting(
            "batch_most_events", \.own.batchMostEvents, optional: DispatchSettings.batchEventsType,
            "Now batch_events.max."
        ).renamed(to: "batch_events.max"),
        own("batch_size", \.own.batchSize, DispatchSettings.batchSizeType),
        own("parallel_batches", \.own.parallelBatches, DispatchSettings.parallelBatchesType),
        own("critical_delay", \.own.criticalDelay, DispatchSettings.criticalDelayType),
        own("max_age", \.own.maxAge, QueueSettings.maxAgeType),
        .setting(
            "when_behind", \.own.whenBehind, .choice,
            "If the queue is full and this destination holds more than an equal share: wait stops reading "
                + "for all; skip gives up its oldest events, for it alone."),
    ]

    /// The row of a setting of `[dispatch]` or `[queue]` that a destination may set for itself. It is listed
    /// there.
    private static func own<Value: Equatable & Sendable>(
        _ name: String,
        _ place: @autoclosure @escaping @Sendable () -> Entry<DestinationSettings>.Place<Value?>,
        _ type: ValueType<Value>
    ) -> Entry<DestinationSettings> {
        .setting(name, place(), optional: type, listedThere).listedElsewhere()
    }

    private static var listedThere: String { "As in [dispatch] or [queue], for this destination alone." }
}

extension Settings {
    /// `[dispatch]` for a destination: with what it sets for itself, and batches that are not larger than the
    /// queue's size allows.
    public func dispatch(for destination: DestinationSettings) -> DispatchSettings {
        var result = dispatch
        let own = destination.own
        result.interval = own.interval ?? dispatch.interval
        result.jitter = own.jitter ?? dispatch.jitter
        // Without it the number decides nothing, in no destination.
        result.batchOnSize = dispatch.batchOnSize && dispatch.batchEvents > 0
        result.batchEvents =
            own.batchEvents
            ?? (dispatch.batchEvents > 0 ? dispatch.batchEvents : DispatchSettings().batchEvents)
        result.batchMostEvents = own.batchMostEvents ?? dispatch.batchMostEvents
        result.batchSize = inForce(batchSize: own.batchSize ?? dispatch.batchSize)
        result.parallelBatches = own.parallelBatches ?? dispatch.parallelBatches
        result.criticalDelay = own.criticalDelay ?? dispatch.criticalDelay
        return result
    }

    /// Age at which events for a destination expire.
    public func maxAge(for destination: DestinationSettings) -> Duration {
        destination.own.maxAge ?? queue.maxAge
    }

    /// The effective batch size, if it is lower than the one configured at `path`; otherwise nil.
    public func loweredBatchSize(_ path: String) -> Int? {
        // Sizes by the paths of their settings; a destination without its own size has 0, which is never
        // lowered.
        let sizes =
            [("dispatch.batch_size", dispatch.batchSize)]
            + destinations.map {
                ("destination.\(SettingValue.key($0.name)).batch_size", $0.own.batchSize ?? 0)
            }
        guard let size = sizes.first(where: { $0.0 == path })?.1, inForce(batchSize: size) < size else {
            return nil
        }
        return inForce(batchSize: size)
    }

    /// The effective batch size for a configured one: at most a thirty-second of the queue's size, at least 1
    /// KiB.
    public func inForce(batchSize: Int) -> Int {
        max(1024, min(batchSize, queue.maxSize / Settings.largestBatchesInCap))
    }

    /// The largest batch is the queue's size divided by this.
    static let largestBatchesInCap = 32
}
