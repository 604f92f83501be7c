import EventLoops
import Glibc

/// A TCP client that does what it is asked and no more. Used by one thread at a time.
public final class Client: Sendable {
    private let descriptor: Int32

    /// A connection to a port of the loopback address; reading ends after 20 s of silence.
    public init(port: UInt16) throws {
        descriptor = try Descriptor(
            checking: socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0), "socket"
        ).release()
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else { throw SystemError("connect") }
        var limit = timeval(tv_sec: 20, tv_usec: 0)
        _ = setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    /// Sends what fits; a server that has closed the connection is no failure.
    public func send(_ bytes: [UInt8]) {
        _ = Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
    }

    /// What comes next; nothing at the end.
    public func read() -> String {
        var block = [UInt8](repeating: 0, count: 65_536)
        return String(decoding: block[..<max(0, recv(descriptor, &block, block.count, 0))], as: UTF8.self)
    }

    /// Sends the end: the server may still answer.
    public func finishSending() { _ = shutdown(descriptor, Int32(SHUT_WR)) }

    /// All that comes until the end.
    public func readAll() -> String { String(decoding: readAllBytes(), as: UTF8.self) }

    /// All bytes that come until the end.
    public func readAllBytes() -> [UInt8] {
        var all: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(descriptor, &block, block.count, 0)
            guard count > 0 else { return all }
            all.append(contentsOf: block[..<count])
        }
    }

    /// Whether the server ends the connection, in order or not, without a further byte.
    public func isCut() -> Bool {
        var byte: UInt8 = 0
        return recv(descriptor, &byte, 1, 0) == 0 || errno == ECONNRESET
    }

    /// Closes the connection.
    public func close() { _ = Glibc.close(descriptor) }
}
