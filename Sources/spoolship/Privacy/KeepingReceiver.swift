internal import EventLoops
internal import Glibc

/// An HTTP receiver on loopback that keeps each byte of each request, heads included, for `privacy prove`. It
/// serves one request after the other, on the caller's thread. It is not for hostile senders: only the
/// proof's own agent knows the port.
final class KeepingReceiver {
    /// The port that the kernel chose.
    let port: UInt16
    /// The bytes of all requests by the first part of their path, which is the name of the destination.
    private(set) var kept: [String: [UInt8]] = [:]
    /// The path whose batches are rejected if they contain the text. Rejected events become dead letters,
    /// which have to be searched, too.
    private let rejecting: (path: String, text: [UInt8])
    /// The listening socket.
    private let listener: Descriptor

    /// Listens on a free port of 127.0.0.1.
    init(rejecting: (path: String, text: String)) throws(SystemError) {
        self.rejecting = (rejecting.path, Array(rejecting.text.utf8))
        listener = try InternetSocket.listen(at: "127.0.0.1", port: 0)
        port = InternetSocket.port(of: listener.raw)
    }

    /// Serves the connections that arrive in the next 100 ms, and those that are waiting. It returns then, so
    /// that the caller can check whether all events have arrived.
    func serve() {
        var waited = pollfd(fd: listener.raw, events: Int16(POLLIN), revents: 0)
        var patience: Int32 = 100
        while poll(&waited, 1, patience) > 0 {
            patience = 0
            let raw = accept(listener.raw, nil, nil)
            guard raw >= 0 else { return }
            let connection = Descriptor(raw)
            // bounded: a limit of our own.
            var limit = timeval(tv_sec: 2, tv_usec: 0)
            // Without the limit a silent sender makes the command wait for it to end.
            _ = setsockopt(raw, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
            answer(connection.raw)
        }
    }

    /// Reads one request completely, keeps it and answers it. The connection is closed after it.
    private func answer(_ connection: Int32) {
        var request: [UInt8] = []
        // The request's size, known when its head is complete.
        var wanted = Int.max
        var path = ""
        var block = [UInt8](repeating: 0, count: 65_536)
        while request.count < wanted {
            let count = recv(connection, &block, block.count, 0)
            guard count > 0 else { return }
            request += block[..<count]
            guard wanted == .max, let end = ProofSearch.offset(of: Array("\r\n\r\n".utf8), in: request)
            else {
                continue
            }
            let head = String(decoding: request[..<end], as: UTF8.self).split(separator: "\r\n")
            path = head.first?.split { " ?/".contains($0) }.dropFirst().first.map(String.init) ?? ""
            let fields = head.dropFirst().map { $0.split(separator: ":", maxSplits: 1) }
            func field(_ name: String) -> Substring? { fields.first { $0.first?.lowercased() == name }?.last }
            wanted = end + 4 + (field("content-length").flatMap { Int($0.drop { $0 == " " }) } ?? 0)
            // curl waits for this answer before it sends a large body (RFC 9110, section 10.1.1).
            if field("expect") != nil {
                send("HTTP/1.1 100 Continue\r\n\r\n", connection)
            }
        }
        kept[path, default: []] += request
        let isRejected = path == rejecting.path && ProofSearch.offset(of: rejecting.text, in: request) != nil
        // The path `holding` is never acknowledged, so that its events stay in the queue and are searched
        // there. The body is one that each format accepts as success.
        let status = isRejected ? "400 Bad Request" : path == "holding" ? "503 Service Unavailable" : "200 OK"
        let body = isRejected ? #"{"error":"rejected"}"# : #"{"errors":false,"code":0,"text":"Success"}"#
        send(
            "HTTP/1.1 \(status)\r\nContent-Type: application/json\r\nContent-Length: "
                + "\(body.utf8.count)\r\nConnection: close\r\n\r\n"
                + body, connection)
    }

    /// Sends a short answer.
    private func send(_ text: String, _ connection: Int32) {
        let bytes = Array(text.utf8)
        // If the client is gone or the text does not fit, the client sends its request again.
        _ = Glibc.send(connection, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }
}
