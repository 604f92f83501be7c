internal import EventLoops
internal import Glibc

/// Writes lines to a descriptor that others share, without ever blocking and without changing it for the others.
///
/// What cannot be written at once waits in a bounded buffer. What does not fit there either is counted, and the count
/// is told in a line as soon as there is room: `log lines suppressed lines=12`.
struct LogPipe: ~Copyable {
    /// How to write without waiting, by what the descriptor is.
    private enum Way {
        /// A socket (the journal's): a flag for each write says so.
        case socket
        /// A pipe or a terminal, opened again: non-blocking for us alone.
        case ownDescription
        /// A regular file, or `/dev/null`: never waits for a reader.
        case file
        /// A pipe that cannot be opened again: asked first, then given what fits for certain.
        case asked
    }

    private let descriptor: Int32
    private let owned: Descriptor?
    private let way: Way
    private let capacity: Int
    private var waiting: [UInt8] = []

    /// Lines that were not written because the reader was too slow, so far.
    private(set) var suppressed = 0
    private var suppressedUntold = 0

    /// The descriptor, usually 2, stays open and unchanged; `capacity` bytes may wait.
    init(descriptor: Int32, capacity: Int) {
        self.capacity = capacity
        var status = stat()
        let kind = fstat(descriptor, &status) == 0 ? status.st_mode & S_IFMT : S_IFREG
        let isAwaited = kind == S_IFIFO || kind == S_IFCHR
        let raw = isAwaited ? open("/proc/self/fd/\(descriptor)", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1
        self.descriptor = raw >= 0 ? raw : descriptor
        owned = raw >= 0 ? Descriptor(raw) : nil
        way =
            switch kind {
            case S_IFSOCK: .socket
            case S_IFIFO, S_IFCHR: raw >= 0 ? .ownDescription : .asked
            default: .file
            }
    }

    var isWaiting: Bool { !waiting.isEmpty }

    /// The descriptor to watch for writing while something waits.
    var watchable: Int32 { descriptor }

    /// Takes a line; writes as much as can be written now.
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

    /// Writes what waits, as far as possible; `told` makes the line that tells how many are missing.
    mutating func flush(told: (Int) -> [UInt8]) {
        if !waiting.isEmpty { push() }
        if suppressedUntold > 0, waiting.count < capacity / 2 {
            waiting.append(contentsOf: told(suppressedUntold))
            suppressedUntold = 0
            push()
        }
    }

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
                // Nobody reads any more, and there is no other place to say so.
                suppressed += waiting[done...].count { $0 == UInt8(ascii: "\n") }
                done = waiting.count
            }
        }
        waiting.removeFirst(done)
    }

    /// Returns what `write` does; 0 when it would have to wait.
    private static func put(_ bytes: UnsafeRawBufferPointer, _ descriptor: Int32, _ way: Way) -> Int {
        switch way {
        case .socket:
            return send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
        case .file, .ownDescription:
            return Glibc.write(descriptor, bytes.baseAddress, bytes.count)
        case .asked:
            var poll = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            guard Glibc.poll(&poll, 1, 0) == 1, poll.revents & Int16(POLLOUT) != 0 else { return 0 }
            // A pipe that can be written to takes PIPE_BUF bytes.
            return Glibc.write(descriptor, bytes.baseAddress, min(bytes.count, 4096))
        }
    }
}
