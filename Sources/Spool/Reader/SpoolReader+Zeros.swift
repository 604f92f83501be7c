internal import EventLoops
internal import Glibc
internal import Logs
internal import Model

/// Zeros in an append file. At its end they are no content: the file was made longer than what is written to it yet (mmap,
/// fallocate), so they are waited for. Between its content they are passed over where a line begins, and counted.
extension SpoolReader {
    enum Zeros {
        /// Not known yet: there are more than are looked through at a time.
        case more
        /// All that follows, or more of them may still be filled.
        case end
        /// Content follows at that offset, and they stay.
        case content(Int64)
    }

    private static let mostPieces = 256
    private static let zeroBlock = 64 << 10
    private static let blocksAtATime = 32
    /// How long at the longest until it is looked whether zeros were filled: writing into mapped memory is reported by nobody.
    private static let longestLook = Duration.seconds(10)
    /// It is looked again after such a part of the time in which nothing came.
    private static let lookShare = 8

    /// Takes what is in the buffer, which may hold zeros. True: there may be more.
    func takeBlock(
        of file: AppendFile, in buffer: UnsafeMutableRawBufferPointer, _ range: Range<Int>, isEnd: Bool,
        _ descriptor: Int32
    ) throws(SystemError) -> Bool {
        var start = range.lowerBound
        // Each piece ends before zeros or with a line that holds some; most blocks are one.
        for _ in 0..<SpoolReader.mostPieces where start < range.upperBound {
            let block = UnsafeRawBufferPointer(rebasing: buffer[start..<range.upperBound])
            let begin = file.taken.offset
            guard let zero = LineCutter.first(0, in: block) else {
                sawContent(of: file, upTo: begin + Int64(block.count))
                return try takePiece(of: file, block, in: buffer, at: start, isEnd: isEnd, descriptor)
            }
            sawContent(of: file, upTo: begin + Int64(zero))
            var piece = UnsafeRawBufferPointer(rebasing: block[..<zero])
            if let feed = LineCutter.lastLineFeed(in: piece) {
                piece = UnsafeRawBufferPointer(rebasing: piece[...feed])
            } else {
                let rest = UnsafeRawBufferPointer(rebasing: block[zero...])
                switch try zeros(in: file, at: begin + Int64(zero), rest, descriptor) {
                case .more: return true
                case .end:
                    guard zero > 0 else { return false }
                    return try takePiece(of: file, piece, in: buffer, at: start, isEnd: true, descriptor)
                case .content(let end) where zero == 0:
                    try passOverZeros(of: file, upTo: end, descriptor)
                    start += Int(min(end - begin, Int64(block.count)))
                    continue
                case .content:
                    // They are within a line, which is judged as it is.
                    guard let feed = LineCutter.firstLineFeed(in: block) else {
                        return try takePiece(of: file, block, in: buffer, at: start, isEnd: isEnd, descriptor)
                    }
                    piece = UnsafeRawBufferPointer(rebasing: block[...feed])
                }
            }
            _ = try takePiece(of: file, piece, in: buffer, at: start, isEnd: false, descriptor)
            guard file.taken.offset == begin + Int64(piece.count) else { return true }
            start += piece.count
        }
        return start < range.upperBound || !isEnd
    }

    /// Content was seen where there had been zeros.
    private func sawContent(of file: AppendFile, upTo end: Int64) {
        guard let padding = file.padding, end > file.size else { return }
        file.endContent(at: end)
        guard end > padding.gap?.end ?? 0 else { return }
        file.lastChange = now
        file.end = .open
    }

    /// What the zeros are that begin at an offset; if they are the end, the file's content ends there.
    ///
    /// - Parameter block: what was read from there on.
    func zeros(
        in file: AppendFile, at start: Int64, _ block: UnsafeRawBufferPointer, _ descriptor: Int32
    ) throws(SystemError) -> Zeros {
        let length = file.length
        // It was cut short since its length was asked, and written again: the kernel tells, and it is read again.
        guard start < length else { return .end }
        // Asked first: what does not end with zeros now is not filled later, and was written with what follows.
        let isPadded =
            file.padding != nil ? true : try FileSystem.bytes(of: descriptor, at: length - 1, count: 1).first == 0
        var known = file.padding?.known ?? start..<start
        let isChanged = known.lowerBound == start && file.padding?.modified != file.modified
        if isChanged || !known.contains(start) { known = start..<start }
        let found = try findContent(beyond: known.upperBound, upTo: length, descriptor)
        if let content = found.content {
            guard isPadded, !file.isSealed else { return .content(content) }
            // Somebody may write there later than behind it, or at this moment.
            let gap = file.padding?.gap
            if let gap, start < gap.end, now - gap.since >= options.sealTime { return .content(content) }
            file.endContent(at: start)
            if let gap, start < gap.end { return .end }
            let last: Int64 = block.lastIndex { $0 != 0 }.map { start + Int64($0) } ?? content
            file.padding?.gap = .init(end: max(last, content), since: now)
            return .end
        }
        file.endContent(at: start)
        file.padding?.known = start..<found.end
        file.padding?.modified = file.modified
        return found.end < length ? .more : .end
    }

    /// Looks for what is no zero, for so long as other work may wait. Gives where it is, and how far there are zeros.
    private func findContent(
        beyond start: Int64, upTo length: Int64, _ descriptor: Int32
    ) throws(SystemError) -> (content: Int64?, end: Int64) {
        var end = start
        for _ in 0..<SpoolReader.blocksAtATime where end < length {
            end = min(length, try FileSystem.endOfHole(descriptor, at: end))
            let block = try FileSystem.bytes(
                of: descriptor, at: end, count: Int(min(Int64(SpoolReader.zeroBlock), length - end)))
            // It has become shorter, which is reported.
            if block.isEmpty { return (nil, length) }
            if let first = block.firstIndex(where: { $0 != 0 }) { return (end + Int64(first), end) }
            end += Int64(block.count)
        }
        return (nil, end)
    }

    private func passOverZeros(of file: AppendFile, upTo end: Int64, _ descriptor: Int32) throws(SystemError) {
        let (begin, count) = (file.taken.offset, end - file.taken.offset)
        counters.zeroBytes += ByteCount(count)
        if trouble.withZeros.count >= HeldPaths<Void>.most { trouble.withZeros.removeAll() }
        if trouble.withZeros.insert(file.path).inserted {
            log.warning("zeros in a file are skipped", ["path": shown(file.path), "offset": begin, "bytes": count])
        }
        if file.size < end { file.endContent(at: end) }
        try took(file, upTo: try mark(at: end, descriptor), descriptor)
    }

    /// All was read up to the zeros at a file's end: looks at it again, although nothing may tell of what comes.
    func waitForContent(of file: AppendFile) {
        // Once it is sealed nobody has it open.
        guard let padding = file.padding, !padding.isLookPlanned, !file.isSealed || options.place != nil else { return }
        var wait = max(options.pollInterval, (now - file.lastChange) / SpoolReader.lookShare)
        if let gap = padding.gap, gap.end > file.size { wait = min(wait, gap.since + options.sealTime - now) }
        file.padding?.isLookPlanned = true
        wait = min(SpoolReader.longestLook, max(.milliseconds(10), wait))
        schedule(after: wait, by: share(of: file)) { self.recheckZeros(file) }
    }

    /// Looks whether something came in place of zeros.
    func recheckZeros(_ file: AppendFile) {
        guard streams.files[file.id] === file, file.padding != nil else { return }
        file.padding?.isLookPlanned = false
        makeReady(file)
    }
}
