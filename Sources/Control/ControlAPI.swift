internal import Model

/// The paths of the control API, and what of the agent answers them.
///
/// `docs/control-api.md` describes each; a test holds the page to the routes.
public enum ControlAPI {
    /// The routes of what an agent can do; what it cannot do yet is nil and has none.
    public static func routes(
        status: any StatusSource, sending: (any SendingControl)? = nil, collection: (any CollectionControl)? = nil,
        records: (any RecordControl)? = nil, tap: EventTap? = nil, backfill: (any BackfillControl)? = nil,
        containers: (any ContainerControl)? = nil
    ) -> ControlRoutes {
        var routes = ControlRoutes()
        routes.add("GET", "/v1/status") { _ in .json(await status.status().json) }
        if let sending { add(sending, to: &routes) }
        if let collection { add(collection, to: &routes) }
        if let records { add(records, to: &routes) }
        if let tap { add(tap, to: &routes) }
        if let backfill { add(backfill, to: &routes) }
        if let containers { add(containers, to: &routes) }
        return routes
    }

    /// The routes of what is stored: all that can be asked without an agent.
    public static func routes(records: any RecordControl) -> ControlRoutes {
        var routes = ControlRoutes()
        add(records, to: &routes)
        return routes
    }

    // MARK: Sending

    private static func add(_ sending: any SendingControl, to routes: inout ControlRoutes) {
        routes.add("POST", "/v1/dispatch") { request in
            await answer(request) { body async throws(ControlRefusal) in
                let destination = try body.text("destination")
                guard try body.flag("wait") else {
                    try await sending.dispatch(to: destination)
                    return .json([:], status: 202)
                }
                return .stream { stream in
                    await follow(stream) { report async throws(ControlRefusal) in
                        try await sending.dispatchAndWait(to: destination, report: report)
                    }
                }
            }
        }
        routes.add("POST", "/v1/drain") { request in
            await answer(request) { body async throws(ControlRefusal) in
                let destination = try body.text("destination")
                let timeout = try body.duration("timeout_ms") ?? .seconds(30)
                return .stream { stream in
                    await follow(stream) { report async throws(ControlRefusal) in
                        try await sending.drain(timeout: timeout, to: destination, report: report)
                    }
                }
            }
        }
        routes.add("POST", "/v1/pause") { request in
            await answer(request) { body async throws(ControlRefusal) in
                try await sending.pause(
                    token: try body.text("token") ?? "manual", destination: try body.text("destination"),
                    ttl: try body.duration("ttl_ms"), untilRestart: try body.flag("until_restart"))
                return .json([:])
            }
        }
        routes.add("POST", "/v1/resume") { request in
            await answer(request) { body async throws(ControlRefusal) in
                try await sending.resume(token: try body.text("token"), destination: try body.text("destination"))
                return .json([:])
            }
        }
        routes.add("PUT", "/v1/network") { request in
            await answer(request) { body async throws(ControlRefusal) in
                try await sending.setNetwork(on: try body.required("on", body["on"]?.bool))
                return .json([:])
            }
        }
        routes.add("POST", "/v1/network/changed") { request in
            await answer(request) { _ async throws(ControlRefusal) in
                try await sending.networkChanged()
                return .json([:])
            }
        }
        routes.add("PUT", "/v1/interval") { request in
            await answer(request) { body async throws(ControlRefusal) in
                let interval = try await sending.setInterval(
                    try body.duration("interval_ms"), persist: try body.flag("persist"))
                return .json(["interval": .string(interval)])
            }
        }
    }

    /// Sends the reports of a command as they come, and its result as the last line.
    private static func follow(
        _ stream: ControlStream,
        _ command:
            @escaping @Sendable (@escaping @Sendable (SendingReport) -> Void) async throws(ControlRefusal)
            -> SendingResult
    ) async {
        let (reports, reporter) = AsyncStream.makeStream(
            of: SendingReport.self, bufferingPolicy: .bufferingNewest(1000))
        async let end = finish(command, reporter)
        for await report in reports {
            // A client that is gone cancels the command, which ends with the scope.
            guard await stream.write(report.json) else { return }
        }
        _ = await stream.write(await end)
    }

