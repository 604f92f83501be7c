internal import EventLoops
internal import Glibc
internal import Model

/// What is in an append file: its lines, block by block, from the place that was reached.
extension SpoolReader {
    /// Reads a block of the file that has waited longest. False: none waits.
    func readAppendFile() -> Bool {
        guard let (app, file) = ready.popFirst(shares, where: { isNamed($1.directory, $1.owner) }) else { return false }
        let turn = beginTurn(of: app)
        read(file)
        endTurn(turn)
        return true
    }

    private func read(_ file: AppendFile) {
        file.isReady = false
        commits.isParked = false
        guard streams.files[file.id] === file else { return }
        do {
            try open(file)
            guard isNamed(file.directory, file.owner) else {
                file.isReady = true
                return lineUp(file)
            }
            if file.isSuspect, try !resolveCopy(file) {
                return schedule(after: options.settleTime, by: share(of: file)) { self.makeReady(file) }
            }
            if try readBlock(of: file) {
                // A parked one stays ready, so that nothing else closes it; it takes its place again when it is resumed.
                file.isReady = true
                if !commits.isParked { lineUp(file) }
            } else {
                if file.committed >= file.size { streams.isRead(file) }
                considerLater(file)
                waitForContent(of: file)
            }
        } catch {
            cannotRead(file, error)
        }
    }

    /// Has a file read that could not be, if it is known still.
    func readAgain(_ file: AppendFile) {
        if streams.files[file.id] === file { makeReady(file) }
    }

    /// Has a file that the sink parked read on.
    private func resumption(of file: AppendFile) -> () -> Void {
        {
            self.lineUp(file)
            self.wake()
        }
    }

    func cannotRead(_ file: AppendFile, _ error: SystemError) {
        switch error.number {
        case EWOULDBLOCK:
            counters.leaseWaits += 1
            schedule(after: .seconds(1), by: share(of: file)) { self.makeReady(file) }
        case ENOENT:
            if file.hasName, isThere(file) {
                note(error, "cannot open", file.path)
                return tryAgain(.read, file.path, error) { self.readAgain(file) }
            }
            displaced(file)
            guard file.descriptor == nil else { return }
            streams.vanished(file)
            leave(file)
        default:
            notRead(file.directory, file.name, error, nil)
        }
    }

    /// Whether it has its name still, although a call has said that nothing has.
    private func isThere(_ file: AppendFile) -> Bool {
        guard !file.directory.isGone, let raw = file.directory.descriptor?.raw else { return false }
        return (try? FileSystem.status(raw, file.name))?.inode == file.trace.inode
    }

    /// Reads the next block. True: there may be more.
    private func readBlock(of file: AppendFile) throws(SystemError) -> Bool {
        guard let descriptor = file.descriptor?.raw else { return false }
        let status = try FileStatus(of: descriptor)
        if status.links == 0, file.hasName { displaced(file) }
        file.see(length: status.size)
        file.modified = status.modified
        if status.size < file.taken.offset + file.scanned || file.stage == .cut {
            guard try findPlace(in: file, descriptor) else {
                guard file.proof == nil else { return true }
                schedule(after: options.settleTime, by: share(of: file)) { self.makeReady(file) }
                return false
            }
            // A shorter copy over an older copy is compared first.
            if file.isSuspect { return true }
        }
        if file.scanned >= SpoolReader.shortLine { return try searchLineEnd(of: file, descriptor) }
        file.scanned = 0

        let buffer = self.buffer.take()
        // From the beginning while that is short: what is known of it must be of the same content as the lines.
        let before = file.taken.offset <= Fingerprint.longest ? Int(file.taken.offset) : file.taken.covered
        // The last byte stays free for the LF that a sealed line lacks.
        let room = UnsafeMutableRawBufferPointer(rebasing: buffer.dropLast())
        let count = try FileSystem.read(descriptor, into: room, at: file.taken.offset - Int64(before))
        guard count >= before,
            ByteHash.of(UnsafeRawBufferPointer(rebasing: buffer[(before - file.taken.covered)..<before]))
                == file.taken.hash,
            try isOnePiece(buffer[..<count], at: file.taken.offset - Int64(before), descriptor)
        else {
            file.see(length: min(file.size, file.taken.offset - Int64(before) + Int64(count)))
            return try findPlace(in: file, descriptor, isRewritten: true) || file.proof != nil
        }
        if file.reached > 0 {
            // Its end is gone, and may have grown again.
            streams.cutOff(file, from: max(file.cutTo, file.taken.offset))
            tellCutOffs()
        }
        return try takeBlock(of: file, in: buffer, before..<count, isEnd: count < room.count, descriptor)
    }

