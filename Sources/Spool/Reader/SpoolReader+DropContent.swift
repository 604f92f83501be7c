internal import EventLoops
internal import Glibc
internal import Model

/// What is in a drop file that is ours: read block by block, tried once more if it ends too early, done with at its end.
extension SpoolReader {
    /// Drop files that wait for their second try at most; beyond that they get none.
    private static let mostCut = 256

    /// Reads a block. True: there is more to read.
    func read(_ drop: DropReading) -> Bool {
        do {
            return try drop.format == .json ? readObjects(drop) : readLines(drop)
        } catch {
            giveUp(drop, for: error)
            return false
        }
    }

    private func readObjects(_ drop: DropReading) throws(SystemError) -> Bool {
        guard let descriptor = drop.descriptor?.raw else { return false }
        if drop.isEventWaiting, !handEvent(of: drop) { return true }
        let buffer = self.buffer.take()
        let count = try FileSystem.read(descriptor, into: buffer, at: drop.position)
        let block = UnsafeRawBufferPointer(rebasing: buffer[..<count])
        var used = 0
        while true {
            let find = drop.splitter.next(block, used: &used)
            if find == .more { break }
            if case .fault(let detail) = find {
                drop.taken = drop.splitter.place
                try quarantineRest(of: drop, .notJSON, detail)
                return false
            }
            guard take(find, of: drop), !isCommitDue else {
                drop.position += Int64(used)
                return true
            }
        }
        drop.position += Int64(count)
        if count == buffer.count { return true }
        // The end of the file.
        guard drop.splitter.isComplete else {
            endedEarly(drop)
            return false
        }
        guard take(drop.splitter.finish(), of: drop) else { return true }
        finish(drop)
        return false
    }

    /// Takes what the splitter has found. False: the sink wants a commit first.
    private func take(_ find: ObjectSplitter.Find, of drop: DropReading) -> Bool {
        switch find {
        case .more, .fault: return true
        case .event:
            drop.isEventWaiting = true
            return handEvent(of: drop)
        case .tooLong(let length):
            tooLong("event", length, from: drop.source, at: drop.splitter.eventOffset, content: drop.splitter.event)
        }
        drop.taken = drop.splitter.place
        return true
    }

    private func handEvent(of drop: DropReading) -> Bool {
        let (source, offset) = (drop.source, drop.splitter.eventOffset)
        let taken = drop.splitter.event.withUnsafeBytes { offer($0, from: source, at: offset) }
        guard taken == drop.splitter.event.count else {
            awaitSink(resumption(of: drop))
            return false
        }
        drop.isEventWaiting = false
        drop.taken = drop.splitter.place
        return true
    }

    /// Reads a block of a packed file of lines. True: there is more to read.
    private func readLines(_ drop: DropReading) throws(SystemError) -> Bool {
        guard let descriptor = drop.descriptor?.raw else { return false }
        if drop.packed == nil { drop.packed = packed(drop.format) }
        guard let packed = drop.packed else { throw SystemError("malloc", number: ENOMEM) }
        try packed.fill(from: descriptor, atMost: 1 << 20)
        // After a restart: what was taken before.
        if packed.offset < drop.taken.offset {
            packed.take(Int(min(Int64(packed.lines.count), drop.taken.offset - packed.offset)))
            if packed.offset < drop.taken.offset, packed.end == nil { return true }
        }
        while true {
            switch packed.next() {
            case .more: return true
            case .lines(let count):
                let lines = UnsafeRawBufferPointer(rebasing: packed.lines[..<count])
                packed.take(hand(lines, from: drop.source, at: packed.offset, resume: resumption(of: drop)))
            case .tooLong(let line):
                tooLong("line", line.length, from: drop.source, at: line.offset, content: line.head)
            case .end(.cutShort) where !drop.isSecondTry:
                endedEarly(drop)
                return false
            case .end(let end):
                if let (reason, detail) = end.problem {
                    try quarantineRest(of: drop, reason, detail)
                } else {
                    finish(drop)
                }
                return false
            }
            drop.taken = .lines(packed.offset)
            guard packed.lines.isEmpty, packed.end != nil else { return true }
        }
    }

    /// What the next commit says about a file that is read in part; nil if it says nothing.
    func checkpoint(of drop: DropReading) -> Checkpoint? {
        guard drop.taken.offset > 0, drop.taken != drop.checkpointed else { return nil }
        drop.checkpointed = drop.taken
        return Checkpoint(
            key: drop.id.bytes, path: drop.source.path, offset: drop.taken.offset, state: drop.taken.encoded())
    }

    /// Drop files that wait for the sink's word beside the one that is read: each keeps a block in memory.
    private static let mostParked = 16

    /// Puts the file that is read aside, so that others are read meanwhile; one too many holds up the other drop files.
    func park(_ drop: DropReading) {
        drop.isParked = true
        guard drops.parked.count < SpoolReader.mostParked else { return }
        drops.reading = nil
        drops.parked[drop.id] = drop
        // Its place belongs to the commit with what was taken of it.
        if let place = checkpoint(of: drop) { pass.keep(place, of: drop.id) }
    }

