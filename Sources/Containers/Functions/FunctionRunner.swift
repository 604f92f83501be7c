public import EventLoops
public import Model
internal import Synchronization

/// Runs the programs of functions: without a shell, one JSON value in and one out, bounded in time, number
/// and size. The loop never waits: a program that hangs, crashes, prints rubbish or forks only affects its
/// own call, whose answer is null.
///
/// It belongs to the loop that it is given; `figures` may be read from any thread. Function call macros and
/// tags are those of Google Tag Manager for iOS, version 3.
public final class FunctionRunner: FunctionCaller {
    /// Bytes of cached results with their calls, of all functions together. The oldest half is dropped beyond
    /// that.
    static let mostCached = 4 << 20
    /// Most bytes of input, 64 KiB.
    static let largestRequest = 64 << 10
    /// Calls of one function that may wait: more than the intake lets wait (128 and 512), so `busy` means
    /// another caller.
    static let mostWaiting = 768

    /// A result that may be used again.
    private struct Cached {
        /// The result.
        let value: JSONValue
        /// Time until which it may be used.
        let until: BootInstant
        /// Bytes that it counts for in `mostCached`.
        let bytes: Int
    }

    /// A call that runs or waits, with all who want its result.
    private final class Running {
        /// The call.
        let call: FunctionCall
        /// The program's input.
        let request: [UInt8]
        /// The holder that the run time is charged to, for turns.
        let holder: String
        /// The callers, in order; several if they asked the same.
        var answers: [(JSONValue) -> Void]
        /// The run; nil while the call waits.
        var process: FunctionProcess?
        /// Ends the run after `timeout`.
        var timer: EventLoop.TimerID?
        /// Start of the run, by the boot-time clock.
        var started: BootInstant?

        init(
            _ call: FunctionCall, _ request: [UInt8], _ holder: String,
            _ answer: @escaping (JSONValue) -> Void
        ) {
            self.call = call
            self.request = request
            self.holder = holder
            answers = [answer]
        }
    }

    /// The loop.
    private let loop: EventLoop
    /// The clocks.
    private let time: any TimeSource
    /// The configured functions by name.
    private var definitions: [String: FunctionSettings]
    /// Results that may be used again.
    private var cache: [FunctionCall: Cached] = [:]
    /// The cached calls from the oldest to the newest.
    private var cacheOrder: [FunctionCall] = []
    /// Bytes of all cached results.
    private var cachedBytes = 0
    /// Whether `stop` was called.
    private var isStopped = false
    /// Running calls by function, at most `parallel` each.
    private var active: [String: [Running]] = [:]
    /// Waiting calls by function.
    private var waiting: [String: [Running]] = [:]
    /// Run time for each holder since calls last waited. The holder with the least is next.
    private var spent: [String: Duration] = [:]
    /// Run time of the holder whose call was started last. A new holder starts with it: with 0 it would go
    /// before all others until it had caught up.
    private var level = Duration.zero
    /// The figures, readable from any thread.
    private let published = Mutex(FunctionFigures())
    /// Called after each run of a program, with the function's name and the run time.
    private let observe: (String, Duration) -> Void
    /// Called with each failure.
    private let failed: (FunctionFailure) -> Void
    /// Programs that were checked since the last `configure`.
    private var trusted: Set<String> = []

    /// A runner of some functions.
    ///
    /// - Parameters:
    ///   - observe: called on the loop with a function's name and how long its program ran.
    ///   - failed: called on the loop for each program that could not be started or ended badly.
    public init(
        _ definitions: [String: FunctionSettings], on loop: EventLoop, time: any TimeSource = SystemTime(),
        observe: @escaping (String, Duration) -> Void = { _, _ in },
        failed: @escaping (FunctionFailure) -> Void = { _ in }
    ) {
        self.observe = observe
        self.failed = failed
        self.loop = loop
        self.time = time
        self.definitions = definitions
    }

    /// Whether the configuration has functions.
    public var hasFunctions: Bool { !definitions.isEmpty }

