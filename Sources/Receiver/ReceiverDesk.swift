internal import CMicroHTTPD
internal import EventLoops
internal import Frames
internal import Glibc
internal import Model
internal import Synchronization

/// Decides what happens to each request. Called by the server's threads; thread-safe by one lock.
final class ReceiverDesk: Sendable {
    /// State behind the lock.
    private struct State: ~Copyable {
        var stats = ReceiverStats()
        var keys: KeyMemory
        var store: EventStore
        var dice: FaultDice
        /// Connections whose answer is delayed, by address.
        var waiting: Set<UInt> = []
        /// True from the begin of the stop: no further answer is delayed, because the server cannot stop
        /// with suspended connections.
        var isStopping = false
    }

    /// Most bytes of bodies in memory at a time, over all connections: 512 MiB.
    private static let roomForBodies = 512 << 20

    private let options: ReceiverOptions
    private let state: Mutex<State>
    /// Bytes of bodies in memory now.
    private let held = Atomic<Int>(0)
    /// Runs the timers of delayed answers.
    private let loop: EventLoop

    /// - Throws: `ReceiverError` with code `file` or `listen`.
    init(_ options: ReceiverOptions) throws(ReceiverError) {
        self.options = options
        let store = try EventStore(options.store)
        state = Mutex(
            State(
                keys: KeyMemory(limit: options.rememberedKeys), store: store, dice: FaultDice(options.faults))
        )
        do {
            loop = try EventLoop(name: "receiver")
            try loop.start()
        } catch {
            throw ReceiverError(.listen, "cannot start an event loop: \(error)")
        }
    }

    deinit { loop.stop() }

    var stats: ReceiverStats { state.withLock { $0.stats } }

    /// Changes the faults from the next request on.
    func misbehave(_ plan: FaultPlan) { state.withLock { $0.dice = FaultDice(plan) } }

    // MARK: A request

    /// Begins a request, and draws its fault if it brings events.
    func begin(_ connection: OpaquePointer, path: UnsafePointer<CChar>, method: UnsafePointer<CChar>)
        -> Exchange
    {
        if strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 {
            let exchange = Exchange(.events)
            exchange.fault = state.withLock { state in
                state.stats.requests += 1
                return state.dice.draw()
            }
            return exchange
        }
        return Exchange(strcmp(method, "GET") == 0 && strcmp(path, "/stats") == 0 ? .stats : .other)
    }

    /// Receives a piece of a body; false cuts the connection. A body that is too large is read to its end
    /// and dropped, because the answer 413 reaches the client only then.
    func read(_ piece: UnsafeRawBufferPointer, _ exchange: Exchange, _ connection: OpaquePointer) -> Bool {
        if exchange.fault == .cutInBody {
            reset(connection)
            state.withLock { $0.stats.cuts += 1 }
            return false
        }
        guard !exchange.isTooLarge else { return true }
        let total = held.add(piece.count, ordering: .relaxed).newValue
        if exchange.body.count + piece.count > options.largestBody || total > ReceiverDesk.roomForBodies {
            held.subtract(piece.count + exchange.body.count, ordering: .relaxed)
            exchange.isTooLarge = true
            exchange.body = []
            return true
        }
        exchange.body.append(contentsOf: piece)
        return true
    }

    /// Answers a complete request, now or later; false cuts the connection. Called again after a delay.
    func end(_ exchange: Exchange, _ connection: OpaquePointer) -> Bool {
        if exchange.verdict == nil {
            exchange.verdict = decide(exchange, connection)
            if exchange.kind == .events, suspend(connection) { return true }
        }
        guard case .answer(let status, var body, let retryAfter)? = exchange.verdict else {
            state.withLock { $0.stats.cuts += 1 }
            return false
        }
        if exchange.kind == .events {
            state.withLock { $0.stats.answers[status, default: 0] += 1 }
        }
        guard let response = body.withUTF8({ shim_mhd_response($0.baseAddress, $0.count) }) else {
            return false
        }
        shim_mhd_add_header(response, "Content-Type", "application/json")
        if let retryAfter {
            shim_mhd_add_header(response, "Retry-After", String(retryAfter))
        }
        return shim_mhd_respond(connection, UInt32(clamping: status), response) == 1
    }

    /// Frees the memory of a request that has ended in any way.
    func finish(_ exchange: Exchange) {
        if !exchange.isTooLarge {
            held.subtract(exchange.body.count, ordering: .relaxed)
        }
    }

    // MARK: What happens to it

    /// The decision about a complete request.
    private func decide(_ exchange: Exchange, _ connection: OpaquePointer) -> Verdict {
        switch exchange.kind {
        case .stats: return .answer(status: 200, body: stats.json, retryAfter: nil)
        case .other: return answer(404, "POST batches to any path, GET /stats")
        case .events: return take(exchange, connection)
        }
    }

