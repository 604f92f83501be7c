internal import EventLoops
internal import Model

/// Builds inquiries (which content does a file hold?) and applies their answers.
extension Streams {
    /// The inquiry about a suspect: a new file under a rotated name may be a copy that rotation makes before
    /// it truncates.
    ///
    /// - Parameter head: the file's first bytes, at most as many as a fingerprint covers.
    /// - Returns: nil while the file is empty; its writer may be about to copy.
    mutating func inquiry(aboutCopy file: AppendFile, head: [UInt8]) -> Inquiry? {
        if file.reached > 0 {
            // Another copy is being made over this one. Bytes that it shared with another file are read or
            // counted there.
            cutOff(file, from: max(file.cutTo, file.sharedTo ?? longestContent(besides: file)))
            file.enter(.suspect, at: now)
        }
        file.sharedTo = nil
        let isOld = now - file.stageSince >= settleTime * Streams.patience
        guard file.size > 0 || isOld else { return nil }
        let recency: Inquiry.Recency = isOld ? .old : now - file.lastChange >= settleTime ? .quiet : .moving
        let streams = Stream.asked(file.holder, file.name)
        let twins = files(of: streams) {
            $0 !== file && !$0.isSuspect && $0.mayHoldUnread(near: file.directory)
        }
        let head = Head(head)
        let known = contents(of: streams, head)
        // bounded: the largest of offsets and sizes that the kernel returned, no sum.
        file.sharedTo = known.contents.reduce(0) { max($0, $1.taken.offset, $1.carrier?.size ?? 0) }
        return Inquiry(
            aboutChanged: false, head: head, size: file.size, recency, of: streams, twins: twins,
            contents: known.contents,
            mayGrow: known.mayGrow)
    }

    /// The offset up to which another file may have held the content that a suspect lost before it was
    /// compared. Its beginning is gone, so only lengths can be compared, and the lengths of contents that are
    /// in no file any more are not looked up. Otherwise each copy over a copy that was not compared yet would
    /// count as a loss, although the original was read.
    private func longestContent(besides file: AppendFile) -> Int64 {
        let streams = Stream.asked(file.holder, file.name)
        guard !streams.contains(where: remembered.contents.has) else { return .max }
        // bounded: the largest of sizes that the kernel returned, no sum.
        return files(of: streams) { $0 !== file && !$0.isSuspect }.reduce(0) { max($0, $1.size) }
    }

    /// The inquiry about a compressed file: it may be the archive of a file that was read.
    func inquiry(aboutArchiveIn directory: SpoolDirectory, of streams: [Stream], head: [UInt8]) -> Inquiry {
        let twins = files(of: streams) { $0.mayHoldUnread(near: directory) }
        let head = Head(head)
        return Inquiry(
            aboutChanged: false, head: head, size: nil, .old, of: streams, twins: twins,
            contents: contents(of: streams, head).contents)
    }

    /// Longest time that copying may take, in multiples of the settle time.
    private static let patience = 10

    /// The inquiry about a known file that was truncated or rewritten. Reading continues at the highest mark
    /// before which all bytes are the same, or at the beginning.
    ///
    /// - Parameter isRewritten: whether the bytes before the read position are known to differ. Then the file
    ///   is not given time to be restored.
    func inquiry(aboutChanged file: AppendFile, head: [UInt8], isRewritten: Bool) -> Inquiry {
        let isShort = file.size < file.taken.offset
        let isWaiting = isShort && (file.stage != .cut || now - file.stageSince < settleTime)
        let content = KnownContent(
            fingerprint: file.trace.fingerprint, taken: file.taken, marks: file.trace.marks, carrier: file,
            isCutOff: false, origin: file.origin, isOfOtherName: false)
        return Inquiry(
            aboutChanged: true, head: Head(head), size: file.size,
            isWaiting && !isRewritten ? .moving : .quiet,
            of: file.streams, twins: [], contents: [content])
    }

    /// Applies the answer about a suspect: it is read on behind the part that was read elsewhere, or from its
    /// beginning.
    ///
    /// - Returns: the position, if the file is a copy.
    mutating func judged(
        _ file: AppendFile, _ answer: Inquiry.Answer, _ inquiry: Inquiry, in pass: inout Pass
    ) -> Mark? {
        if case .later = answer { return nil }
        file.enter(.reading, at: now)
        suspects[file.id] = nil
        defer { note(answer, upTo: file.size, inquiry) }
        guard case .goOn(let mark, _, let origin) = answer else { return nil }
        file.naming = file.hasName ? .rotated : .none
        file.isCopy = mark.offset == file.size
        change(file) { $0.origin = origin }
        took(file, upTo: mark, inquiry.fingerprint(upTo: mark.offset), in: &pass)
        return mark
    }

