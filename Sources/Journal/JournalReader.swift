public import EventLoops
internal import Glibc
public import Logs
internal import Model
internal import Synchronization

/// Reads one journal, entry by entry, when the next piece is asked for.
///
/// It lives on a loop on which nothing else depends: the library reads files, which may take as long as a disk does.
/// Without new entries it sleeps until journald writes some.
public actor JournalReader {
    /// The executor is the loop.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// How many entries are looked at for a piece.
    private static let pieceEntries = 8192
    /// How long a journal that cannot be read is left alone, at first and at most.
    private static let patience = (first: Duration.seconds(1), most: Duration.seconds(300))

    /// How often is looked whether the paths of the directories still lead to them: of a link that is turned, a parent that is replaced
    /// or a mount, no watch would tell.
    let look: Duration
    let loop: EventLoop
    let options: JournalOptions
    private let matches: [[String]]
    let log: Log
    /// What is read of an entry. Nobody else has it: that is not checked at each field.
    @exclusivity(unchecked) private var entry: JournalEntry
    private var place: JournalPlace?
    var open: Open?
    /// Whether the directory that was left was read to its end: then nothing is missing before the first entry of the next.
    var hasReadLeft = false
    var wakeUp: CheckedContinuation<Void, Never>?
    var isStopping = false
    private var patience = JournalReader.patience.first
    nonisolated let published = Mutex(JournalFigures())

    /// What a journal is while it is open.
    final class Open {
        let handle: JournalHandle
        let descriptor: Int32
        /// What the paths of the directories led to.
        let directories: [DirectoryID?]
        /// Whether files have come or gone since the place was last compared with what is left.
        var hasOtherFiles = true
        /// Whether the paths lead elsewhere by now: it is read to its end and then left.
        var isLeft = false

        init(_ handle: consuming JournalHandle, _ directories: [DirectoryID?]) throws(JournalError) {
            descriptor = try handle.descriptor()
            self.handle = handle
            self.directories = directories
        }
    }

    /// What is known of the reading. From any thread.
    public nonisolated var figures: JournalFigures { published.withLock { $0 } }

    /// A reader that goes on at a place.
    ///
    /// - Parameters:
    ///   - place: where reading ended; nil: it begins as `options.since` says.
    ///   - loop: may be held up by a slow disk.
    ///   - look: how often the paths of the directories are followed.
    public init(
        _ options: JournalOptions, from place: JournalPlace?, on loop: EventLoop, log: Log,
        look: Duration = .seconds(10)
    ) {
        self.loop = loop
        self.look = look
        self.options = options
        self.log = log
        self.place = place
        matches = JournalFilter(options).matches
        entry = JournalEntry(options)
    }

    /// Ends waiting, and each later call.
    public func stop() {
        isStopping = true
        close()
        wake()
    }

    /// The next entries: waits until there are any, or the place has changed by much.
    ///
    /// - Returns: nil once the reader is stopped.
    public func next() async -> JournalPiece? {
        while !isStopping {
            do throws(JournalError) {
                if let piece = try read() { return piece }
                try await waitForNews()
            } catch {
                close()
                report(error)
                await pause(patience)
                patience = min(patience * 2, JournalReader.patience.most)
            }
        }
        return nil
    }

    /// The place after so many of the entries that follow a place and pass the filter; nil where they cannot be read any more.
    public func place(after entries: Int, from place: JournalPlace) -> JournalPlace? {
        do throws(JournalError) {
            let handle = try JournalHandle(directory: options.directory, longest: options.maxEventSize + 64)
            try handle.match(matches)
            try go(to: place, handle)
            var entry = JournalEntry(options)
            var found = JournalPlace(cursor: place.cursor, seenUntil: place.seenUntil)
            var left = entries
            while left > 0, try handle.next() {
                entry.begin()
                handle.forEachField { entry.take($0) }
                guard entry.passes else { continue }
                left -= 1
                guard left == 0, let cursor = handle.cursor else { continue }
                found = JournalPlace(cursor: cursor, seenUntil: max(place.seenUntil, handle.time ?? place.seenUntil))
            }
            return left == 0 ? found : nil
        } catch {
            report(error)
            return nil
        }
    }

    // MARK: Reading

    /// What can be read now; nil when nothing is new.
    private func read() throws(JournalError) -> JournalPiece? {
        let open = try opened()
        guard let before = place else {
            // Durable before anything is read: a kill would begin again elsewhere.
            let first = try placeBefore(options.since, until: open.handle.times?.until ?? Timestamp(nanoseconds: 0))
            try go(to: first, open.handle)
            place = first
            open.hasOtherFiles = false
            return JournalPiece(place: first)
        }
        var piece = JournalPiece(place: before)
        if open.hasOtherFiles {
            piece.gap = gap(open.handle, before)
            open.hasOtherFiles = false
        }
        var looked = 0
        var last: Timestamp?
        while piece.lines.count < options.pieceBytes, looked < JournalReader.pieceEntries, try open.handle.next() {
            looked += 1
            last = open.handle.time ?? last
            entry.begin()
            open.handle.forEachField { entry.take($0) }
            guard entry.passes else { continue }
            piece.entries += 1
            if entry.write(into: &piece.lines, time: last ?? before.seenUntil, limit: options.maxEventSize) {
                piece.cut += 1
            }
        }
        if looked > 0, let cursor = open.handle.cursor {
            // Earlier than before where the clock was set back: what follows is later than this.
            piece.place = JournalPlace(cursor: cursor, seenUntil: last ?? before.seenUntil)
        } else if let times = open.handle.times {
            piece.place.seenUntil = max(before.seenUntil, times.until)
        }
        piece.isFull = piece.lines.count >= options.pieceBytes || looked == JournalReader.pieceEntries
        place = piece.place
        note(piece)
        return piece.entries > 0 || piece.gap != nil || looked == JournalReader.pieceEntries ? piece : nil
    }

    /// Opens the journal and goes to the place.
    private func opened() throws(JournalError) -> Open {
        if let open { return open }
        // Before it is opened: what changes after that is seen at the next look.
        let directories = directoryIDs
        // One byte more than fits shows that a field was longer.
        let handle = try JournalHandle(directory: options.directory, longest: options.maxEventSize + 64)
        try handle.match(matches)
        let made = try Open(handle, directories)
        try reportFiles()
        if let place { try go(to: place, made.handle) }
        made.hasOtherFiles = !hasReadLeft
        hasReadLeft = false
        open = made
        patience = JournalReader.patience.first
        published.withLock { $0.problem = nil }
        return made
    }

    /// Makes the entry after the place the next one.
    private func go(to place: JournalPlace, _ handle: borrowing JournalHandle) throws(JournalError) {
        guard !place.cursor.isEmpty else { return try handle.seekHead() }
        try handle.seek(place.cursor)
        // Without that entry the search ends at the first one after it, which is to be read.
        guard try handle.next(), !handle.isAt(place.cursor) else { return }
        try handle.seek(place.cursor)
    }

    /// The entry before the first that is to be read; no entry where that is the journal's first.
    private func placeBefore(_ start: JournalStart, until: Timestamp) throws(JournalError) -> JournalPlace {
        let beginning = JournalPlace(cursor: "", seenUntil: Timestamp(nanoseconds: 0))
        // The matches hide entries of others; a place may be any entry.
        let all = try JournalHandle(directory: options.directory, longest: 64)
        guard start != .beginning, try all.goToLast(), let last = all.cursor else { return beginning }
        if start == .now { return JournalPlace(cursor: last, seenUntil: until) }
        var boot: [UInt8] = []
        all.forEachField { if $0.starts(with: "_BOOT_ID=".utf8) { boot = Array($0) } }
        let ofBoot = try JournalHandle(directory: options.directory, longest: 64)
        try ofBoot.match([[String(decoding: boot, as: UTF8.self)]])
        try ofBoot.seekHead()
        guard !boot.isEmpty, try ofBoot.next(), let first = ofBoot.cursor else { return beginning }
        try all.seek(first)
        guard try all.next(), try all.previous(), let before = all.cursor else { return beginning }
        return JournalPlace(cursor: before, seenUntil: all.time ?? until)
    }

    /// What the journal no longer has of what comes after the place.
    private func gap(_ handle: borrowing JournalHandle, _ place: JournalPlace) -> JournalGap? {
        guard !place.cursor.isEmpty, let times = handle.times, times.from > place.seenUntil,
            let all = try? JournalHandle(directory: options.directory, longest: 64)
        else { return nil }
        // The clock was set back: the entry is there, and the journal's first times are later than its own.
        if (try? all.seek(place.cursor)) != nil, (try? all.next()) == true, all.isAt(place.cursor) { return nil }
        var atMost: UInt64?
        if (try? all.seekHead()) != nil, (try? all.next()) == true, let cursor = all.cursor,
            let first = JournalPlace(cursor: cursor, seenUntil: times.from).sequence, let last = place.sequence,
            first.within == last.within, first.number > last.number
        {
            atMost = first.number - last.number - 1
            // Nothing is between two neighbours, however long it was silent.
            if atMost == 0 { return nil }
        }
        return JournalGap(from: place.seenUntil, until: times.from, atMost: atMost)
    }
}
