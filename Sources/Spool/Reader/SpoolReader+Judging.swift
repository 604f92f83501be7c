internal import EventLoops
internal import Frames
internal import Logs
internal import Model

/// What files hold: the looking for `Streams`, which judges.
extension SpoolReader {
    /// How many bytes of an archive are unpacked for its beginning: rotation makes none that begins with so much that holds nothing.
    private static let farthestBeginning: Int64 = 16 << 20

    /// A new file under a rotated name may be a copy that rotation makes before it truncates. Finds its place in what
    /// was read. False: that cannot be told yet.
    func resolveCopy(_ file: AppendFile) throws(SystemError) -> Bool {
        guard let descriptor = file.descriptor?.raw else { return true }
        held.compared = file
        defer { held.compared = nil }
        // Of a file that was not looked at yet it is not known how far it was read.
        guard isListed(near: file.directory) else { return false }
        let status = try FileStatus(of: descriptor)
        if status.size != file.length || status.modified != file.modified { file.lastChange = now }
        file.see(length: status.size)
        file.modified = status.modified
        let size = file.size
        let head = try FileSystem.bytes(of: descriptor, at: 0, count: Int(min(size, Int64(Fingerprint.longest))))
        guard var inquiry = streams.inquiry(aboutCopy: file, head: head) else { return false }
        tellCutOffs()
        let answer = try answer(&inquiry, near: file.directory) { places throws(SystemError) in
            try self.sight(at: places, of: descriptor, size: size)
        }
        if case .later = answer { return false }
        if let place = streams.judged(file, answer, inquiry, in: &pass) {
            log.info("copy of a file that was read", ["path": file.path.text, "goes_on_at": place.offset])
        }
        return true
    }

    /// Compares an archive with what was read.
    func match(
        _ format: DropFormat, _ descriptor: Int32, in directory: SpoolDirectory, of streams: [Stream]
    ) throws(SystemError) -> Inquiry.Answer {
        let isKnown = self.streams.hasAny(of: streams)
        if isKnown, !isListed(near: directory) { return .later(first: nil) }
        let packed = isKnown ? packed(format) : nil
        try packed?.fill(from: descriptor, atMost: SpoolReader.farthestBeginning)
        let head = packed.map { Array($0.lines.prefix(Fingerprint.longest)) } ?? []
        var inquiry = self.streams.inquiry(aboutArchiveIn: directory, of: streams, head: head)
        let answer = try answer(&inquiry, near: directory) { places throws(SystemError) in
            try packed?.sight(at: places, from: descriptor) ?? Sight()
        }
        self.streams.note(answer, upTo: .max, inquiry)
        return answer
    }

    /// The file is or was shorter than what was read of it, or its bytes are others: finds where to go on. False: that is waited for, or takes
    /// more turns (its `proof`).
    func findPlace(
        in file: AppendFile, _ descriptor: Int32, isRewritten: Bool = false
    ) throws(SystemError) -> Bool {
        file.scanned = 0
        let (size, old, isProvable) = (file.size, file.taken.offset, file.taken.sum != 0)
        guard size < old || isRewritten || file.stage == .cut else { return true }
        let head = try FileSystem.bytes(of: descriptor, at: 0, count: Fingerprint.longest)
        var inquiry = streams.inquiry(aboutChanged: file, head: head, isRewritten: isRewritten)
        let answer = try answer(&inquiry, near: file.directory) { places throws(SystemError) in
            try self.sight(at: places, of: descriptor, size: size)
        }
        let hasWaiting = !drops.areAllRead
        guard
            streams.changed(
                file, answer, inquiry, isRotatedName: isRotated(file.name), hasWaiting: hasWaiting, in: &pass) != nil
        else { return false }
        guard file.taken.offset < old else { return true }
        counters.truncations += 1
        tellCutOffs()
        let place = file.taken.offset
        let fields: KeyValuePairs<String, any CustomStringConvertible> = [
            "path": file.path.text, "read_to": old, "goes_on_at": place,
        ]
        if place == 0, size > 0, !isProvable {
            log.warning(
                "file was truncated or rewritten: all is read, because what was read before is not known", fields)
        } else {
            log.info("file was truncated or rewritten", fields)
        }
        return true
    }

    /// Looks at what a question needs until it is answered.
    private func answer(
        _ inquiry: inout Inquiry, near directory: SpoolDirectory, look: ([Int64]) throws(SystemError) -> Sight
    ) throws(SystemError) -> Inquiry.Answer {
        while true {
            switch inquiry.next {
            case .beginning(let file): inquiry.saw(beginning: beginning(of: file, near: directory))
            case .places(let places): inquiry.saw(try look(places))
            case .sums(let file, let places):
                guard let sums = try sums(of: file, upTo: places) else { return .later(first: nil) }
                inquiry.saw(sums: sums)
            case .end(let file): inquiry.saw(file, isReadToItsEnd: try isReadToItsEnd(file))
            case .answer(let answer):
                if case .later(let first?) = answer, !first.isSuspect { makeReady(first) }
                return answer
            }
        }
    }

    /// Whether all directories have been listed whose files may have been what a copy near that one was made from.
    private func isListed(near directory: SpoolDirectory) -> Bool {
        tree.directories.values.allSatisfy { $0.wasListed || $0.top != directory.top }
    }