    /// A file that was judged while it was empty has got its first bytes. It may be a copy after all, whose
    /// writer paused after creating or truncating the file, so it is judged once more.
    mutating func began(_ file: AppendFile, isRotatedName: Bool) {
        guard file.beganLate else { return }
        file.beganLate = false
        guard files[file.id] === file, isRotatedName, file.hasName, file.stage == .reading,
            file.taken.offset == 0
        else { return }
        file.enter(.suspect, at: now)
        suspects[file.id] = file
        assertWhole(file)
    }

    /// Tells `cutOffs` about a copy, an archive or a new file, which may have the unread bytes of a truncated
    /// file.
    mutating func note(_ answer: Inquiry.Answer, upTo length: Int64, _ inquiry: Inquiry) {
        switch answer {
        case .goOn(_, let fingerprint, _):
            cutOffs.recognised(fingerprint, upTo: length, of: inquiry.streams, at: now)
        case .new: cutOffs.readWhole(length, of: inquiry.streams, at: now)
        case .later: break
        }
    }

    /// Applies the answer about a file that was truncated or rewritten.
    ///
    /// - Returns: the old read position; nil if the file is given time to be restored.
    mutating func changed(
        _ file: AppendFile, _ answer: Inquiry.Answer, _ inquiry: Inquiry, isRotatedName: Bool,
        hasWaiting: Bool,
        in pass: inout Pass
    ) -> Mark? {
        let proven: Mark
        switch answer {
        case .goOn(let mark, _, _): proven = mark
        case .new: proven = .start
        case .later:
            if file.stage == .reading {
                file.enter(.cut, at: now)
            }
            return nil
        }
        file.proof = nil
        let old = file.taken
        guard proven.offset < old.offset else {
            // The file was restored, or never changed before the read position.
            if file.stage == .cut {
                file.enter(.reading, at: now)
                if file.size >= file.reached {
                    file.reached = 0
                }
            }
            return old
        }
        rememberContent(of: file, hasWaiting: hasWaiting, in: &pass)
        cutOff(file, from: old.offset)
        file.isCopy = false
        if file.stage != .leaving {
            file.enter(.reading, at: now)
        }
        file.end = .open
        file.scanned = 0
        file.taken = proven
        file.committed = min(file.committed, proven.offset)
        file.setbacks &+= 1
        file.trace.marks.removeAll { $0.offset > proven.offset }
        if file.trace.fingerprint.length > Int(proven.offset) {
            file.trace.fingerprint = inquiry.fingerprint(upTo: proven.offset)
        }
        if proven.offset == 0, file.hasName, isRotatedName, file.stage == .reading {
            // Rotation (copytruncate) has overwritten an older copy. The new content may have been read
            // before, in the file that was copied.
            file.enter(.suspect, at: now)
            suspects[file.id] = file
            file.wake(now)
            file.lastChange = now
        }
        // Write the lower position in the next commit, so that a restart does not look for a position that is
        // gone.
        pass.add(file)
        assertWhole(file)
        return old
    }

    /// A file was truncated. Its unread bytes are looked for in copies.
    mutating func cutOff(_ file: AppendFile, from begin: Int64) {
        let end = file.reached
        file.reached = 0
        awaitCopy(of: file, begin, end, gone: nil)
    }

    /// A file is gone and no descriptor of it is left. It was deleted, or renamed to a name that was not seen
    /// yet.
    mutating func vanished(_ file: AppendFile) {
        let end = max(file.size, file.reached)
        file.reached = 0
        awaitCopy(of: file, file.taken.offset, end, gone: file.id)
    }

    /// Waits for a copy of the unread bytes of a file.
    private mutating func awaitCopy(of file: AppendFile, _ begin: Int64, _ end: Int64, gone: FileID?) {
        // Nothing but the next copy is written to a copy, and the original of those bytes is read or counted
        // itself.
        guard end > begin, !file.isCopy else { return }
        cutOffs.add(
            CutOff(
                path: file.path, gone: gone, stream: file.streams[0], fingerprint: file.trace.fingerprint,
                begin: begin,
                end: end, at: now))
    }

    /// Streams with possible copies that were not compared yet.
    var suspected: Set<Stream> { Set(suspects.values.flatMap { Stream.asked($0.holder, $0.name) }) }
}

extension AppendFile {
    /// Whether the file may have been rewritten since it was read, so that it is worth opening to see its
    /// first bytes. Many directories may have files of one name, so only files that have a change pending or
    /// are near `directory` are opened.
    func mayHaveChanged(near directory: SpoolDirectory) -> Bool {
        isSuspect ? self.directory === directory : isReady || !isRotated && self.directory === directory
    }

    /// Whether the file may begin with unread bytes: nothing of it was read, or it may have been rewritten.
    fileprivate func mayHoldUnread(near directory: SpoolDirectory) -> Bool {
        self.trace.fingerprint.length == 0 || mayHaveChanged(near: directory)
    }
}
