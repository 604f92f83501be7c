internal import Control
internal import EventLoops
internal import Frames
internal import Model
internal import Synchronization

/// Decides what happens to each request. Used by the servers of all threads; thread-safe by one lock.
final class ReceiverDesk: Sendable {
    /// State behind the lock.
    private struct State: ~Copyable {
        var stats = ReceiverStats()
        var keys: KeyMemory
        var store: EventStore
        var dice: FaultDice
    }

    /// Most bytes of bodies in memory at a time, over all connections: 512 MiB that arrive, and as many of
    /// requests that are being answered.
    static let roomForBodies = 512 << 20

    private let options: ReceiverOptions
    private let state: Mutex<State>
    /// Room for the bodies that arrive, shared by the servers of all threads.
    let room = BodyRoom(bytes: roomForBodies)
    /// Bytes of the bodies of requests that are being answered.
    private let held = Atomic<Int>(0)

    /// - Throws: `ReceiverError` with code `file`.
    init(_ options: ReceiverOptions) throws(ReceiverError) {
        self.options = options
        let store = try EventStore(options.store)
        state = Mutex(
            State(
                keys: KeyMemory(limit: options.rememberedKeys), store: store, dice: FaultDice(options.faults))
        )
    }

    var stats: ReceiverStats { state.withLock { $0.stats } }

    /// Changes the faults from the next request on.
    func misbehave(_ plan: FaultPlan) { state.withLock { $0.dice = FaultDice(plan) } }

    // MARK: A request

    /// Decides what becomes of a request, by its head.
    ///
    /// - Parameter loop: the loop of its server.
    func judge(_ head: HTTPRequestHead, on loop: EventLoop) -> Reception {
        switch (head.method, head.path) {
        case ("POST", _), ("PUT", _): return judgeBatch(head, on: loop)
        case ("GET", "/stats"):
            return .answer { [self] _ in .text(stats.json, type: "application/json") }
        default:
            return .answer { [self] _ in refusal(404, "POST batches to any path, GET /stats") }
        }
    }

    /// Counts a request with events, and draws its fault.
    private func judgeBatch(_ head: HTTPRequestHead, on loop: EventLoop) -> Reception {
        let fault = state.withLock { state in
            state.stats.requests += 1
            return state.dice.draw()
        }
        if fault == .cutInBody {
            state.withLock { $0.stats.cuts += 1 }
            return .reset
        }
        if case .bytes(let count) = head.length, count > options.largestBody {
            state.withLock { $0.stats.answers[413, default: 0] += 1 }
            return .refuse(ControlRefusal(413, "too_large", "the body is too large"))
        }
        return .answer { [self] request in await answer(request.body, of: head, fault, on: loop) }
    }

    /// Answers a batch, after the delay that the plan wants; nil cuts the connection.
    private func answer(
        _ body: [UInt8], of head: HTTPRequestHead, _ fault: FaultPlan.Fault?, on loop: EventLoop
    ) async -> ControlResponse? {
        let total = held.add(body.count, ordering: .relaxed).newValue
        defer { held.subtract(body.count, ordering: .relaxed) }
        let response =
            total <= ReceiverDesk.roomForBodies
            ? decide(body, of: head, fault) : refusal(413, "the bodies of all requests are too large")
        await wait(state.withLock { $0.dice.plan.delay }, on: loop)
        state.withLock { state in
            if let response {
                state.stats.answers[response.status, default: 0] += 1
            } else {
                state.stats.cuts += 1
            }
        }
        return response
    }

    // MARK: What happens to it

    /// Accepts a batch, or fails as the plan says; nil cuts the connection.
    private func decide(
        _ body: [UInt8], of head: HTTPRequestHead, _ fault: FaultPlan.Fault?
    ) -> ControlResponse? {
        let plan = state.withLock { $0.dice.plan }
        switch fault {
        case .status(let status):
            let wait = plan.retryAfter.map { [(name: "Retry-After", value: String($0))] }
            return answer(status, #"{"error":"told to fail"}"#, headers: wait ?? [])
        case .cutBeforeStoring, .cutInBody: return nil
        case .cutAfterStoring, nil: break
        }
        guard body.count <= plan.largestBody ?? .max else { return refusal(413, "the body is too large") }
        let word = head.contentEncoding ?? "none"
        guard let compression = Compression(name: word == "identity" ? "none" : word) else {
            return refusal(415, "gzip, zstd or none")
        }
        let found: (lines: [UInt8], count: Int)?
        do { found = EventLines.normalise(try unpack(body, compression)) } catch {
            return unreadable(error.code == .tooLarge ? 413 : 400, error.message)
        }
        guard let found else { return unreadable(400, "neither NDJSON nor a JSON array") }
        if let marker = plan.marker, contains(found.lines, Array(marker.utf8)) {
            return refusal(400, "an event holds the marker")
        }
        let response = store(found, key: head.idempotencyKey.map { KeyMemory.Key($0) }, wireBytes: body.count)
        return fault == .cutAfterStoring ? nil : response
    }

    /// Unpacks a body within the limit.
    private func unpack(_ body: [UInt8], _ compression: Compression) throws(FrameError) -> [UInt8] {
        guard compression != .none else { return body }
        let decompressor = FrameDecompressor()
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
    private func store(_ found: (lines: [UInt8], count: Int), key: KeyMemory.Key?, wireBytes: Int)
        -> ControlResponse
    {
        state.withLock { state in
            if let key, state.keys.contains(key) {
                state.stats.repeats += 1
                return answer(200, #"{"repeated":true}"#)
            }
            guard state.store.append(found.lines) else {
                return refusal(503, "the events could not be stored")
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
            return answer(200, "{\"events\":\(found.count)}")
        }
    }

    /// Counts a body that cannot be read, and refuses it.
    private func unreadable(_ status: Int, _ reason: String) -> ControlResponse {
        state.withLock { $0.stats.unreadable += 1 }
        return refusal(status, reason)
    }

    /// A refusal. `reason` is put into JSON as it is, so it must need no escapes.
    private func refusal(_ status: Int, _ reason: String) -> ControlResponse {
        answer(status, "{\"error\":\"\(reason)\"}")
    }

    /// An answer with JSON.
    private func answer(
        _ status: Int, _ json: String, headers: [(name: String, value: String)] = []
    ) -> ControlResponse {
        .text(json + "\n", status: status, type: "application/json", headers: headers)
    }

    /// Whether the lines contain a text.
    private func contains(_ lines: [UInt8], _ marker: [UInt8]) -> Bool {
        marker.isEmpty
            || lines.indices.contains { lines[$0] == marker[0] && lines[$0...].starts(with: marker) }
    }

    /// Waits on a server's loop; ends early if the request is cancelled, because its client or the server
    /// ends.
    private func wait(_ delay: Duration, on loop: EventLoop) async {
        guard delay > .zero, !Task.isCancelled else { return }
        let waiting = Mutex<CheckedContinuation<Void, Never>?>(nil)
        // Cancelled and resumed on the loop's thread only, so nothing comes between the check and the wait.
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                waiting.withLock { $0 = continuation }
                loop.after(delay) { waiting.withLock { $0.take() }?.resume() }
            }
        } onCancel: {
            waiting.withLock { $0.take() }?.resume()
        }
    }
}