    /// Whether all of a file was read, and is still what it holds: asked of the file itself, because changes are reported late.
    private func isReadToItsEnd(_ file: AppendFile) throws(SystemError) -> Bool {
        guard file.taken.offset >= file.size, !file.isReady else { return false }
        do throws(SystemError) {
            try open(file)
            guard let descriptor = file.descriptor?.raw else { return true }
            let status = try FileStatus(of: descriptor)
            guard status.size == file.length else { return false }
            return try mark(at: file.taken.offset, descriptor).ends(like: file.taken)
        } catch {
            // It is gone, or out of reach: reading it finds out which.
            return false
        }
    }

    /// The first bytes of a file; none if it is not open and nothing can have happened to it, or if it is out of reach.
    private func beginning(of file: AppendFile, near directory: SpoolDirectory) -> [UInt8] {
        do throws(SystemError) {
            if file.descriptor == nil {
                guard file.mayHaveChanged(near: directory) else { return [] }
                try open(file)
            }
            guard let descriptor = file.descriptor?.raw else { return [] }
            return try FileSystem.bytes(of: descriptor, at: 0, count: Fingerprint.longest)
        } catch {
            return []
        }
    }

    private func sight(at places: [Int64], of descriptor: Int32, size: Int64) throws(SystemError) -> Sight {
        var sight = Sight()
        for place in places {
            let mark = try mark(at: place, descriptor)
            let border = try FileSystem.bytes(of: descriptor, at: place - 1, count: 2)
            sight.saw(mark, endsLine: place >= size || border.contains(0x0A))
            if place >= size { sight.end = mark }
        }
        return sight
    }

    /// What all bytes of a file before these places sum up to; nil until they were read, a block a turn.
    private func sums(of file: AppendFile, upTo places: [Int64]) throws(SystemError) -> [Int64: UInt32]? {
        guard let descriptor = file.descriptor?.raw else { return [:] }
        var proof = file.proof ?? AppendFile.Proof(size: file.size)
        // It may have become shorter, and have grown again, since the last turn.
        if file.size < proof.size { proof = AppendFile.Proof(size: file.size) }
        var block = UnsafeMutableRawBufferPointer(rebasing: buffer.take()[...])
        for place in places where place > proof.reached {
            let most = Int(min(place - proof.reached, Int64(block.count)))
            let room = UnsafeMutableRawBufferPointer(rebasing: block[..<most])
            let count = try FileSystem.read(descriptor, into: room, at: proof.reached)
            let bytes = UnsafeRawBufferPointer(rebasing: room[..<count])
            (proof.sum, proof.reached) = (crc32c(bytes, from: proof.sum), proof.reached + Int64(count))
            guard proof.reached == place else {
                file.proof = count == 0 && most > 0 ? nil : proof
                return nil
            }
            proof.sums[place] = proof.sum
            block = UnsafeMutableRawBufferPointer(rebasing: block[most...])
        }
        return proof.sums
    }

    func mark(at offset: Int64, of file: AppendFile) throws(SystemError) -> Mark {
        try open(file)
        guard let descriptor = file.descriptor?.raw else { return .start }
        return try mark(at: offset, descriptor)
    }

    func mark(at offset: Int64, _ descriptor: Int32) throws(SystemError) -> Mark {
        let covered = Mark(offset: offset, hash: 0).covered
        let bytes = try FileSystem.bytes(of: descriptor, at: offset - Int64(covered), count: covered)
        return Mark(offset: offset, hash: bytes.withUnsafeBytes { ByteHash.of($0) })
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

    /// The time has come to give up what no copy was found of.
    func giveUpUncopied() {
        let (isHeldBack, suspected) = (isHeldBack, streams.suspected)
        streams.cutOffs.giveUpOld(now, isHeldBack: isHeldBack, suspected: suspected)
        tellCutOffs()
        publish()
    }

    /// Counts and logs what was given up, and comes back to what is waited for.
    func tellCutOffs() {
        for cut in streams.cutOffs.takeGivenUp() {
            counters.bytesGivenUp += ByteCount(cut.end - cut.begin)
            log.error(
                cut.gone == nil ? "file was truncated before it was read" : "file vanished before it was read",
                ["path": cut.path.text, "offset": cut.begin, "bytes": cut.end - cut.begin])
        }
        if let due = streams.cutOffs.plan(now) { schedule(at: due) { self.giveUpUncopied() } }
    }
}

extension PackedLines {
    /// Unpacks as far as these places, which ascend, and says what is before each of them.
    func sight(at places: [Int64], from descriptor: Int32) throws(SystemError) -> Sight {
        var sight = Sight()
        // The bytes before a place tell whether it is the same all the way.
        var tail: [UInt8] = []
        func pass(_ count: Int) {
            tail = Array((tail + lines.prefix(count).suffix(Mark.window)).suffix(Mark.window))
            take(count)
        }
        for place in places {
            while offset + Int64(lines.count) <= place, end == nil {
                pass(Int(min(Int64(lines.count), place - offset)))
                try fill(from: descriptor)
            }
            let whole = offset + Int64(lines.count)
            guard whole >= place else {
                if end == .whole { sight.end = Mark(offset: whole, hash: 0) }
                break
            }
            pass(Int(place - offset))
            let mark = Mark(offset: place, hash: 0)
            let endsLine = tail.last == 0x0A || lines.first == 0x0A || lines.isEmpty && end == .whole
            let hash = tail.suffix(mark.covered).withUnsafeBytes { ByteHash.of($0) }
            sight.saw(Mark(offset: place, hash: hash), endsLine: endsLine)
        }
        return sight
    }
}
