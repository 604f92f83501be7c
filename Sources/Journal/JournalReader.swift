//  Journal: reads the entries of journald and writes each as a line of JSON.
//
//  What it promises. Each entry that the journal still has when it is read comes exactly once, in the order
//  of its sequence, whatever the clocks of machines and boots say. With each piece of lines comes the place
//  to continue from; the caller stores it in the transaction that stores the events. Entries that were
//  removed before they were read are reported as a gap. The module knows nothing of the queue, of apps, or of
//  what happens to a line.
//
//  Parts:
//  - `JournalReader`: the actor that a caller asks for the next piece. Begin reading here, with `next` and
//    `read`.
//  - `JournalPlace`, `JournalPosition`, `JournalPiece`: how far the journal was read, and what was read.
//  - `JournalSequence`: the files whose entries are numbered together, with the search for a position in
//    them; `JournalFiles`: which files there are.
//  - `JournalHandle`: libsystemd's journal. `CJournal` loads the library when the first journal is opened.
//  - `JournalEntry`: the fields of an entry, and the line that they become. It is the hot path: an entry
//    costs about 2,000 instructions here and 16,000 in libsystemd.
//  - `JournalFilter`, `JournalField`: which entries pass, and the names of members.
//
//  Rules:
//  - Each journal has an event loop of its own, because libsystemd's calls wait for the file system, which
//    may never answer. Nothing else waits for that loop, not even a stop.
//  - DESIGN.md says which faults of numbers and clocks are behind each search for a position.
//  - A piece is at most 1 MiB of lines and 8192 entries looked at, so that a filter that passes little does
//    not keep the loop from stopping.
//  - The parts of the journal that programs write are hostile: fields may have any bytes, any length up to
//    the limit, and any name of capital letters, digits and underscores. Only names that begin with `_` are
//    journald's word.

package import EventLoops
internal import Glibc
package import Logs
internal import Model
internal import Synchronization