    private static func finish(
        _ command:
            @Sendable (@escaping @Sendable (SendingReport) -> Void) async throws(ControlRefusal) -> SendingResult,
        _ reporter: AsyncStream<SendingReport>.Continuation
    ) async -> JSONValue {
        defer { reporter.finish() }
        do throws(ControlRefusal) {
            return try await command { reporter.yield($0) }.json
        } catch {
            return error.json
        }
    }

    // MARK: The agent as a whole

    private static func add(_ collection: any CollectionControl, to routes: inout ControlRoutes) {
        routes.add("PUT", "/v1/collection") { request in
            await answer(request) { body async throws(ControlRefusal) in
                let discarded = try await collection.setEnabled(try body.required("enabled", body["enabled"]?.bool))
                return .json(["discarded": .integer(discarded)])
            }
        }
        routes.add("POST", "/v1/session") { request in
            await answer(request) { body async throws(ControlRefusal) in
                .json(["message": .string(try await collection.startSession(app: try body.text("app")))])
            }
        }
        routes.add("PUT", "/v1/country") { request in
            await answer(request) { body async throws(ControlRefusal) in
                try await collection.setCountry(try body.text("code"))
                return .json([:])
            }
        }
        routes.add("PUT", "/v1/log-level") { request in
            await answer(request) { body async throws(ControlRefusal) in
                try await collection.setLogLevel(try body.required("level", body["level"]?.string))
                return .json([:])
            }
        }
        routes.add("POST", "/v1/reload") { request in
            await answer(request) { _ async throws(ControlRefusal) in
                let result = try await collection.reload()
                return .json([
                    "changed": .array(result.changed.map(JSONValue.string)),
                    "need_restart": .array(result.needRestart.map(JSONValue.string)),
                ])
            }
        }
    }

    // MARK: Records

    private static func add(_ records: any RecordControl, to routes: inout ControlRoutes) {
        for store in RecordStore.allCases {
            let path = "/v1/\(store.rawValue)"
            routes.add("GET", path) { request in
                await answer(request) { _ async throws(ControlRefusal) in
                    let limit = request.query["limit"].flatMap { Int($0) } ?? 100
                    guard (1...1000).contains(limit) else { throw .bad("limit must be 1 to 1000") }
                    let (found, next) = try await records.list(
                        store, try filter(request.query), after: request.query["after"], limit: limit)
                    return .json(["records": .array(found), "next": JSONValue(next)])
                }
            }
            // Before the path of one record, which would take "export" for an id.
            routes.add("GET", path + "/export") { request in
                await answer(request) { _ async throws(ControlRefusal) in
                    let filter = try filter(request.query)
                    let first = try await records.export(store, filter, after: nil)
                    return .stream { stream in await export(records, store, filter, first, to: stream) }
                }
            }
            routes.add("GET", path + "/{id...}") { request in
                await answer(request) { _ async throws(ControlRefusal) in
                    .json(try await records.show(store, id: request.parameters["id"] ?? ""))
                }
            }
            if store != .queue {
                routes.add("POST", path + "/retry") { request in
                    await answer(request) { body async throws(ControlRefusal) in
                        .json(["retried": .integer(try await records.retry(store, try filter(body)))])
                    }
                }
            }
            routes.add("POST", path + "/purge") { request in
                await answer(request) { body async throws(ControlRefusal) in
                    .json(["purged": .integer(try await records.purge(store, try filter(body)))])
                }
            }
        }
    }

    private static func add(_ tap: EventTap, to routes: inout ControlRoutes) {
        routes.add("GET", "/v1/tap") { request in
            await answer(request) { _ async throws(ControlRefusal) in
                let filter = EventTap.Filter(
                    app: request.query["app"], priority: try priority(request.query["priority"]),
                    name: request.query["name"])
                return .stream { stream in await tap.send(filter, to: stream) }
            }
        }
    }

