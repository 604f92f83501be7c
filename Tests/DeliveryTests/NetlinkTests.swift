import CNetlink
import Glibc
import TestKit
import Testing

/// What answers about routes may look like, of whatever length they say they are. A pair of datagram sockets is in the kernel's place.
@Suite("rtnetlink messages", .timeLimit(.minutes(1)))
struct NetlinkTests {
    /// `RTM_NEWROUTE` and `NLMSG_ERROR`. Source: linux/rtnetlink.h, linux/netlink.h.
    private static let newRoute: UInt16 = 24
    private static let error: UInt16 = 2

    /// A header that says so much of its message, and the message.
    private func message(_ type: UInt16, length: UInt32? = nil, sequence: UInt32, _ body: [UInt8]) -> [UInt8]
    {
        let length = length ?? UInt32(16 + body.count)
        return bytes(length) + bytes(type) + bytes(UInt16(0)) + bytes(sequence) + bytes(UInt32(0)) + body
    }

    private func bytes<Number: FixedWidthInteger>(_ number: Number) -> [UInt8] {
        withUnsafeBytes(of: number) { Array($0) }
    }

    /// A route of type 1 by an interface: `struct rtmsg` and one attribute.
    private func route(interface: UInt32) -> [UInt8] {
        [2, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0] + bytes(UInt16(8)) + bytes(UInt16(4)) + bytes(interface)
    }

    /// What is read of these datagrams: 1, 0 or -1, and the route.
    private func read(_ datagrams: [[UInt8]], sequence: UInt32 = 7) throws -> (Int32, cnetlink_route) {
        var pair: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue), 0, &pair) == 0)
        defer { for descriptor in pair { close(descriptor) } }
        for datagram in datagrams {
            try #require(
                datagram.withUnsafeBytes { send(pair[0], $0.baseAddress, $0.count, 0) } == datagram.count)
        }
        var found = cnetlink_route()
        return (cnetlink_read_route(pair[1], sequence, &found), found)
    }

    @Test("an answer is found behind other messages, and in a later datagram")
    func found() throws {
        let other = message(Self.newRoute, sequence: 6, route(interface: 1))
        let (one, behind) = try read([other + message(Self.newRoute, sequence: 7, route(interface: 5))])
        #expect(one == 1 && behind.interface == 5 && behind.type == 1 && behind.error == 0)
        let (two, later) = try read([other, message(Self.error, sequence: 7, bytes(-ENETUNREACH) + other)])
        #expect(two == 1 && later.error == ENETUNREACH)
        #expect(try read([other]).0 == 0)
    }

    @Test("a last message with an unaligned length ends the datagram, and nothing beyond it is read")
    func unaligned() throws {
        for length in UInt32(16)...20 {
            // Rounded up, it is longer than what was received.
            let odd = message(9, length: length, sequence: 7, Array(repeating: 0xFF, count: Int(length) - 16))
            #expect(try read([odd]).0 == 0, "\(length)")
            let (result, route) = try read([odd, message(Self.newRoute, sequence: 7, route(interface: 3))])
            #expect(result == 1 && route.interface == 3, "\(length)")
        }
    }

    @Test(
        "reading ends, whatever lengths messages and attributes claim",
        arguments: 0..<20 as Range<UInt64>)
    func anyLengths(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<500 {
            var datagram: [UInt8] = []
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                var body = route(interface: 3)
                for _ in 0..<Int.random(in: 0...6, using: &random) {
                    body[Int.random(in: 0..<body.count, using: &random)] = UInt8.random(
                        in: 0...255, using: &random)
                }
                body.removeLast(Int.random(in: 0...body.count, using: &random))
                let lengths: [UInt32?] = [nil, 0, 15, 16, 17, 27, 33, 37, 0x7FFF_FFFF, .max]
                let said = lengths.randomElement(using: &random) ?? nil
                let types: [UInt16] = [Self.newRoute, Self.error, 9]
                let type = types.randomElement(using: &random) ?? 9
                datagram += message(
                    type, length: said, sequence: UInt32.random(in: 6...7, using: &random), body)
            }
            let (result, _) = try read([datagram])
            #expect(result == 0 || result == 1)
        }
    }
}
