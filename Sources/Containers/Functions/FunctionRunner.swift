public import EventLoops
public import Model
internal import Synchronization

/// Runs the functions that the configuration names (tm14): no shell, one JSON value in, one out, bounded in time, number
/// and size. The loop never waits: a function that hangs, dies, prints rubbish or forks affects only its own call, whose answer is null.
///
/// It lives on the loop that it is given; `figures` may be read from any thread.
///
/// Source: Google Tag Manager for iOS v3, function call macros and tags (tm14).
public final class FunctionRunner: FunctionCaller {
    /// Bytes of results that serve again, with their questions, of all functions together; the oldest go first.
    static let mostCached = 4 << 20
    /// The most that a function is given, in bytes.
    static let largestRequest = 64 << 10
    /// Calls of one function that may wait for a place: all that the intake lets wait, and some more.
    static let mostWaiting = 768

    private struct Cached {
        let value: JSONValue
        let until: BootInstant
        /// What it counts for in the bound.
        let bytes: Int
    }

    /// A call in progress, and everything that waits for its result.
    private final class Running {
        let call: FunctionCall
        let request: [UInt8]
        let holder: String
        var answers: [(JSONValue) -> Void]
        var process: FunctionProcess?
        var timer: EventLoop.TimerID?
        var started: BootInstant?

        init(_ call: FunctionCall, _ request: [UInt8], _ holder: String, _ answer: @escaping (JSONValue) -> Void) {
            self.call = call
            self.request = request
            self.holder = holder
            answers = [answer]
        }
    }

    private let loop: EventLoop
    private let time: any TimeSource
    private var definitions: [String: FunctionSettings]
    private var cache: [FunctionCall: Cached] = [:]
    private var cacheOrder: [FunctionCall] = []
    private var cachedBytes = 0
    private var isStopped = false
    private var active: [String: [Running]] = [:]
    private var waiting: [String: [Running]] = [:]
    /// How long programs ran for each app of late; whoever had least is next.
    private var spent: [String: Duration] = [:]
    /// What the app had that was last in turn: one that comes anew has had as much, whenever it was there before.
    private var level = Duration.zero
    private let published = Mutex(FunctionFigures())
    private let observe: (String, Duration) -> Void
    private let failed: (FunctionFailure) -> Void
    /// Programs that nobody else could change when they were used first.
    private var trusted: Set<String> = []

    /// - Parameters:
    ///   - observe: told, on the loop, how long a function's program ran, until it ended or was killed.
    ///   - failed: told, on the loop, of each program that could not be started or ended badly.
    public init(
        _ definitions: [String: FunctionSettings], on loop: EventLoop, time: any TimeSource = SystemTime(),
        observe: @escaping (String, Duration) -> Void = { _, _ in },
        failed: @escaping (FunctionFailure) -> Void = { _ in }
    ) {
        (self.observe, self.failed, self.loop) = (observe, failed, loop)
        (self.time, self.definitions) = (time, definitions)
    }

    /// What functions did. From any thread.
    public var figures: FunctionFigures { published.withLock { $0 } }

    /// Other functions from now on; calls that run end as they began. What was cached of a changed one is forgotten.
    public func configure(_ definitions: [String: FunctionSettings]) {
        let changed = self.definitions.filter { definitions[$0.key] != $0.value }.map(\.key)
        self.definitions = definitions
        // A reload looks again.
        trusted = []
        guard !changed.isEmpty else { return }
        cache = cache.filter { !changed.contains($0.key.function) }
        cacheOrder = cacheOrder.filter { cache[$0] != nil }
        cachedBytes = cache.values.reduce(0) { $0 + $1.bytes }
    }

    /// Kills what runs; every call, also those to come, is answered with null.
    public func stop() {
        isStopped = true
        for call in active.values.joined() { call.process?.stop() }
        for call in Array(waiting.values.joined()) { finish(call, .timeout, .null) }
    }

    // MARK: Calls

    /// A result that serves again; nil where the function must be asked.
    public func cachedResult(of call: FunctionCall) -> JSONValue? {
        guard let known = cache[call], known.until > time.bootTime else { return nil }
        count(call, .cached)
        return known.value
    }

