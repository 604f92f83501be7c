internal import EventLoops
internal import Glibc
internal import Model

/// One non-blocking connection, with TLS if `begin` was called: buffers bytes in both directions.
///
/// It decides nothing: its client (NATS, syslog) reacts to readiness, and decides when to close. Belongs to
/// its client's loop; not thread-safe. Owns the socket.
final class SecureStream {
    /// The result of `receive`.
    struct Received {
        /// Whether the other side sent any bytes, which shows that it is alive.
        var wasHeard = false
        /// The bytes, on a connection without TLS; with TLS `decrypt` returns them.
        var clear: ArraySlice<UInt8> = []
        /// Why the connection has ended; nil while it is open.
        var failure: Failure?
    }

    /// The server's name, for messages.
    private let host: String
    private let loop: EventLoop
    /// The file descriptor; -1 once closed.
    private var socket: Int32
    /// TLS of this connection; nil on a plain connection.
    private var tls: TLSSession?
    /// True from `begin` until the handshake is complete. Until then nothing may be decrypted.
    private var isShakingHands = false
    /// Bytes for the kernel, TLS included. Its first `sent` bytes are already there.
    private var outgoing: [UInt8] = []
    /// Number of bytes of `outgoing` that the kernel has accepted.
    private var sent = 0
    /// What the loop watches the socket for; saves a system call if nothing changes.
    private var watched: EventLoop.Readiness = []
    /// Receive buffer, as large as the content of the largest TLS record (16 KiB, RFC 8446, section 5.1).
    private var buffer = [UInt8](repeating: 0, count: 16_384)
    /// Number of all bytes ever queued for this connection, TLS included.
    private(set) var totalBytes = 0

    /// Takes ownership of a connected, non-blocking socket. `host` is for messages.
    init(_ socket: Int32, to host: String, on loop: EventLoop) {
        self.socket = socket
        self.host = host
        self.loop = loop
    }

    deinit {
        guard socket >= 0 else { return }
        sayFarewell()
        // Only the loop may end a watch, and the watch must end first: another connection could get the
        // same number and inherit the watch.
        loop.post { [loop, socket] in
            loop.forget(socket)
            _ = Glibc.close(socket)
        }
    }

    var isOpen: Bool { socket >= 0 }
    var isEncrypted: Bool { tls != nil }
    /// Whether bytes wait because the kernel's send buffer is full.
    var hasUnsent: Bool { sent < outgoing.count }
    /// Expiry of the server's certificate; nil without TLS and before the handshake.
    var peerExpiry: Timestamp? { tls?.peerExpiry }

    /// Number of bytes of `totalBytes` that the other machine's TCP has acknowledged; its program may not
    /// have read them. 0 once the connection is closed. The kernel's queue (`TIOCOUTQ`, tcp(7)) includes
    /// bytes in flight.
    var arrivedBytes: Int {
        var queued: Int32 = 0
        guard isOpen, ioctl(socket, UInt(TIOCOUTQ), &queued) == 0 else { return 0 }
        // bounded: what the kernel queues is a part of what it was given.
        return totalBytes - (outgoing.count - sent) - Int(queued)
    }

    /// Closes the connection; the second call does nothing.
    func close() {
        guard socket >= 0 else { return }
        sayFarewell()
        loop.forget(socket)
        _ = Glibc.close(socket)
        socket = -1
    }

    /// Sends TLS's `close_notify` (RFC 8446, section 6.1), so that the other side knows that nothing was
    /// cut off. Only if nothing is queued before it, and never waits: a full send buffer drops it.
    private func sayFarewell() {
        guard let tls, !isShakingHands, !hasUnsent else { return }
        tls.end()
        let bytes = tls.takeOutput()
        _ = bytes.withUnsafeBytes { Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    }

    /// Has `handler` called when the socket is readable, or writable while bytes wait. Returns the failure
    /// if the kernel has no memory for the watch.
    func watch(_ handler: @escaping (EventLoop.Readiness) -> Void) -> Failure? {
        let wanted: EventLoop.Readiness = hasUnsent ? [.readable, .writable] : .readable
        guard isOpen, wanted != watched else { return nil }
        do throws(SystemError) {
            try loop.watch(socket, for: wanted, handler)
            watched = wanted
            return nil
        } catch {
            return Failure(kind: .local, message: "the connection cannot be watched: \(error.description)")
        }
    }

    /// Starts TLS on the connection; `shakeHands` then continues it with each readiness.
    func begin(_ session: TLSSession) {
        tls = session
        isShakingHands = true
    }

    /// Continues the handshake with what has arrived; nil if no handshake is under way.
    func shakeHands() -> TLSSession.Handshake? {
        guard isShakingHands, let tls else { return nil }
        let result = tls.shakeHands()
        if result == .done {
            isShakingHands = false
        }
        append(tls.takeOutput())
        return result
    }

    /// Queues bytes, encrypted if there is TLS; `flush` sends them. Returns a failure if TLS has ended.
    func say(_ bytes: [UInt8]) -> Failure? {
        guard let tls else {
            append(bytes)
            return nil
        }
        guard tls.write(bytes[...]) else { return Failure(kind: .tls, message: "\(host): TLS has ended") }
        append(tls.takeOutput())
        return nil
    }

    /// Queues bytes for the wire.
    private func append(_ bytes: [UInt8]) {
        outgoing.append(contentsOf: bytes)
        totalBytes += bytes.count
    }

    /// Sends as much as the kernel accepts now; returns the failure if the connection is broken.
    func flush() -> Failure? {
        while sent < outgoing.count {
            let count = outgoing.withUnsafeBytes { bytes in
                Glibc.send(
                    socket, bytes.baseAddress.map { $0 + sent }, bytes.count - sent, Int32(MSG_NOSIGNAL))
            }
            if count < 0 {
                if errno == EINTR { continue }
                if errno == EAGAIN || errno == EWOULDBLOCK { return nil }
                return broken(errno)
            }
            sent += count
        }
        // Keeps the buffer for the next message, except if one large batch has made it larger than 128 KiB.
        outgoing.removeAll(keepingCapacity: outgoing.capacity <= 1 << 17)
        sent = 0
        return nil
    }

    /// Reads up to 16 KiB that have arrived. After a failure `decrypt` may still return bytes that came
    /// before it.
    func receive() -> Received {
        let count = recv(socket, &buffer, buffer.count, 0)
        guard count > 0 else {
            if count < 0, errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR { return Received() }
            return Received(failure: count == 0 ? closed : broken(errno))
        }
        guard let tls else { return Received(wasHeard: true, clear: buffer[..<count]) }
        tls.receive(buffer[..<count])
        return Received(wasHeard: true)
    }

    /// The decrypted bytes that have arrived, and the failure that ended TLS; empty during the handshake.
    func decrypt() -> (bytes: [UInt8], end: Failure?) {
        guard !isShakingHands, let tls else { return ([], nil) }
        let result = tls.read()
        append(tls.takeOutput())
        return result
    }

    /// The failure if the other side has closed the connection in order.
    private var closed: Failure { Failure(kind: .connection, message: "\(host) closed the connection") }

    /// The failure if a system call failed with this number of errno.
    private func broken(_ number: Int32) -> Failure {
        let said = SystemError.clause(number)
        return Failure(
            kind: .connection, message: "the connection to \(host) broke before an answer arrived: \(said)")
    }
}
