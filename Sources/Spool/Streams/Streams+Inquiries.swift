internal import EventLoops
internal import Model

/// What files hold: what is asked, and what follows from the answer.
extension Streams {
    /// A new file under a rotated name may be a copy that rotation makes before it truncates.
    ///
    /// - Parameter head: its first bytes, as much as a fingerprint covers.
    /// - Returns: nil while nothing is in it yet.
    mutating func inquiry(aboutCopy file: AppendFile, head: [UInt8]) -> Inquiry? {
        if file.reached > 0 {
            // Another copy is made over it. What it shared with another file is read there, or counted there.
            cutOff(file, from: max(file.cutTo, file.sharedTo))
            file.enter(.suspect, at: now)
        }
        file.sharedTo = 0
        let isOld = now - file.stageSince >= settleTime * Streams.patience
        guard file.size > 0 || isOld else { return nil }
        let rest: Inquiry.Rest = isOld ? .old : now - file.lastChange >= settleTime ? .quiet : .moving
        let streams = Stream.asked(file.holder, file.name)
        let twins = files(of: streams) {
            $0 !== file && !$0.isSuspect && $0.mayHoldUnread(near: file.directory)
        }
        let head = Head(head)
        let known = contents(of: streams, head)
        for content in known.contents {
            file.sharedTo = max(file.sharedTo, content.place.offset, content.carrier?.size ?? 0)
        }
        return Inquiry(
            aboutChanged: false, head: head, size: file.size, rest, of: streams, twins: twins, contents: known.contents,
            mayGrow: known.mayGrow)
    }

    /// An archive may be that of a file that was read.
    func inquiry(aboutArchiveIn directory: SpoolDirectory, of streams: [Stream], head: [UInt8]) -> Inquiry {
        let twins = files(of: streams) { $0.mayHoldUnread(near: directory) }
        let head = Head(head)
        return Inquiry(
            aboutChanged: false, head: head, size: nil, .old, of: streams, twins: twins,
            contents: contents(of: streams, head).contents)
    }

    /// How many times the time to settle a copy may take.
    private static let patience = 10

    /// The file is or was shorter than what was read of it, or its bytes are others: goes on at the highest mark before which all is the same,
    /// or from the start (fault 2).
    ///
    /// - Parameter isRewritten: whether its bytes are known to be others.
    func inquiry(aboutChanged file: AppendFile, head: [UInt8], isRewritten: Bool) -> Inquiry {
        let isShort = file.size < file.taken.offset
        let isWaiting = isShort && (file.stage != .cut || now - file.stageSince < settleTime)
        let content = KnownContent(
            fingerprint: file.trace.fingerprint, place: file.taken, marks: file.trace.marks, carrier: file,
            isCutOff: false, origin: file.origin, isOfOtherName: false)
        return Inquiry(
            aboutChanged: true, head: Head(head), size: file.size, isWaiting && !isRewritten ? .moving : .quiet,
            of: file.streams, twins: [], contents: [content])
    }

    /// A suspect is known: reads on after what was read elsewhere, or from its start.
    ///
    /// - Returns: the place, if it is a copy.
    mutating func judged(_ file: AppendFile, _ answer: Inquiry.Answer, _ inquiry: Inquiry, in pass: inout Pass) -> Mark?
    {
        if case .later = answer { return nil }
        file.enter(.reading, at: now)
        suspects[file.id] = nil
        defer { note(answer, upTo: file.size, inquiry) }
        guard case .goOn(let place, _, let origin) = answer else { return nil }
        file.naming = file.hasName ? .rotated : .none
        file.isCopy = place.offset == file.size
        change(file) { $0.origin = origin }
        took(file, upTo: place, inquiry.fingerprint(upTo: place.offset), in: &pass)
        return place
    }

    /// What is found to be a copy, an archive, or new, may be what is waited for.
    mutating func note(_ answer: Inquiry.Answer, upTo length: Int64, _ inquiry: Inquiry) {
        switch answer {
        case .goOn(_, let fingerprint, _): cutOffs.recognised(fingerprint, upTo: length, of: inquiry.streams, at: now)
        case .new: cutOffs.readWhole(length, of: inquiry.streams, at: now)
        case .later: break
        }
    }

