internal import EventLoops
internal import Frames
internal import Logs
internal import Model

/// Finds out which content a file holds: does the I/O for inquiries, which `Streams` poses and judges.
final class Judge {
    private let context: SpoolContext
    private let reports: Reports
    private let schedule: Schedule
    private let outlet: Outlet
    private let lives: AppendLives
    private let opener: Opener
    private let tree: Tree
    private let drops: DropTable
    private let buffer: BlockBuffer

    init(
        _ context: SpoolContext, _ schedule: Schedule, _ reports: Reports, _ outlet: Outlet,
        _ lives: AppendLives, _ opener: Opener, _ tree: Tree, _ drops: DropTable, _ buffer: BlockBuffer
    ) {
        self.context = context
        self.reports = reports
        self.schedule = schedule
        self.outlet = outlet
        self.lives = lives
        self.opener = opener
        self.tree = tree
        self.drops = drops
        self.buffer = buffer
    }

    /// Most bytes of an archive that are unpacked to see its beginning. Hostile archives may unpack to
    /// nothing; those made by rotation do not.
    private static let farthestBeginning: Int64 = 16 << 20

    /// Judges a suspect: a new file under a rotated name may be a copy that rotation makes before it
    /// truncates. False if that cannot be decided yet; the file is not read meanwhile.
    func resolveCopy(_ file: AppendFile) throws(SystemError) -> Bool {
        guard let descriptor = file.descriptor?.raw else { return true }
        opener.compare(file)
        defer { opener.endComparison() }
        // The original may be in a directory that was not listed yet, and its read position is unknown until
        // then.
        guard isListed(near: file.directory) else { return false }
        let status = try FileStatus(of: descriptor)
        if status.size != file.length || status.modified != file.modified {
            file.lastChange = schedule.now
        }
        file.see(length: status.size)
        file.modified = status.modified
        let size = file.size
        let head = try FileSystem.bytes(
            of: descriptor, at: 0, count: Int(min(size, Int64(Fingerprint.longest))))
        guard var inquiry = lives.streams.inquiry(aboutCopy: file, head: head) else { return false }
        lives.tellCutOffs()
        let answer = try answer(&inquiry, near: file.directory) { offsets throws(SystemError) in
            try sight(at: offsets, of: descriptor, size: size)
        }
        if case .later = answer { return false }
        if let mark = lives.streams.judged(file, answer, inquiry, in: &outlet.pass) {
            context.log.info(
                "copy of a file that was read", ["path": file.path.text, "goes_on_at": mark.offset])
        }
        return true
    }

    /// Compares an archive with what was read.
    func match(
        _ format: DropFormat, _ descriptor: Int32, in directory: SpoolDirectory, of wanted: [Stream]
    ) throws(SystemError) -> Inquiry.Answer {
        let isKnown = lives.streams.hasAny(of: wanted)
        if isKnown, !isListed(near: directory) { return .later(first: nil) }
        let packed = isKnown ? packed(format) : nil
        try packed?.fill(from: descriptor, atMost: Judge.farthestBeginning)
        let head = packed.map { Array($0.unpacked.prefix(Fingerprint.longest)) } ?? []
        var inquiry = lives.streams.inquiry(aboutArchiveIn: directory, of: wanted, head: head)
        let answer = try answer(&inquiry, near: directory) { offsets throws(SystemError) in
            try packed?.sight(at: offsets, from: descriptor) ?? Sight()
        }
        lives.streams.note(answer, upTo: .max, inquiry)
        return answer
    }

    /// Finds the position at which reading of a truncated or rewritten file continues. False if the file is
    /// given time to be restored, or if checksums take more turns (`AppendFile.proof`).
    func findPosition(
        in file: AppendFile, _ descriptor: Int32, isRewritten: Bool = false
    ) throws(SystemError) -> Bool {
        file.scanned = 0
        let size = file.size
        let old = file.taken.offset
        let isProvable = file.taken.sum != 0
        guard size < old || isRewritten || file.stage == .cut else { return true }
        let head = try FileSystem.bytes(of: descriptor, at: 0, count: Fingerprint.longest)
        var inquiry = lives.streams.inquiry(aboutChanged: file, head: head, isRewritten: isRewritten)
        let answer = try answer(&inquiry, near: file.directory) { offsets throws(SystemError) in
            try sight(at: offsets, of: descriptor, size: size)
        }
        let hasWaiting = !drops.areAllRead
        guard
            lives.streams.changed(
                file, answer, inquiry, isRotatedName: context.options.isRotated(file.name),
                hasWaiting: hasWaiting,
                in: &outlet.pass)
                != nil
        else { return false }
        guard file.taken.offset < old else { return true }
        lives.appendFiles.wasSetBack()
        lives.tellCutOffs()
        let offset = file.taken.offset
        let fields: KeyValuePairs<String, any CustomStringConvertible> = [
            "path": file.path.text, "read_to": old, "goes_on_at": offset,
        ]
        if offset == 0, size > 0, !isProvable {
            context.log.warning(
                "file was truncated or rewritten: all is read, because what was read before is not known",
                fields)
        } else {
            context.log.info("file was truncated or rewritten", fields)
        }
        return true
    }