    /// Asks a function; the answer comes on the loop, never before this returns.
    public func call(_ call: FunctionCall, for app: String, answer: @escaping (JSONValue) -> Void) {
        guard !isStopped else { return refuse(call, .notStarted, answer) }
        guard let definition = definitions[call.function] else { return refuse(call, .unknown, answer) }
        // The same question twice at once is asked once, where its answer would serve again anyway.
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
        // Never before this call returns: whoever asks may not be ready for the answer yet.
        later { $0.startNext(of: call.function) }
    }

    /// Does something on the loop, after what it does now.
    private func later(_ body: @escaping (FunctionRunner) -> Void) {
        let own = LoopBound((self, body), to: loop)
        loop.post { own.assumeOnLoop { runner, body in body(runner) } }
    }

    private func refuse(_ call: FunctionCall, _ result: FunctionResult, _ answer: @escaping (JSONValue) -> Void) {
        count(call, result)
        later { _ in answer(.null) }
    }

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

    private func start(_ call: Running, _ definition: FunctionSettings) {
        let program = definition.command.first ?? ""
        if !trusted.contains(program) {
            if let problem = FunctionProgram.problem(program) { return fail(call, .notStarted, nil, problem) }
            trusted.insert(program)
        }
        do throws(SystemError) {
            call.process = try FunctionProcess(definition.command, request: call.request, on: loop) { [weak self] end in
                self?.ended(call, end)
            }
            call.started = time.bootTime
            // From now on: waiting for a place is not the function's fault.
            call.timer = loop.after(definition.timeout) {
                call.timer = nil
                call.process?.stop()
            }
            active[call.call.function, default: []].append(call)
        } catch {
            fail(call, .notStarted, nil, error.description)
        }
    }

    private func ended(_ call: Running, _ end: FunctionProcess.End) {
        if let started = call.started {
            let duration = time.bootTime - started
            spent[call.holder, default: level] += duration
            if definitions[call.call.function] != nil { observe(call.call.function, duration) }
        }
        switch end {
        case .printed(let bytes):
            guard let value = try? JSONValue(parsing: bytes) else { return fail(call, .badJSON, 0) }
            keep(value, of: call.call, bytes: bytes.count + call.request.count + 256)
            finish(call, .success, value)
        case .failed(let status): fail(call, .exit, status)
        case .tooLarge: fail(call, .tooLarge, nil)
        case .killed:
            // Killed because the agent stops, it has not failed.
            if isStopped { finish(call, .timeout, .null) } else { fail(call, .timeout, nil) }
        }
    }

    private func fail(_ call: Running, _ result: FunctionResult, _ code: Int32?, _ problem: String? = nil) {
        let said = String(decoding: call.process?.complaint ?? [], as: UTF8.self)
        failed(
            FunctionFailure(
                function: call.call.function, result: result, code: code,
                complaint: problem ?? String(said.reversed().drop { $0.isWhitespace }.reversed())))
        finish(call, result, .null)
    }

    private func finish(_ call: Running, _ result: FunctionResult, _ value: JSONValue) {
        let function = call.call.function
        if let timer = call.timer { loop.cancel(timer) }
        call.timer = nil
        call.process = nil
        active[function]?.removeAll { $0 === call }
        waiting[function]?.removeAll { $0 === call }
        if active.values.allSatisfy(\.isEmpty), waiting.values.allSatisfy(\.isEmpty) { spent = [:] }
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

    private func keep(_ value: JSONValue, of call: FunctionCall, bytes: Int) {
        guard let lifetime = definitions[call.function]?.cache, lifetime > .zero else { return }
        let new = Cached(value: value, until: time.bootTime + lifetime, bytes: bytes)
        if let old = cache.updateValue(new, forKey: call) { cachedBytes -= old.bytes } else { cacheOrder.append(call) }
        cachedBytes += bytes
        guard cachedBytes > FunctionRunner.mostCached else { return }
        // A half at once, so that a full cache costs no shifting for each new result.
        let old = cacheOrder.prefix(max(1, cacheOrder.count / 2))
        for call in old { cachedBytes -= cache.removeValue(forKey: call)?.bytes ?? 0 }
        cacheOrder.removeFirst(old.count)
    }

    private func count(_ call: FunctionCall, _ result: FunctionResult) {
        // Names come from documents: only those of the configuration become labels.
        let name = definitions[call.function] == nil ? "unknown" : call.function
        published.withLock { $0.calls[name, default: [:]][result, default: 0] += 1 }
    }

    private func publishRunning(_ function: String) {
        let count = active[function, default: []].count
        published.withLock { $0.running[function] = count }
    }
}
