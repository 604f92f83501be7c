/// What becomes of a request whose head has arrived, before its body is read.
package enum Reception: Sendable {
    /// Answers a complete request, on the server's loop; cancelled when the client disconnects. Nil closes
    /// the connection without an answer.
    package typealias Handler = @Sendable (ControlRequest) async -> ControlResponse?

    /// The body is read, within the server's bound, and the handler answers.
    case answer(Handler)
    /// The request is refused, and the connection closed.
    case refuse(ControlRefusal)
    /// The connection is reset when the first bytes of the body have arrived: a failure that the development
    /// receiver makes on request.
    case reset
}
