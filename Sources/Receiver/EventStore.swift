internal import EventLoops
internal import Glibc

/// Where a receiver puts events: appended whole or not at all.
struct EventStore: ~Copyable {
    private let file: Descriptor?
    private let sync: Bool
    private let isRegular: Bool
    private var size: off_t = 0

    /// - Throws: `ReceiverError` with code `file`.
    init(_ store: ReceiverOptions.Store) throws(ReceiverError) {
        switch store {
        case .none:
            file = nil
            (sync, isRegular) = (false, false)
        case .standardOutput:
            // A copy, because the store closes what it owns.
            let raw = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
            guard raw >= 0 else { throw ReceiverError(.file, "no standard output: \(SystemError.message(errno))") }
            file = Descriptor(raw)
            (sync, isRegular) = (false, false)
        case .file(let path, let durably):
            let raw = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o640)
            guard raw >= 0 else { throw ReceiverError(.file, "cannot open \(path): \(SystemError.message(errno))") }
            file = Descriptor(raw)
            (sync, isRegular) = (durably, true)
            size = lseek(raw, 0, SEEK_END)
        }
    }

    private var descriptor: Int32? {
        switch file {
        case .some(let file): file.raw
        case .none: nil
        }
    }

    /// Appends lines.
    ///
    /// - Returns: whether they are all there (and durable, if that was asked for); otherwise none is.
    mutating func append(_ lines: [UInt8]) -> Bool {
        guard let raw = descriptor else { return true }
        var written = 0
        while written < lines.count {
            let count = lines.withUnsafeBytes { write(raw, $0.baseAddress.map { $0 + written }, $0.count - written) }
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else {
                // A file takes half a batch back; what a terminal has shown it has shown.
                if isRegular { _ = ftruncate(raw, size) }
                return false
            }
            written += count
        }
        if sync, fdatasync(raw) != 0 {
            _ = ftruncate(raw, size)
            return false
        }
        size += off_t(lines.count)
        return true
    }
}
