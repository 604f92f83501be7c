import COpenSSL
import EventLoops
import Glibc
import Receiver
import Synchronization
import Testing

/// A server that does exactly what a script says, byte by byte, over real TLS or none.
///
/// Each connection runs the script on a thread of its own, which ends when the script does or the other side is gone.
final class ScriptedPeer: Sendable {
    /// What a script works with.
    struct Connection {
        /// Which connection it is, from 0.
        let number: Int
        fileprivate let socket: Int32
        fileprivate let tls: OpaquePointer?
        fileprivate let listener: Int32

        /// Some bytes; none when the other side is gone.
        func read() -> [UInt8] {
            var buffer = [UInt8](repeating: 0, count: 65_536)
            let count =
                tls.map { Int(SSL_read($0, &buffer, Int32(buffer.count))) }
                ?? Glibc.read(socket, &buffer, buffer.count)
            return count > 0 ? Array(buffer[..<count]) : []
        }

        /// Whether the other side took them.
        @discardableResult
        func write(_ bytes: some Collection<UInt8>) -> Bool {
            let bytes = Array(bytes)
            if let tls { return SSL_write(tls, bytes, Int32(bytes.count)) > 0 }
            return send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count
        }

        @discardableResult
        func write(_ text: String) -> Bool { write(text.utf8) }

        /// A whole request; nil when the other side is gone.
        func request() -> (head: String, body: [UInt8])? {
            var bytes: [UInt8] = []
            while true {
                if let end = bytes.firstRange(of: Array("\r\n\r\n".utf8)) {
                    let head = String(decoding: bytes[..<end.lowerBound], as: UTF8.self)
                    let length = head.split(separator: "\r\n").compactMap { line -> Int? in
                        let parts = line.split(separator: ":")
                        guard parts[0].lowercased() == "content-length" else { return nil }
                        return Int(parts[1].filter { $0 != " " })
                    }
                    let wanted = length.first ?? 0
                    var body = Array(bytes[end.upperBound...])
                    while body.count < wanted {
                        let more = read()
                        if more.isEmpty { return nil }
                        body += more
                    }
                    return (head, body)
                }
                let more = read()
                if more.isEmpty { return nil }
                bytes += more
            }
        }

        /// Says nothing until the other side is gone.
        func hang() {
            while !read().isEmpty {}
        }

        /// Ends the connection hard.
        func reset() {
            var hard = linger(l_onoff: 1, l_linger: 0)
            setsockopt(socket, SOL_SOCKET, SO_LINGER, &hard, socklen_t(MemoryLayout<linger>.size))
        }

        /// Takes no further connections.
        func closeListener() { shutdown(listener, Int32(SHUT_RDWR)) }

        /// Lets a little time pass: a peer that is slow is what is tested.
        func pause(milliseconds: UInt32) { usleep(milliseconds * 1000) }
    }

    let port: UInt16
    private let listener: Int32
    private let accepted = Atomic<Int>(0)
    private let closed = Atomic<Int>(0)
    private let script: @Sendable (Connection) -> Void
    private let isTLS: Bool
    // Made in init and used by OpenSSL's functions, which count references under locks of their own.
    nonisolated(unsafe) private let context: OpaquePointer?

