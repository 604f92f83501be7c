internal import EventLoops
internal import Logs
internal import Model

/// Hands lines to the sink, and commits: the lines that were taken become durable together with the read
/// positions of their files.
extension SpoolReader {
    /// Closes the pass and begins a commit. Reading continues once the sink has closed its part
    /// (`Handover.isClosing`).
    func beginCommit() {
        var closed = handover.beginCommit(now)
        if let reading = drops.reading, let place = reading.nextCheckpoint() {
            closed.keep(place, of: reading.id)
        }
        var progress = SpoolProgress()
        let (checkpoints, covered) = streams.close(&closed)
        progress.checkpoints = checkpoints + closed.places.values
        for index in progress.checkpoints.indices {
            if options.place != nil {
                progress.checkpoints[index].path = options.shown(FileName(progress.checkpoints[index].path))
            }
            progress.checkpoints[index] = progress.checkpoints[index].keepingPath
        }
        progress.forgotten = closed.forgotten.map(\.bytes)
        progress.done = closed.done.map(\.record)
        progress.unlinked = closed.unlinked
        progress.memory = tree.listing.sight?.takeChanges() ?? [:]
        life.beginTask()
        planCensus()
        handover.closed(ClosedPass(progress: progress, files: covered, done: closed.done))
        Task(executorPreference: loop) { await self.commit() }
    }

    /// Commits the closed pass, then removes drop files that it covers.
    private func commit() async {
        // The sink closes its part before its first suspension, and there is no suspension before that call.
        // So no line can be taken between `takeClosed` and the closing.
        guard let closed = handover.takeClosed() else { return }
        wake()
        var isUnderWay = true
        do {
            try await sink.commit(closed.progress)
            handover.endCommit(isDurable: true)
            isUnderWay = false
            for file in closed.files { covered(file) }
            wake()
            if !closed.done.isEmpty {
                // A removed file must not be needed again after a power cut, so the commit must be synced
                // first.
                try await sink.persist()
                remove(closed.done)
            }
        } catch {
            // Stop reading. The next start continues at the last successful commit.
            if life.fail() {
                log.info("reading of the spool ends", ["reason": "\(error)"])
                handover.giveUp()
                drops.giveUpReading()
            }
            if isUnderWay {
                handover.endCommit(isDurable: false)
            }
        }
        life.endTask()
        wake()
    }

    /// A position of a file is durable now: the file may be removed or forgotten.
    private func covered(_ covered: CoveredFile) {
        if appendFiles.covered(covered) {
            considerLater(covered.file)
        }
    }

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
            planCensus()
        }
    }

    /// Quarantines the beginning of a line or event that exceeds the limit, and counts it.
    func tooLong(
        _ what: String, _ length: Int64, from source: SpoolSource, at offset: Int64, content: [UInt8]
    ) {
        quarantine(
            .tooLong, QuarantineRecord.tooLong(what, length, longest: options.maxEventSize), from: source,
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
                content: content, time: time.wallTime, file: source.file))
    }
}

extension QuarantineRecord {
    /// The detail for a line or an event that exceeds the limit.
    static func tooLong(_ what: String, _ length: Int64, longest: Int) -> String {
        "the \(what) has \(length) bytes, \(longest) are allowed (spool.max_event_size)"
    }
}
