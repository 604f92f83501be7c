internal import EventLoops
internal import Logs
internal import Model

/// What was read of an append file, to recognise a copy of it (copy-and-truncate) or an archive (compressed by
/// rotation): their lines must not be taken again.
struct KnownContent {
    /// Where an archive's first kilobyte is looked for at most, in bytes of its file: what begins with so much that holds
    /// nothing was not made by rotation.
    static let farthestBeginning: Int64 = 16 << 20

    /// The beginning.
    var fingerprint: Fingerprint
    /// All bytes before it were taken.
    var place: Mark
    /// Earlier places, ascending.
    var marks: [Mark]
    /// The file, if it still has this content; it is then read by itself.
    var live: AppendFile?
    /// The name that it was written under.
    var origin: FileName
    /// Whether its name says that it may have been in the file that is judged only by what stands before the extension.
    var isOfOtherName: Bool

    /// Whether it is still where it was written and so short that another file may well hold the same: what rotation copies is emptied
    /// or renamed, and then it is known by that.
    var isNoProof: Bool {
        guard isOfOtherName, let live else { return false }
        return !live.isRotated && place.offset < Int64(Fingerprint.longest)
    }
}

extension SpoolReader {
    /// The contents known of the streams that a file under a name may belong to, its own first.
    func knownContents(of streams: [Stream]) -> [KnownContent] {
        var contents: [KnownContent] = []
        func add(_ trace: FileTrace, _ place: Mark, _ live: AppendFile?, _ own: [Stream]) {
            guard trace.fingerprint.length > 0, let origin = own.first?.stem else { return }
            contents.append(
                KnownContent(
                    fingerprint: trace.fingerprint, place: place, marks: trace.marks, live: live, origin: origin,
                    isOfOtherName: !own.contains(streams[0])))
        }
        for file in appends.files(of: streams) where !file.isCopySuspect {
            add(file.trace, file.taken, file, file.streams)
        }
        for (own, trace) in remembered.contents(of: streams) {
            if let last = trace.marks.last { add(trace, last, nil, own) }
        }
        return contents
    }

    /// Whether a name may be one that rotation has given, with something before the extension: there is a stream of the name without.
    func mayBeRotated(_ name: FileName, of holder: Holder) -> Bool {
        let base = name.base
        guard base != name.stem else { return false }
        let stream = Stream(holder, stem: base)
        return appends.streams.has(stream) || remembered.streams.has(stream)
    }

    // MARK: Copies

    /// How many times the time to settle a copy may take.
    private static let patience = 10

    /// A new file under a rotated name may be a copy that rotation makes before it truncates. Finds its place in what
    /// was read. False: that cannot be told yet.
    func resolveCopy(_ file: AppendFile) throws(SystemError) -> Bool {
        guard let descriptor = file.descriptor?.raw else { return true }
        held.compared = file
        defer { held.compared = nil }
        // Of a file that was not looked at yet it is not known how far it was read.
        let streams = Stream.asked(file.holder, file.name)
        guard isListed(near: file.directory) else { return false }
        let status = try FileSystem.status(of: descriptor)
        if status.size != file.length || status.modified != file.modified { file.lastChange = now }
        file.see(length: status.size)
        file.modified = status.modified
        let head = try bytes(of: descriptor, at: 0, count: Int(min(file.size, Int64(Fingerprint.longest))))
        // A copy is made at one go. A file that is written to now and then, under whatever name, is none for ever.
        let isOld = now - file.firstSeen >= options.settleTime * SpoolReader.patience
        let rest = now - file.lastChange
        let isQuiet = isOld || rest >= options.settleTime
        guard file.size > 0 || isOld else { return false }
        // What begins like it and was not read yet is read first; then this may be its copy.
        for other in appends.files(of: streams) where other !== file {
            guard !other.isCopySuspect else { continue }
            if beginsUnread(other, like: head, near: file.directory) {
                makeReady(other)
                return false
            }
        }
        // The one that goes farthest: what a file held when it was truncated may be the beginning of what it held next.
        var best: Mark?
        var known: KnownContent?
        for content in knownContents(of: streams) {
            let length = content.fingerprint.length
            guard length <= head.count else {
                // It may still grow to be the same.
                if isQuiet { continue }
                return false
            }
            guard head[..<length].withUnsafeBytes({ ByteHash.of($0) }) == content.fingerprint.hash else { continue }
            guard isQuiet else { return false }
            if content.place.offset > file.size {
                // The rest of it may be on its way: a busy machine or disk holds up a copy for seconds.
                guard isOld else { return false }
                // Copied before all of it was written. An equal beginning alone is no proof: many files have one.
                guard let proof = content.marks.last(where: { $0.offset <= file.size }),
                    try mark(at: proof.offset, descriptor) == proof
                else { continue }
                best = try mark(at: file.size, descriptor)
                known = content
                continue
            }
            guard try mark(at: content.place.offset, descriptor) == content.place,
                try endsLine(at: content.place.offset, of: file.size, descriptor)
            else { continue }
            if let live = content.live {
                // What is not read of it yet is read there, or here once it is truncated: never in both.
                guard try isReadToItsEnd(live) else { return false }
                // A copy is never longer than what it was copied from.
                guard live.size >= file.size else { continue }
                if content.isNoProof {
                    guard isOld else { return false }
                    continue
                }
            }
            if content.place.offset > best?.offset ?? 0 { (best, known) = (content.place, content) }
        }
        file.isCopySuspect = false
        appends.suspects -= 1
        if let best, let known {
            file.isRotated = true
            appends.change(file) { $0.origin = known.origin }
            try adopt(best, by: file, descriptor)
            recognised(known.fingerprint, upTo: file.size, of: streams)
        } else {
            readWhole(file.size, of: streams)
        }
        return true
    }

