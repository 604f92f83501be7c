internal import EventLoops
internal import Glibc

/// The process's own figures from /proc (proc(5)). A figure that cannot be read is left out. Names and
/// meanings are those of Prometheus' client libraries, so that common dashboards work.
package struct ProcessCollector: MetricCollector {
    package init() {}

    /// Adds CPU time, memory, descriptors and the time of the start.
    package func collect(into exposition: inout Exposition) {
        var usage = rusage()
        if getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage) == 0 {
            exposition.set(
                \.processCPU,
                to: ProcessCollector.seconds(usage.ru_utime) + ProcessCollector.seconds(usage.ru_stime))
        }
        let status = ProcessCollector.read("/proc/self/status")
        for (key, family) in [
            ("VmRSS", \MetricTable.processResident), ("RssAnon", \.processPrivate),
            ("VmSize", \.processVirtual),
        ] {
            if let kilobytes = ProcessCollector.number(after: "\(key):", in: status) {
                // bounded: the size of one process in KiB.
                exposition.set(family, to: kilobytes * 1024)
            }
        }
        if let count = ProcessCollector.openDescriptors() {
            exposition.set(\.processOpenDescriptors, to: count)
        }
        var limit = rlimit()
        if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0, limit.rlim_cur <= Int.max {
            exposition.set(\.processMaxDescriptors, to: Int(limit.rlim_cur))
        }
        if let start = ProcessCollector.startTime {
            exposition.set(\.processStart, to: start)
        }
    }

    /// Start of the process in Unix time: the time of the boot plus ticks since then. Read once.
    private static let startTime: Double? = {
        // The program's name, in parentheses, may contain anything, also a `)`. Field 22 of proc(5) is the
        // 20th after it.
        let fields = read("/proc/self/stat").split(separator: ")").last?.split(separator: " ") ?? []
        guard fields.count > 19, let ticks = Double(fields[19]),
            let boot = number(after: "btime ", in: read("/proc/stat"))
        else { return nil }
        return Double(boot) + ticks / Double(sysconf(Int32(_SC_CLK_TCK)))
    }()

    /// A time of getrusage(2) in seconds.
    private static func seconds(_ time: timeval) -> Double {
        // bounded: a figure with a fraction never overflows.
        Double(time.tv_sec) + Double(time.tv_usec) / 1e6
    }

    /// Number of open descriptors, without the one that reads the directory.
    private static func openDescriptors() -> Int? {
        (try? WholeFile.names(in: "/proc/self/fd")).map { max(0, $0.count - 1) }
    }

    /// The number after a key at the beginning of a line; nil if it is missing.
    private static func number(after key: String, in text: String) -> Int? {
        guard let line = text.split(separator: "\n").first(where: { $0.hasPrefix(key) }) else { return nil }
        let rest = line.dropFirst(key.count).drop { $0 == " " || $0 == "\t" }
        return Int(rest.prefix { $0.isNumber })
    }

    /// Content of a small file of /proc; empty if it cannot be read.
    private static func read(_ path: String) -> String {
        String(decoding: (try? WholeFile.bytes(of: path, atMost: 1 << 20)) ?? [], as: UTF8.self)
    }
}