    /// Examines what an inquiry asks for, until there is an answer. Files that must be read first become
    /// ready.
    private func answer(
        _ inquiry: inout Inquiry, near directory: SpoolDirectory, look: ([Int64]) throws(SystemError) -> Sight
    ) throws(SystemError) -> Inquiry.Answer {
        while true {
            switch inquiry.next {
            case .beginning(let file): inquiry.saw(beginning: beginning(of: file, near: directory))
            case .offsets(let offsets): inquiry.saw(try look(offsets))
            case .sums(let file, let offsets):
                guard let sums = try sums(of: file, upTo: offsets) else { return .later(first: nil) }
                inquiry.saw(sums: sums)
            case .end(let file): inquiry.saw(file, isReadToItsEnd: try isReadToItsEnd(file))
            case .content(let file): inquiry.saw(file, holdsWhatWasRead: holdsWhatWasRead(file))
            case .answer(let answer):
                if case .later(let first?) = answer, !first.isSuspect {
                    lives.makeReady(first)
                }
                return answer
            }
        }
    }

    /// Whether all directories below the same top directory have been listed: the original of a copy may be
    /// in any of them.
    private func isListed(near directory: SpoolDirectory) -> Bool {
        tree.all.allSatisfy { $0.wasListed || $0.top != directory.top }
    }

    /// Whether a file was read to its end and still holds what was read. The file itself is examined, because
    /// changes are reported late.
    private func isReadToItsEnd(_ file: AppendFile) throws(SystemError) -> Bool {
        guard file.taken.offset >= file.size, !file.isReady else { return false }
        do throws(SystemError) {
            try opener.open(file)
            guard let descriptor = file.descriptor?.raw else { return true }
            let status = try FileStatus(of: descriptor)
            guard status.size == file.length else { return false }
            return try mark(at: file.taken.offset, descriptor).ends(like: file.taken)
        } catch {
            // The file is gone or cannot be opened; reading it finds out which.
            return false
        }
    }

    /// Whether a file still holds what was read of it; also true if it cannot be opened, so that a file that
    /// may not be read holds up no other one.
    private func holdsWhatWasRead(_ file: AppendFile) -> Bool {
        do throws(SystemError) {
            try opener.open(file)
            guard let descriptor = file.descriptor?.raw else { return true }
            return try mark(at: file.taken.offset, descriptor).ends(like: file.taken)
        } catch {
            return true
        }
    }

    /// The first bytes of a file; empty if it is closed and cannot have changed, or if it cannot be opened.
    private func beginning(of file: AppendFile, near directory: SpoolDirectory) -> [UInt8] {
        do throws(SystemError) {
            if file.descriptor == nil {
                guard file.mayHaveChanged(near: directory) else { return [] }
                try opener.open(file)
            }
            guard let descriptor = file.descriptor?.raw else { return [] }
            return try FileSystem.bytes(of: descriptor, at: 0, count: Fingerprint.longest)
        } catch {
            return []
        }
    }

    /// The marks at some offsets of a file.
    private func sight(at offsets: [Int64], of descriptor: Int32, size: Int64) throws(SystemError) -> Sight {
        var sight = Sight()
        for offset in offsets {
            let mark = try mark(at: offset, descriptor)
            let begin = max(0, offset - 2)
            let before = try FileSystem.bytes(of: descriptor, at: begin, count: Int(offset - begin) + 1)
            let endsLine = Sight.endsLine(before.dropLast(), before.last)
            sight.saw(mark, endsLine: offset >= size || endsLine)
            if offset >= size {
                sight.end = mark
            }
        }
        return sight
    }

