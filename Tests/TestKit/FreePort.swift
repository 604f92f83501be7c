internal import EventLoops
internal import Glibc

/// A port of the loopback address that nobody listens on, for a server that is started in a moment.
///
/// From below those that the kernel gives to connections (32768 by default): between the look and the start, one of the many
/// connections of tests beside this one would now and then get the same.
///
/// - Throws: `SystemError` when no socket can be made, or `EADDRINUSE` when none of a hundred ports is free.
public func freePort() throws -> Int {
    for _ in 0..<100 {
        let port = UInt16.random(in: 10_000..<32_000)
        let socket = try Descriptor(checking: Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0), "socket")
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let isFree = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(socket.raw, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        if isFree { return Int(port) }
    }
    throw SystemError("bind", number: EADDRINUSE)
}
