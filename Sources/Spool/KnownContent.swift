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
            for former in trace.former.reversed() {
                contents.append(
                    KnownContent(fingerprint: former.fingerprint, place: former.place, marks: [], live: nil))
            }
            guard trace.fingerprint.length > 0 else { return }
            contents.append(KnownContent(fingerprint: trace.fingerprint, place: place, marks: trace.marks, live: live))
        }
        func add(_ file: AppendFile) {
            // A name begins with its stem; that is seen more quickly than what its stem is.
            let original = file.name.claimed ?? file.name
            guard original.bytes.starts(with: stem.bytes), original.stem == stem, !file.isCopySuspect else { return }
            add(file.trace, file.taken, file)
        }
        for directory in directories.values where SpoolReader.top(directory.path.bytes) == top {
            for file in directory.files.values { add(file) }
        }
        for file in nameless.values where SpoolReader.top(file.directory.path.bytes) == top { add(file) }
        for checkpoint in kept.values where SpoolReader.mayBegin(checkpoint.path, with: stem) {
            guard SpoolReader.top(SpoolReader.parent(checkpoint.path)) == top,
                SpoolReader.lastName(checkpoint.path).stem == stem, let trace = FileTrace(checkpoint.state),
                trace.doneVersion == nil, let last = trace.marks.last
            else { continue }
            add(trace, last, nil)
        }
        return contents
    }

    private static func top(_ path: [UInt8]) -> ArraySlice<UInt8> { path.prefix { $0 != UInt8(ascii: "/") } }

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
        file.size = try FileSystem.status(of: descriptor).size
        guard file.size > 0 else { return false }
        let head = try bytes(of: descriptor, at: 0, count: Int(min(file.size, Int64(Fingerprint.longest))))
        // A copy is made at one go. A file that is written to now and then, under whatever name, is none for ever.
        let isQuiet =
            now - file.lastChange >= options.settleTime
            || now - file.firstSeen >= options.settleTime * SpoolReader.patience
        // The one that goes farthest: what a file held when it was truncated may be the beginning of what it held next.
        var best: Mark?
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
                if let mark = content.marks.last(where: { $0.offset <= file.size }),
                    try mark != self.mark(at: mark.offset, descriptor)
                {
                    continue
                }
                best = try mark(at: file.size, descriptor)
                continue
            }
            guard try mark(at: content.place.offset, descriptor) == content.place,
                try endsLine(at: content.place.offset, of: file.size, descriptor)
            else { continue }
            if let live = content.live {
                // What is not read of it yet is read there, or here once it is truncated: never in both.
                guard live.taken.offset >= live.size, !live.isReady else { return false }
                // A copy is never longer than what it was copied from.
                guard live.size >= file.size else { continue }
            }
            if content.place.offset > best?.offset ?? 0 { best = content.place }
        }
        file.isCopySuspect = false
        if let best { try adopt(best, by: file, descriptor) }
        return true
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

    // MARK: Archives

    /// Where to go on in an archive of an append file.
    enum ArchiveMatch {
        /// It is not one of ours.
        case unknown
        /// That cannot be told before the file itself is read to its end.
        case later
        /// It is one; all before this place was read.
        case known(Mark)
    }

    /// Compares an archive with what was read.
    func match(
        _ format: DropFormat, _ descriptor: Int32, in directory: SpoolDirectory, named name: FileName
    ) throws(SystemError) -> ArchiveMatch {
        let contents = knownContents(near: directory, named: name)
        guard !contents.isEmpty else { return .unknown }
        var best: Mark?
        for content in contents {
            guard let seen = try place(of: content, in: format, descriptor) else { continue }
            if let live = content.live, live.taken.offset < live.size || live.isReady { return .later }
            if seen.offset > best?.offset ?? 0 { best = seen }
        }
        return best.map { .known($0) } ?? .unknown
    }

    /// The place up to which the archive is content that was read; nil if it is another content.
    private func place(
        of content: KnownContent, in format: DropFormat, _ descriptor: Int32
    ) throws(SystemError) -> Mark? {
        guard let packed = packed(format) else { return nil }
        try packed.fill(from: descriptor, atMost: KnownContent.farthestBeginning)
        let length = content.fingerprint.length
        guard packed.lines.count >= length,
            ByteHash.of(UnsafeRawBufferPointer(rebasing: packed.lines.prefix(length))) == content.fingerprint.hash
        else { return nil }
        // The bytes before the last place tell whether it is the same all the way.
        var tail: [UInt8] = []
        while packed.offset + Int64(packed.lines.count) < content.place.offset, packed.end == nil {
            tail = Array((tail + packed.lines.suffix(Mark.window)).suffix(Mark.window))
            packed.take(packed.lines.count)
            try packed.fill(from: descriptor)
        }
        let whole = packed.offset + Int64(packed.lines.count)
        guard whole >= content.place.offset else {
            // Shorter than what was read: there is nothing new in it.
            return packed.end == .whole ? Mark(offset: whole, hash: 0) : nil
        }
        let rest = packed.lines.dropFirst(Int(content.place.offset - packed.offset))
        tail += packed.lines.prefix(Int(content.place.offset - packed.offset))
        // A line must end there, as in a copy.
        guard tail.last == 0x0A || rest.first == 0x0A || (rest.isEmpty && packed.end == .whole) else { return nil }
        let hash = tail.suffix(content.place.covered).withUnsafeBytes { ByteHash.of($0) }
        return hash == content.place.hash ? content.place : nil
    }

    /// A decompressor for a format; nil if there is no memory for one.
    func packed(_ format: DropFormat) -> PackedLines? {
        do {
            return try PackedLines(format == .gzipLines ? .gzip : .zstd, longest: options.maxEventSize)
        } catch {
            counters.errors += 1
            log.error("cannot unpack", ["error": error.message])
            return nil
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
