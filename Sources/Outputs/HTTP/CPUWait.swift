internal import EventLoops
internal import Glibc

/// Measures how long the current thread was ready to run without getting a CPU, from the kernel's count
/// (`/proc/thread-self/schedstat`).
///
/// A machine that lacks CPU time looks like a slow network: timeouts are reported, and their cause is a CPU
/// limit. All calls must be made on the thread that is measured.
struct CPUWait {
    /// Value of the kernel's count when it was last read, and the time of that; nil if the kernel does not
    /// count.
    private var mark: (time: BootInstant, waited: Int64)?
    /// Reads the kernel's count in nanoseconds; nil if the kernel does not count. Replaced in tests.
    private let read: () -> Int64?

    /// Age up to which a mark serves further requests: reading the count costs three system calls, too many
    /// for each request.
    private static let interval = Duration.seconds(1)

    init(read: @escaping () -> Int64? = CPUWait.readThread) { self.read = read }

    /// Marks the beginning of a request, unless the last mark is younger than a second.
    mutating func begin(at now: BootInstant) {
        if let mark, now - mark.time < CPUWait.interval { return }
        mark = read().map { (now, $0) }
    }

    /// Time without a CPU since the mark; zero if the kernel does not count.
    var sinceMark: Duration {
        guard let mark, let waited = read() else { return .zero }
        return .nanoseconds(max(0, waited - mark.waited))
    }

    /// The second number of `schedstat`: nanoseconds in which the thread waited on a run queue (Linux,
    /// Documentation/scheduler/sched-stats.rst).
    static func waited(in text: String) -> Int64? {
        let numbers = text.split { $0 == " " || $0 == "\n" }
        return numbers.count >= 2 ? Int64(numbers[1]) : nil
    }

    /// Reads the count of the calling thread.
    private static func readThread() -> Int64? {
        let file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 128)
        let count = Glibc.read(file, &bytes, bytes.count)
        return count > 0 ? waited(in: String(decoding: bytes.prefix(count), as: UTF8.self)) : nil
    }
}
