public import EventLoops

/// What was read from an app since the agent's start.
public struct AppCounts: Sendable, Equatable {
    /// Events and records read, including refused, expired and discarded ones.
    public var events = 0
    /// How many of them were records: objects not written for Spoolship, and lines of text.
    public var records = 0
    /// Bytes read, line feeds included.
    public var bytes = 0
    /// Lines that went to the quarantine.
    public var quarantined = 0
    /// Deliveries of events that had grown too old, when they were read or while they waited.
    public var expired = 0
    /// When the last event or record was read; nil before the first.
    public var lastRead: Timestamp?

    package init() {}

    /// Adds what was read from the same app elsewhere.
    public mutating func add(_ other: AppCounts) {
        events += other.events
        records += other.records
        bytes += other.bytes
        quarantined += other.quarantined
        expired += other.expired
        lastRead = [lastRead, other.lastRead].compactMap { $0 }.max()
    }
}

extension [String: AppCounts] {
    /// Number of apps with counts of their own; the first ones get them. Names come from users of the
    /// spool and would otherwise fill the memory. Together with the counts of all others this is the
    /// most series that a metric may have.
    public static let most = 999
    /// Key for the counts of all further apps; no app can have this name.
    public static let others = "(others)"

    /// Adds deliveries of an app that expired; of an unknown app if the name is empty.
    public mutating func noteExpired(_ deliveries: Int, of app: String) {
        var counts = AppCounts()
        counts.expired = deliveries
        note(app.isEmpty ? Self.others : app, counts)
    }

    /// Adds the counts of other parts of the agent.
    public mutating func add(_ other: [String: AppCounts]) {
        for (app, counts) in other.sorted(by: { $0.key < $1.key }) { note(app, counts) }
    }

    /// Adds what was read from an app.
    public mutating func note(_ app: String, _ counts: AppCounts) {
        if self[app]?.add(counts) != nil { return }
        let name = count < Self.most ? app : Self.others
        self[name, default: AppCounts()].add(counts)
    }
}
