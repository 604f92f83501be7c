/// Lets a transfer send its request once, so that each request on the wire is an attempt which the delivery
/// decided and counted.
///
/// libcurl sends a request again, up to five times, when a reused connection ends without an answer or an
/// HTTP/2 server refuses the stream. The receiver may have stored the first request. Without this guard the
/// answer to the repeat would count as the answer to a first attempt: a refusal would split a stored batch,
/// and a recognised repeat would raise the alert about foreign ids.
struct RepeatGuard {
    /// Whether libcurl may repeat the request.
    private let repeatsAreHarmless: Bool
    /// Number of requests that the transfer has begun.
    private var requests = 0
    /// Connections that the transfer had made when its first request began: 0 when it reused one.
    private var connectionsAtFirst = 0

    /// - Parameter repeatsAreHarmless: true for a GET: a repeat stores nothing.
    init(repeatsAreHarmless: Bool = false) { self.repeatsAreHarmless = repeatsAreHarmless }

    /// Whether a request may be sent; called for each request before its first byte.
    mutating func mayBegin(connections: Int) -> Bool {
        requests += 1
        guard requests > 1 else {
            connectionsAtFirst = connections
            return true
        }
        return repeatsAreHarmless
    }

    /// Whether a repeat was refused, or its connection failed before: the first request may be stored.
    ///
    /// - Parameter failedToConnect: whether the transfer's error is about a connection that was not made.
    ///   libcurl counts only connections that were made.
    func wantedRepeat(connections: Int, failedToConnect: Bool) -> Bool {
        guard !repeatsAreHarmless, requests > 0 else { return false }
        return requests > 1 || connections > connectionsAtFirst || failedToConnect
    }
}
