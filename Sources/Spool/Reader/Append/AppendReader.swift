internal import EventLoops
internal import Frames
internal import Glibc
internal import Logs
internal import Model

/// Reads the lines of an append file, block by block, from the read position. `BlockReader` says how a block
/// is cut.
final class AppendReader {
    /// Most pieces of a block: zeros between lines make more than one.
    private static let mostPieces = 256

    private let context: SpoolContext
    private let schedule: Schedule
    private let reports: Reports
    private let outlet: Outlet
    private let lives: AppendLives
    private let opener: Opener
    private let departures: Departures
    private let judge: Judge
    private let turns: Turns
    private let buffer: BlockBuffer
    private let padding: PaddingReader
    private let history: HistoryReader

    init(
        _ context: SpoolContext, _ schedule: Schedule, _ reports: Reports, _ outlet: Outlet,
        _ lives: AppendLives, _ opener: Opener, _ departures: Departures, _ judge: Judge, _ turns: Turns,
        _ buffer: BlockBuffer, _ padding: PaddingReader, _ history: HistoryReader
    ) {
        self.context = context
        self.schedule = schedule
        self.reports = reports
        self.outlet = outlet
        self.lives = lives
        self.opener = opener
        self.departures = departures
        self.judge = judge
        self.turns = turns
        self.buffer = buffer
        self.padding = padding
        self.history = history
    }

    /// Reads a block of the file that has waited longest. False: none waits.
    func readAppendFile() -> Bool {
        guard let (app, file) = turns.nextFile(where: { reports.isNamed($0.directory, $0.owner) }) else {
            return false
        }
        let turn = turns.begin(of: app, schedule.now)
        read(file)
        turns.end(turn, schedule.now)
        return true
    }

    /// One turn of a file: opens it, judges it if it is a suspect, reads a block, and queues it again if
    /// there may be more.
    private func read(_ file: AppendFile) {
        outlet.beginFile()
        guard lives.appendFiles.beginTurn(of: file, at: schedule.now) else { return }
        do {
            try opener.open(file)
            try passOverHistory(of: file)
            guard reports.isNamed(file.directory, file.owner) else {
                file.isReady = true
                return lives.lineUp(file)
            }
            if file.isSuspect, try !judge.resolveCopy(file) {
                return schedule.plan(after: context.options.settleTime, .read(file.id))
            }
            if try readBlock(of: file) {
                // A parked one stays ready, so that nothing else closes it; it takes its place again when
                // it is resumed.
                file.isReady = true
                if !outlet.handover.isParked {
                    lives.lineUp(file)
                }
            } else {
                lives.appendFiles.endTurn(of: file)
                lives.considerLater(file)
                padding.planLook(at: file)
            }
        } catch {
            departures.cannotRead(file, error)
        }
    }

    /// Called when the sink wants the rest of a file that it has parked.
    private func continuation(of file: AppendFile) -> () -> Void {
        { [lives, schedule] in
            lives.lineUp(file)
            schedule.wake()
        }
    }

