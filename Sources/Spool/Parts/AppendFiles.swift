internal import EventLoops
internal import Model

/// The life of append files: when each is looked at again, sealed, removed or forgotten.
///
/// `AppendFiles` opens, asks and removes nothing, and has no clock. The reader reports what it sees of a file
/// and carries out the `Order` that it gets. `FileStep` decides, from the facts that are collected here.
///
/// Invariants, asserted in debug builds: a file has a place in the queue of ready files only while it is
/// known; the bytes of a file that is being removed are all in the queue; a check that is planned is never
/// put off, only brought forward.
final class AppendFiles {
    /// The reader's next action for a file.
    enum Order: Equatable {
        case nothing
        /// Call `due` at this time.
        case check(at: BootInstant)
        /// The file has something to read: call `makeReady`.
        case read
        /// The same; its last line counts as whole although no writer was seen to close the file, which is
        /// reported.
        case readUnclosed(bytes: Int64)
        /// Ask the kernel for writers and for changes, add the answers to the facts, and call `answered`.
        case askForWriters(FileFacts)
        /// Claim the file and call `beginLeaving`.
        case claim
        /// Let go of the file: all of it is in the queue, and it has no name.
        case letGo

        /// Whether the file goes, so that its file lease stays held.
        var isLast: Bool { self == .claim || self == .letGo }
    }

    /// What the reader knows about a file that is not in the file's own fields.
    struct Situation: Equatable {
        /// Whether the sink needs the file: the quarantine could not hold its bad lines.
        var mustStay = false
        /// Whether the kernel reports changes of the file and closes by writers (inotify).
        var isReported = true
    }

    /// What becomes of a claimed file whose commit is durable.
    enum LeavingStep: Equatable {
        /// A writer has come, or the file has changed: it is needed after all.
        case stay
        case lookAgain(after: Duration)
        case remove
    }

    /// Interval at which a file that is about to be removed is checked for a writer: a writer that opens the
    /// file then waits at most this long.
    private static let graceStep = Duration.milliseconds(50)

    /// Which content each file holds, and what was read of it.
    var streams: Streams
    private(set) var counts = Counts()
    /// How blocks of files are cut into lines.
    private(set) var blocks: BlockReader
    private let waits: FileWaits
    /// Whether files are removed once they are queued.
    private let removes: Bool
    private let graceTime: Duration

    /// What happened to append files since the start.
    struct Counts: Equatable {
        /// Files that lost the name under which they were known.
        var rotations = 0
        /// Files that were let go after all of them was read.
        var read = 0
        /// Last lines that were sealed although no writer was seen to close the file.
        var unclosedLines = 0
        /// Files that became shorter or were rewritten, so that the read position moved backwards.
        var truncations = 0
        /// Bytes that disappeared before they could be read.
        var bytesGivenUp: ByteCount = 0
        /// Zero bytes between lines that were skipped.
        var zeroBytes: ByteCount = 0
    }

    init(_ streams: Streams, _ options: SpoolOptions) {
        self.streams = streams
        blocks = BlockReader(
            longest: options.maxEventSize, format: options.format, joinsText: options.joinsText,
            recordStart: options.recordStart)
        waits = FileWaits(options)
        removes = options.afterRead != .keep
        graceTime = options.graceTime
    }

    /// Sets which lines are handed over together: consecutive lines of text, or the lines of records with
    /// this beginning.
    func join(text isJoined: Bool, records start: RecordStart?) {
        blocks.joinsText = isJoined
        blocks.recordStart = start
    }

    /// Whether a file is known: it was not let go, and no other object stands for it.
    func knows(_ file: AppendFile) -> Bool { streams.files[file.id] === file }

    // MARK: What was seen

    /// The content of a file has changed.
    func changed(_ file: AppendFile, at now: BootInstant) {
        file.lastChange = now
        if file.end != .open {
            file.wasClosed = true
        }
        file.end = .open
    }

    /// A writer has closed a file; other writers may still have it open. True if there may be something to
    /// read.
    func closed(_ file: AppendFile, at now: BootInstant) -> Bool {
        // Writes through mapped memory cause no IN_MODIFY, so the close is the only sign of new content.
        let mayHaveMore = file.padding != nil
        if mayHaveMore {
            changed(file, at: now)
        }
        if file.end == .open {
            file.end = .closed
        }
        return mayHaveMore
    }

