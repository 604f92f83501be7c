public import EventLoops

/// What was read of an app since the agent's start.
public struct AppCounts: Sendable, Equatable {
    /// Events and records that were read, those that were refused, expired or discarded included.
    public var events = 0
    /// How many of them were records: objects that were not written for Spoolship, and lines of text.
    public var records = 0
    /// The bytes that were read, line feeds included.
    public var bytes = 0
    /// Lines that went to the quarantine.
    public var quarantined = 0
    /// When the last event or record was read; nil before the first.
    public var lastRead: Timestamp?

    package init() {}

    /// Adds what was read of it elsewhere.
    public mutating func add(_ other: AppCounts) {
        events += other.events
        records += other.records
        bytes += other.bytes
        quarantined += other.quarantined
        lastRead = [lastRead, other.lastRead].compactMap { $0 }.max()
    }
}

extension [String: AppCounts] {
    /// So many apps have figures of their own, the first ones: names come from users of the spool, and would fill the memory. With
    /// all the others together they are as many as a metric may have series.
    public static let most = 999
    /// The figures of all apps beyond them; no app can be called so.
    public static let others = "(others)"

    /// Adds what was read of an app.
    public mutating func note(_ app: String, _ counts: AppCounts) {
        if self[app]?.add(counts) != nil { return }
        let name = count < Self.most ? app : Self.others
        self[name, default: AppCounts()].add(counts)
    }
}
