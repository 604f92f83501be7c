internal import Glibc

/// TCP sockets: listening, addresses, and a connection to one's own listener.
package enum InternetSocket {
    /// Creates a listening socket, non-blocking.
    ///
    /// - Parameters:
    ///   - host: a numeric address without brackets.
    ///   - port: 0 lets the system choose one.
    /// - Throws: `SystemError` with `EADDRINUSE`, `EACCES`, `EADDRNOTAVAIL` (also if `host` is not an
    ///   address), or another number.
    package static func listen(at host: String, port: UInt16) throws(SystemError) -> Descriptor {
        var hints = addrinfo()
        hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, "\(port)", &hints, &list) == 0, let address = list?.pointee else {
            throw SystemError("getaddrinfo", number: EADDRNOTAVAIL)
        }
        defer { freeaddrinfo(list) }
        let type = address.ai_socktype | Int32(SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let descriptor = try Descriptor(checking: socket(address.ai_family, type, 0), "socket")
        var one: Int32 = 1
        // Without SO_REUSEADDR a restart could not bind while old connections are in TIME_WAIT
        // (socket(7)). If setting it fails, bind reports the consequence.
        _ = setsockopt(descriptor.raw, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
        guard bind(descriptor.raw, address.ai_addr, address.ai_addrlen) == 0,
            Glibc.listen(descriptor.raw, 512) == 0
        else { throw SystemError("bind") }
        return descriptor
    }

    /// Whether a text is a numeric address without brackets.
    package static func isAddress(_ text: String) -> Bool {
        var four = in_addr()
        var six = in6_addr()
        // An IPv6 address may have a zone: fe80::1%eth0.
        let plain = text.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false).first ?? ""
        return inet_pton(AF_INET, text, &four) == 1 || inet_pton(AF_INET6, String(plain), &six) == 1
    }

    /// The port that a socket is bound to; 0 if it is not bound.
    package static func port(of descriptor: Int32) -> UInt16 {
        var address = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &size) }
        }
        guard result == 0 else { return 0 }
        // In both families the port follows the two bytes of the family, in network byte order.
        return withUnsafeBytes(of: &address) { UInt16($0[2]) << 8 | UInt16($0[3]) }
    }

    /// The numeric address of the other end, without the port; empty if the socket is not connected.
    package static func address(ofPeer descriptor: Int32) -> String {
        var address = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
        let result = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                guard getpeername(descriptor, address, &size) == 0 else { return Int32(-1) }
                return getnameinfo(address, size, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST)
            }
        }
        guard result == 0 else { return "" }
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Starts to connect to the address that a listener is bound to, without waiting; nil if that fails
    /// at once. A test of whether the listener accepts connections.
    package static func connect(toListener descriptor: Int32) -> Descriptor? {
        var address = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address -> Descriptor? in
                guard getsockname(descriptor, address, &size) == 0 else { return nil }
                let raw = socket(
                    Int32(address.pointee.sa_family),
                    Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
                guard raw >= 0 else { return nil }
                let socket = Descriptor(raw)
                // A listener on the wildcard address is reached at this machine's own address.
                guard Glibc.connect(raw, address, size) == 0 || errno == EINPROGRESS else { return nil }
                return socket
            }
        }
    }
}
