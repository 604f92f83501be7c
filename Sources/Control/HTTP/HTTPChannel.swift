internal import EventLoops
internal import Glibc

/// A connection's socket, with its encryption if it has one.
struct HTTPChannel: ~Copyable {
    /// Bytes that are read at a time.
    private static let block = 65_536

    let socket: Descriptor
    /// The encryption; nil for plain HTTP.
    private let cipher: (any ConnectionCipher)?

    init(_ socket: consuming Descriptor, _ cipher: (any ConnectionCipher)?) {
        self.socket = socket
        self.cipher = cipher
    }

    /// Reads once what has arrived, and passes the client's bytes on; false if no more will arrive.
    func receive(_ use: (UnsafeRawBufferPointer) -> Void) -> Bool {
        withUnsafeTemporaryAllocation(byteCount: HTTPChannel.block, alignment: 16) { block in
            let count = recv(socket.raw, block.baseAddress, block.count, 0)
            guard count > 0 else { return count < 0 && (errno == EAGAIN || errno == EINTR) }
            let arrived = UnsafeRawBufferPointer(rebasing: block[..<count])
            guard let cipher else {
                use(arrived)
                return true
            }
            let clear = cipher.decrypt(arrived)
            guard put(cipher.takeOutput()) else { return false }
            guard !clear.bytes.isEmpty else { return !clear.isEnded }
            clear.bytes.withUnsafeBytes(use)
            return true
        }
    }

    /// The bytes as they go into the network.
    func encrypted(_ bytes: [UInt8]) -> [UInt8] { cipher?.encrypt(bytes) ?? bytes }

    /// Sends a few bytes at once, without waiting; false if the kernel has no room for all of them.
    func sendNow(_ bytes: [UInt8]) -> Bool { put(encrypted(bytes)) }

    /// Sends bytes that are encrypted already, as many as the kernel accepts; the result of send(2).
    func send(_ bytes: UnsafeRawBufferPointer) -> Int {
        Glibc.send(socket.raw, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
    }

    /// Says that nothing more follows, if the encryption has words for it. To be called when nothing waits.
    func sayEnd() {
        guard let cipher else { return }
        _ = put(cipher.end())
    }

    /// Makes closing the socket a reset: SO_LINGER of no time (socket(7)).
    func resetOnClose() {
        var hard = linger(l_onoff: 1, l_linger: 0)
        _ = setsockopt(
            socket.raw, SOL_SOCKET, SO_LINGER, &hard, socklen_t(MemoryLayout<linger>.size))
    }

    /// Sends encrypted bytes at once; false if the kernel has no room for all of them.
    private func put(_ bytes: [UInt8]) -> Bool {
        bytes.isEmpty || bytes.withUnsafeBytes { send($0) } == bytes.count
    }
}
