internal import EventLoops
internal import Frames
internal import Model
internal import Synchronization

/// Unpacks bodies, from any thread, in bounded memory.
final class BodyReader: Sendable {
    /// A decompressor on its way from thread to thread.
    ///
    /// `@unchecked`: it is taken out of `idle` under the lock before it is used, and put back after, so that one thread
    /// at a time has it, and the lock orders what they do to it.
    private struct Loan: @unchecked Sendable {
        let decompressor: FrameDecompressor
    }

    private let idle = Mutex<[Loan]>([])
    private let limit: Int

    init(limit: Int) {
        self.limit = limit
    }

    /// The unpacked body.
    ///
    /// - Throws: `FrameError`: not one whole frame, or too large unpacked.
    func unpack(_ body: [UInt8], _ compression: Compression) throws(FrameError) -> [UInt8] {
        guard compression != .none else { return body }
        let idler = idle.withLock { $0.popLast() }
        let loan: Loan
        if let idler { loan = idler } else { loan = Loan(decompressor: try FrameDecompressor()) }
        defer { idle.withLock { $0.append(loan) } }
        // Room is taken for the limit: most bodies fit into far less.
        let likely = min(limit, max(65_536, body.count * 32))
        do {
            return try loan.decompressor.decompress(body, compression, limit: likely)
        } catch {
            guard error.code == .tooLarge, likely < limit else { throw error }
            return try loan.decompressor.decompress(body, compression, limit: limit)
        }
    }
}
