internal import EventLoops
internal import Model

/// What holds for all lines of a source: made by `EventPass.begin`, and constant until the next one.
///
/// Copies of what each line needs, so that the hot path does not go through the app's class.
struct BlockContext {
    /// App of the source; nil before the first `begin`.
    let state: AppState?
    /// Whether lines of the app may be events, by its settings: otherwise each is a record. A flag, because
    /// to compare words of settings costs each line a call. `LineDraft.isRecord` says what the last line was.
    let mayBeEvents: Bool
    let defaultPriority: Priority
    /// Whether the event's own `"priority": "critical"` and `"type": "crash"` count.
    let mayBeCritical: Bool
    /// Whether any priority rule can fit an event of the app. If not, `rule(for:own:)` is not called.
    let hasRules: Bool
    /// Whether others than the app may have written the lines: then a record's `app` member is replaced.
    let isShared: Bool
    /// Time of day that `begin` was given: the time of observation of all events until the next `begin`.
    let now: Timestamp
    /// Events before this time are expired. The least number while the clock is not trusted, and for old
    /// files.
    let oldest: Timestamp
    /// Events after this time are quarantined. The greatest number while the clock is not trusted.
    let newest: Timestamp

    /// The context before the first `begin`.
    init() {
        state = nil
        mayBeEvents = true
        defaultPriority = .normal
        mayBeCritical = true
        hasRules = false
        isShared = false
        now = Timestamp(nanoseconds: 0)
        oldest = Timestamp(nanoseconds: .min)
        newest = Timestamp(nanoseconds: .max)
    }

    /// - Parameters:
    ///   - maxAge: age at which events expire; nil for never.
    ///   - isSynchronised: whether the clock can be trusted. Otherwise nothing expires and nothing counts as
    ///     ahead.
    init(_ source: EventSource, at now: Timestamp, maxAge: Duration?, isSynchronised: Bool) {
        let settings = source.state.settings
        state = source.state
        mayBeEvents = settings.kind == .event
        defaultPriority = settings.priority
        mayBeCritical = settings.mayBeCritical ?? !source.isShared
        hasRules = !source.state.rules.isEmpty
        // Any program may write to the journal, and a container's output may contain any `app`: neither
        // proves who wrote the line.
        isShared = source.isShared || settings.isJournal || settings.format != nil
        self.now = now
        newest = isSynchronised ? now + settings.maxAhead : Timestamp(nanoseconds: .max)
        if isSynchronised, !source.isBackfill, let maxAge {
            oldest = now - min(maxAge, settings.maxAge ?? maxAge)
        } else {
            oldest = Timestamp(nanoseconds: .min)
        }
    }
}

/// Readers and writers of times, which the judges of events and of records share.
struct Tools: ~Copyable {
    /// Reader of RFC 3339 texts; remembers the last date.
    var times = TimestampReader()
    /// Writer of RFC 3339 texts; remembers the last second.
    var timeWriter = TimestampWriter()
    /// Severities of words that were read before.
    var severities = SeverityMemo()
}
