internal import Glibc

/// The machine's network interfaces at one moment (getifaddrs(3)).
struct NetworkInterfaces {
    /// Indexes of interfaces that are up and have a carrier (IFF_RUNNING, netdevice(7)).
    private var running: Set<UInt32> = []
    /// Whether an interface other than loopback has an address that is not link-local.
    private(set) var hasAddress = false
    /// Whether the kernel gave no answer. Then nothing counts as broken, and senders find out by themselves.
    private var isUnknown = false

    /// Whether an interface can carry packets.
    func isRunning(_ interface: UInt32) -> Bool { isUnknown || running.contains(interface) }

    init() {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&list) == 0 else {
            isUnknown = true
            hasAddress = true
            return
        }
        defer { freeifaddrs(list) }
        var next = list
        while let entry = next {
            next = entry.pointee.ifa_next
            let flags = Int(entry.pointee.ifa_flags)
            guard flags & IFF_UP != 0, flags & IFF_RUNNING != 0 else { continue }
            running.insert(if_nametoindex(entry.pointee.ifa_name))
            guard flags & IFF_LOOPBACK == 0, let address = entry.pointee.ifa_addr else { continue }
            if NetworkInterfaces.isGlobal(address) {
                hasAddress = true
            }
        }
    }

    /// Whether an address may lead beyond the link.
    private static func isGlobal(_ address: UnsafePointer<sockaddr>) -> Bool {
        switch Int32(address.pointee.sa_family) {
        case AF_INET: return true
        case AF_INET6:
            let first = UnsafeRawPointer(address).loadUnaligned(
                fromByteOffset: MemoryLayout.offset(of: \sockaddr_in6.sin6_addr) ?? 8, as: UInt16.self)
            // Link-local is fe80::/10 (RFC 4291, section 2.5.6).
            return UInt16(bigEndian: first) & 0xFFC0 != 0xFE80
        default: return false
        }
    }
}