    /// - Parameters:
    ///   - identity: nil speaks no TLS.
    ///   - clientAuthority: the PEM of the authority whose clients alone are let in.
    ///   - http2: whether it agrees to HTTP/2 (ALPN).
    init(
        _ identity: CertificateAuthority.Identity?, clientAuthority: String? = nil, http2: Bool = false,
        _ script: @escaping @Sendable (Connection) -> Void
    ) throws {
        self.script = script
        isTLS = identity != nil
        context = try identity.map { try ScriptedPeer.context($0, clientAuthority) }
        if http2, let context { ScriptedPeer.agreeToHTTP2(context) }
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listener = listener
        let bound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && listen(listener, 64) == 0
                    && getsockname(listener, $0, &length) == 0
            }
        }
        try #require(bound)
        port = UInt16(bigEndian: address.sin_port)
        thread {
            while true {
                let socket = accept(listener, nil, nil)
                guard socket >= 0 else { break }
                self.serve(socket)
            }
            close(listener)
        }
    }

    var connections: Int { accepted.load(ordering: .acquiring) }
    /// Connections whose script ended, and whose end the kernel has sent.
    var closedConnections: Int { closed.load(ordering: .acquiring) }
    var url: String { "\(isTLS ? "https" : "http")://127.0.0.1:\(port)/" }

    func stop() { shutdown(listener, Int32(SHUT_RDWR)) }

    private func serve(_ socket: Int32) {
        let number = accepted.add(1, ordering: .acquiringAndReleasing).oldValue
        thread { [self] in
            let tls = context.flatMap { SSL_new($0) }
            if let tls {
                SSL_set_fd(tls, socket)
                guard SSL_accept(tls) == 1 else {
                    SSL_free(tls)
                    close(socket)
                    return
                }
            }
            script(Connection(number: number, socket: socket, tls: tls, listener: listener))
            SSL_free(tls)
            close(socket)
            closed.add(1, ordering: .acquiringAndReleasing)
        }
    }

    private static func agreeToHTTP2(_ context: OpaquePointer) {
        SSL_CTX_set_alpn_select_cb(
            context,
            { _, chosen, length, offered, count, _ in
                // Names with their lengths in front: the client's own bytes for "h2" are the answer.
                var place = 0
                while let offered, place < Int(count) {
                    let size = Int(offered[place])
                    if size == 2, offered[place + 1] == UInt8(ascii: "h"),
                        offered[place + 2] == UInt8(ascii: "2")
                    {
                        chosen?.pointee = offered + place + 1
                        length?.pointee = 2
                        return SSL_TLSEXT_ERR_OK
                    }
                    place += 1 + size
                }
                return SSL_TLSEXT_ERR_NOACK
            }, nil)
    }

    private static func context(
        _ identity: CertificateAuthority.Identity, _ clientAuthority: String?
    ) throws -> OpaquePointer {
        let context = try #require(SSL_CTX_new(TLS_server_method()))
        let certificateMemory = shim_openssl_copy(identity.certificate, identity.certificate.utf8.count)
        let keyMemory = shim_openssl_copy(identity.key, identity.key.utf8.count)
        defer {
            BIO_free(certificateMemory)
            BIO_free(keyMemory)
        }
        let certificate = try #require(PEM_read_bio_X509(certificateMemory, nil, nil, nil))
        let key = try #require(PEM_read_bio_PrivateKey(keyMemory, nil, nil, nil))
        try #require(
            SSL_CTX_use_certificate(context, certificate) == 1 && SSL_CTX_use_PrivateKey(context, key) == 1)
        if let clientAuthority {
            let memory = shim_openssl_copy(clientAuthority, clientAuthority.utf8.count)
            defer { BIO_free(memory) }
            let authority = try #require(PEM_read_bio_X509(memory, nil, nil, nil))
            try #require(X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority) == 1)
            SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
        }
        return context
    }
}

/// Runs a closure on a thread of its own, with signals left to others.
private func thread(_ body: @escaping @Sendable () -> Void) {
    final class Box {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
    var id = pthread_t()
    let box = Unmanaged.passRetained(Box(body))
    pthread_create(
        &id, nil,
        { argument in
            var pipe = sigset_t()
            sigemptyset(&pipe)
            sigaddset(&pipe, SIGPIPE)
            pthread_sigmask(SIG_BLOCK, &pipe, nil)
            if let argument { Unmanaged<Box>.fromOpaque(argument).takeRetainedValue().body() }
            return nil
        }, box.toOpaque())
    pthread_detach(id)
}
