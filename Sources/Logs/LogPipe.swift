internal import EventLoops
internal import Glibc

/// Writes lines to a descriptor that other processes share, without blocking and without changing it for
/// them.
///
/// O_NONBLOCK belongs to the open file description, which all sharers have in common: setting it on
/// standard error would change it for the parent's shell. What cannot be written at once waits in a bounded
/// buffer. Lines that do not fit into it are counted, and the count is written once there is room: `log
/// lines suppressed lines=12`.
struct LogPipe: ~Copyable {
    /// How to write without blocking, by the kind of the descriptor.
    private enum Way {
        /// A socket, such as journald's: MSG_DONTWAIT for each write.
        case socket
        /// A pipe or a terminal, opened again through /proc/self/fd: a description of our own, which may be
        /// non-blocking.
        case ownDescription
        /// A regular file or `/dev/null`: a write never waits for a reader.
        case file
        /// A pipe that cannot be opened again: poll first, and then write no more than fits for certain.
        case asked
    }

    private let descriptor: Int32
    /// Owner of the descriptor that was opened again; nil if the shared one is used.
    private let owned: Descriptor?
    private let way: Way
    /// Bytes that may wait.
    private let capacity: Int
    /// Bytes that wait for the reader.
    private var waiting: [UInt8] = []

    /// Lines that were not written so far, because the reader was too slow or gone.
    private(set) var suppressed = 0
    /// Lines among them that no line has reported yet.
    private var suppressedUntold = 0

    /// - Parameters:
    ///   - descriptor: usually 2; it stays open and unchanged.
    ///   - capacity: bytes that may wait.
    init(descriptor: Int32, capacity: Int) {
        self.capacity = capacity
        var status = stat()
        let kind = fstat(descriptor, &status) == 0 ? status.st_mode & S_IFMT : S_IFREG
        let isAwaited = kind == S_IFIFO || kind == S_IFCHR
        let raw =
            isAwaited ? open("/proc/self/fd/\(descriptor)", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1
        self.descriptor = raw >= 0 ? raw : descriptor
        owned = raw >= 0 ? Descriptor(raw) : nil
        way =
            switch kind {
            case S_IFSOCK: .socket
            case S_IFIFO, S_IFCHR: raw >= 0 ? .ownDescription : .asked
            default: .file
            }
    }

    /// Whether bytes wait for the reader.
    var isWaiting: Bool { !waiting.isEmpty }

    /// Descriptor to watch for room while bytes wait.
    var watchable: Int32 { descriptor }

    /// Takes a line, and writes as much as possible now.
    ///
    /// - Parameter told: makes the line that reports suppressed lines.
    mutating func write(_ line: [UInt8], told: (Int) -> [UInt8]) {
        flush(told: told)
        guard waiting.count + line.count <= capacity else {
            suppressed += 1
            suppressedUntold += 1
            return
        }
        waiting.append(contentsOf: line)
        push()
    }

    /// Writes waiting bytes, as far as possible. The report of suppressed lines waits until half of the
    /// buffer is free, so that it does not suppress further lines.
    mutating func flush(told: (Int) -> [UInt8]) {
        if !waiting.isEmpty {
            push()
        }
        if suppressedUntold > 0, waiting.count < capacity / 2 {
            waiting.append(contentsOf: told(suppressedUntold))
            suppressedUntold = 0
            push()
        }
    }

    /// Writes waiting bytes until the descriptor accepts no more.
    private mutating func push() {
        var done = 0
        while done < waiting.count {
            let count = waiting.withUnsafeBytes { bytes in
                LogPipe.put(UnsafeRawBufferPointer(rebasing: bytes[done...]), descriptor, way)
            }
            if count > 0 {
                done += count
            } else if count == 0 || errno == EAGAIN {
                break
            } else if errno != EINTR {
                // The reader is gone, and there is no other place to say so: the lines are dropped and
                // counted.
                suppressed += waiting[done...].count { $0 == UInt8(ascii: "\n") }
                done = waiting.count
            }
        }
        waiting.removeFirst(done)
    }

    /// Writes some bytes; returns what `write` does, or 0 if it would have to wait.
    private static func put(_ bytes: UnsafeRawBufferPointer, _ descriptor: Int32, _ way: Way) -> Int {
        switch way {
        case .socket:
            return send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
        case .file, .ownDescription:
            return Glibc.write(descriptor, bytes.baseAddress, bytes.count)
        case .asked:
            var poll = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            guard Glibc.poll(&poll, 1, 0) == 1, poll.revents & Int16(POLLOUT) != 0 else { return 0 }
            // A writable pipe has room for PIPE_BUF bytes (pipe(7)).
            return Glibc.write(descriptor, bytes.baseAddress, min(bytes.count, 4096))
        }
    }
}
