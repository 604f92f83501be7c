#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

//  What differs between Linux and macOS, and C calls that are clumsy in Swift.

/// Number of this process.
func processID() -> Int32 { getpid() }

/// The time of day by the wall clock, in milliseconds since 1970.
func wallMilliseconds() -> Int64 { nanoseconds(CLOCK_REALTIME) / 1_000_000 }

/// The monotonic clock in nanoseconds, which no change of the time of day affects; for deadlines.
func steadyNanoseconds() -> Int64 { nanoseconds(CLOCK_MONOTONIC) }

/// Time of a clock.
private func nanoseconds(_ clock: clockid_t) -> Int64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}

/// A time in milliseconds since 1970 as RFC 3339 text in UTC. RFC 3339 has the years 0 to 9999: other times
/// become the nearest of them.
func timeText(_ milliseconds: Int64) -> String {
    // Years 0 to 9999: what is beyond cannot be written.
    let clamped = min(max(milliseconds, -62_167_219_200_000), 253_402_300_799_999)
    let rest = (clamped % 1000 + 1000) % 1000
    var seconds = time_t((clamped - rest) / 1000)
    var parts = tm()
    gmtime_r(&seconds, &parts)
    func padded(_ value: some BinaryInteger, _ width: Int = 2) -> String {
        let digits = String(value)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
    let date = "\(padded(parts.tm_year + 1900, 4))-\(padded(parts.tm_mon + 1))-\(padded(parts.tm_mday))"
    let clock = "\(padded(parts.tm_hour)):\(padded(parts.tm_min)):\(padded(parts.tm_sec))"
    return "\(date)T\(clock).\(padded(rest, 3))Z"
}

/// Sleeps for a second.
func sleepSecond() { sleep(1) }

/// Wakes a thread that waits for a socket: a pipe. Without descriptors for one, the thread looks once a
/// second.
final class WakePipe: Sendable {
    /// The end that the thread waits for; negative without a pipe.
    private let reader: Int32
    /// The end that others write to.
    private let writer: Int32

    /// A pipe that child processes do not inherit.
    init() {
        var ends: [Int32] = [-1, -1]
        if pipe(&ends) == 0 {
            for end in ends {
                _ = fcntl(end, F_SETFD, FD_CLOEXEC)
                _ = fcntl(end, F_SETFL, O_NONBLOCK)
            }
        }
        reader = ends[0]
        writer = ends[1]
    }

    deinit {
        guard reader >= 0 else { return }
        close(reader)
        close(writer)
    }

    /// Wakes the thread; if it is not waiting now, its next wait ends at once.
    func wake() {
        // A full pipe wakes as well.
        var byte: UInt8 = 1
        _ = write(writer, &byte, 1)
    }

    /// Waits until a descriptor is ready to read, or until it is woken; whether it was woken.
    func waits(for descriptor: Int32) -> Bool { wait([descriptor, reader], reader < 0 ? 1000 : -1) }

    /// Waits for a time, or until it is woken.
    func wait(milliseconds: Int32) { _ = wait([reader], milliseconds) }

    /// Waits; returns whether `wake` was called since the last wait.
    private func wait(_ descriptors: [Int32], _ milliseconds: Int32) -> Bool {
        var entries = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        _ = poll(&entries, nfds_t(entries.count), milliseconds)
        guard reader >= 0 else { return true }
        var bytes = [UInt8](repeating: 0, count: 64)
        var isWoken = false
        while read(reader, &bytes, bytes.count) > 0 { isWoken = true }
        return isWoken
    }
}

/// Sleeps for some milliseconds.
func sleepMilliseconds(_ count: UInt32) { usleep(count * 1000) }

/// The text of an errno.
func systemMessage(_ number: Int32) -> String { String(cString: strerror(number)) }

/// Makes the content of a file durable; returns whether that succeeded.
func syncContent(_ descriptor: Int32) -> Bool {
    #if canImport(Darwin)
        // On macOS fsync leaves data in the drive's cache: see fsync(2) there.
        return fcntl(descriptor, F_FULLFSYNC) == 0 || fsync(descriptor) == 0
    #else
        return fdatasync(descriptor) == 0
    #endif
}

/// Makes a Unix stream socket that child processes do not inherit; negative if that fails.
func streamSocket() -> Int32 {
    #if canImport(Glibc)
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    #else
        let descriptor = socket(AF_UNIX, SOCK_STREAM, 0)
    #endif
    if descriptor >= 0 {
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    }
    #if canImport(Darwin)
        var isOn: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &isOn, socklen_t(MemoryLayout<Int32>.size))
    #endif
    return descriptor
}

/// connect(2), for types that have a method of that name.
func systemConnect(_ descriptor: Int32, _ address: UnsafePointer<sockaddr>, _ length: socklen_t) -> Int32 {
    connect(descriptor, address, length)
}