    /// The sink wants what it has parked.
    func resumption(of drop: DropReading) -> () -> Void {
        {
            drop.isParked = false
            if self.drops.parked.removeValue(forKey: drop.id) != nil {
                self.drops.asides.append(drop, to: drop.share)
            }
            self.wake()
        }
    }

    /// The text ends before it should: it is tried once more, then what is left is quarantined.
    func endedEarly(_ drop: DropReading) {
        drops.reading = nil
        if !drop.isSecondTry, drops.cut.count < SpoolReader.mostCut {
            if let place = checkpoint(of: drop) { pass.keep(place, of: drop.id) }
            drop.startOver()
            drops.cut[drop.id] = drop
            return schedule(after: options.secondTry) { [id = drop.id] in self.retryCut(id) }
        }
        do {
            try quarantineRest(of: drop, .cutShort, drop.splitter.earlyEnd)
        } catch {
            return giveUp(drop, for: error)
        }
    }

    /// Quarantines in one record what follows the last event that was taken, or an archive as it is, and ends reading.
    func quarantineRest(
        of drop: DropReading, _ reason: QuarantineRecord.Reason, _ detail: String
    ) throws(SystemError) {
        guard let descriptor = drop.descriptor?.raw else { return }
        let begin = drop.format == .json ? drop.taken.offset : 0
        let rest = max(0, try FileStatus(of: descriptor).size - begin)
        let length = rest <= Int64(options.maxEventSize) ? Int(rest) : ObjectSplitter.excerpt
        quarantine(
            reason, detail, from: drop.source, at: drop.taken.offset, length: rest,
            content: try FileSystem.bytes(of: descriptor, at: begin, count: length))
        finish(drop)
    }

    /// The second try of a file that ended too early.
    func retryCut(_ id: FileID) {
        guard let drop = drops.cut.removeValue(forKey: id) else { return }
        let file = drop.file
        guard let raw = descriptor(of: file.directory) else { return giveUp(drop) }
        do {
            let looked = try FileSystem.openPath(raw, file.claim)
            guard try FileID(looked, FileSystem.status(looked)) == id else { return giveUp(drop) }
            drop.descriptor = try FileSystem.read(looked)
            drops.asides.append(drop, to: drop.share)
            wake()
        } catch {
            giveUp(drop)
            cannotBegin(file.directory, file.claim, error, drop.status)
        }
    }

    /// Lets go of a file that cannot be read now, and is tried again under the name that it has.
    func giveUp(_ drop: DropReading, for error: SystemError) {
        giveUp(drop)
        let (directory, name) = (drop.file.directory, drop.file.claim)
        note(error, "cannot read drop file", directory.path(of: name))
        tryAgain(at: name, in: directory, error)
    }

    /// Lets go of a file that cannot be read now. It goes on where the last commit left it when it is found again.
    func giveUp(_ drop: DropReading) {
        if drops.reading === drop { drops.reading = nil }
        drops.inHand.remove(drop.id)
        if let place = drop.checkpointed {
            streams.remembered.keepPresent(
                Checkpoint(key: drop.id.bytes, path: drop.source.path, offset: place.offset, state: place.encoded()))
        }
    }

    func finish(_ drop: DropReading) {
        drops.reading = nil
        counters.dropFilesRead += 1
        uncount(drop)
        if drop.isKept {
            drops.inHand.remove(drop.id)
            pass.keep(keptCheckpoint(of: drop), of: drop.id)
            return
        }
        if pass.places[drop.id] != nil || drop.checkpointed != nil { pass.forget(drop.id) }
        pass.done.append(drop.file)
    }

    /// Whether what was kept of a file is that of lines that were read as they came.
    func isAppendFile(_ checkpoint: Checkpoint?) -> Bool {
        guard let checkpoint, checkpoint.offset > 0, let trace = FileTrace(checkpoint.state) else { return false }
        return trace.doneVersion == nil
    }

    func isKept(_ id: FileID, _ status: FileStatus) -> Bool {
        guard let checkpoint = streams.remembered.kept[id], let done = FileTrace(checkpoint.state)?.doneVersion else {
            return false
        }
        return done == SpoolReader.version(of: status)
    }

    private func keptCheckpoint(of drop: DropReading) -> Checkpoint {
        var trace = FileTrace()
        trace.doneVersion = SpoolReader.version(of: drop.status)
        let checkpoint = Checkpoint(
            key: drop.id.bytes, path: drop.source.path, offset: drop.status.size, state: trace.encoded)
        streams.remembered.keepPresent(checkpoint)
        return checkpoint
    }

    /// Tells a file's content from what it was before: by size and time of change.
    private static func version(of status: FileStatus) -> UInt64 {
        var numbers = (status.size, status.modified.nanoseconds)
        return withUnsafeBytes(of: &numbers) { ByteHash.of($0) }
    }
}