    /// Takes a piece of a block that is in the buffer from `before` on. True: there may be more.
    func takePiece(
        of file: AppendFile, _ block: UnsafeRawBufferPointer, in buffer: UnsafeMutableRawBufferPointer, at before: Int,
        isEnd: Bool, _ descriptor: Int32
    ) throws(SystemError) -> Bool {
        // What ends before zeros gets no more: lines go that begin a record.
        let isWhole = block.count > options.maxEventSize
        let mayGrow = isWhole || isEnd
        let rest = now - file.lastChange
        let joins = mayGrow && rest < options.textTime && !file.isSealed
        let cutter = LineCutter(
            longest: options.maxEventSize, format: mayGrow ? options.format : nil, joinsText: joins && options.joinsText
        )
        switch cutter.piece(of: block) {
        case .lines(let length):
            let lines = UnsafeRawBufferPointer(rebasing: block[..<length])
            let taken = hand(lines, from: source(of: file), at: file.taken.offset, resume: resumption(of: file))
            try advance(file, by: taken, in: buffer, at: before, descriptor)
            return taken < length || !isEnd || length < block.count
        case .tooLong(let length, isWhole: true):
            tooLong(
                "line", Int64(length - 1), from: source(of: file), at: file.taken.offset,
                content: Array(block.prefix(ObjectSplitter.excerpt)))
            try advance(file, by: length, in: buffer, at: before, descriptor)
            return true
        case .tooLong(let length, isWhole: false):
            file.scanned = Int64(length)
            return true
        case .partial(let length):
            guard isEnd else { return true }
            guard file.isSealed else {
                // Whole lines, whose record may go on, are read again with what comes: only the end of one line is looked for behind it.
                let hasLines = LineCutter.firstLineFeed(in: block) != nil
                file.scanned = hasLines ? 0 : Int64(length)
                file.holdsText = cutter.joinsText && hasLines
                return false
            }
            buffer[before + length] = 0x0A
            let line = UnsafeRawBufferPointer(rebasing: buffer[before...(before + length)])
            let taken = hand(line, from: source(of: file), at: file.taken.offset, resume: resumption(of: file))
            guard taken > length else { return true }
            try advance(file, by: length, in: buffer, at: before, descriptor)
            return false
        }
    }

    /// Whether what was read at one go is of one content. Of a file that is emptied and written again meanwhile, the kernel may
    /// give the old beginning and the new end; a page it gives as a whole.
    private func isOnePiece(
        _ bytes: Slice<UnsafeMutableRawBufferPointer>, at offset: Int64, _ descriptor: Int32
    ) throws(SystemError) -> Bool {
        guard (offset & 4095) + Int64(bytes.count) > 4096 else { return true }
        let first = try FileSystem.bytes(of: descriptor, at: offset, count: min(Mark.window, bytes.count))
        return bytes.prefix(Mark.window).elementsEqual(first)
    }

    /// A line of which more is known to lack an LF is not read again with every byte that comes.
    private static let shortLine: Int64 = 4096

