internal import EventLoops
internal import Glibc

/// Where a receiver stores events. A batch is appended completely or not at all, so that an answer other
/// than 200 is true.
struct EventStore: ~Copyable {
    /// File descriptor; nil if events are only counted.
    private let raw: Int32?
    /// Whether each batch is synced to the disk.
    private let sync: Bool
    /// Whether a failed write can be undone by truncation.
    private let isRegular: Bool
    /// Length after the last complete batch.
    private var size: off_t = 0

    /// - Throws: `ReceiverError` with code `file`.
    init(_ store: ReceiverOptions.Store) throws(ReceiverError) {
        switch store {
        case .none:
            raw = nil
            sync = false
            isRegular = false
        case .standardOutput:
            // A duplicate, because the store closes its descriptor.
            let raw = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
            guard raw >= 0 else {
                throw ReceiverError(.file, "no standard output: \(SystemError.message(errno))")
            }
            self.raw = raw
            sync = false
            isRegular = false
        case .file(let path, let durably):
            let raw = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o640)
            guard raw >= 0 else {
                throw ReceiverError(.file, "cannot open \(path): \(SystemError.message(errno))")
            }
            self.raw = raw
            sync = durably
            isRegular = true
            size = lseek(raw, 0, SEEK_END)
        }
    }

    deinit {
        if let raw {
            close(raw)
        }
    }

    /// Appends lines. True if all are stored (and durable, if that is set); otherwise none of them is in a
    /// regular file.
    mutating func append(_ lines: [UInt8]) -> Bool {
        guard let raw else { return true }
        do throws(SystemError) {
            try WholeFile.write(lines, to: raw)
            if sync, fdatasync(raw) != 0 { throw SystemError("fdatasync") }
        } catch {
            // A file can be truncated to its old length; what a terminal or pipe has received cannot be
            // taken back.
            if isRegular {
                _ = ftruncate(raw, size)
            }
            return false
        }
        size += off_t(lines.count)
        return true
    }
}