    /// What happened to a file that is or was shorter than what was read of it, or holds other bytes.
    ///
    /// - Returns: the place that was reached before; nil if it is waited whether it becomes what it was.
    mutating func changed(
        _ file: AppendFile, _ answer: Inquiry.Answer, _ inquiry: Inquiry, isRotatedName: Bool, hasWaiting: Bool,
        in pass: inout Pass
    ) -> Mark? {
        let place: Mark
        switch answer {
        case .goOn(let mark, _, _): place = mark
        case .new: place = .start
        case .later:
            if file.stage == .reading { file.enter(.cut, at: now) }
            return nil
        }
        file.proof = nil
        let old = file.taken
        guard place.offset < old.offset else {
            // It is what it was: nothing has become of it.
            if file.stage == .cut {
                file.enter(.reading, at: now)
                if file.size >= file.reached { file.reached = 0 }
            }
            return old
        }
        rememberContent(of: file, hasWaiting: hasWaiting, in: &pass)
        cutOff(file, from: old.offset)
        file.isCopy = false
        if file.stage != .leaving { file.enter(.reading, at: now) }
        file.end = .open
        file.scanned = 0
        file.taken = place
        file.committed = min(file.committed, place.offset)
        file.setbacks &+= 1
        file.trace.marks.removeAll { $0.offset > place.offset }
        if file.trace.fingerprint.length > Int(place.offset) {
            file.trace.fingerprint = inquiry.fingerprint(upTo: place.offset)
        }
        if place.offset == 0, file.hasName, isRotatedName, file.stage == .reading {
            // Rotation copies over an older copy: what is in it now may have been read where it was copied from.
            file.enter(.suspect, at: now)
            suspects[file.id] = file
            file.wake(now)
            file.lastChange = now
        }
        // The checkpoint goes back in the next commit, so that a restart does not look for a place that is gone.
        pass.add(file)
        assertWhole(file)
        return old
    }

    /// All bytes before a place were taken.
    ///
    /// - Parameter fingerprint: of the beginning up to there; nil where the file's is as long as it gets.
    mutating func took(_ file: AppendFile, upTo place: Mark, _ fingerprint: Fingerprint?, in pass: inout Pass) {
        assertForward(file, place)
        file.taken = place
        file.scanned = 0
        file.holdsText = false
        file.wasClosed = false
        if let fingerprint, fingerprint.length > file.trace.fingerprint.length { file.trace.fingerprint = fingerprint }
        pass.add(file)
        assertWhole(file)
    }

    /// A file is shorter than it was. What was seen of it, and not read, is looked for in copies.
    mutating func cutOff(_ file: AppendFile, from begin: Int64) {
        let end = file.reached
        file.reached = 0
        awaitCopy(of: file, begin, end, gone: nil)
    }

    /// A file is gone, and no descriptor of it is left: it was deleted, or renamed and not seen under its new name yet.
    mutating func vanished(_ file: AppendFile) {
        let end = max(file.size, file.reached)
        file.reached = 0
        awaitCopy(of: file, file.taken.offset, end, gone: file.id)
    }

    private mutating func awaitCopy(of file: AppendFile, _ begin: Int64, _ end: Int64, gone: FileID?) {
        // Only the next copy is written to a copy: what that had is read, or counted, where it was copied from.
        guard end > begin, !file.isCopy else { return }
        cutOffs.add(
            CutOff(
                path: file.path, gone: gone, stream: file.streams[0], fingerprint: file.trace.fingerprint, begin: begin,
                end: end, at: now))
    }

    /// The streams of which there may be copies that were not compared yet.
    var suspected: Set<Stream> { Set(suspects.values.flatMap { Stream.asked($0.holder, $0.name) }) }
}

extension AppendFile {
    /// Whether it is to be opened to see if it begins with bytes that were not read: it may hold something else than what was read of it.
    /// Many files may have one name in many directories: few are opened for this.
    func mayHaveChanged(near directory: SpoolDirectory) -> Bool {
        isSuspect ? self.directory === directory : isReady || !isRotated && self.directory === directory
    }

    /// Whether it may begin with bytes that were not read: nothing of it was, or it was rewritten since.
    fileprivate func mayHoldUnread(near directory: SpoolDirectory) -> Bool {
        trace.fingerprint.length == 0 || mayHaveChanged(near: directory)
    }
}
