internal import Glibc

/// State of a TCP connection as the kernel of this machine reports it.
struct TCPState: Equatable {
    /// Whether the other machine has accepted the connection.
    var isEstablished = true
    /// Bytes given to the kernel that the other machine has not acknowledged, unsent bytes included.
    var unacknowledged = 0
    /// Segments that were sent and are not acknowledged.
    var inFlight = 0
    /// Retransmissions in a row without an acknowledgement.
    var retransmissions = 0
    /// Bytes that arrived in order since the connection was made.
    var received = 0
    /// Segments that arrived while an earlier segment was missing.
    var outOfOrder = 0

    init() {}

    /// Asks the kernel (`TCP_INFO`, tcp(7)).
    ///
    /// - Returns: nil if the socket is closed or is not a TCP socket.
    init?(of socket: Int32) {
        var information = [UInt8](repeating: 0, count: 256)
        var count = socklen_t(information.count)
        guard getsockopt(socket, Int32(IPPROTO_TCP), TCP_INFO, &information, &count) == 0 else { return nil }
        // A field of the structure; 0 if the kernel is older than the field.
        func number<Number: FixedWidthInteger>(_ offset: Int, _ type: Number.Type) -> Int {
            guard offset + MemoryLayout<Number>.size <= Int(count) else { return 0 }
            return information.withUnsafeBytes {
                Int(clamping: $0.loadUnaligned(fromByteOffset: offset, as: type))
            }
        }
        // Offsets of `struct tcp_info` in linux/tcp.h, which only grows at its end; glibc declares the first
        // 104 bytes of it.
        let established = 1
        isEstablished = number(0, UInt8.self) == established
        retransmissions = number(2, UInt8.self)
        inFlight = number(24, UInt32.self)
        received = number(128, UInt64.self)
        outOfOrder = number(224, UInt32.self)
        var queued: Int32 = 0
        if ioctl(socket, UInt(TIOCOUTQ), &queued) == 0 {
            unacknowledged = Int(queued)
        }
    }
}

/// The connection of a request, with its last state before it was closed.
struct TransferConnection {
    /// The file descriptor; -1 before it is known and after libcurl has stopped using it.
    private(set) var socket: Int32 = -1
    /// State of the connection when libcurl stopped using it.
    private var last: TCPState?

    /// Notes the socket that libcurl uses for the request.
    mutating func use(_ socket: Int32) {
        self.socket = socket
        last = nil
    }

    /// Keeps the connection's state. libcurl closes the socket next, and another file may then get its
    /// number.
    mutating func leave() {
        last = TCPState(of: socket)
        socket = -1
    }

    /// State of the connection, now or before it was closed; nil without a connection.
    var state: TCPState? { last ?? TCPState(of: socket) }
}
