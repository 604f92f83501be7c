package import Model

/// A complete request within the server's bounds.
package struct ControlRequest: Sendable {
    /// `GET`, `POST` and so on.
    package let method: String
    /// Decoded path without the query.
    package let path: String
    /// Decoded arguments of the query; the first of equal names counts.
    package let query: [String: String]
    /// Value of `Accept`; nil without it.
    package let accept: String?
    /// The body; within the server's bound.
    package let body: [UInt8]
    /// Parts of the path for which the route has a name in braces.
    package internal(set) var parameters: [String: String] = [:]
}

extension ControlRequest {
    /// A request of this process to its own routes, for commands that run without a server.
    package init(_ method: String, _ path: String, query: [(String, String)] = [], body: JSONValue? = nil) {
        self.init(
            method: method, path: path, query: Dictionary(query) { first, _ in first }, accept: nil,
            body: body.map { Array($0.description.utf8) } ?? [])
    }

    /// The body as JSON; an empty body counts as an empty object.
    package func json() throws(JSONError) -> JSONValue {
        body.isEmpty ? .object([]) : try JSONValue(parsing: body)
    }
}

/// The answer of a handler.
package struct ControlResponse: Sendable {
    /// The body: all at once, or written piece by piece.
    package enum Body: Sendable {
        case bytes([UInt8])
        /// Whatever the function writes until it returns. It is cancelled when the client disconnects.
        case stream(@Sendable (ControlStream) async -> Void)
    }

    package let status: Int
    /// Headers besides length and date.
    package let headers: [(name: String, value: String)]
    package let body: Body

    /// An answer with a JSON value and a line feed.
    package static func json(_ value: JSONValue, status: Int = 200) -> ControlResponse {
        json(text: Array("\(value)\n".utf8), status: status)
    }

    /// An answer with text that is JSON already.
    package static func json(text: [UInt8], status: Int = 200) -> ControlResponse {
        ControlResponse(status: status, headers: [("Content-Type", "application/json")], body: .bytes(text))
    }

    /// An answer with text.
    package static func text(
        _ text: String, status: Int = 200, type: String = "text/plain; charset=utf-8",
        headers: [(name: String, value: String)] = []
    ) -> ControlResponse {
        ControlResponse(
            status: status, headers: [("Content-Type", type)] + headers, body: .bytes(Array(text.utf8)))
    }

    /// JSON values, one on each line, as they are written.
    package static func stream(_ write: @escaping @Sendable (ControlStream) async -> Void) -> ControlResponse
    {
        ControlResponse(
            status: 200, headers: [("Content-Type", "application/x-ndjson")], body: .stream(write))
    }
}

/// The writing end of a streaming answer.
package struct ControlStream: Sendable {
    let server: HTTPServer
    let id: UInt

    /// Sends bytes, and waits for a slow client. False if the client is gone: nothing more needs to be
    /// written.
    package func write(_ bytes: [UInt8]) async -> Bool { await server.write(bytes, to: id) }

    /// Sends a JSON value as a line.
    package func write(_ value: JSONValue) async -> Bool { await write(Array("\(value)\n".utf8)) }
}
