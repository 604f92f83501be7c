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
        .setting(
            "interval", \.own.interval, optional: DispatchInterval.settingType,
            "Instead of dispatch.interval; type s3: 1m. `spoolship interval` overrides both.",
            example: "\"1m\""),
        .pair(
            "batch_events", .init("full", \.own.batchEvents, optional: DispatchSettings.batchEventsType),
            .init("max", \.own.batchMostEvents, optional: DispatchSettings.batchEventsType),
            "Instead of dispatch.batch_events; both are 50000 for type s3, 50 for format app_center, 25 for ga4."
                + " For a pager { max = 1 }.",
            example: "{ full = 500, max = 1000 }"),
        .setting(
            "batch_most_events", \.own.batchMostEvents, optional: DispatchSettings.batchEventsType,
            "Now batch_events.max."
        ).renamed(to: "batch_events.max"),
        .setting(
            "batch_size", \.own.batchSize, optional: DispatchSettings.batchSizeType,
            "Instead of dispatch.batch_size, and bounded like it; type s3: 8MiB, nats: 512KiB.",
            example: "\"4MiB\""),
        .setting(
            "parallel_batches", \.own.parallelBatches, optional: DispatchSettings.parallelBatchesType,
            "Instead of dispatch.parallel_batches.", example: "1"),
        .setting(
            "critical_delay", \.own.criticalDelay, optional: DispatchSettings.criticalDelayType,
            "Instead of dispatch.critical_delay. 0 needs dispatch.allow_zero_delay.", example: "\"1s\""),
        .setting(
            "max_age", \.own.maxAge, optional: QueueSettings.maxAgeType,
            "Instead of queue.max_age: older events expire for this destination, but go to the others.",
            example: "\"1d\""),
        .setting(
            "when_behind", \.own.whenBehind, .choice,
            "If the queue is full and this destination holds more than an equal share: wait stops reading for all;"
                + " skip gives up its oldest events, for it alone."),
    ]
}

extension Settings {
    /// `[dispatch]` for a destination: with what it sets for itself, and batches that are not larger than the
    /// queue's size allows.
    public func dispatch(for destination: DestinationSettings) -> DispatchSettings {
        var result = dispatch
        let own = destination.own
        result.interval = own.interval ?? dispatch.interval
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