    /// Whether all directories have been listed whose files may have been what a copy near that one was made from.
    func isListed(near directory: SpoolDirectory) -> Bool {
        tree.directories.values.allSatisfy { $0.wasListed || $0.top != directory.top }
    }

    /// Whether all of a file was read, and is still what it holds: asked of the file itself, because changes are told late.
    func isReadToItsEnd(_ file: AppendFile) throws(SystemError) -> Bool {
        guard file.taken.offset >= file.size, !file.isReady else { return false }
        do throws(SystemError) {
            try open(file)
            guard let descriptor = file.descriptor?.raw else { return true }
            let status = try FileSystem.status(of: descriptor)
            if status.size == file.length, try mark(at: file.taken.offset, descriptor) == file.taken { return true }
        } catch {
            // It is gone, or out of reach: reading it finds out which.
        }
        makeReady(file)
        return false
    }

    /// Whether a line ends before the offset, or the file does. What was taken of a torn line (`{"`) is the beginning of
    /// many files.
    private func endsLine(at offset: Int64, of size: Int64, _ descriptor: Int32) throws(SystemError) -> Bool {
        guard offset < size else { return true }
        return try bytes(of: descriptor, at: offset - 1, count: 2).contains(0x0A)
    }

    private func adopt(_ place: Mark, by file: AppendFile, _ descriptor: Int32) throws(SystemError) {
        file.taken = place
        try advanced(file, descriptor)
        log.info("copy of a file that was read", ["path": file.path.text, "goes_on_at": place.offset])
    }

    /// Whether a file begins with these bytes, as far as both go, and that beginning was not read: nothing of the file was, or
    /// it was rewritten since.
    func beginsUnread(
        _ file: AppendFile, like lines: some Collection<UInt8>, near directory: SpoolDirectory
    ) -> Bool {
        let known = file.trace.fingerprint
        // Others are as they were read. Many files may have one name in many directories: few are opened for this.
        let mayHaveChanged = file.isReady || !file.isRotated && file.directory === directory
        guard known.length == 0 || file.isCopySuspect || mayHaveChanged else { return false }
        do throws(SystemError) {
            if file.descriptor == nil {
                guard mayHaveChanged, !file.isCopySuspect else { return false }
                try open(file)
            }
            guard let descriptor = file.descriptor?.raw else { return false }
            let head = try bytes(of: descriptor, at: 0, count: Fingerprint.longest)
            guard !head.isEmpty, !lines.isEmpty, lines.prefix(head.count).elementsEqual(head.prefix(lines.count)) else {
                return false
            }
            return known.length == 0 || known.length > head.count
                || head[..<known.length].withUnsafeBytes { ByteHash.of($0) } != known.hash
        } catch {
            // It is gone, or out of reach: reading it finds out which.
            return false
        }
    }

    func bytes(of descriptor: Int32, at offset: Int64, count: Int) throws(SystemError) -> [UInt8] {
        var failure: SystemError?
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, read in
            do throws(SystemError) {
                read = try FileSystem.read(descriptor, into: UnsafeMutableRawBufferPointer(buffer), at: offset)
            } catch {
                failure = error
                read = 0
            }
        }
        if let failure { throw failure }
        return bytes
    }
}
