internal import COpenSSL
internal import Digests
internal import EventLoops
internal import Glibc
internal import Model

/// TLS over a connection that somebody else reads and writes: bytes of the network in and out, bytes of the talk in and out.
///
/// The other side must show a certificate of a trusted authority for the wanted name, and one of the pinned keys where there
/// are any, before the first byte of the talk goes out. Nothing here blocks or knows a socket.
final class TLSSession {
    enum Handshake: Equatable {
        /// More is to be sent or received.
        case pending
        /// Both sides trust each other, as far as this side knows.
        case done
        /// It came to nothing.
        case failed(Failure)
    }

    private let tls: OpaquePointer
    // Both belong to `tls`.
    private let incoming: OpaquePointer
    private let outgoing: OpaquePointer
    private let host: String
    private let pinnedKeys: [String]
    /// Why the other side's certificate was not accepted.
    private let verdict = UnsafeMutablePointer<shim_openssl_verdict>.allocate(capacity: 1)

    /// - Parameter host: the name, or the number, that the certificate must be for.
    /// - Throws: `OutputError` with code `badFile` or `library`.
    init(
        _ contents: TLSMaterial.Contents, _ options: TLSOptions, host: String,
        authorities: SystemAuthorities = SystemAuthorities.find()
    ) throws(OutputError) {
        ERR_clear_error()
        guard let context = SSL_CTX_new(TLS_client_method()) else { throw TLSSession.noMemory }
        // The session keeps it for as long as it needs it.
        defer {
            SSL_CTX_free(context)
            ERR_clear_error()
        }
        verdict.initialize(to: shim_openssl_verdict())
        shim_openssl_note_verdict(context, verdict)
        try TLSSession.prepare(context, contents, options, authorities)
        guard let tls = SSL_new(context) else { throw TLSSession.noMemory }
        guard let incoming = BIO_new(BIO_s_mem()), let outgoing = BIO_new(BIO_s_mem()) else {
            SSL_free(tls)
            throw TLSSession.noMemory
        }
        SSL_set_bio(tls, incoming, outgoing)
        SSL_set_connect_state(tls)
        if host.isHostNumber {
            X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls), host)
        } else {
            SSL_set_hostflags(tls, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
            SSL_set1_host(tls, host)
            _ = shim_openssl_set_server_name(tls, host)
        }
        self.tls = tls
        self.incoming = incoming
        self.outgoing = outgoing
        self.host = host
        pinnedKeys = options.pinnedKeys
    }

    deinit {
        SSL_free(tls)
        verdict.deallocate()
        ERR_clear_error()
    }

    static let noMemory = OutputError(.library, "OpenSSL could not be set up: no memory")

    private static func prepare(
        _ context: OpaquePointer, _ contents: TLSMaterial.Contents, _ options: TLSOptions,
        _ authorities: SystemAuthorities
    ) throws(OutputError) {
        let version = options.minimumVersion == .tls13 ? TLS1_3_VERSION : TLS1_2_VERSION
        guard shim_openssl_set_minimum(context, version) == 1 else { throw noMemory }
        shim_openssl_forbid_renegotiation(context)
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
        if !contents.authorities.isEmpty {
            try CertificateFile(pem: contents.authorities, path: "ca_file").trust(in: context)
        } else if case .directory(let path) = authorities {
            SSL_CTX_load_verify_dir(context, path)
        } else {
            SSL_CTX_set_default_verify_paths(context)
        }
        guard !contents.certificate.isEmpty else { return }
        try CertificateFile(pem: contents.certificate, path: "certificate_file").present(in: context, key: contents.key)
    }

    func receive(_ bytes: ArraySlice<UInt8>) {
        var written = 0
        // A memory BIO takes all, or there is no memory: then the session starves and its connection times out.
        _ = bytes.withUnsafeBytes { BIO_write_ex(incoming, $0.baseAddress, $0.count, &written) }
    }

    /// The bytes that are to go into the network now.
    func takeOutput() -> [UInt8] {
        let count = BIO_ctrl_pending(outgoing)
        guard count > 0 else { return [] }
        var bytes = [UInt8](repeating: 0, count: count)
        var read = 0
        guard BIO_read_ex(outgoing, &bytes, count, &read) == 1 else { return [] }
        return Array(bytes[..<read])
    }

    func shakeHands() -> Handshake {
        ERR_clear_error()
        let result = SSL_do_handshake(tls)
        guard result != 1 else {
            return isPinned ? .done : .failed(Failure(kind: .tls, message: TransferFailure.unpinned(host)))
        }
        switch SSL_get_error(tls, result) {
        case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: return .pending
        default: return .failed(failure())
        }
    }

    /// What the other side has said, and the failure when TLS has ended, good or bad: then nothing more comes.
    func read() -> (bytes: [UInt8], end: Failure?) {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while true {
            ERR_clear_error()
            let count = SSL_read(tls, &buffer, Int32(buffer.count))
            if count > 0 {
                bytes.append(contentsOf: buffer[..<Int(count)])
                continue
            }
            switch SSL_get_error(tls, count) {
            case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: return (bytes, nil)
            case SSL_ERROR_ZERO_RETURN:
                return (bytes, Failure(kind: .connection, message: "\(host) closed the connection"))
            default: return (bytes, failure())
            }
        }
    }

    /// Says something; false when it could not be packed, as after a failure.
    func write(_ bytes: ArraySlice<UInt8>) -> Bool {
        var rest = bytes
        while !rest.isEmpty {
            ERR_clear_error()
            let piece = rest.prefix(1 << 20)
            let count = piece.withUnsafeBytes { SSL_write(tls, $0.baseAddress, Int32($0.count)) }
            guard count > 0 else { return false }
            rest = rest.dropFirst(Int(count))
        }
        return true
    }

    /// When the other side's certificate ends; nil before the handshake.
    var peerExpiry: Timestamp? { CertificateFile.peerEnd(of: tls) }

    private var isPinned: Bool {
        guard !pinnedKeys.isEmpty else { return true }
        guard let certificate = SSL_get1_peer_certificate(tls) else { return false }
        defer { X509_free(certificate) }
        var encoded: UnsafeMutablePointer<UInt8>?
        let count = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &encoded)
        guard count > 0, let encoded else { return false }
        defer { shim_openssl_free(encoded) }
        let key = Array(UnsafeBufferPointer(start: encoded, count: Int(count)))
        return pinnedKeys.contains("sha256//\(Base64.encode(SHA256.bytes(key)))")
    }

    /// What the library says of the last call.
    private func failure() -> Failure {
        var text = [CChar](repeating: 0, count: 256)
        let code = ERR_get_error()
        ERR_clear_error()
        guard code != 0 else { return Failure(kind: .tls, message: "\(host) broke off TLS") }
        ERR_error_string_n(code, &text, text.count)
        let said = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        if let refusal = TransferFailure.refusedByServer(said, host) { return Failure(kind: .tls, message: refusal) }
        guard verdict.pointee.error == X509_V_OK else {
            let about = String(cString: X509_verify_cert_error_string(Int(verdict.pointee.error)))
            return Failure(kind: .tls, message: TransferFailure.verification(verdict.pointee, host, about))
        }
        return Failure(kind: .tls, message: TransferFailure.noTLS(host, said))
    }
}
