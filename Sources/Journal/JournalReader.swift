package import EventLoops
internal import Glibc
package import Logs
internal import Model
internal import Synchronization

/// Reads one journal, entry by entry, when the next piece is asked for.
///
/// It lives on a loop on which nothing else depends: the library reads files, which may take as long as a disk does.
/// Without new entries it sleeps until journald writes some.
package actor JournalReader: LoopActor {
    private static let pieceEntries = 8192
    /// Of how many sequences whose files are gone the positions are kept: they may come again, or a copy of them.
    private static let mostGone = 256

    /// How often the directories' paths are followed again, of which no watch tells; a journal that cannot be read is tried as often.
    let look: Duration
    package nonisolated let loop: EventLoop
    package nonisolated let options: JournalOptions
    let log: Log
    /// What is read of an entry. Nobody else has it: that is not checked at each field.
    @exclusivity(unchecked) private var entry: JournalEntry
    private var place: JournalPlace?
    var open: Open?
    private var directories: [[UInt64]?]?
    /// Whether the directory that was left was read to its end: then nothing is missing before the first entry of the next.
    var hasReadLeft = false
    var wakeUp: CheckedContinuation<Void, Never>?
    var isStopping = false
    nonisolated let published = Mutex(JournalFigures())

    final class Open {
        /// All files, for the library to watch.
        let handle: JournalHandle
        let descriptor: Int32
        /// What the paths of the directories led to.
        let directories: [[UInt64]?]
        /// Each is read by itself.
        var sequences: [JournalSequence] = []
        var empty: [(path: String, status: FileStatus?)] = []
        /// Whether files have come or gone since the place was last compared with what is left.
        var hasOtherFiles = true
        /// Whether the paths lead elsewhere by now: it is read to its end and then left.
        var isLeft = false

        init(_ handle: consuming JournalHandle, _ directories: [[UInt64]?]) throws(JournalError) {
            descriptor = try handle.descriptor()
            self.handle = handle
            self.directories = directories
        }
    }

    package nonisolated var figures: JournalFigures { published.withLock { $0 } }

    /// A reader that goes on at a place.
    ///
    /// - Parameters:
    ///   - place: where reading ended; nil: it begins as `options.since` says.
    ///   - loop: may be held up by a slow disk.
    package init(
        _ options: JournalOptions, from place: JournalPlace?, on loop: EventLoop, log: Log,
        look: Duration = .seconds(10)
    ) {
        (self.loop, self.look, self.options, self.log, self.place) = (loop, look, options, log, place)
        entry = JournalEntry(options)
    }

    /// Ends waiting, and each later call.
    package func stop() {
        isStopping = true
        close()
        wake()
    }

    /// The next entries: waits until there are any, or the place has changed by much; nil once the reader is stopped.
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

    /// The place after so many of a piece's entries.
    package func place(after entries: Int, of piece: JournalPiece) -> JournalPlace {
        var (place, left) = (piece.start, entries)
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

    /// The position before so many of the last entries of a run; nil where none before them is left. Counted from the end, as journald may
    /// have removed older ones.
    private func position(_ rest: Int, before run: JournalPiece.Run) -> JournalPosition? {
        do throws(JournalError) {
            guard let sequence = try opened().sequences.first(where: { $0.id == run.sequence }) else { return nil }
            var entry = JournalEntry(options)
            var left = rest
            var isThere = try sequence.handle.find(run.to)
            while isThere, left > 0 {
                entry.begin()
                sequence.handle.forEachField { entry.take($0) }
                if entry.passes { left -= 1 }
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

    /// What can be read now; nil when nothing is new.
    private func read() throws(JournalError) -> JournalPiece? {
        let open = try opened()
        let begun = try begin(open)
        directories = open.directories
        // Durable before anything is read: a kill would begin again elsewhere.
        if let begun { return JournalPiece(from: begun) }
        guard let place else { return nil }
        var piece = JournalPiece(from: place)
        if open.hasOtherFiles {
            let positions = place.sequences ?? [:]
            piece.gaps = open.sequences.compactMap { gap($0.handle, $0.files, positions[$0.id]) }
            // Nothing is left of all that was read.
            if !open.sequences.isEmpty, !open.sequences.contains(where: { positions[$0.id] != nil }) {
                let newest = positions.values.max { $0.seenUntil < $1.seenUntil }
                if let gap = gap(open.handle, nil, newest) { piece.gaps.append(gap) }
            }
            open.hasOtherFiles = false
        }
        for sequence in open.sequences where !piece.isFull {
            try passCopies(sequence, open, &piece.place)
            try read(sequence, open, &piece)
            // The others come first then.
            if piece.isFull, let index = open.sequences.firstIndex(where: { $0 === sequence }) {
                open.sequences.append(open.sequences.remove(at: index))
            }
        }
        self.place = piece.place
        note(piece)
        return piece.entries > 0 || !piece.gaps.isEmpty || piece.isFull ? piece : nil
    }

    /// Reads what is new in a sequence, until the piece is full.
    private func read(
        _ sequence: JournalSequence, _ open: Open, _ piece: inout JournalPiece
    ) throws(JournalError) {
        let before = piece.place.sequences?[sequence.id]
        // All files of this machine have one clock: what is the newest anywhere now is seen here, too.
        let until = options.directory == nil ? open.handle.times?.until : sequence.handle.times?.until
        let (looked, entries) = (piece.looked, piece.entries)
        var last = before?.seenUntil ?? Timestamp(nanoseconds: 0)
        while !piece.isFull, try sequence.handle.next() {
            piece.looked += 1
            last = sequence.handle.time ?? last
            entry.begin()
            sequence.handle.forEachField { entry.take($0) }
            if entry.passes {
                piece.entries += 1
                if entry.write(into: &piece.lines, time: last, limit: options.maxEventSize) { piece.cut += 1 }
            }
            piece.isFull = piece.lines.count >= options.pieceBytes || piece.looked == JournalReader.pieceEntries
        }
        if piece.looked > looked, let reached = sequence.handle.position {
            piece.runs.append((sequence.id, piece.entries - entries, reached))
            piece.place.sequences?[sequence.id] = reached
            piece.place.last = reached
        }
        if !piece.isFull, let until, until > last { piece.place.sequences?[sequence.id]?.seenUntil = until }
    }

    /// Passes over entries read in another sequence: a journal moved from memory to the disk is copied and renumbered.
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
                if let copy = try sequence.last(until: other), copy.entry == other.entry, copy.number >= next.number {
                    // All that was read there; if its files are gone, it is this one from now on.
                    end = copy
                    if original == nil { place.sequences?[id] = nil }
                } else if let original {
                    let same = try original.last(until: next)
                    if let same, same.entry == next.entry, same.number <= other.number { end = next }
                    try original.go(to: other)
                }
            }
            try sequence.go(to: end ?? place.sequences?[sequence.id])
            guard end != nil else { return }
            place.sequences?[sequence.id] = end
        }
    }

    // MARK: Opening

    private func opened() throws(JournalError) -> Open {
        if let open { return open }
        // Before it is opened: what changes after that is seen at the next look.
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

    /// Begins sequences after one entry: the first time, after an older version that knew only one, and in a directory that was not there
    /// before, which may be full of old entries. Any other that is new is read from its first entry.
    ///
    /// - Returns: nil where none begins so.
    private func begin(_ open: Open) throws(JournalError) -> JournalPlace? {
        if place == nil { place = JournalPlace(last: try placeBefore(options.since)) }
        let isElsewhere = open.directories != directories && directories != nil && options.since != .beginning
        guard var begun = place, begun.sequences == nil || isElsewhere else { return nil }
        let last = begun.last
        let isKnown = !last.cursor.isEmpty
        // Whatever becomes of its files.
        var sequences = begun.sequences ?? (isKnown ? [last.sequence: last] : [:])
        for sequence in open.sequences where isKnown {
            if sequences[sequence.id] == nil { sequences[sequence.id] = try sequence.last(until: last) }
            try sequence.go(to: sequences[sequence.id])
        }
        begun.sequences = sequences
        place = begun
        return begun
    }

    /// The entry before the first that is to be read; no entry where that is the journal's first.
    private func placeBefore(_ start: JournalStart) throws(JournalError) -> JournalPosition {
        let beginning = JournalPosition("", seenUntil: Timestamp(nanoseconds: 0))
        // The matches hide entries of others; a place may be any entry.
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

    /// What files, or the whole journal, no longer have of what comes after a position.
    private func gap(
        _ handle: borrowing JournalHandle, _ files: [String]?, _ position: JournalPosition?
    ) -> JournalGap? {
        guard let position, let times = handle.times, times.from > position.seenUntil,
            let all = try? JournalHandle(files, directory: options.directory)
        else { return nil }
        // The clock was set back: the entry is there, and the journal's first times are later than its own.
        if (try? all.find(position)) == true { return nil }
        var atMost: UInt64?
        if (try? all.goToFirst()) == true, let first = all.position, first.sequence == position.sequence {
            atMost = missing(after: position, before: first)
            // Nothing is between two neighbours, however long it was silent.
            if atMost == 0 { return nil }
        }
        return JournalGap(from: position.seenUntil, until: times.from, atMost: atMost)
    }

    /// How many numbers between a position and an entry are in no file and were not read; 0 if numbers are used again.
    private func missing(after position: JournalPosition, before entry: JournalPosition) -> UInt64 {
        // A machine has one counter for all its files.
        func isNumberedAlike(_ id: String) -> Bool { options.directory == nil || id.hasPrefix(entry.sequence) }
        let read = (place?.sequences ?? [:]).filter { id, other in
            isNumberedAlike(id) && other.number < entry.number && other.seenUntil <= position.seenUntil
        }
        let last = read.values.map(\.number).max() ?? position.number
        var count = entry.number - min(last + 1, entry.number)
        let files = (open?.sequences ?? []).filter { isNumberedAlike($0.id) }.flatMap(\.files)
        guard let all = try? JournalHandle(files) else { return count }
        try? all.seek("t=\(String(position.seenUntil.nanoseconds / 1000, radix: 16))")
        while count > 0, (try? all.next()) == true, let next = all.position, next.entry != entry.entry {
            if last < next.number, next.number < entry.number { count -= 1 }
        }
        return count
    }
}
