internal import EventLoops
internal import Glibc

/// Listening sockets for numeric addresses.
enum InternetSocket {
    /// Makes a listening socket.
    ///
    /// - Parameter text: `127.0.0.1:9464`, `[::1]:9464` or `localhost:9464`; port 0 lets the system choose.
    static func listen(at text: String) throws(ControlError) -> Descriptor {
        guard let (host, port) = split(text) else {
            throw ControlError(
                .badAddress,
                "stats.listen is \"\(text)\": give a numeric address and a port, such as \"127.0.0.1:9464\"")
        }
        var hints = addrinfo()
        hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host == "localhost" ? "127.0.0.1" : host, port, &hints, &list) == 0, let list else {
            throw ControlError(
                .badAddress,
                "stats.listen is \"\(text)\": give a numeric address and a port, such as \"127.0.0.1:9464\"")
        }
        defer { freeaddrinfo(list) }
        let address = list.pointee
        let raw = socket(
            address.ai_family, address.ai_socktype | Int32(SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        guard raw >= 0 else { throw ControlError(.system, "no socket for \(text): \(SystemError.message(errno))") }
        let descriptor = Descriptor(raw)
        var one: Int32 = 1
        // Without it a restart has to wait for old connections; failing to set it shows in bind.
        _ = setsockopt(raw, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
        guard bind(raw, address.ai_addr, address.ai_addrlen) == 0, Glibc.listen(raw, 32) == 0 else {
            throw failure(errno, text, port)
        }
        return descriptor
    }

    /// The port that a socket is bound to; 0 when it is not.
    static func port(of descriptor: Int32) -> UInt16 {
        var address = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &size) }
        }
        guard result == 0 else { return 0 }
        // Both families have the port after the family's two bytes, in network order.
        return withUnsafeBytes(of: &address) { UInt16($0[2]) << 8 | UInt16($0[3]) }
    }

    private static func failure(_ number: Int32, _ text: String, _ port: String) -> ControlError {
        switch number {
        case EADDRINUSE:
            ControlError(
                .addressInUse,
                "\(text) is in use by another program (ss -ltnp 'sport = :\(port)' shows which): "
                    + "stop it, or set stats.listen to another address")
        case EACCES:
            ControlError(.notPermitted, "\(text) may not be listened on: choose a port above 1023 for stats.listen")
        case EADDRNOTAVAIL:
            ControlError(.badAddress, "\(text) is no address of this machine: change stats.listen")
        default: ControlError(.system, "\(text) cannot be listened on: \(SystemError.message(number))")
        }
    }

    private static func split(_ text: String) -> (host: String, port: String)? {
        guard let colon = text.lastIndex(of: ":") else { return nil }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = host.dropFirst().dropLast()
        } else if host.contains(":") {
            return nil
        }
        let port = text[text.index(after: colon)...]
        guard !host.isEmpty, let number = UInt16(port) else { return nil }
        return (String(host), "\(number)")
    }
}
