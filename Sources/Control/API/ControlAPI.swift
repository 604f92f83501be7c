package import Model

/// The paths of the control API, and the part of the agent that answers each.
///
/// `docs/control-api.md` describes each; a test compares the page with the routes.
public enum ControlAPI {
    /// The routes of what an agent can do; what it cannot do yet is nil and has none.
    public static func routes(
        status: (any StatusSource)? = nil, sending: (any SendingControl)? = nil,
        collection: (any CollectionControl)? = nil,
        records: (any RecordControl)? = nil, tap: EventTap? = nil, backfill: (any BackfillControl)? = nil,
        containers: (any ContainerControl)? = nil
    ) -> ControlRoutes {
        var routes = ControlRoutes()
        if let status { add(status, to: &routes) }
        if let sending { add(sending, to: &routes) }
        if let collection { add(collection, to: &routes) }
        if let records { add(records, to: &routes) }
        if let tap { add(tap, to: &routes) }
        if let backfill { add(backfill, to: &routes) }
        if let containers { add(containers, to: &routes) }
        return routes
    }

    // MARK: The agent as a whole

    private static func add(_ status: any StatusSource, to routes: inout ControlRoutes) {
        routes.answer("GET", "/v1/status", takes: ["text", "colours"]) { _, query async throws(ControlRefusal) in
            let report = await status.status()
            let words = StatusText(report, hasColours: query["colours"] == "true")
            switch query["text"] {
            case nil: return .json(report.json)
            case "screen": return .json(report.json.adding("text", .string(words.screen)))
            case "apps": return .json(report.json.adding("text", .string(words.apps)))
            default: throw .bad("text is screen or apps")
            }
        }
    }

    private static func add(_ collection: any CollectionControl, to routes: inout ControlRoutes) {
        routes.answer("PUT", "/v1/collection", takes: ["enabled"]) { _, body async throws(ControlRefusal) in
            let discarded = try await collection.setEnabled(try body.required("enabled", body["enabled"]?.bool))
            return .json(["discarded": .integer(discarded.all), "in_flight": .integer(discarded.inFlight)])
        }
        routes.answer("POST", "/v1/session", takes: ["app"]) { _, body async throws(ControlRefusal) in
            .json(["message": .string(try await collection.startSession(app: try body.text("app")))])
        }
        routes.answer("PUT", "/v1/country", takes: ["code"]) { _, body async throws(ControlRefusal) in
            try await collection.setCountry(try body.text("code"))
            return .json([:])
        }
        routes.answer("PUT", "/v1/log-level", takes: ["level"]) { _, body async throws(ControlRefusal) in
            try await collection.setLogLevel(try body.required("level", body["level"]?.string))
            return .json([:])
        }
        routes.answer("POST", "/v1/reload") { _, _ async throws(ControlRefusal) in
            let result = try await collection.reload()
            return .json([
                "changed": .array(result.changed.map(JSONValue.string)),
                "need_restart": .array(result.needRestart.map(JSONValue.string)),
                "warnings": .array(result.warnings.map(JSONValue.string)),
            ])
        }
    }

    // MARK: Requests and refusals

    fileprivate static func know(_ names: [String], among known: [String], in place: String) throws(ControlRefusal) {
        guard let unknown = names.first(where: { !known.contains($0) }) else { return }
        let what = known.isEmpty ? "nothing" : known.joined(separator: ", ")
        throw .bad("\(place) of this request has no \(String(unknown.prefix(64))); it takes \(what)")
    }
}

extension ControlRoutes {
    /// Registers what answers a request by what it says in its body.
    ///
    /// - Parameters:
    ///   - takes: what the request may say, in the query of a `GET`, else in the body. What it says besides is refused: a filter
    ///     with a mistake in its name would select everything.
    ///   - work: is given the request and what it says.
    mutating func answer(
        _ method: String, _ path: String, takes: [String] = [],
        _ work: @escaping @Sendable (ControlRequest, JSONValue) async throws(ControlRefusal) -> ControlResponse
    ) {
        add(method, path) { request in
            await ControlResponse.of { () async throws(ControlRefusal) in
                let body = try relaying(try request.json()) { (error: JSONError) in
                    ControlRefusal.bad("the body is \(error)")
                }
                guard let members = body.members else { throw .bad("the body must be a JSON object") }
                let asked = request.query.sorted { $0.key < $1.key }
                try ControlAPI.know(asked.map(\.key), among: method == "GET" ? takes : [], in: "the query")
                try ControlAPI.know(members.map(\.key), among: method == "GET" ? [] : takes, in: "the body")
                let said = JSONValue.object(asked.map { JSONValue.Member($0.key, .string($0.value)) })
                return try await work(request, method == "GET" ? said : body)
            }
        }
    }
}

extension ControlResponse {
    /// What the work answers, or its refusal.
    static func of(_ work: () async throws(ControlRefusal) -> ControlResponse) async -> ControlResponse {
        do throws(ControlRefusal) { return try await work() } catch { return .json(error.json, status: error.status) }
    }
}

extension ControlRefusal {
    static func bad(_ message: String) -> ControlRefusal {
        ControlRefusal(status: 400, code: "bad_request", message: message)
    }

    var json: JSONValue {
        ["error": ["status": .integer(status), "code": .string(code), "message": .string(message)]]
    }
}

extension JSONValue {
    /// The object with one member more.
    package func adding(_ key: String, _ value: JSONValue) -> JSONValue {
        .object((members ?? []) + [Member(key, value)])
    }

    /// A text that may be missing or null.
    func text(_ key: String) throws(ControlRefusal) -> String? {
        switch self[key] {
        case nil, .null: return nil
        case .string(let text) where text.utf8.count <= 1024: return text
        default: throw .bad("\(key) must be a text of at most 1024 bytes")
        }
    }

    /// The destination that is named, if one is.
    func destination() throws(ControlRefusal) -> DestinationName? {
        try text("destination").map { DestinationName($0) }
    }

    /// A truth value; false when it is missing.
    func flag(_ key: String) throws(ControlRefusal) -> Bool {
        guard let value = self[key] else { return false }
        guard let flag = value.bool else { throw .bad("\(key) must be true or false") }
        return flag
    }

    /// A number of milliseconds that may be missing or null; at most a hundred years, so that no sum with it overflows.
    func duration(_ key: String) throws(ControlRefusal) -> Duration? {
        switch self[key] {
        case nil, .null: return nil
        case .integer(let milliseconds) where (0...JSONValue.longestDuration).contains(milliseconds):
            return .milliseconds(milliseconds)
        default: throw .bad("\(key) must be a number of milliseconds, 0 to \(JSONValue.longestDuration)")
        }
    }

    /// A hundred years, in milliseconds.
    private static let longestDuration = 3_155_760_000_000

    func required<Value>(_ key: String, _ value: Value?) throws(ControlRefusal) -> Value {
        guard let value else { throw .bad("\(key) is missing or of the wrong type") }
        return value
    }
}