    /// Reads the next block. True: there may be more.
    private func readBlock(of file: AppendFile) throws(SystemError) -> Bool {
        guard var descriptor = file.descriptor?.raw else { return false }
        let status = try FileStatus(of: descriptor)
        if status.links == 0, file.hasName {
            lives.displaced(file)
        }
        file.see(length: status.size)
        file.modified = status.modified
        if file.beganLate {
            lives.streams.began(file, isRotatedName: context.options.isRotated(file.name))
            if file.isSuspect { return true }
        }
        if status.size < file.taken.offset + file.scanned || file.stage == .cut {
            try opener.openAgain(file)
            guard let again = file.descriptor?.raw else { return true }
            if again != descriptor {
                // The number before is closed, and may be another file's by now.
                descriptor = again
                file.see(length: try FileStatus(of: again).size)
            }
            guard try judge.findPosition(in: file, descriptor) else {
                guard file.proof == nil else { return true }
                schedule.plan(after: context.options.settleTime, .read(file.id))
                return false
            }
            // A shorter copy over an older copy is compared first.
            if file.isSuspect { return true }
        }
        if file.scanned >= lineToSearch { return try searchLineEnd(of: file, descriptor) }
        file.scanned = 0

        let buffer = buffer.take(for: file.script.decoder)
        // While the read position is near the beginning, read from the beginning: the fingerprint must cover
        // the same content as the lines. Otherwise read the bytes before the position that its mark covers.
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
            try opener.openAgain(file)
            guard let descriptor = file.descriptor?.raw else { return true }
            return try judge.findPosition(in: file, descriptor, isRewritten: true) || file.proof != nil
        }
        if file.reached > 0 {
            // The file was truncated before, and may have grown again. Unread bytes that were cut are looked
            // for in copies.
            lives.streams.cutOff(file, from: max(file.cutTo, file.taken.offset))
            lives.tellCutOffs()
        }
        let isEnd = count < room.count
        if let decoder = try decoder(
            of: file, descriptor, head: Int64(before) == file.taken.offset ? buffer[..<count] : nil)
        {
            return try takeBlock(of: file, by: decoder, in: buffer, before..<count, isEnd: isEnd, descriptor)
        }
        return try takeBlock(of: file, in: buffer, before..<count, isEnd: isEnd, descriptor)
    }

    /// Cuts the block in the buffer into pieces and hands them over. True if there may be more to read.
    private func takeBlock(
        of file: AppendFile, in buffer: UnsafeMutableRawBufferPointer, _ range: Range<Int>, isEnd: Bool,
        _ descriptor: Int32
    ) throws(SystemError) -> Bool {
        var start = range.lowerBound
        // Most blocks are one piece; zeros between lines make more of them.
        for _ in 0..<AppendReader.mostPieces where start < range.upperBound {
            let block = UnsafeRawBufferPointer(rebasing: buffer[start..<range.upperBound])
            let begin = file.taken.offset
            let content = BlockReader.content(of: block)
            padding.sawContent(of: file, upTo: begin + Int64(content))
            var zeros: BlockReader.Zeros?
            if BlockReader.needsZeros(block, content: content) {
                let rest = UnsafeRawBufferPointer(rebasing: block[content...])
                zeros = try padding.zeros(in: file, at: begin + Int64(content), rest, descriptor)
            }
            let isSilent = schedule.now - file.lastChange >= context.options.textTime
            let cut = lives.appendFiles.blocks.cut(
                block, content: content, zeros: zeros, isEnd: isEnd,
                BlockReader.Ending(isSealed: file.isSealed, isSilent: isSilent))
            guard try take(cut.piece, of: file, block, in: buffer, at: start, descriptor) else { return true }
            guard cut.goesOn else { return cut.mayHaveMore }
            start += Int(min(file.taken.offset - begin, Int64(block.count)))
        }
        return start < range.upperBound || !isEnd
    }

    /// Handles one piece of a block. False if the sink has not taken all of it.
    private func take(
        _ piece: BlockReader.Piece, of file: AppendFile, _ block: UnsafeRawBufferPointer,
        in buffer: UnsafeMutableRawBufferPointer, at start: Int, _ descriptor: Int32
    ) throws(SystemError) -> Bool {
        switch piece {
        case .lines(let length):
            let lines = UnsafeRawBufferPointer(rebasing: block[..<length])
            let taken = outlet.hand(
                lines, from: source(of: file), at: file.taken.offset, resume: continuation(of: file))
            try advance(file, by: taken, in: buffer, at: start, descriptor)
            return taken == length
        case .lastLine(let length):
            // The last byte of the buffer is free for it.
            buffer[start + length] = 0x0A
            let line = UnsafeRawBufferPointer(rebasing: buffer[start...(start + length)])
            let taken = outlet.hand(
                line, from: source(of: file), at: file.taken.offset, resume: continuation(of: file))
            guard taken > length else { return false }
            try advance(file, by: length, in: buffer, at: start, descriptor)
        case .tooLong(let length):
            outlet.tooLong(
                "line", Int64(length - 1), from: source(of: file), at: file.taken.offset,
                content: Array(block.prefix(ObjectSplitter.excerpt)))
            try advance(file, by: length, in: buffer, at: start, descriptor)
        case .endless(let length): file.scanned = Int64(length)
        case .zeros(let end): try passOverZeros(of: file, upTo: end, descriptor)
        case .open(let length, let hasLines, let holdsText):
            // Whole lines are read again with what comes; only the end of one line is looked for behind it.
            file.scanned = hasLines ? 0 : Int64(length)
            file.holdsText = holdsText
        case .nothing: break
        }
        return true
    }

    // MARK: Other encodings
    //
    // Lines are cut and handed over as UTF-8; all positions are those of the file's own bytes.

    /// The decoder of a file that is read in place; nil for a file whose bytes are handed over as they are.
    ///
    /// - Parameter head: the file's first bytes; nil if they were not read just now.
    private func decoder(
        of file: AppendFile, _ descriptor: Int32, head: Slice<UnsafeMutableRawBufferPointer>? = nil
    ) throws(SystemError) -> FileDecoder? {
        guard context.options.place != nil else { return nil }
        if let head {
            file.script = FileScript(
                FileDecoder(head: UnsafeRawBufferPointer(rebasing: head), context.options.encoding))
        } else if file.script == .unknown {
            let head = try FileSystem.bytes(of: descriptor, at: 0, count: 2)
            file.script = FileScript(head.withUnsafeBytes { FileDecoder(head: $0, context.options.encoding) })
        }
        return file.script.decoder
    }

    /// Decodes the block in the buffer to UTF-8, cuts it into pieces and hands them over. True if there may
    /// be more to read.
    private func takeBlock(
        of file: AppendFile, by decoder: FileDecoder, in buffer: UnsafeMutableRawBufferPointer,
        _ range: Range<Int>, isEnd: Bool, _ descriptor: Int32
    ) throws(SystemError) -> Bool {
        let raw = UnsafeRawBufferPointer(rebasing: buffer[range])
        let block = DecodedBlock(
            raw, by: decoder, isBeginning: file.taken.offset == 0, isWhole: isEnd && file.isSealed)
        if block.text.isEmpty, isEnd, file.isSealed {
            // Only a byte order mark is left.
            try advance(file, by: raw.count, in: buffer, at: range.lowerBound, descriptor)
        }
        for _ in 0..<AppendReader.mostPieces where !block.text.isEmpty {
            let begin = file.taken.offset
            let content = BlockReader.content(of: block.text)
            let fileContent = block.fileLength(of: content)
            padding.sawContent(of: file, upTo: begin + Int64(fileContent))
            var zeros: BlockReader.Zeros?
            if BlockReader.needsZeros(block.text, content: content) {
                let rest = UnsafeRawBufferPointer(rebasing: raw[(block.used + fileContent)...])
                zeros = try padding.zeros(in: file, at: begin + Int64(fileContent), rest, descriptor)
            }
            let isSilent = schedule.now - file.lastChange >= context.options.textTime
            let cut = lives.appendFiles.blocks.cut(
                block.text, content: content, zeros: zeros, isEnd: isEnd,
                BlockReader.Ending(isSealed: file.isSealed, isSilent: isSilent))
            let offset = range.lowerBound + block.used
            guard try take(cut.piece, of: file, block, in: buffer, at: offset, descriptor) else {
                return true
            }
            guard cut.goesOn else { return cut.mayHaveMore }
        }
        return !block.text.isEmpty || !isEnd
    }

    /// As `take` for UTF-8.
    private func take(
        _ piece: BlockReader.Piece, of file: AppendFile, _ block: DecodedBlock,
        in buffer: UnsafeMutableRawBufferPointer, at start: Int, _ descriptor: Int32
    ) throws(SystemError) -> Bool {
        switch piece {
        case .lines(let length):
            let taken = handOver(length, of: block, file)
            try advance(file, by: taken.bytes, in: buffer, at: start, descriptor)
            return taken.text == length
        case .lastLine(let length):
            let taken = outlet.hand(
                block.sealed(length), from: source(of: file), at: file.taken.offset,
                resume: continuation(of: file))
            guard taken > length else { return false }
            try advance(file, by: block.use(length), in: buffer, at: start, descriptor)
        case .tooLong(let length):
            outlet.tooLong(
                "line", Int64(length - 1), from: source(of: file), at: file.taken.offset,
                content: Array(block.text.prefix(min(length, ObjectSplitter.excerpt))))
            try advance(file, by: block.use(length), in: buffer, at: start, descriptor)
        case .endless(let length): file.scanned = Int64(block.fileLength(of: length))
        case .zeros(let end):
            block.useZeros(end - file.taken.offset)
            try passOverZeros(of: file, upTo: end, descriptor)
        case .open(let length, let hasLines, let holdsText):
            file.scanned = hasLines ? 0 : Int64(block.fileLength(of: length))
            file.holdsText = holdsText
        case .nothing: break
        }
        return true
    }

    /// Hands over whole lines of a block, and marks them as used.
    ///
    /// - Returns: how much of the text was taken, and how many bytes of the file that is.
    private func handOver(_ length: Int, of block: DecodedBlock, _ file: AppendFile) -> (
        text: Int, bytes: Int
    ) {
        let source = source(of: file)
        // The sink counts the places of lines from the place of the first in bytes of text. So lines go one
        // by one, unless several may be a record.
        let blocks = lives.appendFiles.blocks
        let isOneByOne = !blocks.joinsText && blocks.recordStart == nil
        var taken = (text: 0, bytes: 0)
        while taken.text < length {
            let rest = UnsafeRawBufferPointer(rebasing: block.text[..<(length - taken.text)])
            let line = isOneByOne ? (LineCutter.firstLineFeed(in: rest) ?? rest.count - 1) + 1 : rest.count
            let count = outlet.hand(
                UnsafeRawBufferPointer(rebasing: rest[..<line]), from: source,
                at: file.taken.offset + Int64(taken.bytes), resume: continuation(of: file))
            taken.text += count
            taken.bytes += block.use(count)
            guard count == line else { return taken }
        }
        return taken
    }

    /// Whether a line is longer than an event may be, whose end was looked for beyond a block.
    ///
    /// - Parameter length: its length in the file, without its line feed.
    private func isTooLong(_ file: AppendFile, _ length: Int64, _ descriptor: Int32) throws(SystemError)
        -> Bool
    {
        guard let decoder = file.script.decoder else { return length > Int64(context.options.maxEventSize) }
        let beyond = decoder.length(beyond: context.options.maxEventSize)
        // A byte order mark before the first line is not text.
        let bytes = try FileSystem.bytes(
            of: descriptor, at: file.taken.offset, count: Int(min(length, Int64(beyond + 2))))
        let mark = file.taken.offset == 0 ? bytes.withUnsafeBytes { decoder.markLength(of: $0) } : 0
        guard length - Int64(mark) < Int64(beyond) else { return true }
        return decoder.text(of: Array(bytes.dropFirst(mark))).count > context.options.maxEventSize
    }

    /// Whether bytes from a single read are of one content. If the file is truncated and rewritten during the
    /// read, the kernel may return the old beginning and the new end. Within a page this cannot happen;
    /// otherwise the beginning is read once more and compared.
    private func isOnePiece(
        _ bytes: Slice<UnsafeMutableRawBufferPointer>, at offset: Int64, _ descriptor: Int32
    ) throws(SystemError) -> Bool {
        guard (offset & 4095) + Int64(bytes.count) > 4096 else { return true }
        let first = try FileSystem.bytes(of: descriptor, at: offset, count: min(Mark.window, bytes.count))
        return bytes.prefix(Mark.window).elementsEqual(first)
    }

    /// A line of which this much is known to lack an LF is not read again with every byte that comes: only
    /// its end is searched. So is one that is too long already; otherwise it would be read without end.
    private var lineToSearch: Int64 { min(4096, Int64(context.options.maxEventSize) + 1) }

    /// Looks for the end of a line in the bytes that arrived since the last search.
    private func searchLineEnd(of file: AppendFile, _ descriptor: Int32) throws(SystemError) -> Bool {
        let buffer = buffer.take()
        let position = file.taken.offset + file.scanned
        let count = try FileSystem.read(descriptor, into: buffer, at: position)
        let decoder = file.script.decoder
        let all = UnsafeRawBufferPointer(rebasing: buffer[..<count])
        // Zeros do not end a line, but those at the end are not counted among its bytes.
        let zero = decoder == nil ? LineCutter.first(0, in: all) : decoder?.first(0, in: all)
        let block = UnsafeRawBufferPointer(rebasing: buffer[..<(zero ?? count)])
        let found = decoder == nil ? LineCutter.firstLineFeed(in: block) : decoder?.first(0x0A, in: block)
        guard let feed = found else {
            // Half a unit at the end is read again with its other half.
            let isHalf = decoder.map { block.count % $0.unit != 0 } ?? false
            file.scanned += Int64(block.count - (isHalf ? 1 : 0))
            if isHalf, block.count == 1 {
                guard file.isSealed else { return false }
                file.scanned += 1
            }
            if let zero {
                let rest = UnsafeRawBufferPointer(rebasing: buffer[zero..<count])
                switch try padding.zeros(in: file, at: position + Int64(zero), rest, descriptor) {
                case .more: return true
                case .content(let end):
                    file.scanned = end - file.taken.offset
                    return true
                case .end: break
                }
                guard file.isSealed else { return false }
            } else {
                guard file.isSealed, count == 0 else {
                    return count == buffer.count || (file.isSealed && count > 0)
                }
            }
            guard try isTooLong(file, file.scanned, descriptor) else {
                file.scanned = 0
                return true
            }
            try skip(file, length: file.scanned, next: file.taken.offset + file.scanned, descriptor)
            return false
        }
        let length = file.scanned + Int64(feed)
        guard try isTooLong(file, length, descriptor) else {
            file.scanned = 0
            return true
        }
        let next = position + Int64(feed) + Int64(decoder?.unit ?? 1)
        try skip(file, length: length, next: next, descriptor)
        return true
    }

    /// Quarantines the beginning of an oversized line whose end was found, and continues behind the line.
    private func skip(
        _ file: AppendFile, length: Int64, next: Int64, _ descriptor: Int32
    ) throws(SystemError) {
        guard try judge.mark(at: file.taken.offset, descriptor).ends(like: file.taken) else {
            // The file was rewritten while the end of the line was searched, so the bytes are of other lines.
            _ = try judge.findPosition(in: file, descriptor, isRewritten: true)
            return
        }
        var head = try FileSystem.bytes(of: descriptor, at: file.taken.offset, count: ObjectSplitter.excerpt)
        if let decoder = file.script.decoder {
            head = Array(decoder.text(of: head).prefix(ObjectSplitter.excerpt))
        }
        outlet.tooLong("line", length, from: source(of: file), at: file.taken.offset, content: head)
        try took(file, upTo: try judge.mark(at: next, descriptor), descriptor)
    }

    /// Moves the read position behind bytes that were taken, all of which are in the buffer.
    private func advance(
        _ file: AppendFile, by count: Int, in buffer: UnsafeMutableRawBufferPointer, at start: Int,
        _ descriptor: Int32
    ) throws(SystemError) {
        guard count > 0 else { return }
        let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<(start + count)])
        // The buffer begins with the file's first byte.
        let head = file.taken.offset == Int64(start) ? bytes : nil
        try took(file, upTo: file.taken.advanced(by: count, atEndOf: bytes), descriptor, head: head)
    }

    /// All bytes before a position were taken. Extends the fingerprint if it has not reached its full length.
    ///
    /// - Parameter head: the file's first bytes up to the position; nil if they must be read.
    func took(
        _ file: AppendFile, upTo mark: Mark, _ descriptor: Int32, head: UnsafeRawBufferPointer? = nil
    ) throws(SystemError) {
        let length = Int(min(mark.offset, Int64(Fingerprint.longest)))
        var fingerprint: Fingerprint?
        if file.trace.fingerprint.length < length {
            let read = head == nil ? try FileSystem.bytes(of: descriptor, at: 0, count: length) : []
            let bytes = head.map { Array($0.prefix(length)) } ?? read
            fingerprint = Fingerprint(length: length, hash: bytes.withUnsafeBytes { ByteHash.of($0) })
        }
        lives.streams.took(file, upTo: mark, fingerprint, in: &outlet.pass)
    }

    func source(of file: AppendFile) -> SpoolSource {
        let id = file.id.bytes
        var source = SpoolSource(
            app: reports.app(of: file.directory, file.owner), path: context.options.shown(file.path),
            producer: id,
            mayBeCritical: !file.directory.isIncoming, wasClosed: file.wasClosed)
        if context.options.afterRead != .keep {
            source.file = id
        }
        return source
    }

    /// Passes over what a file held when its pattern was seen for the first time.
    func passOverHistory(of file: AppendFile) throws(SystemError) {
        guard file.historyEnd > 0, let descriptor = file.descriptor?.raw else { return }
        try history.passOver(file, descriptor, try decoder(of: file, descriptor))
    }

    /// Skips zeros between lines, counts them, and logs the first ones of a file.
    private func passOverZeros(
        of file: AppendFile, upTo end: Int64, _ descriptor: Int32
    ) throws(SystemError) {
        let begin = file.taken.offset
        let count = end - begin
        lives.appendFiles.skippedZeros(count)
        if reports.foundZeros(in: file.path) {
            context.log.warning(
                "zeros in a file are skipped",
                ["path": context.options.shown(file.path), "offset": begin, "bytes": count])
        }
        if file.size < end {
            file.endContent(at: end)
        }
        try took(file, upTo: try judge.mark(at: end, descriptor), descriptor)
    }
}
