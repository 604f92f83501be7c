//  What reading the spool costs alone: CPU seconds of the reader's thread and of the process, time, memory.
//
//  SpoolBenchmark DIRECTORY MODE [count]
//    waiting   `count` drop files (100,000) lie there at the start
//    arriving  `count` drop files (50,000) are renamed in, 10,000 a second, by a process of its own
//    append    one append file of `count` lines (1,000,000) lies there at the start
//    idle      `count` directories (1,000) and nothing to do for ten seconds (count system calls with strace -f)
//    known     `count` append files (1,000,000) of one line each that stay, then ten seconds idle
//    foreign   `count` files (1,000,000) of no concern to us, then ten seconds idle
//
//  The taker counts lines and answers a commit at once: what the queue costs is not in here.

import EventLoops
import Glibc
import Logs
import Model
import Spool
import Synchronization

struct Quiet: LogSink {
    var level: LogLevel { .error }
    func write(_ message: LogMessage) { print(message) }
}

let lines = Atomic<Int>(0)
let commits = Atomic<Int>(0)

final class CountingSink: SpoolSink {
    private let loop: EventLoop
    private var taken = 0

    init(on loop: EventLoop) { self.loop = loop }

    func take(_ block: UnsafeRawBufferPointer, from source: SpoolSource, at offset: Int64) -> Int {
        // As fast as memchr: the taker's own work is not to be measured.
        var start = 0
        while let base = block.baseAddress, start < block.count,
            let found = memchr(base + start, 0x0A, block.count - start)
        {
            start = UnsafeRawPointer(found) - base + 1
            taken += 1
        }
        return block.count
    }

    func quarantine(_ record: QuarantineRecord) { print("quarantined: \(record.detail)") }

    func park(_ resume: @escaping () -> Void) -> Bool { false }

    func persist() async throws {}

    var isUrgent: Bool { false }
    func mustStay(_ file: [UInt8]) -> Bool { false }

    func isClockTrusted() -> Bool { true }

    func commit(_ progress: SpoolProgress) async throws {
        let count = taken
        taken = 0
        // A millisecond, as an fsync takes.
        await withCheckedContinuation { continuation in
            loop.after(.milliseconds(1)) { continuation.resume() }
        }
        lines.add(count, ordering: .relaxed)
        commits.add(1, ordering: .relaxed)
    }
}

func put(_ directory: String, _ name: String, _ text: String) {
    let hidden = "\(directory)/.\(name)"
    let file = open(hidden, O_WRONLY | O_CREAT | O_CLOEXEC, 0o640)
    _ = write(file, text, text.utf8.count)
    close(file)
    rename(hidden, "\(directory)/\(name)")
}

func cpuSeconds() -> Double {
    var usage = rusage()
    getrusage(0, &usage)
    return Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
        + Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6
}

func memory() -> String {
    guard let file = fopen("/proc/self/status", "r") else { return "" }
    defer { fclose(file) }
    var text = ""
    var line = [CChar](repeating: 0, count: 256)
    while fgets(&line, 256, file) != nil {
        let word = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        if word.hasPrefix("VmHWM") || word.hasPrefix("RssAnon") {
            text += word.split(separator: "\n")[0] + "  "
        }
    }
    return text
}

@main
enum SpoolBenchmark {
    static func main() throws {
        let arguments = CommandLine.arguments
        guard arguments.count >= 3 else {
            print("SpoolBenchmark DIRECTORY waiting|arriving|append|idle|known|foreign [count]")
            exit(64)
        }
        let directory = arguments[1]
        let mode = arguments[2]
        mkdir(directory, 0o750)
        let defaults = [
            "waiting": 100_000, "arriving": 50_000, "append": 1_000_000, "idle": 1000, "known": 1_000_000,
            "foreign": 1_000_000,
        ]
        let count = arguments.count > 3 ? Int(arguments[3]) ?? 0 : defaults[mode] ?? 0
        let event =
            "{\"name\": \"Video clicked\", \"properties\": {\"Category\": \"Music\", \"number\": 12345}}\n"
        var expected = count
        switch mode {
        case "waiting": for number in 0..<count { put(directory, "\(number).json", event) }
        case "append":
            let text = String(repeating: String(repeating: "x", count: 312) + "\n", count: 1000)
            let file = open("\(directory)/x.jsonl", O_WRONLY | O_CREAT, 0o640)
            for _ in 0..<(count / 1000) { _ = write(file, text, text.utf8.count) }
            close(file)
        case "idle":
            for number in 0..<count { mkdir("\(directory)/app\(number)", 0o750) }
            expected = 0
        case "known":
            for number in 0..<count {
                if number % 1000 == 0 { mkdir("\(directory)/app\(number / 1000)", 0o750) }
                let file = open("\(directory)/app\(number / 1000)/\(number).jsonl", O_WRONLY | O_CREAT, 0o640)
                _ = write(file, event, event.utf8.count)
                close(file)
            }
        case "foreign":
            for number in 0..<count { close(open("\(directory)/\(number).txt", O_WRONLY | O_CREAT, 0o640)) }
            expected = 0
        case "arriving":
            // A child of its own, so that the writer's CPU is not counted.
            var child = pid_t()
            let texts = [arguments[0], directory, "write", "\(count)"]
            var words: [UnsafeMutablePointer<CChar>?] = []
            for text in texts { words.append(strdup(text)) }
            words.append(nil)
            posix_spawn(&child, "/proc/self/exe", nil, nil, &words, environ)
        case "write":
            usleep(300_000)
            for number in 0..<count {
                put(directory, "\(number).json", event)
                // Ten thousand a second, in steps of ten milliseconds.
                if number % 100 == 99 { usleep(6000) }
            }
            return
        default: exit(64)
        }
        let time = SystemTime()
        let awaited = expected
        try EventLoop.runProgram(name: "benchmark", failure: { $0 as any Error }) { main in
            let expected = awaited
            guard let loop = try? EventLoop(name: "reader"), (try? loop.start()) != nil else { return }
            var options = SpoolOptions(directory: directory)
            if mode == "waiting" { options.settleTime = .milliseconds(1) }
            if mode == "known" { options.afterRead = .keep }
            guard
                let reader = try? SpoolReader(
                    options, sink: CountingSink(on: loop), on: loop, log: Log(Quiet()))
            else { return }
            let (began, cpu) = (time.bootTime, cpuSeconds())
            await reader.start()
            func pause(_ wait: Duration) async {
                await withCheckedContinuation { continuation in main.after(wait) { continuation.resume() } }
            }
            while lines.load(ordering: .relaxed) < expected { await pause(.milliseconds(20)) }
            let (seconds, spent) = (time.bootTime - began, cpuSeconds() - cpu)
            if mode == "idle" || mode == "known" || mode == "foreign" {
                await pause(.seconds(3))
                print("quiet now", memory(), reader.figures.directories, cpuSeconds() - cpu)
                await pause(.seconds(10))
                print("end of quiet", cpuSeconds() - cpu)
            }
            let each = expected > 0 ? spent / Double(expected) * 1e6 : 0
            print(
                "\(mode): \(expected) in \(seconds), cpu \(spent) s, \(each) us each,",
                commits.load(ordering: .relaxed), "commits,", memory())
            await pause(.seconds(2))
            print("removed \(reader.figures.filesRemoved), cpu with removal \(cpuSeconds() - cpu) s")
            await reader.stop()
        }
    }
}
