internal import Control
internal import Delivery
internal import EventLoops
internal import Intake
package import Model
internal import Queue

// The paths of the control API, and what answers each; a test compares them with `docs/control-api.md`.

extension ControlRoutes {
    /// Registers what answers a request by what it says in its body.
    ///
    /// - Parameters:
    ///   - takes: what the request may say, in the query of a `GET`, else in the body. What it says besides is refused: a filter
    ///     with a mistake in its name would select everything.
    ///   - work: is given the request and what it says; its failure is the answer.
    mutating func answer(
        _ method: String, _ path: String, takes: [String] = [],
        _ work: @escaping @Sendable (ControlRequest, JSONValue) async throws -> ControlResponse
    ) {
        add(method, path) { request in
            await ControlResponse.of {
                let body = try relaying(try request.json()) { (error: JSONError) in
                    ControlRefusal.bad("the body is \(error)")
                }
                guard let members = body.members else { throw ControlRefusal.bad("the body must be a JSON object") }
                let asked = request.query.sorted { $0.key < $1.key }
                try ControlRoutes.know(asked.map(\.key), among: method == "GET" ? takes : [], in: "the query")
                try ControlRoutes.know(members.map(\.key), among: method == "GET" ? [] : takes, in: "the body")
                let said = JSONValue.object(asked.map { JSONValue.Member($0.key, .string($0.value)) })
                return try await work(request, method == "GET" ? said : body)
            }
        }
    }

    private static func know(_ names: [String], among known: [String], in place: String) throws(ControlRefusal) {
        guard let unknown = names.first(where: { !known.contains($0) }) else { return }
        let what = known.isEmpty ? "nothing" : known.joined(separator: ", ")
        throw .bad("\(place) of this request has no \(String(unknown.prefix(64))); it takes \(what)")
    }
}

extension ControlResponse {
    /// What the work answers, or why it does not.
    static func of(_ work: () async throws -> ControlResponse) async -> ControlResponse {
        do { return try await work() } catch { return ControlRefusal(error).response }
    }
}

extension ControlRefusal {
    /// The error for a caller whose request failed.
    init(_ error: any Error) {
        switch error {
        case let refusal as ControlRefusal: self = refusal
        // The destination is not configured.
        case let error as DeliveryError: self.init(404, error.code.rawValue, error.message)
        case let error as QueueError: self.init(queue: error)
        case let error as IntakeError: self.init(intake: error)
        default: self.init(500, "failed", "\(error)")
        }
    }

    init(queue error: QueueError, status: Int = 500) {
        self.init(status, error.code.rawValue, error.message)
    }

    private init(intake error: IntakeError) {
        let status =
            switch error.code {
            case .disabled, .noDestination, .elsewhere: 409
            case .tooLarge: 413
            case .full, .store: 500
            case .later, .stopping: 503
            }
        self.init(status, error.word, error.message)
    }
}

extension JSONValue {
    /// The object with one member more.
    package func adding(_ key: String, _ value: JSONValue) -> JSONValue {
        .object((members ?? []) + [Member(key, value)])
    }

    /// A text that may be missing. Null is none: a filter that is null would select everything.
    func text(_ key: String) throws(ControlRefusal) -> String? {
        switch self[key] {
        case nil: return nil
        case .string(let text) where text.utf8.count <= 1024: return text
        default: throw .bad("\(key) must be a text of at most 1024 bytes")
        }
    }

    func destination() throws(ControlRefusal) -> DestinationName? {
        try text("destination").map { DestinationName($0) }
    }

    func priority() throws(ControlRefusal) -> Priority? {
        guard let name = try text("priority") else { return nil }
        if let priority = Priority(name: name) { return priority }
        throw ControlRefusal(400, "out_of_range", "priority must be normal or critical")
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
