public import Model

/// A request, complete and within bounds.
public struct ControlRequest: Sendable {
    /// `GET`, `POST` and so on.
    public let method: String
    /// The path, decoded, without the query.
    public let path: String
    /// The arguments of the query, decoded; the first of equal names.
    public let query: [String: String]
    /// The `Accept` header.
    public let accept: String?
    /// The body; at most what the server's bound allows.
    public let body: [UInt8]
    /// What is in the path where its route has a name in braces.
    public internal(set) var parameters: [String: String] = [:]
}

extension ControlRequest {
    /// A request of this process to its own routes.
    public init(_ method: String, _ path: String, query: [(String, String)] = [], body: JSONValue? = nil) {
        self.init(
            method: method, path: path, query: Dictionary(query) { first, _ in first }, accept: nil,
            body: body.map { Array($0.description.utf8) } ?? [])
    }

    /// The body as JSON; an empty one is an empty object.
    public func json() throws(JSONError) -> JSONValue {
        body.isEmpty ? .object([]) : try JSONValue(parsing: body)
    }
}

/// An answer.
public struct ControlResponse: Sendable {
    /// What it carries.
    public enum Body: Sendable {
        case bytes([UInt8])
        /// What the function writes, as it writes it, until it returns. It is cancelled when the client goes away.
        case stream(@Sendable (ControlStream) async -> Void)
    }

    /// The HTTP status.
    public let status: Int
    /// The headers besides length and date.
    public let headers: [(name: String, value: String)]
    /// What it carries.
    public let body: Body

    /// A JSON value.
    public static func json(_ value: JSONValue, status: Int = 200) -> ControlResponse {
        json(text: Array("\(value)\n".utf8), status: status)
    }

    package static func json(text: [UInt8], status: Int = 200) -> ControlResponse {
        ControlResponse(status: status, headers: [("Content-Type", "application/json")], body: .bytes(text))
    }

    /// Plain text, or another type of text.
    public static func text(
        _ text: String, status: Int = 200, type: String = "text/plain; charset=utf-8",
        headers: [(name: String, value: String)] = []
    ) -> ControlResponse {
        ControlResponse(status: status, headers: [("Content-Type", type)] + headers, body: .bytes(Array(text.utf8)))
    }

    /// JSON values, one a line, as they come.
    public static func stream(_ write: @escaping @Sendable (ControlStream) async -> Void) -> ControlResponse {
        ControlResponse(status: 200, headers: [("Content-Type", "application/x-ndjson")], body: .stream(write))
    }
}

/// The way for a streaming answer to its client.
public struct ControlStream: Sendable {
    let server: HTTPServer
    let id: UInt

    /// Sends bytes, waiting for a slow client; false when it is gone: nothing more needs to be written.
    public func write(_ bytes: [UInt8]) async -> Bool { await server.write(bytes, to: id) }

    /// Sends a JSON value and a line feed.
    public func write(_ value: JSONValue) async -> Bool { await write(Array("\(value)\n".utf8)) }
}
