package import Model

package struct ControlRefusal: Error, Sendable, Equatable {
    /// The HTTP status: 400 what was asked makes no sense, 404 there is no such thing, 409 not now, 500 it failed.
    package let status: Int
    /// A word for programs.
    package let code: String
    /// One line for a person: what is wrong and what to do.
    package let message: String

    package init(_ status: Int, _ code: String, _ message: String) {
        self.status = status
        self.code = code
        self.message = message
    }

    package static func bad(_ message: String) -> ControlRefusal {
        ControlRefusal(400, "bad_request", message)
    }

    /// As the API tells it: `{"error": {"status": 404, "code": …, "message": …}}`.
    package var json: JSONValue {
        ["error": ["status": .integer(status), "code": .string(code), "message": .string(message)]]
    }

    package var response: ControlResponse { .json(json, status: status) }
}
