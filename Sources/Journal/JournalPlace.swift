package import EventLoops

/// How far a journal was read. It is durable in the same transaction as the events of the entries before it,
/// so that after a crash no entry is missing and none comes twice.
package struct JournalPlace: Sendable, Equatable {
    /// The entry that was read last, of any sequence. Versions of the agent that had one cursor know only
    /// this one.
    var last: JournalPosition
    /// The entry that was read last of each `JournalSequence`, by its id. If nil, only `last` is known, and
    /// everything later is unread.
    var sequences: [String: JournalPosition]?
}

extension JournalPlace {
    /// The place that the queue's memory has under a name; nil if it has no place.
    package init?(_ memory: [String: [UInt8]], under name: String) {
        guard let last = memory[name].flatMap(JournalPosition.init(bytes:)) else { return nil }
        self.last = last
        let lines = (memory["\(name)/"] ?? []).split(separator: 0).map { Array($0) }
        // The first line repeats `last`. If they differ, an older version has read since, and the other lines
        // are outdated.
        guard lines.first == last.bytes else { return }
        sequences = [:]
        for line in lines.dropFirst() {
            guard let position = JournalPosition(bytes: line) else { continue }
            let owner = String(decoding: line.dropFirst(position.bytes.count), as: UTF8.self)
            sequences?[position.sequence + owner] = position
        }
    }

    /// The entries of the queue's memory for this place: `name` for older versions, and `name/` with a line
    /// for each sequence, separated by zero bytes.
    package func memory(under name: String) -> [String: [UInt8]] {
        assert(
            ([last] + (sequences ?? [:]).values).allSatisfy {
                JournalPosition(bytes: $0.bytes)?.cursor == $0.cursor
            }, "a position cannot be read back")
        let lines = (sequences ?? [:]).map { id, last in
            last.bytes + id.utf8.dropFirst(last.sequence.utf8.count)
        }
        return [name: last.bytes, "\(name)/": Array(([last.bytes] + lines).joined(separator: [0]))]
    }

    /// Forgets sequences whose files are gone, until at most `most` of them are left; those that were read
    /// longest ago go first. If no file is present at all, nothing is forgotten, because a file system may
    /// not be mounted yet.
    mutating func forget(allBut present: some Collection<String>, most: Int) {
        guard !present.isEmpty else { return }
        let gone = (sequences ?? [:]).filter { !present.contains($0.key) }.values.sorted {
            $0.seenUntil > $1.seenUntil
        }
        for position in gone.dropFirst(most) { sequences?[position.sequence] = nil }
    }
}

/// An entry of a sequence, and the time until which the sequence was read with it. Parsed from a cursor,
/// whose format is stable: systemd.journal-fields(7), `__CURSOR=`, and
/// https://systemd.io/JOURNAL_FILE_FORMAT.
struct JournalPosition: Sendable, Equatable {
    /// journald's cursor; empty before the first entry.
    let cursor: String
    /// Everything that journald received until then was looked at. A gap is reported only after this time.
    var seenUntil: Timestamp
    /// Id of the sequence in which journald has numbered the entry (`s=`). A sequence continues through
    /// rotations and boots as long as journald can open its last file.
    let sequence: String
    /// Number of the entry in its sequence (`i=`).
    let number: UInt64
    /// Id of the boot (`b=`), with which `uptime` is comparable.
    let boot: String
    /// Microseconds since the boot by the monotonic clock (`m=`), which no change of the time of day affects.
    let uptime: UInt64
    /// Microseconds since 1970 by the wall clock (`t=`), hexadecimal as in the cursor.
    let time: String
    /// The cursor without sequence and number. It identifies an entry in any file by boot, times and content,
    /// because a journal that moves from memory to the disk is copied and renumbered.
    let entry: String

    /// The position of a cursor.
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

    /// The position that `bytes` has written; nil for other bytes.
    init?(bytes: [UInt8]) {
        let words = String(decoding: bytes, as: UTF8.self).split(
            separator: " ", omittingEmptySubsequences: false)
        guard words.count > 1, let microseconds = Int64(words[0]) else { return nil }
        self.init(
            String(words[1]), seenUntil: Timestamp(nanoseconds: microseconds.multipliedSaturating(by: 1000)))
    }

    /// The position as the queue's memory has it: microseconds, a blank, the cursor.
    var bytes: [UInt8] { Array("\(seenUntil.nanoseconds / 1000) \(cursor)".utf8) }
}

/// Entries as lines, and the place that is durable with them.
package struct JournalPiece: Sendable {
    /// A line for each entry, each with its line feed. May be empty: then only the place has changed, and
    /// must be stored.
    package var lines: [UInt8] = []
    /// Entries that became lines.
    package var entries = 0
    /// Entries that were looked at, also those that the filter left out. Bounds the work of one call.
    var looked = 0
    /// Entries that were cut.
    package var cut = 0
    /// Whether more can be read at once, without waiting.
    package var isFull = false
    /// Runs of entries in their order in `lines`. They give the place after any number of the entries.
    var runs: [Run] = []
    /// Entries of one sequence that follow each other, and the position after them.
    typealias Run = (sequence: String, entries: Int, to: JournalPosition)
    /// The place before the first entry.
    let start: JournalPlace
    /// The place after the last entry.
    package var place: JournalPlace
    /// Entries that the journal lost before they were read.
    package var gaps: [JournalGap] = []

    /// An empty piece that begins at a place.
    init(from start: JournalPlace) {
        self.start = start
        place = start
    }
}

/// A part of the journal that was removed before it was read.
package struct JournalGap: Sendable, Equatable {
    /// The time until which everything was read.
    package let from: Timestamp
    /// The time of the oldest entry that is left.
    package let until: Timestamp
    /// Most entries that are missing, of all units and priorities; nil if it does not follow from journald's
    /// numbers.
    package let atMost: UInt64?
}