/// Sends bytes. A peer that has closed is an error, never SIGPIPE, which would end the app.
func sendQuietly(_ descriptor: Int32, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int {
    #if canImport(Darwin)
        return send(descriptor, bytes, count, 0)
    #else
        return send(descriptor, bytes, count, Int32(MSG_NOSIGNAL))
    #endif
}

/// Names in a directory; nil if it cannot be listed.
func directoryNames(_ path: String) -> [String]? {
    guard let directory = opendir(path) else { return nil }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
        names.append(
            withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            })
    }
    return names
}

/// Whether everybody may write to a directory.
func isOpenToAll(_ directory: String) -> Bool {
    var status = stat()
    return stat(directory, &status) == 0 && status.st_mode & S_IWOTH != 0
}

/// The beginning of a file as text, at most `limit` bytes; nil if it cannot be read. Non-blocking, so that a
/// FIFO of that name does not hang the caller.
func readSmallFile(_ path: String, limit: Int = 4096) -> String? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: limit)
    let count = read(descriptor, &bytes, limit)
    return count >= 0 ? String(decoding: bytes[..<count], as: UTF8.self) : nil
}

/// A lock with a condition, which the standard library does not have.
///
/// Unchecked: the two C values have fixed addresses from `init` to `deinit`, as pthreads require.
final class Monitor: @unchecked Sendable {
    /// The lock.
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    /// The condition.
    private let condition: UnsafeMutablePointer<pthread_cond_t>

    /// An unlocked monitor.
    init() {
        mutex = .allocate(capacity: 1)
        condition = .allocate(capacity: 1)
        pthread_mutex_init(mutex, nil)
        #if canImport(Darwin)
            pthread_cond_init(condition, nil)
        #else
            // Deadlines by the monotonic clock: otherwise a step of the time of day would lengthen a wait.
            var attributes = pthread_condattr_t()
            pthread_condattr_init(&attributes)
            pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
            pthread_cond_init(condition, &attributes)
            pthread_condattr_destroy(&attributes)
        #endif
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    /// Locks; waits for another holder.
    func lock() { pthread_mutex_lock(mutex) }
    /// Unlocks.
    func unlock() { pthread_mutex_unlock(mutex) }
    /// Wakes all who wait; each checks its condition again.
    func wakeAll() { pthread_cond_broadcast(condition) }
    /// Runs `body` with the lock held.
    func sync<Result>(_ body: () -> Result) -> Result {
        lock()
        defer { unlock() }
        return body()
    }
    /// Waits for `wakeAll`; the lock must be held.
    func wait() { pthread_cond_wait(condition, mutex) }

    /// Waits for `wakeAll`, at most for a time; the lock must be held. May return early
    /// (pthread_cond_timedwait(3)).
    func wait(nanoseconds: Int64) {
        var time = timespec()
        #if canImport(Darwin)
            time.tv_sec = Int(max(0, nanoseconds) / 1_000_000_000)
            time.tv_nsec = Int(max(0, nanoseconds) % 1_000_000_000)
            pthread_cond_timedwait_relative_np(condition, mutex, &time)
        #else
            clock_gettime(CLOCK_MONOTONIC, &time)
            let total = Int64(time.tv_nsec) + max(0, nanoseconds)
            time.tv_sec += Int(total / 1_000_000_000)
            time.tv_nsec = Int(total % 1_000_000_000)
            pthread_cond_timedwait(condition, mutex, &time)
        #endif
    }
}

/// Starts a thread that runs `body`; returns false if the system has no thread left.
func startThread(_ body: @escaping @Sendable () -> Void) -> Bool {
    let box = Unmanaged.passRetained(ThreadBody(body))
    #if canImport(Darwin)
        var thread: pthread_t?
    #else
        var thread = pthread_t()
    #endif
    let hasStarted = pthread_create(&thread, nil, { ThreadBody.run($0) }, box.toOpaque()) == 0
    if !hasStarted {
        box.release()
    }
    return hasStarted
}

/// The closure of a thread, kept alive until it returns.
private final class ThreadBody {
    /// The code that the thread runs.
    private let body: @Sendable () -> Void

    init(_ body: @escaping @Sendable () -> Void) { self.body = body }

    /// The start of a thread. It is detached, because it is never joined.
    static func run(_ pointer: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
        pthread_detach(pthread_self())
        if let pointer {
            Unmanaged<ThreadBody>.fromOpaque(pointer).takeRetainedValue().body()
        }
        return nil
    }
}

/// Tells a file from another one that has replaced it under the same name.
struct FileMark: Equatable {
    /// Inode number.
    let inode: UInt64
    /// Length in bytes.
    let size: Int64
    /// Seconds of the time of modification.
    let seconds: Int
    /// Nanoseconds of the time of modification.
    let nanoseconds: Int

    /// The mark of the file at a path; nil if there is no file.
    init?(_ path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        inode = UInt64(status.st_ino)
        size = Int64(status.st_size)
        #if canImport(Darwin)
            seconds = status.st_mtimespec.tv_sec
            nanoseconds = status.st_mtimespec.tv_nsec
        #else
            seconds = status.st_mtim.tv_sec
            nanoseconds = status.st_mtim.tv_nsec
        #endif
    }
}
