package import Model

/// A request, complete and within bounds.
package struct ControlRequest: Sendable {
    /// `GET`, `POST` and so on.
    package let method: String
    /// The path, decoded, without the query.
    package let path: String
    /// The arguments of the query, decoded; the first of equal names.
    package let query: [String: String]
    package let accept: String?
    /// The body; at most what the server's bound allows.
    package let body: [UInt8]
    /// What is in the path where its route has a name in braces.
    package internal(set) var parameters: [String: String] = [:]
}

extension ControlRequest {
    /// A request of this process to its own routes.
    package init(_ method: String, _ path: String, query: [(String, String)] = [], body: JSONValue? = nil) {
        self.init(
            method: method, path: path, query: Dictionary(query) { first, _ in first }, accept: nil,
            body: body.map { Array($0.description.utf8) } ?? [])
    }

    /// The body as JSON; an empty one is an empty object.
    package func json() throws(JSONError) -> JSONValue {
        body.isEmpty ? .object([]) : try JSONValue(parsing: body)
    }
}

package struct ControlResponse: Sendable {
    package enum Body: Sendable {
        case bytes([UInt8])
        /// What the function writes, as it writes it, until it returns. It is cancelled when the client goes away.
        case stream(@Sendable (ControlStream) async -> Void)
    }

    package let status: Int
    /// The headers besides length and date.
    package let headers: [(name: String, value: String)]
    package let body: Body

    package static func json(_ value: JSONValue, status: Int = 200) -> ControlResponse {
        json(text: Array("\(value)\n".utf8), status: status)
    }

    package static func json(text: [UInt8], status: Int = 200) -> ControlResponse {
        ControlResponse(status: status, headers: [("Content-Type", "application/json")], body: .bytes(text))
    }

    package static func text(
        _ text: String, status: Int = 200, type: String = "text/plain; charset=utf-8",
        headers: [(name: String, value: String)] = []
    ) -> ControlResponse {
        ControlResponse(status: status, headers: [("Content-Type", type)] + headers, body: .bytes(Array(text.utf8)))
    }

    /// JSON values, one a line, as they come.
    package static func stream(_ write: @escaping @Sendable (ControlStream) async -> Void) -> ControlResponse {
        ControlResponse(status: 200, headers: [("Content-Type", "application/x-ndjson")], body: .stream(write))
    }
}

package struct ControlStream: Sendable {
    let server: HTTPServer
    let id: UInt

    /// Sends bytes, waiting for a slow client; false when it is gone: nothing more needs to be written.
    package func write(_ bytes: [UInt8]) async -> Bool { await server.write(bytes, to: id) }

    package func write(_ value: JSONValue) async -> Bool { await write(Array("\(value)\n".utf8)) }
}
