internal import EventLoops
internal import Frames
internal import Logs
internal import Model

/// Archives that rotation has made of append files: what was read of those is not taken again.
extension SpoolReader {
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
        _ format: DropFormat, _ descriptor: Int32, in directory: SpoolDirectory, of streams: [Stream]
    ) throws(SystemError) -> ArchiveMatch {
        let contents = knownContents(of: streams)
        let others = appends.files(of: streams)
        guard !contents.isEmpty || !others.isEmpty else {
            readWhole(.max, of: streams)
            return .unknown
        }
        guard isListed(near: directory) else { return .later }
        // What begins like it and was not read yet is read first, and then this is an archive of it.
        if !others.isEmpty, let packed = packed(format) {
            try packed.fill(from: descriptor, atMost: KnownContent.farthestBeginning)
            for other in others where beginsUnread(other, like: packed.lines, near: directory) {
                if !other.isCopySuspect { makeReady(other) }
                return .later
            }
        }
        var best: Mark?
        var known = Fingerprint.empty
        for content in contents {
            guard let seen = try place(of: content, in: format, descriptor) else { continue }
            if let live = content.live, try !isReadToItsEnd(live) { return .later }
            if content.isNoProof { continue }
            if seen.offset > best?.offset ?? 0 { (best, known) = (seen, content.fingerprint) }
        }
        if best == nil {
            readWhole(.max, of: streams)
        } else {
            recognised(known, upTo: .max, of: streams)
        }
        return best.map { .known($0) } ?? .unknown
    }

    /// The place up to which the archive is content that was read; nil if it is another content.
    private func place(
        of content: KnownContent, in format: DropFormat, _ descriptor: Int32
    ) throws(SystemError) -> Mark? {
        let (seen, whole) = try place(content.place, of: content, in: format, descriptor)
        guard seen == nil, let whole, whole < content.place.offset else { return seen }
        // Shorter than what was read, as a copy may be: an earlier place is the proof that there is nothing new in it.
        guard let mark = content.marks.last(where: { $0.offset <= whole }),
            try place(mark, of: content, in: format, descriptor).seen != nil
        else { return nil }
        return Mark(offset: whole, hash: 0)
    }

    /// - Returns: the place, if the archive has the content up to there; and how long the archive is, if it is shorter.
    private func place(
        _ place: Mark, of content: KnownContent, in format: DropFormat, _ descriptor: Int32
    ) throws(SystemError) -> (seen: Mark?, whole: Int64?) {
        guard let packed = packed(format) else { return (nil, nil) }
        try packed.fill(from: descriptor, atMost: KnownContent.farthestBeginning)
        let length = content.fingerprint.length
        guard packed.lines.count >= length,
            ByteHash.of(UnsafeRawBufferPointer(rebasing: packed.lines.prefix(length))) == content.fingerprint.hash
        else { return (nil, nil) }
        // The bytes before the last place tell whether it is the same all the way.
        var tail: [UInt8] = []
        while packed.offset + Int64(packed.lines.count) < place.offset, packed.end == nil {
            tail = Array((tail + packed.lines.suffix(Mark.window)).suffix(Mark.window))
            packed.take(packed.lines.count)
            try packed.fill(from: descriptor)
        }
        let whole = packed.offset + Int64(packed.lines.count)
        guard whole >= place.offset else { return (nil, packed.end == .whole ? whole : nil) }
        let rest = packed.lines.dropFirst(Int(place.offset - packed.offset))
        tail += packed.lines.prefix(Int(place.offset - packed.offset))
        // A line must end there, as in a copy.
        guard tail.last == 0x0A || rest.first == 0x0A || (rest.isEmpty && packed.end == .whole) else {
            return (nil, nil)
        }
        let hash = tail.suffix(place.covered).withUnsafeBytes { ByteHash.of($0) }
        return (hash == place.hash ? place : nil, nil)
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
}
