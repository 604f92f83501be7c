internal import CLinux
internal import EventLoops

/// The reader's use of the read buffer that all readers on the loop share.
final class BlockBuffer: ReadBuffer.User {
    /// Time without reading after which the read buffer is freed.
    private static let idleTime = Duration.seconds(1)
    /// Time after that in which what was read is sent.
    private static let sending = Duration.seconds(30)

    private let shared: LoopBound<SharedReading>
    private let schedule: Schedule
    private let outlet: Outlet
    private let maxEventSize: Int
    var isNoted = false
    var wasUsed = false
    /// Size of the read buffer: the bytes before the position that are compared, a block that is longer than
    /// any line, and one byte for the LF that a last line may lack.
    private let size: Int

    init(
        _ shared: LoopBound<SharedReading>, _ schedule: Schedule, _ outlet: Outlet, maxEventSize: Int
    ) {
        self.shared = shared
        self.schedule = schedule
        self.outlet = outlet
        self.maxEventSize = maxEventSize
        size = Fingerprint.longest + max(SpoolReader.sliceBytes, maxEventSize + 1) + 1
    }

    private var buffer: ReadBuffer { shared.assumeOnLoop { $0.buffer } }

    /// The read buffer; its old content is undefined.
    func take() -> UnsafeMutableRawBufferPointer { buffer.take(size, by: self) }

    /// The read buffer, with room for the longest line of a file in another encoding.
    func take(for decoder: FileDecoder?) -> UnsafeMutableRawBufferPointer {
        guard let decoder else { return take() }
        let longest = Fingerprint.longest + decoder.room(forLineOf: maxEventSize)
        return buffer.take(max(size, longest), by: self)
    }

    /// Notes that there is nothing to read: the buffer is freed if that stays so.
    func becomeQuiet() {
        if buffer.becomeIdle() {
            schedule.plan(after: BlockBuffer.idleTime, .releaseBuffer)
        }
    }

    /// Frees the read buffer if it was not used lately, or asks again later.
    func releaseIfUnused() {
        switch buffer.releaseIfUnused() {
        case .askAgain: schedule.plan(after: BlockBuffer.idleTime, .releaseBuffer)
        case .askLater: schedule.plan(after: BlockBuffer.sending, .releaseBuffer)
        case .returnMemory: clinux_release_memory()
        case .nothing: break
        }
    }

    /// The reader has read nothing for a while.
    func rest() { outlet.sink.rest() }

    /// Frees the buffer, because the reader stops.
    func release() {
        buffer.forget(self)
        buffer.release()
    }
}
