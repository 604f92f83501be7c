#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// The few things that differ between Linux and macOS, or that C says clumsily.

func processID() -> Int32 { getpid() }

/// The time of day in milliseconds since 1970.
func wallMilliseconds() -> Int64 { nanoseconds(CLOCK_REALTIME) / 1_000_000 }

/// A clock that nobody sets, in nanoseconds.
func steadyNanoseconds() -> Int64 { nanoseconds(CLOCK_MONOTONIC) }

private func nanoseconds(_ clock: clockid_t) -> Int64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}

/// A time of day, in milliseconds since 1970, as RFC 3339 text in UTC.
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

func sleepSecond() { sleep(1) }

func systemMessage(_ number: Int32) -> String { String(cString: strerror(number)) }

/// Makes a file's content durable.
func syncContent(_ descriptor: Int32) -> Bool {
    #if canImport(Darwin)
        // On macOS fsync leaves the data in the drive's cache.
        return fcntl(descriptor, F_FULLFSYNC) == 0 || fsync(descriptor) == 0
    #else
        return fdatasync(descriptor) == 0
    #endif
}

/// Whether anybody may write to a directory.
func isOpenToAll(_ directory: String) -> Bool {
    var status = stat()
    return stat(directory, &status) == 0 && status.st_mode & S_IWOTH != 0
}

/// The content of a small file as text; nil when it cannot be read.
func readSmallFile(_ path: String, limit: Int = 4096) -> String? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: limit)
    let count = read(descriptor, &bytes, limit)
    return count >= 0 ? String(decoding: bytes[..<count], as: UTF8.self) : nil
}

/// A lock with a condition: what the standard library has not.
///
/// The two C values live at fixed addresses from `init` to `deinit`, which is what makes sharing them safe.
final class Monitor: @unchecked Sendable {
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition: UnsafeMutablePointer<pthread_cond_t>

    init() {
        mutex = .allocate(capacity: 1)
        condition = .allocate(capacity: 1)
        pthread_mutex_init(mutex, nil)
        #if canImport(Darwin)
            pthread_cond_init(condition, nil)
        #else
            // Deadlines by the clock that nobody sets: a bound that a step of the time of day stretches is none.
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

    func lock() { pthread_mutex_lock(mutex) }
    func unlock() { pthread_mutex_unlock(mutex) }
    func wakeAll() { pthread_cond_broadcast(condition) }
    func sync<Result>(_ body: () -> Result) -> Result {
        lock()
        defer { unlock() }
        return body()
    }
    func wait() { pthread_cond_wait(condition, mutex) }

    /// Waits at most so long, whatever becomes of the time of day.
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

/// Starts a thread that runs `body` and keeps it alive until it returns; false when the system has no thread left.
func startThread(_ body: @escaping @Sendable () -> Void) -> Bool {
    let box = Unmanaged.passRetained(ThreadBody(body))
    #if canImport(Darwin)
        var thread: pthread_t?
    #else
        var thread = pthread_t()
    #endif
    let hasStarted = pthread_create(&thread, nil, { ThreadBody.run($0) }, box.toOpaque()) == 0
    if !hasStarted { box.release() }
    return hasStarted
}

private final class ThreadBody {
    private let body: @Sendable () -> Void

    init(_ body: @escaping @Sendable () -> Void) { self.body = body }

    /// What a thread begins with: nobody waits for its end.
    static func run(_ pointer: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
        pthread_detach(pthread_self())
        if let pointer { Unmanaged<ThreadBody>.fromOpaque(pointer).takeRetainedValue().body() }
        return nil
    }
}

/// Tells one file from its successor under the same name.
struct FileMark: Equatable {
    let inode: UInt64
    let size: Int64
    let seconds: Int
    let nanoseconds: Int

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