    /// What functions did; from any thread.
    public var figures: FunctionFigures { published.withLock { $0 } }

    /// Replaces the functions. Running programs end as they began. Cached results of changed functions are
    /// forgotten, and programs are checked again.
    public func configure(_ definitions: [String: FunctionSettings]) {
        let changed = self.definitions.filter { definitions[$0.key] != $0.value }.map(\.key)
        self.definitions = definitions
        // A program that was not trusted may have been repaired since: check all again.
        trusted = []
        guard !changed.isEmpty else { return }
        cache = cache.filter { !changed.contains($0.key.function) }
        cacheOrder = cacheOrder.filter { cache[$0] != nil }
        cachedBytes = cache.values.reduce(0) { $0 + $1.bytes }
    }

    /// Kills running programs. All calls, also later ones, are answered with null.
    public func stop() {
        isStopped = true
        for call in active.values.joined() { call.process?.stop() }
        for call in Array(waiting.values.joined()) { finish(call, .timeout, .null) }
    }

    // MARK: Calls

    /// A cached result; nil if the function must be called.
    public func cachedResult(of call: FunctionCall) -> JSONValue? {
        guard let known = cache[call], known.until > time.bootTime else { return nil }
        count(call, .cached)
        return known.value
    }

    /// Calls a function. The answer comes on the loop, never before this returns.
    public func call(_ call: FunctionCall, for app: String, answer: @escaping (JSONValue) -> Void) {
        guard !isStopped else { return refuse(call, .notStarted, answer) }
        guard let definition = definitions[call.function] else { return refuse(call, .unknown, answer) }
        // A call that runs or waits already is not made twice, if its result could be cached anyway.
        if definition.cache > .zero,
            let same = (active[call.function, default: []] + waiting[call.function, default: []])
                .first(where: { $0.call == call })
        {
            same.answers.append(answer)
            return
        }
        guard waiting[call.function, default: []].count < FunctionRunner.mostWaiting else {
            return refuse(call, .busy, answer)
        }
        let request = Array("\(call.request)\n".utf8)
        guard request.count <= FunctionRunner.largestRequest else { return refuse(call, .tooLarge, answer) }
        let running = Running(call, request, Holdings.holder(of: app), answer)
        spent[running.holder] = max(spent[running.holder] ?? level, level)
        waiting[call.function, default: []].append(running)
        // Not before this call returns: the caller may not be ready for the answer.
        later { $0.startNext(of: call.function) }
    }

    /// Does something on the loop, after what runs there now.
    private func later(_ body: @escaping (FunctionRunner) -> Void) {
        let own = LoopBound((self, body), to: loop)
        loop.post { own.assumeOnLoop { runner, body in body(runner) } }
    }

    /// Answers with null.
    private func refuse(
        _ call: FunctionCall, _ result: FunctionResult, _ answer: @escaping (JSONValue) -> Void
    ) {
        count(call, result)
        later { _ in answer(.null) }
    }

    /// Starts waiting calls of a function, while it may run more programs. Of the waiting calls the one whose
    /// holder had the least run time is next, so that an app with many calls does not delay the others.
    private func startNext(of function: String) {
        guard let definition = definitions[function] else {
            for call in waiting[function, default: []] { finish(call, .unknown, .null) }
            return
        }
        while active[function, default: []].count < definition.parallel,
            let next = waiting[function]?.min(by: { spent[$0.holder] ?? level < spent[$1.holder] ?? level })
        {
            waiting[function]?.removeAll { $0 === next }
            level = max(level, spent[next.holder] ?? level)
            start(next, definition)
        }
        publishRunning(function)
    }

    /// Starts a call.
    private func start(_ call: Running, _ definition: FunctionSettings) {
        let program = definition.command.first ?? ""
        if !trusted.contains(program) {
            if let problem = FunctionProgram.problem(program) { return fail(call, .notStarted, nil, problem) }
            trusted.insert(program)
        }
        do throws(SystemError) {
            call.process = try FunctionProcess(definition.command, request: call.request, on: loop) {
                [weak self] end in
                self?.ended(call, end)
            }
            call.started = time.bootTime
            // The timeout begins here: waiting for a free slot is not the function's fault.
            call.timer = loop.after(definition.timeout) {
                call.timer = nil
                call.process?.stop()
            }
            active[call.call.function, default: []].append(call)
            assert(
                active[call.call.function, default: []].count <= definition.parallel,
                "more programs run than the function may")
        } catch {
            fail(call, .notStarted, nil, error.description)
        }
    }

