internal import EventLoops
internal import Frames
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
}

extension SpoolReader {
    /// The contents known of a top directory of the spool, of files whose name was the same before rotation changed it:
    /// others that begin alike are other files.
    func knownContents(near directory: SpoolDirectory, named name: FileName) -> [KnownContent] {
        let stem = name.stem
        let top = SpoolReader.top(directory.path.bytes)
        var contents: [KnownContent] = []
        func add(_ trace: FileTrace, _ place: Mark, _ live: AppendFile?) {
            guard trace.fingerprint.length > 0 else { return }
            contents.append(KnownContent(fingerprint: trace.fingerprint, place: place, marks: trace.marks, live: live))
        }
        for file in namesakes(near: directory, named: name) where !file.isCopySuspect {
            add(file.trace, file.taken, file)
        }
        for checkpoint in remembered.kept.values where SpoolReader.mayBegin(checkpoint.path, with: stem) {
            guard SpoolReader.top(SpoolReader.parent(checkpoint.path)) == top,
                SpoolReader.lastName(checkpoint.path).stem == stem, let trace = FileTrace(checkpoint.state),
                trace.doneVersion == nil, let last = trace.marks.last
            else { continue }
            add(trace, last, nil)
        }
        return contents
    }

    static func top(_ path: [UInt8]) -> ArraySlice<UInt8> { path.prefix { $0 != UInt8(ascii: "/") } }

    /// Whether a path's last name begins with a stem: tells most of many files apart at little cost.
    private static func mayBegin(_ path: String, with stem: FileName) -> Bool {
        let bytes = path.utf8
        let slash = bytes.lastIndex(of: UInt8(ascii: "/"))
        return bytes[(slash.map { bytes.index(after: $0) } ?? bytes.startIndex)...].starts(with: stem.bytes)
    }

    private static func parent(_ path: String) -> [UInt8] {
        let bytes = Array(path.utf8)
        return Array(bytes[..<(bytes.lastIndex(of: UInt8(ascii: "/")) ?? 0)])
    }

    private static func lastName(_ path: String) -> FileName {
        let bytes = Array(path.utf8)
        return FileName(bytes[((bytes.lastIndex(of: UInt8(ascii: "/")) ?? -1) + 1)...])
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
        guard isListed(near: file.directory) else { return false }
        let status = try FileSystem.status(of: descriptor)
        if status.size != file.size || status.modified != file.modified { file.lastChange = now }
        file.size = status.size
        file.modified = status.modified
        let head = try bytes(of: descriptor, at: 0, count: Int(min(file.size, Int64(Fingerprint.longest))))
        // A copy is made at one go. A file that is written to now and then, under whatever name, is none for ever.
        let isOld = now - file.firstSeen >= options.settleTime * SpoolReader.patience
        let isQuiet = isOld || now - file.lastChange >= options.settleTime
        guard file.size > 0 || isOld else { return false }
        // What begins like it and was not read yet is read first; then this may be its copy.
        for other in namesakes(near: file.directory, named: file.name)
        where other !== file && !other.isCopySuspect && beginsUnread(other, like: head, near: file.directory) {
            makeReady(other)
            return false
        }
        // The one that goes farthest: what a file held when it was truncated may be the beginning of what it held next.
        var best: Mark?
        var known = Fingerprint.empty
        for content in knownContents(near: file.directory, named: file.name) {
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
                known = content.fingerprint
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
            }
            if content.place.offset > best?.offset ?? 0 { (best, known) = (content.place, content.fingerprint) }
        }
        file.isCopySuspect = false
        appends.suspects -= 1
        if let best {
            try adopt(best, by: file, descriptor)
            recognised(known, upTo: file.size)
        } else {
            readWhole(file.name, in: file.directory, length: file.size)
        }
        return true
    }

    /// Whether all directories have been listed whose files may have been what a copy near that one was made from.
    func isListed(near directory: SpoolDirectory) -> Bool {
        let top = SpoolReader.top(directory.path.bytes)
        return tree.directories.values.allSatisfy { $0.wasListed || SpoolReader.top($0.path.bytes) != top }
    }

    /// Whether all of a file was read, and is still what it holds: asked of the file itself, because changes are told late.
    func isReadToItsEnd(_ file: AppendFile) throws(SystemError) -> Bool {
        guard file.taken.offset >= file.size, !file.isReady else { return false }
        do throws(SystemError) {
            try open(file)
            guard let descriptor = file.descriptor?.raw else { return true }
            let status = try FileSystem.status(of: descriptor)
            if status.size == file.taken.offset, try mark(at: status.size, descriptor) == file.taken { return true }
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

    // MARK: Namesakes

    /// Files of which nothing is known but that they are there: copies that are still to be told apart, and files that nothing
    /// was read of yet.
    func undecidedFiles(near directory: SpoolDirectory, named name: FileName) -> [AppendFile] {
        namesakes(near: directory, named: name).filter { $0.isCopySuspect || $0.trace.fingerprint.length == 0 }
    }

    /// The files of a top directory of the spool whose name was the same before rotation changed it.
    func namesakes(near directory: SpoolDirectory, named name: FileName) -> [AppendFile] {
        let (stem, top) = (name.stem, SpoolReader.top(directory.path.bytes))
        func isOne(_ file: AppendFile) -> Bool {
            // A name begins with its stem; that is seen more quickly than what its stem is.
            let original = file.name.claimed ?? file.name
            return original.bytes.starts(with: stem.bytes) && original.stem == stem
        }
        var files: [AppendFile] = []
        for directory in tree.directories.values where SpoolReader.top(directory.path.bytes) == top {
            files += directory.files.values.filter(isOne)
        }
        return files
            + appends.nameless.values.filter { SpoolReader.top($0.directory.path.bytes) == top && isOne($0) }
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