    private static func export(
        _ records: any RecordControl, _ store: RecordStore, _ filter: RecordFilter,
        _ first: (lines: [UInt8], next: String?), to stream: ControlStream
    ) async {
        var page = first
        while true {
            guard page.lines.isEmpty ? true : await stream.write(page.lines) else { return }
            guard let next = page.next else {
                _ = await stream.write(["end": true])
                return
            }
            do throws(ControlRefusal) {
                page = try await records.export(store, filter, after: next)
            } catch {
                _ = await stream.write(error.json)
                return
            }
        }
    }

    /// What the arguments of a query select.
    public static func filter(_ query: [String: String]) throws(ControlRefusal) -> RecordFilter {
        var filter = RecordFilter()
        filter.destination = query["destination"]
        filter.app = query["app"]
        filter.reason = query["reason"]
        filter.priority = try priority(query["priority"])
        return filter
    }

    private static func filter(_ body: JSONValue) throws(ControlRefusal) -> RecordFilter {
        var filter = RecordFilter()
        filter.destination = try body.text("destination")
        filter.app = try body.text("app")
        filter.reason = try body.text("reason")
        filter.priority = try priority(try body.text("priority"))
        if let ids = body["ids"] {
            guard let list = ids.array, list.allSatisfy({ $0.string != nil }) else { throw .bad("ids must be strings") }
            filter.ids = list.compactMap(\.string)
        }
        return filter
    }

    private static func priority(_ name: String?) throws(ControlRefusal) -> Priority? {
        guard let name else { return nil }
        guard let priority = Priority(name: name) else { throw .bad("priority must be normal or critical") }
        return priority
    }

    // MARK: Requests and refusals

    static func answer(
        _ request: ControlRequest, _ work: (JSONValue) async throws(ControlRefusal) -> ControlResponse
    ) async -> ControlResponse {
        do throws(ControlRefusal) {
            let body: JSONValue
            do throws(JSONError) {
                body = try request.json()
            } catch {
                throw .bad("the body is \(error)")
            }
            guard body.members != nil else { throw .bad("the body must be a JSON object") }
            return try await work(body)
        } catch {
            return .json(error.json, status: error.status)
        }
    }
}

extension ControlRefusal {
    static func bad(_ message: String) -> ControlRefusal {
        ControlRefusal(status: 400, code: "bad_request", message: message)
    }

    fileprivate var json: JSONValue {
        ["error": ["status": .integer(status), "code": .string(code), "message": .string(message)]]
    }
}

extension SendingReport {
    fileprivate var json: JSONValue {
        [
            "destination": .string(destination), "outcome": .string(outcome), "reason": JSONValue(reason),
            "waiting": JSONValue(waiting),
        ]
    }
}

extension SendingResult {
    fileprivate var json: JSONValue {
        let obstacles = self.obstacles.sorted { $0.key < $1.key }
        return [
            "exit_code": .integer(exitCode),
            "obstacles": .object(obstacles.map { JSONValue.Member($0.key, .string($0.value)) }),
            "waiting": JSONValue(waiting),
        ]
    }
}

extension JSONValue {
    /// A text that may be missing or null.
    func text(_ key: String) throws(ControlRefusal) -> String? {
        switch self[key] {
        case nil, .null: return nil
        case .string(let text) where text.utf8.count <= 1024: return text
        default: throw .bad("\(key) must be a text of at most 1024 bytes")
        }
    }

    /// A truth value; false when it is missing.
    func flag(_ key: String) throws(ControlRefusal) -> Bool {
        guard let value = self[key] else { return false }
        guard let flag = value.bool else { throw .bad("\(key) must be true or false") }
        return flag
    }

    /// A number of milliseconds that may be missing or null.
    func duration(_ key: String) throws(ControlRefusal) -> Duration? {
        switch self[key] {
        case nil, .null: return nil
        case .integer(let milliseconds) where milliseconds >= 0: return .milliseconds(milliseconds)
        default: throw .bad("\(key) must be a number of milliseconds, 0 or more")
        }
    }

    func required<Value>(_ key: String, _ value: Value?) throws(ControlRefusal) -> Value {
        guard let value else { throw .bad("\(key) is missing or of the wrong type") }
        return value
    }
}