    /// The status of a file was read. True if there is something to read.
    func saw(_ file: AppendFile, length: Int64, modified: Timestamp) -> Bool {
        file.see(length: length)
        file.modified = modified
        return length != file.taken.offset
    }

    /// The file that was known under a name has lost it. False if it had none.
    func displace(_ file: AppendFile) -> Bool {
        guard file.hasName else { return false }
        streams.displace(file)
        counts.rotations += 1
        return true
    }

    /// The read position of a file has moved backwards, because the file was truncated or rewritten.
    func wasSetBack() { counts.truncations += 1 }

    /// Zeros between lines were skipped.
    func skippedZeros(_ bytes: Int64) { counts.zeroBytes += ByteCount(bytes) }

    /// Takes the unread bytes of which no copy has turned up, to log each of them once.
    func takeGivenUp() -> [CutOff] {
        let givenUp = streams.cutOffs.takeGivenUp()
        for cut in givenUp { counts.bytesGivenUp += ByteCount(cut.end - cut.begin) }
        return givenUp
    }

    // MARK: Files to read

    /// Notes that a file has something to read. Returns true if the caller must queue it; false if it waits
    /// already.
    func makeReady(_ file: AppendFile, at now: BootInstant, _ wallTime: Timestamp) -> Bool {
        file.wake(now)
        streams.hasUnread(file, since: wallTime)
        guard !file.isReady else { return false }
        file.isReady = true
        return true
    }

    /// A file's turn to be read has begun. False if the file is not known any more.
    func beginTurn(of file: AppendFile, at now: BootInstant) -> Bool {
        // The last change of a file that has rested while it waited is not known: silence counts from now.
        // Otherwise the end of a text that is being written would be handed over as whole.
        if file.lastChange == AppendFile.Activity.none.lastChange {
            file.lastChange = now
        }
        file.isReady = false
        return knows(file)
    }

    /// A file was read as far as possible.
    func endTurn(of file: AppendFile) {
        if file.committed >= file.size {
            streams.isRead(file)
        }
    }

    /// A commit has made a position durable. False if the file is not known any more.
    func covered(_ covered: CoveredFile) -> Bool {
        streams.covered(covered)
        guard knows(covered.file) else { return false }
        endTurn(of: covered.file)
        return true
    }

    // MARK: What becomes of a file

    /// Whether a file is known, and neither waits to be read nor is compared or removed.
    private func isIdle(_ file: AppendFile) -> Bool {
        knows(file) && !file.isReady && file.stage == .reading
    }

    /// Something about a file has changed: when it is to be looked at. The step itself is left for then,
    /// because the caller may be in the middle of something.
    func consider(_ file: AppendFile, _ situation: Situation, at now: BootInstant) -> Order {
        guard isIdle(file) else { return .nothing }
        switch FileStep.next(facts(of: file, situation, at: now), waits) {
        case .nothing:
            file.releaseActivity()
            return .nothing
        case .lookAgain(let wait): return plan(file, after: wait, now)
        case .askForWriters, .readChanges, .readText, .seal, .sealUnclosed, .claimAndRemove, .forget:
            return plan(file, after: .zero, now)
        }
    }

    /// The time of a planned check has come, as far as the agenda knows.
    func due(_ file: AppendFile, _ situation: Situation, at now: BootInstant) -> Order {
        guard let planned = file.checkAt else { return .nothing }
        // The errand was planned for an earlier time than the one that counts now.
        guard planned <= now else { return .check(at: planned) }
        file.checkAt = nil
        guard isIdle(file) else { return .nothing }
        return order(facts(of: file, situation, at: now), file, now)
    }

    /// The same, whenever the check was planned for.
    func dueNow(_ file: AppendFile, _ situation: Situation, at now: BootInstant) -> Order {
        file.checkAt = now
        return due(file, situation, at: now)
    }

    /// Decides the next step of a file once the kernel has said whether a writer has it open.
    ///
    /// - Parameter facts: those of the order, with the answers.
    func answered(_ file: AppendFile, _ facts: FileFacts, at now: BootInstant) -> Order {
        assert(facts.writers != .notAsked, "an answer without an answer")
        return order(facts, file, now)
    }

    /// A step could not be carried out for want of memory or descriptors: it is tried again.
    func postpone(_ file: AppendFile, _ situation: Situation, at now: BootInstant) -> Order {
        var facts = facts(of: file, situation, at: now)
        facts.writers = .unanswered
        return order(facts, file, now)
    }