    /// Accepts a batch, or fails as the plan says.
    private func take(_ exchange: Exchange, _ connection: OpaquePointer) -> Verdict {
        let plan = state.withLock { $0.dice.plan }
        switch exchange.fault {
        case .status(let status):
            return .answer(
                status: status, body: #"{"error":"told to fail"}"# + "\n", retryAfter: plan.retryAfter)
        case .cutBeforeStoring, .cutInBody:
            return .cut
        case .cutAfterStoring, nil:
            break
        }
        guard !exchange.isTooLarge, exchange.body.count <= plan.largestBody ?? .max else {
            return answer(413, "the body is too large")
        }
        let word = shim_mhd_header(connection, "Content-Encoding").map { String(cString: $0) } ?? "none"
        guard let compression = Compression(name: word == "identity" ? "none" : word) else {
            return answer(415, "gzip, zstd or none")
        }
        let found: (lines: [UInt8], count: Int)?
        do { found = EventLines.normalise(try unpack(exchange.body, compression)) } catch {
            return unreadable(error.code == .tooLarge ? 413 : 400, error.message)
        }
        guard let found else { return unreadable(400, "neither NDJSON nor a JSON array") }
        if let marker = plan.marker, contains(found.lines, Array(marker.utf8)) {
            return answer(400, "an event holds the marker")
        }
        let key = shim_mhd_header(connection, "Idempotency-Key").map { KeyMemory.Key(String(cString: $0)) }
        let verdict = store(found, key: key, wireBytes: exchange.body.count)
        return exchange.fault == .cutAfterStoring ? .cut : verdict
    }

    /// Unpacks a body within the limit.
    private func unpack(_ body: [UInt8], _ compression: Compression) throws(FrameError) -> [UInt8] {
        guard compression != .none else { return body }
        let decompressor = try FrameDecompressor()
        // The decompressor allocates its limit: most bodies fit into much less, so a small limit is tried
        // first.
        let likely = min(options.largestUnpacked, max(65_536, body.count * 32))
        do {
            return try decompressor.decompress(body, compression, limit: likely)
        } catch {
            guard error.code == .tooLarge, likely < options.largestUnpacked else { throw error }
            return try decompressor.decompress(body, compression, limit: options.largestUnpacked)
        }
    }

    /// Counts and stores a batch unless its key is known. One lock for all of it, so that two requests with
    /// the same key at the same time are stored once.
    private func store(_ found: (lines: [UInt8], count: Int), key: KeyMemory.Key?, wireBytes: Int) -> Verdict
    {
        state.withLock { state in
            if let key, state.keys.contains(key) {
                state.stats.repeats += 1
                return .answer(status: 200, body: #"{"repeated":true}"# + "\n", retryAfter: nil)
            }
            guard state.store.append(found.lines) else {
                return answer(503, "the events could not be stored")
            }
            if let key {
                state.keys.insert(key)
            } else {
                state.stats.withoutKey += 1
            }
            state.stats.batches += 1
            state.stats.events += found.count
            state.stats.bytes += found.lines.count
            state.stats.wireBytes += wireBytes
            return .answer(status: 200, body: "{\"events\":\(found.count)}\n", retryAfter: nil)
        }
    }

    /// Counts a body that cannot be read, and refuses it.
    private func unreadable(_ status: Int, _ reason: String) -> Verdict {
        state.withLock { $0.stats.unreadable += 1 }
        return answer(status, reason)
    }

    /// A refusal. `reason` is put into JSON as it is, so it must need no escapes.
    private func answer(_ status: Int, _ reason: String) -> Verdict {
        .answer(status: status, body: "{\"error\":\"\(reason)\"}\n", retryAfter: nil)
    }

    /// Whether the lines contain a text.
    private func contains(_ lines: [UInt8], _ marker: [UInt8]) -> Bool {
        marker.isEmpty
            || lines.indices.contains { lines[$0] == marker[0] && lines[$0...].starts(with: marker) }
    }

    // MARK: Late answers and cut connections

    /// Delays an answer as long as the plan says; false if it is to be given at once.
    private func suspend(_ connection: OpaquePointer) -> Bool {
        let address = UInt(bitPattern: connection)
        // Under the same lock as `isStopping`: a connection that is suspended after `letAllGo` would never
        // be resumed.
        let delay = state.withLock { state -> Duration in
            let delay = state.dice.plan.delay
            guard delay > .zero, !state.isStopping else { return .zero }
            state.waiting.insert(address)
            shim_mhd_suspend(connection)
            return delay
        }
        guard delay > .zero else { return false }
        let loop = loop
        loop.post { [weak self] in
            loop.after(delay) { self?.letGo(address) }
        }
        return true
    }

    /// Resumes a delayed connection.
    private func letGo(_ address: UInt) {
        // Under the lock: the caller that removes the connection resumes it, so it is resumed exactly once,
        // and the server cannot stop in between.
        state.withLock { state in
            guard state.waiting.remove(address) != nil else { return }
            shim_mhd_resume(OpaquePointer(bitPattern: address))
        }
    }

    /// Resumes all delayed connections, because the server is about to stop.
    func letAllGo() {
        state.withLock { state in
            state.isStopping = true
            for address in state.waiting { shim_mhd_resume(OpaquePointer(bitPattern: address)) }
            state.waiting.removeAll()
        }
    }

    /// Makes closing the connection a reset (SO_LINGER with 0 s, socket(7)), so that the sender sees a
    /// broken connection rather than an end in order.
    private func reset(_ connection: OpaquePointer) {
        var hard = linger(l_onoff: 1, l_linger: 0)
        setsockopt(
            shim_mhd_socket(connection), SOL_SOCKET, SO_LINGER, &hard, socklen_t(MemoryLayout<linger>.size))
    }
}
