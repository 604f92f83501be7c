internal import EventLoops
internal import Glibc

/// A listening socket.
struct Listener: ~Copyable {
    let port: UInt16
    private let descriptor: Descriptor

    /// - Throws: `ReceiverError` with code `listen`, or `invalidSetting` when the address is no number.
    init(address: String, port: UInt16) throws(ReceiverError) {
        var hints = addrinfo()
        hints.ai_flags = AI_NUMERICHOST | AI_PASSIVE
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(address, String(port), &hints, &found) == 0, let found else {
            throw ReceiverError(.invalidSetting, "\(address) is no address; give a number such as 127.0.0.1 or ::1")
        }
        defer { freeaddrinfo(found) }
        let information = found.pointee
        let raw = socket(information.ai_family, information.ai_socktype | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard raw >= 0 else { throw ReceiverError(.listen, "no socket: \(SystemError.message(errno))") }
        let descriptor = Descriptor(raw)
        var one: Int32 = 1
        setsockopt(raw, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
        guard bind(raw, information.ai_addr, information.ai_addrlen) == 0, listen(raw, 512) == 0 else {
            let reason = SystemError.message(errno)
            throw ReceiverError(.listen, "cannot listen on \(address) port \(port): \(reason)")
        }
        var bound = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = withUnsafeMutablePointer(to: &bound) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(raw, $0, &length) }
        }
        guard result == 0 else { throw ReceiverError(.listen, "no port: \(SystemError.message(errno))") }
        // The port stands at the same place in both kinds of addresses.
        self.port = withUnsafeBytes(of: &bound) { UInt16($0[2]) << 8 | UInt16($0[3]) }
        self.descriptor = descriptor
    }

    /// Gives the socket away.
    consuming func take() -> Int32 { descriptor.release() }
}
