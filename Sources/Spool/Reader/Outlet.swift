internal import EventLoops
internal import Glibc
internal import Logs
internal import Model

/// Hands lines to the sink: what it takes is counted in the open pass, and what it refuses is offered again.
final class Outlet {
    private let context: SpoolContext
    private let schedule: Schedule
    let sink: any SpoolSink
    /// What the next commit holds, and when it is due.
    private(set) var handover: Handover
    /// Whether the sink has parked a file since the last `takeParked`.
    private var hasParked = false

    init(_ context: SpoolContext, _ schedule: Schedule, _ sink: any SpoolSink) {
        self.context = context
        self.schedule = schedule
        self.sink = sink
        handover = Handover(
            Handover.Limits(
                bytes: context.options.commitBytes, linger: context.options.linger,
                patience: context.options.patience))
    }

    /// Changes to files that the next commit makes durable. Who reads, finds, renames or removes a file notes
    /// here what a restart has to know of it.
    var pass: Pass {
        _read { yield handover.pass }
        _modify { yield &handover.pass }
    }

    /// Whether reading waits for commits.
    var isHeldBack: Bool {
        handover.isHeldBack(schedule.now, longerThan: Backlog.censusInterval)
    }

    /// Whether lines are not read for now, because reading is held back or the sink has parked files.
    var isWaiting: Bool { isHeldBack || handover.parked > 0 }

    /// Time at which the lines that the sink holds are to be committed, if no more of them come.
    var dripDue: BootInstant { handover.dripDue(isUrgent: sink.isUrgent) }

    /// Another file's lines are offered next.
    func beginFile() { handover.beginFile() }

    /// Hands lines to the sink, and waits for it if it does not take all of them.
    ///
    /// - Parameter resume: called when the sink has parked the rest and wants it offered again.
    /// - Returns: bytes that were taken. If not all were, a commit comes first, or the file is parked
    ///   (`Handover.isParked`).
    func hand(
        _ lines: UnsafeRawBufferPointer, from source: SpoolSource, at offset: Int64,
        resume: @escaping () -> Void
    ) -> Int {
        let taken = offer(lines, from: source, at: offset)
        if taken < lines.count {
            awaitSink(resume)
        }
        return taken
    }

    /// Hands lines to the sink. If it does not take all of them, the caller must call `awaitSink`.
    func offer(_ lines: UnsafeRawBufferPointer, from source: SpoolSource, at offset: Int64) -> Int {
        let taken = min(max(0, sink.take(lines, from: source, at: offset)), lines.count)
        handover.took(taken)
        return taken
    }

    /// The sink did not take all lines: the rest is offered again after a commit, or when the sink resumes
    /// the file.
    func awaitSink(_ resume: @escaping () -> Void) {
        let isParked = sink.park {
            self.handover.resumed()
            resume()
        }
        handover.refused(isParked: isParked)
        if isParked {
            hasParked = true
        }
    }

    /// Whether the sink has parked a file since the last call: it may wait for long.
    func takeParked() -> Bool {
        defer { hasParked = false }
        return hasParked
    }

    /// Quarantines the beginning of a line or event that exceeds the limit, and counts it.
    func tooLong(
        _ what: String, _ length: Int64, from source: SpoolSource, at offset: Int64, content: [UInt8]
    ) {
        quarantine(
            .tooLong, QuarantineRecord.tooLong(what, length, longest: context.options.maxEventSize),
            from: source,
            at: offset,
            length: length, content: content)
    }

    /// Hands a quarantine record to the sink, for the next commit.
    func quarantine(
        _ reason: QuarantineRecord.Reason, _ detail: String, from source: SpoolSource, at offset: Int64,
        length: Int64,
        content: [UInt8]
    ) {
        handover.quarantined(source.path.utf8.count + content.count, isTooLong: reason == .tooLong)
        sink.quarantine(
            QuarantineRecord(
                reason: reason, detail: detail, app: source.app, path: source.path, offset: offset,
                length: length,
                content: content, time: context.time.wallTime, file: source.file))
    }

    // MARK: Commits

    /// Requests a commit although nothing was read.
    func wantCommit() { handover.want() }

    /// Closes the pass and begins a commit; `closed` follows.
    func beginCommit(_ now: BootInstant) -> Pass { handover.beginCommit(now) }

    /// Keeps the closed pass until the task of its commit begins.
    func closed(_ pass: ClosedPass) { handover.closed(pass) }

    /// The sink closes its part of the commit now.
    func takeClosed() -> ClosedPass? { handover.takeClosed() }

    /// A commit has ended, successfully or not.
    func endCommit(isDurable: Bool) { handover.endCommit(isDurable: isDurable) }

    /// Discards the open pass because a commit has failed for good.
    func giveUp() { handover.giveUp() }
}

extension QuarantineRecord {
    /// The detail for a line or an event that exceeds the limit.
    static func tooLong(_ what: String, _ length: Int64, longest: Int) -> String {
        "the \(what) has \(length) bytes, \(longest) are allowed (spool.max_event_size)"
    }
}