    /// Decides a step and notes its effects on the file.
    private func order(_ facts: FileFacts, _ file: AppendFile, _ now: BootInstant) -> Order {
        switch FileStep.next(facts, waits) {
        case .nothing:
            file.releaseActivity()
            return .nothing
        case .askForWriters: return .askForWriters(facts)
        case .lookAgain(let wait): return plan(file, after: wait, now)
        case .readChanges:
            file.lastChange = now
            return .read
        case .readText:
            file.scanned = 0
            return .read
        case .seal:
            seal(file)
            return .read
        case .sealUnclosed:
            seal(file)
            guard file.hasUnread else { return .read }
            counts.unclosedLines += 1
            return .readUnclosed(bytes: file.size - file.taken.offset)
        case .claimAndRemove: return .claim
        case .forget: return .letGo
        }
    }

    private func facts(of file: AppendFile, _ situation: Situation, at now: BootInstant) -> FileFacts {
        FileFacts(
            naming: file.naming, end: file.end, isUnsealed: file.isUnsealed, holdsText: file.holdsText,
            isEmpty: file.size == 0, isCommitted: file.committed >= file.size,
            mayGo: removes && file.hasName && !file.isUnsealed && !situation.mustStay,
            isReported: situation.isReported, silence: file.isResting ? .zero : now - file.lastChange)
    }

    /// Plans a check of a file, unless an earlier one is planned.
    private func plan(_ file: AppendFile, after wait: Duration, _ now: BootInstant) -> Order {
        file.wake(now)
        let due = now + wait
        // An earlier check than was planned takes its place: what was current may be rotated or deleted by
        // now.
        if let planned = file.checkAt, planned <= due { return .nothing }
        file.checkAt = due
        return .check(at: due)
    }

    /// Seals a file: its last line counts as complete, and zeros at its end are looked through once more.
    private func seal(_ file: AppendFile) {
        file.end = .sealed
        file.padding?.known = 0..<0
    }

    // MARK: How a file goes

    /// A file was claimed, to be removed once its last commit is durable.
    func beginLeaving(_ file: AppendFile, as claim: FileName, at now: BootInstant) {
        assert(file.committed >= file.size && !file.hasUnread, "what is not in the queue is removed")
        rename(file, to: claim)
        file.enter(.leaving, at: now)
    }

    /// The last commit of a claimed file is durable. Returns how long to wait until `leavingStep` is asked.
    func beginGrace(_ file: AppendFile, at now: BootInstant) -> Duration {
        file.leavesAt = now + graceTime
        return min(AppendFiles.graceStep, graceTime)
    }

    /// What becomes of a claimed file.
    ///
    /// - Parameter isUntouched: whether the file lease is still held, the file has the length that was read,
    ///   and no other name leads to it.
    func leavingStep(_ file: AppendFile, isUntouched: Bool, at now: BootInstant) -> LeavingStep {
        guard isUntouched, !file.hasUnread else { return .stay }
        guard now >= file.leavesAt else {
            return .lookAgain(after: min(AppendFiles.graceStep, file.leavesAt - now))
        }
        return .remove
    }

    /// A claimed file is needed after all.
    ///
    /// - Parameter original: the name that it got back; nil if another file has that name, so that this one
    ///   is read on under the name of the claim, and removed later.
    func stay(_ file: AppendFile, as original: FileName?, at now: BootInstant) {
        assert(file.stage == .leaving, "what is not leaving stays")
        if let original {
            rename(file, to: original)
        } else if file.hasName {
            file.naming = .rotated
        }
        file.enter(.reading, at: now)
        file.lastChange = now
    }

    private func rename(_ file: AppendFile, to name: FileName) {
        file.directory.files[file.name] = nil
        streams.change(file) { $0.name = name }
        file.directory.files[name] = file
    }

    /// Removes a file that is gone or was removed from all tables, and remembers its content for a while.
    ///
    /// - Parameter hasWaiting: whether archives wait to be compared.
    func letGo(_ file: AppendFile, hasWaiting: Bool, in pass: inout Pass) {
        if !file.hasUnread {
            counts.read += 1
        }
        streams.leave(file, hasWaiting: hasWaiting, in: &pass)
    }
}
