internal import EventLoops
internal import Frames
internal import Glibc
internal import Model

/// Passes over what a file held when its pattern was seen for the first time (`since`): only lines that came
/// afterwards are read.
///
/// The reader begins behind the last whole line of the history. Its fingerprint and its mark are those of the
/// passed bytes, so that the file is known again after a rotation or a restart as any other.
final class HistoryReader {
    private let context: SpoolContext
    private let outlet: Outlet
    private let lives: AppendLives
    private let judge: Judge
    private let tree: Tree
    private let buffer: BlockBuffer

    init(
        _ context: SpoolContext, _ outlet: Outlet, _ lives: AppendLives, _ judge: Judge, _ tree: Tree,
        _ buffer: BlockBuffer
    ) {
        self.context = context
        self.outlet = outlet
        self.lives = lives
        self.judge = judge
        self.tree = tree
        self.buffer = buffer
    }

    /// Moves the read position of a file behind its history, up to the beginning of the last line if that is
    /// not whole.
    ///
    /// - Parameter decoder: for text that is not UTF-8; nil for bytes that are handed over as they are.
    func passOver(
        _ file: AppendFile, _ descriptor: Int32, _ decoder: FileDecoder?
    ) throws(SystemError) {
        let end = try lineEnd(before: file.historyEnd, descriptor, decoder)
        file.historyEnd = 0
        guard file.taken.offset == 0, end > 0 else { return }
        let head = try FileSystem.bytes(
            of: descriptor, at: 0, count: Int(min(end, Int64(Fingerprint.longest))))
        let fingerprint = Fingerprint(length: head.count, hash: head.withUnsafeBytes { ByteHash.of($0) })
        var mark = try judge.mark(at: end, descriptor)
        mark.sum = try sumOfHistory(upTo: end, descriptor)
        lives.streams.passOver(file, upTo: mark, fingerprint, in: &outlet.pass)
        tree.listing.sight?.passedOver(end)
    }

    /// The checksum of a history that fits into one block, by which the position is found again if the file
    /// is cut later. Otherwise the history would be read then. A longer one has none: computing it would read
    /// all of what is to be passed over.
    private func sumOfHistory(upTo end: Int64, _ descriptor: Int32) throws(SystemError) -> UInt32 {
        guard end <= SpoolReader.sliceBytes else { return 0 }
        let room = UnsafeMutableRawBufferPointer(rebasing: buffer.take()[..<Int(end)])
        let count = try FileSystem.read(descriptor, into: room, at: 0)
        return count == room.count ? crc32c(UnsafeRawBufferPointer(room), from: Mark.start.sum) : 0
    }

    /// The end of the last whole line before an offset; the offset itself if the line exceeds the longest
    /// event.
    private func lineEnd(
        before offset: Int64, _ descriptor: Int32, _ decoder: FileDecoder?
    ) throws(SystemError) -> Int64 {
        var end = decoder?.start(ofUnitAt: offset) ?? offset
        let offset = end
        let farthest = decoder?.length(beyond: context.options.maxEventSize) ?? context.options.maxEventSize
        while end > max(0, offset - Int64(farthest)) {
            let begin = max(0, end - 65_536)
            let bytes = try FileSystem.bytes(of: descriptor, at: begin, count: Int(end - begin))
            if let decoder {
                let last = bytes.withUnsafeBytes { decoder.endOfLastLine(in: $0) }
                if let last { return begin + Int64(last) }
            } else if let last = bytes.lastIndex(of: 0x0A) {
                return begin + Int64(last) + 1
            }
            end = begin
        }
        return end == 0 ? 0 : offset
    }
}
