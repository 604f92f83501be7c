package import EventLoops

/// How far a journal was read: durable in the same transaction as the events of its entries.
package struct JournalPlace: Sendable, Equatable {
    /// The entry that was read last, of any sequence: all that older versions know.
    var last: JournalPosition
    /// The last one that was read of each `JournalSequence`; nil: only `last` is known, and all that is later is unread.
    var sequences: [String: JournalPosition]?
}

extension JournalPlace {
    /// The place that the queue has kept under a name; nil: none.
    package init?(_ memory: [String: [UInt8]], under name: String) {
        guard let last = memory[name].flatMap(JournalPosition.init(bytes:)) else { return nil }
        self.last = last
        let lines = (memory["\(name)/"] ?? []).split(separator: 0).map { Array($0) }
        // An older version that has read since has left them as they were.
        guard lines.first == last.bytes else { return }
        sequences = [:]
        for line in lines.dropFirst() {
            guard let position = JournalPosition(bytes: line) else { continue }
            let owner = String(decoding: line.dropFirst(position.bytes.count), as: UTF8.self)
            sequences?[position.sequence + owner] = position
        }
    }

    /// What the queue is to keep under a name.
    package func memory(under name: String) -> [String: [UInt8]] {
        let lines = (sequences ?? [:]).map { id, last in last.bytes + id.utf8.dropFirst(last.sequence.utf8.count) }
        return [name: last.bytes, "\(name)/": Array(([last.bytes] + lines).joined(separator: [0]))]
    }

    /// Forgets sequences whose files are gone, those read longest ago first, until no more than `most` of them are left. Where there is none
    /// at all, a file system may not be mounted yet.
    mutating func forget(allBut present: some Collection<String>, most: Int) {
        guard !present.isEmpty else { return }
        let gone = (sequences ?? [:]).filter { !present.contains($0.key) }.values.sorted { $0.seenUntil > $1.seenUntil }
        for position in gone.dropFirst(most) { sequences?[position.sequence] = nil }
    }
}

/// An entry, and how far its sequence was looked at with it.
struct JournalPosition: Sendable, Equatable {
    /// Empty before the first entry.
    let cursor: String
    /// All that journald took until then was looked at.
    var seenUntil: Timestamp
    /// The sequence in which journald has numbered the entry: through rotations and boots, as long as it can open its last file.
    let sequence: String
    let number: UInt64
    /// The boot, and microseconds since its start, by a clock that nobody sets.
    let boot: String
    let uptime: UInt64
    /// By the other clock, as the cursor has it.
    let time: String
    /// The cursor without sequence and number: the entry in whichever file, by its boot, its times and its content. A journal that moves from
    /// memory to the disk is copied, and counted again.
    let entry: String

    init(_ cursor: String, seenUntil: Timestamp) {
        self.cursor = cursor
        self.seenUntil = seenUntil
        let parts = cursor.split(separator: ";")
        func part(_ name: String) -> String { String(parts.first { $0.hasPrefix(name) }?.dropFirst(2) ?? "") }
        sequence = part("s=")
        number = UInt64(part("i="), radix: 16) ?? 0
        boot = part("b=")
        uptime = UInt64(part("m="), radix: 16) ?? 0
        time = part("t=")
        entry = parts.filter { !$0.hasPrefix("s=") && !$0.hasPrefix("i=") }.joined(separator: ";")
    }

    /// The position that `bytes` says; nil for anything else.
    init?(bytes: [UInt8]) {
        let words = String(decoding: bytes, as: UTF8.self).split(separator: " ", omittingEmptySubsequences: false)
        guard words.count > 1, let microseconds = Int64(words[0]) else { return nil }
        self.init(String(words[1]), seenUntil: Timestamp(nanoseconds: microseconds.multipliedSaturating(by: 1000)))
    }

    /// The position as the queue keeps it.
    var bytes: [UInt8] { Array("\(seenUntil.nanoseconds / 1000) \(cursor)".utf8) }
}

/// Entries turned into lines, and how far the journal is read with them.
package struct JournalPiece: Sendable {
    /// One line an entry, each with its line feed. May be empty: then only the place has changed.
    package var lines: [UInt8] = []
    /// Entries that became lines, since the start.
    package var entries = 0
    var looked = 0
    package var cut = 0
    /// Whether more can be read at once.
    package var isFull = false
    /// How many entries of which sequence follow each other, with the position after them.
    var runs: [Run] = []
    typealias Run = (sequence: String, entries: Int, to: JournalPosition)
    let start: JournalPlace
    package var place: JournalPlace
    /// What the journal no longer has, though it was not read.
    package var gaps: [JournalGap] = []

    init(from start: JournalPlace) {
        self.start = start
        place = start
    }
}

package struct JournalGap: Sendable, Equatable {
    /// The time until which everything was read.
    package let from: Timestamp
    /// The time of the oldest entry that is left.
    package let until: Timestamp
    /// How many there were at most, of all units and priorities; nil where journald's numbers do not tell.
    package let atMost: UInt64?
}
