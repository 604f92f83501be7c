/// The bounds of a server.
struct HTTPServerOptions: Sendable {
    var connections = 32
    /// How long a connection may stay open without a request.
    var idle = Duration.seconds(15)
    /// How long a request may take to arrive as a whole, from its first byte to the last of its body.
    var request = Duration.seconds(15)
    /// How long an answer may wait for a client that takes nothing of it; one that is no stream must be out by then.
    var answer = Duration.seconds(60)
    /// Bytes of a request's line and headers.
    var headerBytes = 16_384
    /// Bytes of a request's body.
    var bodyBytes = 1_048_576
    /// Bytes of a streaming answer that may wait for a slow client.
    var streamBytes = 262_144
    /// Whether the kernel must identify the caller; otherwise there is no answer.
    var needsPeer = false
}
