//  client-writer: an app made of threads that write as fast as the client library lets them. The tests end to end run
//  several of it at once; it is not installed.

internal import Glibc
internal import SpoolshipClient
internal import Synchronization

/// `client-writer DIRECTORY KEY THREADS EVENTS [append|drop] [WAIT_MS] [BUFFER]`
///
/// Writes EVENTS events named `written`, each with its own property `key`, from that many threads, and prints what it met as
/// JSON: refusals of a full buffer (such an event is tried again), the longest single call, and the code of the failure that
/// ended it, if one did.
@main
enum ClientWriter {
    static func main() {
        let words = CommandLine.arguments
        guard words.count >= 5, let threads = Int(words[3]), let events = Int(words[4]), threads > 0 else {
            print("usage: client-writer DIRECTORY KEY THREADS EVENTS [append|drop] [WAIT_MS] [BUFFER]")
            exit(64)
        }
        var settings = ClientSettings(directory: words[1])
        settings.name = words[2]
        settings.durability = .processEnd
        if words.count > 5, words[5] == "drop" { settings.style = .dropFiles }
        if words.count > 6, let wait = Int(words[6]) { settings.longestWait = .milliseconds(wait) }
        if words.count > 7, let size = Int(words[7]) { settings.bufferSize = size }
        let run = Run(key: words[2], threads: threads, events: events)
        do throws(AnalyticsError) {
            let client = try AnalyticsClient(settings)
            run.write(with: client)
            try client.close(timeout: run.failure == nil ? .seconds(300) : .milliseconds(500))
        } catch {
            run.fail(error.code)
        }
        print(run.report)
        exit(run.failure == nil ? 0 : 75)
    }
}

/// What the threads do and count.
private final class Run: Sendable {
    private struct Figures {
        var written = 0
        var refusals = 0
        var longest: Int64 = 0
        var failure: AnalyticsError.Code?
    }

    /// How often an event is offered to a full buffer before the disk counts as full for good.
    private static let mostTries = 2000

    private let key: String
    private let threads: Int
    private let events: Int
    private let figures = Mutex(Figures())

    init(key: String, threads: Int, events: Int) {
        self.key = key
        self.threads = threads
        self.events = events
    }

    var failure: AnalyticsError.Code? { figures.withLock { $0.failure } }

    func fail(_ code: AnalyticsError.Code) { figures.withLock { $0.failure = $0.failure ?? code } }

    var report: String {
        let figures = figures.withLock { $0 }
        let failure = figures.failure.map { "\"\($0.rawValue)\"" } ?? "null"
        return #"{"written":\#(figures.written),"refusals":\#(figures.refusals),"#
            + #""longest_ms":\#(figures.longest / 1_000_000),"failure":\#(failure)}"#
    }

    /// Writes all events and returns when every thread has ended.
    func write(with client: AnalyticsClient) {
        var running: [pthread_t] = []
        for thread in 0..<threads {
            let work = Unmanaged.passRetained(Work { self.write(thread, with: client) })
            var id = pthread_t()
            let result = pthread_create(
                &id, nil,
                { argument in
                    if let argument { Unmanaged<Work>.fromOpaque(argument).takeRetainedValue().body() }
                    return nil
                }, work.toOpaque())
            guard result == 0 else {
                work.release()
                fail(.notWritable)
                break
            }
            running.append(id)
        }
        for thread in running { pthread_join(thread, nil) }
    }

    private final class Work {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }

    private func write(_ thread: Int, with client: AnalyticsClient) {
        var own = Figures()
        for number in stride(from: thread, to: events, by: threads) {
            let properties: EventProperties = [
                "key": .string("\(key)-\(number)"), "thread": .integer(Int64(thread)),
            ]
            guard offer(properties, to: client, &own) else { break }
            own.written += 1
        }
        figures.withLock { all in
            all.written += own.written
            all.refusals += own.refusals
            all.longest = max(all.longest, own.longest)
            all.failure = all.failure ?? own.failure
        }
    }

    /// Tracks one event, as often as it takes; false when it is not taken at all.
    private func offer(_ properties: EventProperties, to client: AnalyticsClient, _ own: inout Figures)
        -> Bool
    {
        for _ in 0..<Run.mostTries {
            let start = Run.now()
            defer { own.longest = max(own.longest, Run.now() - start) }
            do throws(AnalyticsError) {
                try client.trackEvent("written", withProperties: properties)
                return true
            } catch {
                own.refusals += 1
                guard error.code == .bufferFull else {
                    own.failure = error.code
                    return false
                }
            }
        }
        own.failure = .bufferFull
        return false
    }

    private static func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