    /// Looks for the end of a line in what has come since it was looked for last.
    private func searchLineEnd(of file: AppendFile, _ descriptor: Int32) throws(SystemError) -> Bool {
        let buffer = self.buffer.take()
        let position = file.taken.offset + file.scanned
        let count = try FileSystem.read(descriptor, into: buffer, at: position)
        // Zeros are no end of a line, but those at the end are not counted among its bytes.
        let zero = LineCutter.first(0, in: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        let block = UnsafeRawBufferPointer(rebasing: buffer[..<(zero ?? count)])
        guard let feed = LineCutter.firstLineFeed(in: block) else {
            file.scanned += Int64(block.count)
            if let zero {
                let rest = UnsafeRawBufferPointer(rebasing: buffer[zero..<count])
                switch try zeros(in: file, at: position + Int64(zero), rest, descriptor) {
                case .more: return true
                case .content(let end):
                    file.scanned = end - file.taken.offset
                    return true
                case .end: break
                }
                guard file.isSealed else { return false }
            } else {
                guard file.isSealed, count == 0 else { return count == buffer.count || (file.isSealed && count > 0) }
            }
            guard file.scanned > Int64(options.maxEventSize) else {
                file.scanned = 0
                return true
            }
            try skip(file, length: file.scanned, next: position, descriptor)
            return false
        }
        let length = file.scanned + Int64(feed)
        guard length > Int64(options.maxEventSize) else {
            file.scanned = 0
            return true
        }
        try skip(file, length: length, next: position + Int64(feed) + 1, descriptor)
        return true
    }

    private func skip(_ file: AppendFile, length: Int64, next: Int64, _ descriptor: Int32) throws(SystemError) {
        guard try mark(at: file.taken.offset, descriptor).ends(like: file.taken) else {
            // Rewritten while its end was looked for: these are other lines.
            _ = try findPlace(in: file, descriptor, isRewritten: true)
            return
        }
        let head = try FileSystem.bytes(of: descriptor, at: file.taken.offset, count: ObjectSplitter.excerpt)
        tooLong("line", length, from: source(of: file), at: file.taken.offset, content: head)
        try took(file, upTo: try mark(at: next, descriptor), descriptor)
    }

    /// Moves the place after what was taken, all of which is in the buffer.
    private func advance(
        _ file: AppendFile, by count: Int, in buffer: UnsafeMutableRawBufferPointer, at start: Int, _ descriptor: Int32
    ) throws(SystemError) {
        guard count > 0 else { return }
        let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<(start + count)])
        // The buffer begins with the file's first byte.
        let head = file.taken.offset == Int64(start) ? bytes : nil
        try took(file, upTo: file.taken.advanced(by: count, atEndOf: bytes), descriptor, head: head)
    }

    /// All bytes before a place were taken.
    ///
    /// - Parameter head: the file's first bytes, as far as they were taken; nil if they must be read.
    func took(
        _ file: AppendFile, upTo place: Mark, _ descriptor: Int32, head: UnsafeRawBufferPointer? = nil
    ) throws(SystemError) {
        let length = Int(min(place.offset, Int64(Fingerprint.longest)))
        var fingerprint: Fingerprint?
        if file.trace.fingerprint.length < length {
            let read = head == nil ? try FileSystem.bytes(of: descriptor, at: 0, count: length) : []
            let bytes = head.map { Array($0.prefix(length)) } ?? read
            fingerprint = Fingerprint(length: length, hash: bytes.withUnsafeBytes { ByteHash.of($0) })
        }
        streams.took(file, upTo: place, fingerprint, in: &pass)
    }

    func source(of file: AppendFile) -> SpoolSource {
        let id = file.id.bytes
        var source = SpoolSource(
            app: app(of: file.directory, file.owner), path: shown(file.path), producer: id,
            mayBeCritical: !file.directory.isIncoming, wasClosed: file.wasClosed)
        if options.afterRead != .keep { source.file = id }
        return source
    }
}