    /// The end of a run: charges its time, and turns its output into a value.
    private func ended(_ call: Running, _ end: FunctionProcess.End) {
        if let started = call.started {
            let duration = time.bootTime - started
            spent[call.holder, default: level] += duration
            if definitions[call.call.function] != nil {
                observe(call.call.function, duration)
            }
        }
        switch end {
        case .printed(let bytes):
            guard let value = try? JSONValue(parsing: bytes) else { return fail(call, .badJSON, 0) }
            storeResult(value, of: call.call, bytes: bytes.count + call.request.count + 256)
            finish(call, .success, value)
        case .failed(let status): fail(call, .exit, status)
        case .tooLarge: fail(call, .tooLarge, nil)
        case .killed:
            // Killed because the agent stops: not a failure.
            if isStopped {
                finish(call, .timeout, .null)
            } else {
                fail(call, .timeout, nil)
            }
        }
    }

    /// Reports a failure and answers with null.
    private func fail(_ call: Running, _ result: FunctionResult, _ code: Int32?, _ problem: String? = nil) {
        let said = String(decoding: call.process?.complaint ?? [], as: UTF8.self)
        failed(
            FunctionFailure(
                function: call.call.function, result: result, code: code,
                complaint: problem ?? String(said.reversed().drop { $0.isWhitespace }.reversed())))
        finish(call, result, .null)
    }

    /// Ends a call: answers all who wait for it, and starts the next one.
    private func finish(_ call: Running, _ result: FunctionResult, _ value: JSONValue) {
        let function = call.call.function
        if let timer = call.timer {
            loop.cancel(timer)
        }
        call.timer = nil
        call.process = nil
        active[function]?.removeAll { $0 === call }
        waiting[function]?.removeAll { $0 === call }
        if active.values.allSatisfy(\.isEmpty), waiting.values.allSatisfy(\.isEmpty) {
            spent = [:]
        }
        let answers = call.answers
        call.answers = []
        publishRunning(function)
        for (number, answer) in answers.enumerated() {
            count(call.call, number == 0 || result != .success ? result : .cached)
            answer(value)
        }
        if waiting[function]?.isEmpty == false {
            later { $0.startNext(of: function) }
        }
    }

    // MARK: Cache and figures

    /// Caches a result, if the function's setting allows it.
    private func storeResult(_ value: JSONValue, of call: FunctionCall, bytes: Int) {
        guard let lifetime = definitions[call.function]?.cache, lifetime > .zero else { return }
        let new = Cached(value: value, until: time.bootTime + lifetime, bytes: bytes)
        if let old = cache.updateValue(new, forKey: call) {
            cachedBytes -= old.bytes
        } else {
            cacheOrder.append(call)
        }
        cachedBytes += bytes
        guard cachedBytes > FunctionRunner.mostCached else { return }
        // Half of the cache at once, so that a full cache does not shift the order for each new result.
        let old = cacheOrder.prefix(max(1, cacheOrder.count / 2))
        for call in old { cachedBytes -= cache.removeValue(forKey: call)?.bytes ?? 0 }
        cacheOrder.removeFirst(old.count)
    }

    /// Counts a result.
    private func count(_ call: FunctionCall, _ result: FunctionResult) {
        // Names come from documents: only those of the configuration become labels of metrics.
        let name = definitions[call.function] == nil ? "unknown" : call.function
        published.withLock { $0.calls[name, default: [:]][result, default: 0] += 1 }
    }

    /// Publishes the number of running programs.
    private func publishRunning(_ function: String) {
        let count = active[function, default: []].count
        published.withLock { $0.running[function] = count }
    }
}
