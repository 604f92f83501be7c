internal import EventLoops
internal import Model

/// What the zeros in an append file are, and when they are looked at again.
///
/// At the end of a file zeros are not content: the file was made longer than what is written to it yet, so
/// they are waited for. Between content they are passed over where a line begins, and counted; `AppendReader`
/// does that.
final class PaddingReader {
    /// Bytes that are read at a time.
    private static let blockSize = 64 << 10
    /// Most blocks that are read in a turn, so that a file of zeros does not stop all others.
    private static let blocksAtATime = 32
    /// Longest time until the next look whether zeros were filled: writes through mapped memory cause no
    /// inotify event.
    private static let longestLook = Duration.seconds(10)
    /// The next look comes after this fraction (one eighth) of the time since the last change.
    private static let lookShare = 8

    private let context: SpoolContext
    private let schedule: Schedule
    private let lives: AppendLives

    init(_ context: SpoolContext, _ schedule: Schedule, _ lives: AppendLives) {
        self.context = context
        self.schedule = schedule
        self.lives = lives
    }

    /// Content replaced zeros.
    func sawContent(of file: AppendFile, upTo end: Int64) {
        guard let padding = file.padding, end > file.size else { return }
        file.endContent(at: end)
        guard end > padding.gap?.end ?? 0 else { return }
        file.lastChange = schedule.now
        file.end = .open
    }

    /// What the zeros are that begin at an offset; if they are the end, the file's content ends there.
    ///
    /// - Parameter block: what was read from there on.
    func zeros(
        in file: AppendFile, at start: Int64, _ block: UnsafeRawBufferPointer, _ descriptor: Int32
    ) throws(SystemError) -> BlockReader.Zeros {
        let length = file.length
        // The file was truncated since the last stat and rewritten. inotify reports that, and the file is
        // read again.
        guard start < length else { return .end }
        // Look at the last byte first: if the file does not end with zeros, no program has extended it in
        // advance, and the zeros were written like the content behind them.
        let unit = file.script.decoder?.unit ?? 1
        let isPadded =
            file.padding != nil
            ? true
            : try FileSystem.bytes(of: descriptor, at: max(0, length - Int64(unit)), count: unit)
                .allSatisfy { $0 == 0 }
        var known = file.padding?.known ?? start..<start
        let isChanged = known.lowerBound == start && file.padding?.modified != file.modified
        if isChanged || !known.contains(start) {
            known = start..<start
        }
        let found = try findContent(beyond: known.upperBound, upTo: length, descriptor)
        if let content = found.content.map({ file.script.decoder?.start(ofUnitAt: $0) ?? $0 }) {
            guard isPadded, !file.isSealed else { return .content(content) }
            // A program may still fill the zeros before the content, so wait for `sealTime`.
            let gap = file.padding?.gap
            if let gap, start < gap.end, schedule.now - gap.since >= context.options.sealTime {
                return .content(content)
            }
            file.endContent(at: start)
            if let gap, start < gap.end { return .end }
            let last: Int64 = block.lastIndex { $0 != 0 }.map { start + Int64($0) } ?? content
            file.padding?.gap = .init(end: max(last, content), since: schedule.now)
            return .end
        }
        file.endContent(at: start)
        file.padding?.known = start..<found.end
        file.padding?.modified = file.modified
        return found.end < length ? .more : .end
    }

    /// Looks for the first byte that is not zero, in at most `blocksAtATime` blocks. Returns its offset, if
    /// found, and the end of the zeros that were seen.
    private func findContent(
        beyond start: Int64, upTo length: Int64, _ descriptor: Int32
    ) throws(SystemError) -> (content: Int64?, end: Int64) {
        var end = start
        for _ in 0..<PaddingReader.blocksAtATime where end < length {
            end = min(length, try FileSystem.endOfHole(descriptor, at: end))
            let block = try FileSystem.bytes(
                of: descriptor, at: end, count: Int(min(Int64(PaddingReader.blockSize), length - end)))
            // The file has become shorter, which inotify reports.
            if block.isEmpty { return (nil, length) }
            if let first = block.firstIndex(where: { $0 != 0 }) { return (end + Int64(first), end) }
            end += Int64(block.count)
        }
        return (nil, end)
    }

    /// Everything up to the zeros at a file's end was read: plans another look, because no event may report
    /// that they are filled.
    func planLook(at file: AppendFile) {
        // Once it is sealed nobody has it open.
        guard let padding = file.padding, !padding.isLookPlanned,
            !file.isSealed || context.options.place != nil
        else { return }
        var wait = max(
            context.options.pollInterval, (schedule.now - file.lastChange) / PaddingReader.lookShare)
        if let gap = padding.gap, gap.end > file.size {
            wait = min(wait, gap.since + context.options.sealTime - schedule.now)
        }
        file.padding?.isLookPlanned = true
        wait = min(PaddingReader.longestLook, max(.milliseconds(10), wait))
        schedule.plan(after: wait, .lookThroughZeros(file.id))
    }

    /// Reads a file again to see whether its zeros were filled.
    func lookAgain(at file: AppendFile) {
        guard lives.streams.files[file.id] === file, file.padding != nil else { return }
        file.padding?.isLookPlanned = false
        lives.makeReady(file)
    }
}
