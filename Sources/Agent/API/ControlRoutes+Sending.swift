internal import Configuration
internal import Control
internal import Delivery
internal import Model
internal import Queue

/// The routes that decide what is sent and when: dispatch, drain, pause, network, interval.
extension ControlRoutes {
    /// Registers the routes. `dispatch` with `wait` and `drain` answer with a stream of reports.
    mutating func addSending(_ driver: DeliveryDriver, _ queue: QueueStore, _ containers: ContainerKeeper) {
        answer("POST", "/v1/dispatch", takes: ["destination", "wait"]) { _, body in
            let destination = try body.destination()
            // Without `wait` the answer comes at once, and says only that the request is accepted.
            guard try body.flag("wait") else {
                try await driver.dispatch(to: destination)
                return .json([:], status: 202)
            }
            return .stream { stream in
                await ControlRoutes.follow(stream) {
                    try await driver.dispatchAndWait(to: destination, report: $0)
                }
            }
        }
        answer("POST", "/v1/drain", takes: ["destination", "timeout_ms"]) { _, body in
            let destination = try body.destination()
            // By default half a minute, as in `docs/control-api.md`.
            let timeout = try body.duration("timeout_ms") ?? .seconds(30)
            return .stream { stream in
                await ControlRoutes.follow(stream) {
                    let result = try await driver.drain(timeout: timeout, to: destination, report: $0)
                    let orphans = destination == nil ? queue.snapshot.orphans : []
                    guard result == .done, !orphans.isEmpty else { return result }
                    // Nothing sends the events of destinations that are no longer configured, so the drain
                    // has not finished.
                    return .stuck(Dictionary(uniqueKeysWithValues: orphans.map { ($0.name, .orphaned) }))
                }
            }
        }
        answer("POST", "/v1/pause", takes: ["token", "destination", "ttl_ms", "until_restart"]) { _, body in
            let token = try body.text("token") ?? "manual"
            // `status` could not show such a token, and `resume` could not name it.
            guard !token.isEmpty, token.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
                throw ControlRefusal.bad("token is empty, or has control characters")
            }
            let ttl = try body.duration("ttl_ms")
            // A pause of 0 would end at once.
            guard ttl != .zero else {
                throw ControlRefusal.bad("a pause must be longer than 0")
            }
            try await driver.pause(
                token: token, destination: try body.destination(), ttl: ttl,
                untilRestart: try body.flag("until_restart"))
            return .json([:])
        }
        answer("POST", "/v1/resume", takes: ["token", "destination"]) { _, body in
            let resumption = try await driver.resume(
                token: try body.text("token"), destination: try body.destination())
            return .json(["ended": .strings(resumption.ended), "remaining": .strings(resumption.remaining)])
        }
        answer("PUT", "/v1/network", takes: ["on"]) { _, body in
            let on = try body.required("on", body["on"]?.bool)
            await driver.setNetwork(on: on)
            // Delivery starts by itself; containers would wait for their next refresh.
            if on {
                await containers.networkIsOn()
            }
            return .json([:])
        }
        answer("POST", "/v1/network/changed") { _, _ in
            await driver.networkChanged()
            return .json([:])
        }
        answer("PUT", "/v1/interval", takes: ["interval_ms", "persist"]) { _, body in
            // A negative number or 0 means off, as in the configuration; a missing one restores the
            // configured interval.
            let isNegative = body["interval_ms"]?.integer.map { $0 < 0 } ?? false
            let interval = isNegative ? .zero : try body.duration("interval_ms")
            let wanted: DispatchInterval? = interval.map { $0 == .zero ? .off : .every($0) }
            // The same range as in the configuration.
            if case .every(let wait) = wanted, !DispatchInterval.range.contains(wait) {
                throw ControlRefusal(400, "out_of_range", "the interval must be off, or 1s to 1d")
            }
            await driver.setInterval(wanted, isDurable: try body.flag("persist"))
            return .json(["interval": .string(driver.snapshot.interval.text)])
        }
    }

    /// A command of delivery that reports its progress to a closure.
    private typealias Command =
        @Sendable (@escaping @Sendable (DispatchReport) -> Void) async throws -> CommandResult

    /// Streams the reports of a command as they come, and the result as the last line.
    private static func follow(_ stream: ControlStream, _ command: @escaping Command) async {
        // Bounded: a client that reads slowly misses the oldest reports, but never the result.
        let (reports, reporter) = AsyncStream.makeStream(
            of: DispatchReport.self, bufferingPolicy: .bufferingNewest(1000))
        async let end = finish(command, reporter)
        for await report in reports {
            // A client that has disconnected cancels the command, which ends with this scope.
            guard await stream.write(report.json) else { return }
        }
        _ = await stream.write(await end)
    }

    /// Runs the command, and returns the last line; ends the stream of reports in any case.
    private static func finish(
        _ command: Command, _ reporter: AsyncStream<DispatchReport>.Continuation
    ) async -> JSONValue {
        defer { reporter.finish() }
        do { return try await command { reporter.yield($0) }.json } catch {
            return ControlRefusal(error).json
        }
    }
}

extension DispatchReport {
    /// The report as a line. `waiting` is 0 if nothing is left; it is missing if an obstacle kept anything
    /// from being sent.
    fileprivate var json: JSONValue {
        let (name, outcome, reason, waiting): (DestinationName, String, String?, Int?) =
            switch self {
            case .good(let name, let waiting): (name, "good", nil, waiting)
            case .noData(let name, nil): (name, "no_data", "empty", 0)
            case .noData(let name, let reason?): (name, "no_data", reason.rawValue, nil)
            case .error(let name, let failure, let waiting): (name, "error", failure.message, waiting)
            }
        return [
            "destination": .string(name.text), "outcome": .string(outcome), "reason": JSONValue(reason),
            "waiting": JSONValue(waiting),
        ]
    }
}

extension CommandResult {
    /// The result as the last line, with the client's exit status.
    fileprivate var json: JSONValue {
        var (obstacles, waiting): ([DestinationName: DestinationStateName], Int?) = ([:], nil)
        switch self {
        case .done: waiting = 0
        case .stuck(let reasons): obstacles = reasons
        case .timedOut(let left): waiting = left
        case .cancelled: break
        }
        let members = obstacles.sorted { $0.key < $1.key }.map {
            JSONValue.Member($0.key.text, .string($0.value.rawValue))
        }
        return [
            "exit_code": .integer(Int(exitCode)), "obstacles": .object(members),
            "waiting": JSONValue(waiting),
        ]
    }
}
