// Answers that come bit by bit: what a handler writes waits here, bounded, until the client has taken it.
extension HTTPServer {
    /// Takes a stream's next bytes; returns when there is room for more, false when the client is gone.
    func write(_ bytes: [UInt8], to id: UInt) async -> Bool {
        guard let connection = connections[id], connection.isStreaming else { return false }
        guard !bytes.isEmpty else { return true }
        if connection.isChunked {
            connection.output += Array("\(String(bytes.count, radix: 16))\r\n".utf8)
            connection.output += bytes
            connection.output += [13, 10]
        } else {
            connection.output += bytes
        }
        flush(id)
        guard connection.waiting > options.streamBytes, connections[id] != nil else { return connections[id] != nil }
        return await withCheckedContinuation { continuation in
            guard connections[id] != nil, connection.writer == nil else {
                continuation.resume(returning: false)
                return
            }
            connection.writer = continuation
        }
    }

    func endStream(_ id: UInt) {
        guard let connection = connections[id], connection.isStreaming else { return }
        connection.isStreaming = false
        connection.task = nil
        if connection.isChunked { connection.output += Array("0\r\n\r\n".utf8) }
        flush(id)
    }
}