    /// The checksums of all bytes of a file before some ascending offsets; nil while more turns are needed,
    /// because each turn reads one block.
    private func sums(of file: AppendFile, upTo offsets: [Int64]) throws(SystemError) -> [Int64: UInt32]? {
        guard let descriptor = file.descriptor?.raw else { return [:] }
        var proof = file.proof ?? AppendFile.Proof(size: file.size)
        // The file was truncated since the last turn, so the computation begins again.
        if file.size < proof.size {
            proof = AppendFile.Proof(size: file.size)
        }
        var block = UnsafeMutableRawBufferPointer(rebasing: buffer.take()[...])
        for offset in offsets where offset > proof.reached {
            let most = Int(min(offset - proof.reached, Int64(block.count)))
            let room = UnsafeMutableRawBufferPointer(rebasing: block[..<most])
            let count = try FileSystem.read(descriptor, into: room, at: proof.reached)
            let bytes = UnsafeRawBufferPointer(rebasing: room[..<count])
            proof.sum = crc32c(bytes, from: proof.sum)
            proof.reached += Int64(count)
            guard proof.reached == offset else {
                file.proof = count == 0 && most > 0 ? nil : proof
                return nil
            }
            proof.sums[offset] = proof.sum
            block = UnsafeMutableRawBufferPointer(rebasing: block[most...])
        }
        return proof.sums
    }

    /// The mark at an offset of a file, without the checksum of all bytes before it.
    func mark(at offset: Int64, of file: AppendFile) throws(SystemError) -> Mark {
        try opener.open(file)
        guard let descriptor = file.descriptor?.raw else { return .start }
        return try mark(at: offset, descriptor)
    }

    /// As above, for an open file.
    func mark(at offset: Int64, _ descriptor: Int32) throws(SystemError) -> Mark {
        let covered = Mark(offset: offset, hash: 0).covered
        let bytes = try FileSystem.bytes(of: descriptor, at: offset - Int64(covered), count: covered)
        return Mark(offset: offset, hash: bytes.withUnsafeBytes { ByteHash.of($0) })
    }

    /// Whether a file has the packed bytes that were read of an archive. More may follow them.
    func holds(_ archive: ReadArchive, _ descriptor: Int32) throws(SystemError) -> Bool {
        let head = try FileSystem.bytes(of: descriptor, at: 0, count: archive.fingerprint.length)
        guard archive.fingerprint.begins(head) else { return false }
        return try mark(at: archive.mark.offset, descriptor).ends(like: archive.mark)
    }

    /// A decompressor for a format; nil if it cannot be created, for want of memory.
    func packed(_ format: DropFormat) -> PackedLines? {
        do {
            let packed = try PackedLines(
                format == .gzipLines ? .gzip : .zstd, longest: context.options.maxEventSize)
            if context.options.place != nil {
                packed.decode(by: context.options.encoding)
            }
            return packed
        } catch {
            reports.failed()
            context.log.error("archive cannot be unpacked", ["reason": error.message])
            return nil
        }
    }
}

extension PackedLines {
    /// Unpacks up to some ascending offsets, and returns the marks there.
    func sight(at targets: [Int64], from descriptor: Int32) throws(SystemError) -> Sight {
        var sight = Sight()
        // The last bytes before the current offset, as many as a mark covers.
        var tail: [UInt8] = []
        func pass(_ count: Int) {
            tail = Array((tail + unpacked.prefix(count).suffix(Mark.window)).suffix(Mark.window))
            skip(count)
        }
        for target in targets {
            while offset + Int64(unpacked.count) <= target, end == nil {
                pass(Int(min(Int64(unpacked.count), target - offset)))
                try fill(from: descriptor)
            }
            let whole = offset + Int64(unpacked.count)
            guard whole >= target else {
                if end == .whole {
                    sight.end = Mark(offset: whole, hash: 0)
                }
                break
            }
            pass(Int(target - offset))
            let mark = Mark(offset: target, hash: 0)
            let endsLine =
                Sight.endsLine(tail[...], unpacked.first) || unpacked.isEmpty && end == .whole
            let hash = tail.suffix(mark.covered).withUnsafeBytes { ByteHash.of($0) }
            sight.saw(Mark(offset: target, hash: hash), endsLine: endsLine)
        }
        return sight
    }
}
