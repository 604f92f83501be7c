internal import EventLoops
internal import Glibc
internal import Model

/// One connection to a server: bytes in, operations out, with TLS between. On its client's loop; decides nothing.
final class NATSLink {
    enum Phase {
        case greeting
        case handshaking
        /// The credentials were sent; the server's answer is awaited.
        case welcoming
        case ready
    }

    let id: UInt64
    let address: NATSAddress
    let generation: Int
    let openedAt: BootInstant
    var phase = Phase.greeting
    var info: NATSInfo?
    /// Whether nothing new is sent over it: it closes with its last acknowledgement.
    var isLeaving = false
    /// Resumed when it is ready (nil) or has failed.
    var opening: CheckedContinuation<Outcome?, Never>?
    var openingTimer: EventLoop.TimerID?
    /// The messages that acknowledgements are awaited for: the ticket, by the last word of the subject.
    var awaited: [UInt64: UInt64] = [:]
    var lastHeard: BootInstant

    private let loop: EventLoop
    private var socket: Int32
    private var tls: TLSSession?
    private var parser = NATSParser()
    private var outgoing: [UInt8] = []
    private var sent = 0
    private var watched: EventLoop.Readiness = []
    private var buffer = [UInt8](repeating: 0, count: 16_384)

    /// Takes over a descriptor.
    init(
        _ id: UInt64, to address: NATSAddress, socket: Int32, generation: Int, on loop: EventLoop, at now: BootInstant
    ) {
        (self.id, self.address, self.socket) = (id, address, socket)
        (self.generation, self.loop) = (generation, loop)
        openedAt = now
        lastHeard = now
    }

    deinit {
        guard socket >= 0 else { return }
        // A descriptor must not be closed under its watch, and only the loop may end that.
        loop.post { [loop, socket] in
            loop.forget(socket)
            _ = Glibc.close(socket)
        }
    }

    var isEncrypted: Bool { tls != nil }
    var isOpen: Bool { socket >= 0 }
    /// Whether the kernel did not take all that was said.
    var hasUnsent: Bool { sent < outgoing.count }
    var peerExpiry: Timestamp? { tls?.peerExpiry }
    /// Whether the server has said more than was read: in clear text, before TLS, that is an attack.
    var hasUnread: Bool { parser.keptBytes > 0 }

    func close() {
        guard socket >= 0 else { return }
        loop.forget(socket)
        _ = Glibc.close(socket)
        socket = -1
    }

    /// Calls `handler` when something can be done; returns the failure when the kernel has no memory for it.
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

    func begin(_ session: TLSSession) {
        tls = session
        phase = .handshaking
    }

    /// Goes on with TLS; nil when that is not what is going on.
    func shakeHands() -> TLSSession.Handshake? {
        guard phase == .handshaking, let tls else { return nil }
        let result = tls.shakeHands()
        outgoing.append(contentsOf: tls.takeOutput())
        return result
    }

    /// Puts bytes in line to be sent.
    func say(_ bytes: [UInt8]) -> Failure? {
        guard let tls else {
            outgoing.append(contentsOf: bytes)
            return nil
        }
        guard tls.write(bytes[...]) else {
            return Failure(kind: .tls, message: "\(address.host): TLS has ended")
        }
        outgoing.append(contentsOf: tls.takeOutput())
        return nil
    }

    /// Sends what the kernel takes; returns the failure when the connection is broken.
    func flush() -> Failure? {
        while sent < outgoing.count {
            let count = outgoing.withUnsafeBytes { bytes in
                send(socket, bytes.baseAddress.map { $0 + sent }, bytes.count - sent, Int32(MSG_NOSIGNAL))
            }
            if count < 0 {
                if errno == EINTR { continue }
                if errno == EAGAIN || errno == EWOULDBLOCK { return nil }
                return broken(errno)
            }
            sent += count
        }
        outgoing.removeAll(keepingCapacity: outgoing.capacity <= 1 << 17)
        sent = 0
        return nil
    }

    /// Reads what has arrived. A failure ends the connection; operations that came before it may still be read.
    func receive(at now: BootInstant) -> Failure? {
        let count = recv(socket, &buffer, buffer.count, 0)
        guard count > 0 else {
            if count < 0, errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR { return nil }
            return count == 0
                ? Failure(kind: .connection, message: "\(address.host) closed the connection") : broken(errno)
        }
        lastHeard = now
        guard let tls else {
            parser.take(buffer[..<count])
            return nil
        }
        tls.receive(buffer[..<count])
        return nil
    }

    func decrypt() -> Failure? {
        guard phase != .handshaking, let tls else { return nil }
        let (bytes, end) = tls.read()
        outgoing.append(contentsOf: tls.takeOutput())
        parser.take(bytes)
        return end
    }

    func next() throws(NATSProtocolError) -> NATSOperation? { try parser.next() }

    private func broken(_ number: Int32) -> Failure {
        let said = SystemError.message(number).lowercased()
        return Failure(
            kind: .connection, message: "the connection to \(address.host) broke before an answer arrived: \(said)")
    }
}
