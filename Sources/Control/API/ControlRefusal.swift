package import Model

/// Why a request is not carried out, as the API answers it.
package struct ControlRefusal: Error, Sendable, Equatable {
    /// HTTP status: 400 for a request without meaning, 404 for something that does not exist, 409 for
    /// something that is impossible now, 500 for a failure.
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

    /// A request without meaning.
    package static func bad(_ message: String) -> ControlRefusal {
        ControlRefusal(400, "bad_request", message)
    }

    /// The form of the API: `{"error": {"status": 404, "code": …, "message": …}}`.
    package var json: JSONValue {
        ["error": ["status": .integer(status), "code": .string(code), "message": .string(message)]]
    }

    /// The refusal as an answer.
    package var response: ControlResponse { .json(json, status: status) }
}
