internal import EventLoops
internal import Glibc

/// Where a receiver puts events: appended whole or not at all.
struct EventStore: ~Copyable {
    /// Nil where events are only counted.
    private let raw: Int32?
    private let sync: Bool
    private let isRegular: Bool
    private var size: off_t = 0

    /// - Throws: `ReceiverError` with code `file`.
    init(_ store: ReceiverOptions.Store) throws(ReceiverError) {
        switch store {
        case .none:
            (raw, sync, isRegular) = (nil, false, false)
        case .standardOutput:
            // A copy, because the store closes what it owns.
            let raw = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
            guard raw >= 0 else { throw ReceiverError(.file, "no standard output: \(SystemError.message(errno))") }
            (self.raw, sync, isRegular) = (raw, false, false)
        case .file(let path, let durably):
            let raw = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o640)
            guard raw >= 0 else { throw ReceiverError(.file, "cannot open \(path): \(SystemError.message(errno))") }
            (self.raw, sync, isRegular) = (raw, durably, true)
            size = lseek(raw, 0, SEEK_END)
        }
    }

    deinit {
        if let raw { close(raw) }
    }

    /// Appends lines: true when all of them are there (and durable, if that was asked for), else none is.
    mutating func append(_ lines: [UInt8]) -> Bool {
        guard let raw else { return true }
        do throws(SystemError) {
            try WholeFile.write(lines, to: raw)
            if sync, fdatasync(raw) != 0 { throw SystemError("fdatasync") }
        } catch {
            // A file takes half a batch back; what a terminal has shown it has shown.
            if isRegular { _ = ftruncate(raw, size) }
            return false
        }
        size += off_t(lines.count)
        return true
    }
}
