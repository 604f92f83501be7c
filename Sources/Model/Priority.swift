// Model: the values and words that all modules share.
//
// It promises:
// - Values only. No input or output, no clock, no loop: each type can be made and compared in a test.
// - One name for one thing. A word that appears in settings, metrics, logs and the database is defined
//   here once (`Priority.name`, `DestinationStateName`, `QuarantineRecord.Reason`).
// - Closed sets for everything that becomes a metric label.
// - Secrets do not leak: `Secret` and `EndpointURL` hide their content in every description.
//
// Its parts:
// - Intake.swift: what the reader hands to the queue (`NewChunk`, `Commit`, `Checkpoint`,
//   `QuarantineRecord`). CommitStore.swift is the interface between the two.
// - Batch.swift, BatchStore.swift: what delivery gets from the queue (`Batch`, `LeaseRequest`,
//   `Settlement`, `LaneSummary`), and `BatchSender`, the interface of destinations. Outcome.swift: what
//   an attempt led to.
// - Counts/: the ledger, counts by app, saturating byte counts, and fair shares of bounded tables.
// - JSON/: `JSONValue` for control messages, state and documents. Events are never parsed into it on
//   the hot path; `JSONString` is shared with the code that reads them.
// - Settings/: the settings of destinations, sessions and functions as typed values. How they are
//   written is in Configuration.
// - `UUIDv7`, `Compression`, `Priority`, `DeadlineNames`, `LineWrapper`: small shared types.
//
// Its rules:
// - A type is here if two modules share it; otherwise it belongs to the module that uses it.
// - Values from outside are bounded where they are parsed (`maximumDepth`, `longestShownPath`).
// - Raw values of enumerations are stored in the database and written to metrics: they must not change.
//
// Begin with Intake.swift, then Batch.swift and BatchStore.swift: they are the way of an event.

/// How much an event matters. There are exactly two priorities, as in App Center's persistence flags.
public enum Priority: UInt8, Sendable, CaseIterable, Comparable {
    case normal = 1
    /// Sent first, evicted last.
    case critical = 2

    /// The word for it in events, settings, metrics and the database.
    public var name: String {
        switch self {
        case .normal: "normal"
        case .critical: "critical"
        }
    }

    /// The priority with that name; nil for any other word.
    public init?(name: some StringProtocol) {
        guard let found = Priority.allCases.first(where: { $0.name == name }) else { return nil }
        self = found
    }

    /// Whether the left one matters less.
    public static func < (left: Priority, right: Priority) -> Bool { left.rawValue < right.rawValue }
}
