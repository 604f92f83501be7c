internal import CMicroHTTPD
internal import EventLoops

// Answers that come bit by bit: what a handler writes waits here, bounded, until the library asks for it.
extension HTTPServer {
    /// What the library hands back when it asks for more of a stream.
    private final class Source {
        let server: HTTPServer
        let id: UInt
        init(_ server: HTTPServer, _ id: UInt) {
            self.server = server
            self.id = id
        }
    }

    func streamingResponse(_ id: UInt) -> OpaquePointer? {
        let source = Unmanaged.passRetained(Source(self, id)).toOpaque()
        return MHD_create_response_from_callback(
            UInt64.max, 8192,
            { context, _, buffer, size in
                guard let context, let buffer else { return SHIM_MHD_BROKEN }
                let source = Unmanaged<Source>.fromOpaque(context).takeUnretainedValue()
                let id = source.id
                // As above: on the loop's thread already.
                nonisolated(unsafe) let room = UnsafeMutableRawBufferPointer(start: buffer, count: size)
                return source.server.assumeIsolated { $0.read(id, into: room) }
            }, source,
            { context in
                if let context { Unmanaged<Source>.fromOpaque(context).release() }
            })
    }

    private func read(_ id: UInt, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard let exchange = exchanges[id], !exchange.isGone else { return SHIM_MHD_BROKEN }
        let count = min(buffer.count, exchange.stream.bytes.count)
        if count == 0 {
            if exchange.stream.hasEnded { return SHIM_MHD_END }
            suspend(id)
            return 0
        }
        buffer.copyBytes(from: exchange.stream.bytes.prefix(count))
        exchanges[id]?.stream.bytes.removeFirst(count)
        if exchange.stream.bytes.count - count < options.streamBytes / 2, let writer = exchange.stream.writer {
            exchanges[id]?.stream.writer = nil
            loop.post { writer.resume(returning: true) }
        }
        return count
    }

    /// Takes a stream's next bytes; returns when there is room for more, false when the client is gone.
    func write(_ bytes: [UInt8], to id: UInt) async -> Bool {
        guard let exchange = exchanges[id], !exchange.isGone, !exchange.stream.hasEnded else { return false }
        exchanges[id]?.stream.bytes.append(contentsOf: bytes)
        resume(id)
        guard exchange.stream.bytes.count + bytes.count > options.streamBytes else { return true }
        return await withCheckedContinuation { continuation in
            guard exchanges[id]?.stream.writer == nil, exchanges[id] != nil else {
                continuation.resume(returning: false)
                return
            }
            exchanges[id]?.stream.writer = continuation
        }
    }

    func endStream(_ id: UInt) {
        guard exchanges[id] != nil else { return }
        exchanges[id]?.stream.hasEnded = true
        exchanges[id]?.task = nil
        resume(id)
    }
}
