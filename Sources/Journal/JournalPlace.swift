public import EventLoops

/// How far a journal was read: durable in the same transaction as the events of its entries.
public struct JournalPlace: Sendable, Equatable {
    /// The cursor of the last entry that was read; empty before the journal's first entry.
    public var cursor: String
    /// All that journald took until then was looked at.
    public var seenUntil: Timestamp
}

extension JournalPlace {
    /// The place that `bytes` says; nil for anything else.
    public init?(bytes: [UInt8]) {
        let text = String(decoding: bytes, as: UTF8.self)
        guard let space = text.firstIndex(of: " "), let microseconds = Int64(text[..<space]) else { return nil }
        cursor = String(text[text.index(after: space)...])
        seenUntil = Timestamp(nanoseconds: microseconds.multipliedSaturating(by: 1000))
    }

    /// The place as the queue keeps it.
    public var bytes: [UInt8] { Array("\(seenUntil.nanoseconds / 1000) \(cursor)".utf8) }

    /// Whether two cursors name the same entry, in whichever file: the same boot, times and content.
    static func isSameEntry(_ one: String, _ other: String) -> Bool {
        func parts(_ cursor: String) -> [Substring] {
            cursor.split(separator: ";").filter { !$0.hasPrefix("s=") && !$0.hasPrefix("i=") }
        }
        return parts(one) == parts(other)
    }

    /// The number that journald gave the entry, and what it counts within; nil where the cursor has none.
    var sequence: (number: UInt64, within: Substring)? {
        var number: UInt64?
        var within: Substring?
        for part in cursor.split(separator: ";") {
            if part.hasPrefix("i=") { number = UInt64(part.dropFirst(2), radix: 16) }
            if part.hasPrefix("s=") { within = part.dropFirst(2) }
        }
        guard let number, let within else { return nil }
        return (number, within)
    }
}

/// Entries turned into lines, and how far the journal is read with them.
public struct JournalPiece: Sendable {
    /// One line an entry, each with its line feed. May be empty: then only the place has changed.
    public var lines: [UInt8] = []
    /// Entries that became lines, since the start.
    public var entries = 0
    package var cut = 0
    /// Whether more can be read at once.
    public var isFull = false
    package var place: JournalPlace
    /// What the journal no longer has, though it was not read; nil: nothing.
    public var gap: JournalGap?
}

/// Entries that journald has removed before they were read.
public struct JournalGap: Sendable, Equatable {
    /// The time until which everything was read.
    public let from: Timestamp
    /// The time of the oldest entry that is left.
    public let until: Timestamp
    /// How many there were at most, of all units and priorities; nil where journald's numbers do not tell.
    public let atMost: UInt64?
}
