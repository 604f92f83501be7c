internal import Control
internal import Delivery
internal import EventLoops
internal import Intake
package import Model
internal import Queue

// What all routes of the control API share: reading the arguments, and the answer for an error. A test
// compares the paths of all routes with `docs/control-api.md`.
extension ControlRoutes {
    /// Registers a route whose work depends on the arguments of the request.
    ///
    /// - Parameters:
    ///   - takes: the permitted arguments, in the query of a `GET`, else in the body. Any other argument is
    ///     refused: a filter with a mistake in its name would select everything.
    ///   - work: gets the request and its arguments; an error that it throws becomes the answer.
    mutating func answer(
        _ method: String, _ path: String, takes: [String] = [],
        _ work: @escaping @Sendable (ControlRequest, JSONValue) async throws -> ControlResponse
    ) {
        add(method, path) { request in
            await ControlResponse.of {
                let body = try relaying(try request.json()) { (error: JSONError) in
                    ControlRefusal.bad("the body is \(error)")
                }
                guard let members = body.members else {
                    throw ControlRefusal.bad("the body must be a JSON object")
                }
                let asked = request.query.sorted { $0.key < $1.key }
                try ControlRoutes.know(asked.map(\.key), among: method == "GET" ? takes : [], in: "the query")
                try ControlRoutes.know(
                    members.map(\.key), among: method == "GET" ? [] : takes, in: "the body")
                let said = JSONValue.object(asked.map { JSONValue.Member($0.key, .string($0.value)) })
                return try await work(request, method == "GET" ? said : body)
            }
        }
    }

    /// Refuses the first argument that the route does not have.
    private static func know(_ names: [String], among known: [String], in place: String)
        throws(ControlRefusal)
    {
        guard let unknown = names.first(where: { !known.contains($0) }) else { return }
        let what = known.isEmpty ? "nothing" : known.joined(separator: ", ")
        throw .bad("\(place) of this request has no \(String(unknown.prefix(64))); it takes \(what)")
    }
}

extension ControlResponse {
    /// The answer of `work`, or the answer for the error that it throws.
    static func of(_ work: () async throws -> ControlResponse) async -> ControlResponse {
        do { return try await work() } catch { return ControlRefusal(error).response }
    }
}

extension ControlRefusal {
    /// The answer for an error of any module.
    init(_ error: any Error) {
        switch error {
        case let refusal as ControlRefusal: self = refusal
        // Delivery throws only if the destination is not configured.
        case let error as DeliveryError: self.init(404, error.code.rawValue, error.message)
        case let error as QueueError: self.init(queue: error)
        case let error as IntakeError: self.init(intake: error)
        default: self.init(500, "failed", "\(error)")
        }
    }

    /// The answer for an error of the queue, with the queue's own code.
    init(queue error: QueueError, status: Int = 500) {
        self.init(status, error.code.rawValue, error.message)
    }

    /// The answer for an error of the intake. 503 means that the client may try again.
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

    /// A text of at most 1024 bytes; nil if the member is missing. Null is refused: a filter that is null
    /// would select everything.
    func text(_ key: String) throws(ControlRefusal) -> String? {
        switch self[key] {
        case nil: return nil
        case .string(let text) where text.utf8.count <= 1024: return text
        default: throw .bad("\(key) must be a text of at most 1024 bytes")
        }
    }

    /// The member `destination`; nil if it is missing.
    func destination() throws(ControlRefusal) -> DestinationName? {
        try text("destination").map { DestinationName($0) }
    }

    /// The member `priority`; nil if it is missing.
    func priority() throws(ControlRefusal) -> Priority? {
        guard let name = try text("priority") else { return nil }
        if let priority = Priority(name: name) { return priority }
        throw ControlRefusal(400, "out_of_range", "priority must be normal or critical")
    }

    /// A Boolean; false if the member is missing.
    func flag(_ key: String) throws(ControlRefusal) -> Bool {
        guard let value = self[key] else { return false }
        guard let flag = value.bool else { throw .bad("\(key) must be true or false") }
        return flag
    }

    /// A number of milliseconds; nil if the member is missing or null. At most a hundred years, so that no
    /// sum overflows.
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

    /// The value, or a refusal that names the member if the value is nil.
    func required<Value>(_ key: String, _ value: Value?) throws(ControlRefusal) -> Value {
        guard let value else { throw .bad("\(key) is missing or of the wrong type") }
        return value
    }
}