/// Reads one journal, a piece at a time, when `next` is called.
///
/// It runs on a loop of its own, because the library's calls may take as long as a disk or never return.
/// Without new entries it sleeps until journald writes.
package actor JournalReader: LoopActor {
    /// Most entries that are looked at for one piece.
    private static let pieceEntries = 8192
    /// Most positions that are kept of sequences whose files are gone. They may come again with a late mount,
    /// and a copy of them is recognised by their positions.
    private static let mostGone = 256

    /// Time after which the directories' paths are looked at again, because a rename above a watched
    /// directory or a mount gives no notice. A journal that cannot be read is tried again as often.
    let look: Duration
    /// The loop of this journal alone.
    package nonisolated let loop: EventLoop
    /// The selection of entries to read.
    package nonisolated let options: JournalOptions
    /// Where gaps and errors are logged.
    let log: Log
    /// Buffers for the entry that is being read. Only this actor uses it, so the check for exclusive access,
    /// which each field would pay for, is left out.
    @exclusivity(unchecked) private var entry: JournalEntry
    /// The place after the last entry that was read; nil before the first start.
    private var place: JournalPlace?
    /// The open journal; nil while it is closed or must be opened again.
    var open: Open?
    /// Identities of the directories when entries were last read. Another value means that the paths lead to
    /// another journal now.
    private var directories: [[UInt64]?]?
    /// Whether the directory that was left was read to its end. Then nothing is missing before the first
    /// entry of the new one, and no gap is to be reported.
    var hasReadLeft = false
    /// How long the lines of the last piece were: the next piece gets room for as much at once.
    private var lastBytes = 0
    /// The waiting `next`; resumed by news, the timer or `stop`.
    var wakeUp: CheckedContinuation<Void, Never>?
    /// Whether `stop` was called. Stays true.
    var isStopping = false
    /// The figures for metrics, readable from any thread without waiting for this loop.
    nonisolated let published = Mutex(JournalFigures())

    /// An open journal.
    final class Open {
        /// All files in one handle, only to be notified of changes.
        let handle: JournalHandle
        /// The file descriptor of `handle`, watched by the loop.
        let descriptor: Int32
        /// Device and inode of each directory when it was opened.
        let directories: [[UInt64]?]
        /// The sequences, each read by its own handle, in the order in which they are read next.
        var sequences: [JournalSequence] = []
        /// Files that had no entry, with their status. The library does not report the first entry that is
        /// written to them.
        var empty: [(path: String, status: FileStatus?)] = []
        /// Whether files were added or removed since gaps were last searched for. A gap can only arise then.
        var hasOtherFiles = true
        /// Whether the paths lead elsewhere now. The old directory is read to its end, and then left.
        var isLeft = false

        /// Opens the file descriptor for notices.
        init(_ handle: consuming JournalHandle, _ directories: [[UInt64]?]) throws(JournalError) {
            descriptor = try handle.descriptor()
            self.handle = handle
            self.directories = directories
        }
    }

    /// The figures, from any thread.
    package nonisolated var figures: JournalFigures { published.withLock { $0 } }

    /// A reader that continues at a place. Nothing is opened before `next`.
    ///
    /// - Parameters:
    ///   - place: where reading ended; nil begins as `options.since` says.
    ///   - loop: a loop that a slow disk may hold up.
    ///   - look: time between looks at the paths, 10 seconds.
    package init(
        _ options: JournalOptions, from place: JournalPlace?, on loop: EventLoop, log: Log,
        look: Duration = .seconds(10)
    ) {
        self.loop = loop
        self.look = look
        self.options = options
        self.log = log
        self.place = place
        entry = JournalEntry(options)
    }

    /// Ends waiting; each later `next` returns nil.
    package func stop() {
        isStopping = true
        close()
        wake()
    }

    /// The next entries. Waits until there are some, or until the place has changed enough to be stored; nil
    /// after `stop`. Errors are logged once and tried again after `look`.
    package func next() async -> JournalPiece? {
        while !isStopping {
            do throws(JournalError) {
                if let piece = try read() { return piece }
                try await waitForNews()
            } catch {
                close()
                report(error)
                await wait(look)
            }
        }
        return nil
    }

    /// The place after the first `entries` entries of a piece, for a commit that had no room for all.
    package func place(after entries: Int, of piece: JournalPiece) -> JournalPlace {
        assert(entries >= 0 && entries <= piece.entries, "a place behind the piece is asked for")
        var place = piece.start
        var left = entries
        for run in piece.runs where left > 0 {
            let rest = max(run.entries - left, 0)
            if let reached = rest == 0 ? run.to : position(rest, before: run) {
                place.sequences?[run.sequence] = reached
                place.last = reached
            }
            left -= run.entries - rest
        }
        return place
    }

    /// The position before the last `rest` entries of a run; nil if nothing is left before them. It counts
    /// from the end, because journald may have removed older entries meanwhile, and rereads the entries,
    /// because positions are not kept for each.
    private func position(_ rest: Int, before run: JournalPiece.Run) -> JournalPosition? {
        do throws(JournalError) {
            guard let sequence = try opened().sequences.first(where: { $0.id == run.sequence }) else {
                return nil
            }
            var entry = JournalEntry(options)
            var left = rest
            var isThere = try sequence.handle.find(run.to)
            while isThere, left > 0 {
                entry.begin()
                sequence.handle.forEachField { entry.addField($0) }
                if entry.passes {
                    left -= 1
                }
                isThere = try sequence.handle.previous()
            }
            let position = isThere ? sequence.handle.position : nil
            try sequence.go(to: place?.sequences?[sequence.id])
            return position
        } catch {
            close()
            report(error)
            return nil
        }
    }

    // MARK: Reading

    /// Reads what is there now; nil if nothing is new. In order: open, begin new sequences, search for gaps,
    /// read each sequence.
    private func read() throws(JournalError) -> JournalPiece? {
        let open = try opened()
        let begun = try begin(open)
        directories = open.directories
        // A new place is stored before the first entry is read: after a kill reading must begin at the same
        // place.
        if let begun { return JournalPiece(from: begun) }
        guard let place else { return nil }
        var piece = JournalPiece(from: place)
        if open.hasOtherFiles {
            let positions = place.sequences ?? [:]
            piece.gaps = open.sequences.compactMap { gap($0.handle, $0.files, positions[$0.id]) }
            // Nothing is left of any sequence that was read, so no sequence can show the gap: compare the
            // whole journal.
            if !open.sequences.isEmpty, !open.sequences.contains(where: { positions[$0.id] != nil }) {
                let newest = positions.values.max { $0.seenUntil < $1.seenUntil }
                if let gap = gap(open.handle, nil, newest) {
                    piece.gaps.append(gap)
                }
            }
            open.hasOtherFiles = false
        }
        for sequence in open.sequences where !piece.isFull {
            try passCopies(sequence, open, &piece.place)
            try read(sequence, open, &piece)
            // The sequence that filled the piece goes to the end of the line, so that a busy one does not
            // keep the others from being read.
            if piece.isFull, let index = open.sequences.firstIndex(where: { $0 === sequence }) {
                open.sequences.append(open.sequences.remove(at: index))
            }
        }
        self.place = piece.place
        lastBytes = piece.lines.count
        note(piece)
        return piece.entries > 0 || !piece.gaps.isEmpty || piece.isFull ? piece : nil
    }

    /// Reads the new entries of a sequence, until the piece is full.
    private func read(
        _ sequence: JournalSequence, _ open: Open, _ piece: inout JournalPiece
    ) throws(JournalError) {
        let before = piece.place.sequences?[sequence.id]
        // All files of this machine have one clock, so everything up to the newest entry of any file has been
        // seen in this sequence too. It is asked for before reading: entries that arrive meanwhile are not
        // seen.
        let until = options.directory == nil ? open.handle.times?.until : sequence.handle.times?.until
        let looked = piece.looked
        let entries = piece.entries
        var last = before?.seenUntil ?? Timestamp(nanoseconds: 0)
        while !piece.isFull, try sequence.handle.next() {
            piece.looked += 1
            last = sequence.handle.time ?? last
            entry.begin()
            sequence.handle.forEachField { entry.addField($0) }
            if entry.passes {
                if piece.entries == 0 {
                    piece.lines.reserveCapacity(min(lastBytes, options.pieceBytes))
                }
                piece.entries += 1
                if entry.write(into: &piece.lines, time: last, limit: options.maxEventSize) {
                    piece.cut += 1
                }
            }
            piece.isFull =
                piece.lines.count >= options.pieceBytes || piece.looked == JournalReader.pieceEntries
        }
        if piece.looked > looked, let reached = sequence.handle.position {
            piece.runs.append((sequence.id, piece.entries - entries, reached))
            piece.place.sequences?[sequence.id] = reached
            piece.place.last = reached
        }
        if !piece.isFull, let until, until > last {
            piece.place.sequences?[sequence.id]?.seenUntil = until
        }
    }

    /// Passes over entries that were read in another sequence: a journal that moves from memory to the disk
    /// is copied and renumbered, and would be read twice.
    ///
    /// An entry is a candidate if its boot and uptime are not later than the other sequence's position. Then
    /// it was read if the other sequence's last entry is also in this one, behind it, or if it is itself in
    /// the other sequence, before its position.
    private func passCopies(
        _ sequence: JournalSequence, _ open: Open, _ place: inout JournalPlace
    ) throws(JournalError) {
        let known = place.sequences ?? [:]
        let hasOthers = known.count > (known[sequence.id] == nil ? 0 : 1)
        while hasOthers, try sequence.handle.next(), let next = sequence.handle.position {
            var end: JournalPosition?
            for (id, other) in known
            where end == nil && other.boot == next.boot && other.uptime >= next.uptime && id != sequence.id {
                let original = open.sequences.first { $0.id == id }
                if let copy = try sequence.last(until: other), copy.entry == other.entry,
                    copy.number >= next.number
                {
                    // Everything up to the copy of that last entry was read. If the original's files are
                    // gone, this sequence continues it.
                    end = copy
                    if original == nil {
                        place.sequences?[id] = nil
                    }
                } else if let original {
                    let same = try original.last(until: next)
                    if let same, same.entry == next.entry, same.number <= other.number {
                        end = next
                    }
                    try original.go(to: other)
                }
            }
            try sequence.go(to: end ?? place.sequences?[sequence.id])
            guard end != nil else { return }
            place.sequences?[sequence.id] = end
        }
    }

    // MARK: Opening

    /// The open journal; opens it if it is closed.
    private func opened() throws(JournalError) -> Open {
        if let open { return open }
        // Read the paths before opening, so that a change in between is seen at the next look.
        let directories = directoryIDs
        let made = try Open(try JournalHandle(directory: options.directory), directories)
        let (sequences, files) = try JournalSequence.all(options, from: place?.sequences ?? [:])
        report(files)
        made.empty = files.empty
        made.sequences = sequences
        let begin = Timestamp(nanoseconds: 0)
        made.sequences.sort { ($0.handle.times?.from ?? begin) < ($1.handle.times?.from ?? begin) }
        place?.forget(allBut: files.sequences.keys, most: JournalReader.mostGone)
        made.hasOtherFiles = !hasReadLeft
        hasReadLeft = hasReadLeft && files.sequences.isEmpty
        open = made
        published.withLock { $0.problem = nil }
        return made
    }

    /// Sets the beginning of sequences that are not to be read from their first entry: at the first start,
    /// after a version that knew one cursor, and in a directory that takes another's place, which may be full
    /// of old entries. Any other new sequence is read from its first entry.
    ///
    /// - Returns: the place to store before reading; nil if no sequence begins so.
    private func begin(_ open: Open) throws(JournalError) -> JournalPlace? {
        if place == nil {
            place = JournalPlace(last: try placeBefore(options.since))
        }
        let isElsewhere = open.directories != directories && directories != nil && options.since != .beginning
        guard var begun = place, begun.sequences == nil || isElsewhere else { return nil }
        let last = begun.last
        let isKnown = !last.cursor.isEmpty
        // An older version stored a single cursor. That position is kept even if its files are gone, because
        // it helps to recognise copies.
        var sequences = begun.sequences ?? (isKnown ? [last.sequence: last] : [:])
        for sequence in open.sequences where isKnown {
            if sequences[sequence.id] == nil {
                sequences[sequence.id] = try sequence.last(until: last)
            }
            try sequence.go(to: sequences[sequence.id])
        }
        begun.sequences = sequences
        place = begun
        return begun
    }

    /// The entry before the first one to read; an empty position if that is the journal's first entry.
    private func placeBefore(_ start: JournalStart) throws(JournalError) -> JournalPosition {
        let beginning = JournalPosition("", seenUntil: Timestamp(nanoseconds: 0))
        // The handles of sequences hide entries that do not match, and a place may be any entry.
        let all = try JournalHandle(directory: options.directory)
        guard start != .beginning, try all.goToLast(), let last = all.position else { return beginning }
        if start == .now { return last }
        let ofBoot = try JournalHandle(directory: options.directory)
        try ofBoot.match([["_BOOT_ID=\(last.boot)"]])
        guard try ofBoot.goToFirst(), let first = ofBoot.position else { return beginning }
        try all.seek(first.cursor)
        guard try all.next(), try all.previous() else { return beginning }
        return all.position ?? beginning
    }

    /// The gap after a position; nil if nothing is missing.
    ///
    /// - Parameter files: the files to search; nil for the whole journal.
    private func gap(
        _ handle: borrowing JournalHandle, _ files: [String]?, _ position: JournalPosition?
    ) -> JournalGap? {
        guard let position, let times = handle.times, times.from > position.seenUntil,
            let all = try? JournalHandle(files, directory: options.directory)
        else { return nil }
        // The clock was set back: the entry is still there, although the journal's first times are later than
        // its own.
        if (try? all.find(position)) == true { return nil }
        var atMost: UInt64?
        if (try? all.goToFirst()) == true, let first = all.position, first.sequence == position.sequence {
            atMost = missing(after: position, before: first)
            // Nothing is missing between two numbers that follow each other, however long the journal was
            // silent.
            if atMost == 0 { return nil }
        }
        return JournalGap(from: position.seenUntil, until: times.from, atMost: atMost)
    }

    /// Number of entries between a position and an entry that are in no file and were not read; 0 if numbers
    /// are used again.
    ///
    /// A machine numbers the entries of all its files by one counter, so a user's first entry after a month
    /// has a much higher number than the last one: what other files have, or what was read of them, is not
    /// missing.
    private func missing(after position: JournalPosition, before entry: JournalPosition) -> UInt64 {
        // A machine has one counter for all its files.
        func isNumberedAlike(_ id: String) -> Bool {
            options.directory == nil || id.hasPrefix(entry.sequence)
        }
        let read = (place?.sequences ?? [:]).filter { id, other in
            isNumberedAlike(id) && other.number < entry.number && other.seenUntil <= position.seenUntil
        }
        let last = read.values.map(\.number).max() ?? position.number
        var count = entry.number - min(last + 1, entry.number)
        let files = (open?.sequences ?? []).filter { isNumberedAlike($0.id) }.flatMap(\.files)
        guard let all = try? JournalHandle(files) else { return count }
        try? all.seek("t=\(String(position.seenUntil.nanoseconds / 1000, radix: 16))")
        while count > 0, (try? all.next()) == true, let next = all.position, next.entry != entry.entry {
            if last < next.number, next.number < entry.number {
                count -= 1
            }
        }
        return count
    }
}
