internal import COpenSSL
internal import Digests
internal import EventLoops
internal import Glibc
internal import Model

/// TLS of one client connection, without a socket: OpenSSL on two memory buffers. Bytes from the network go
/// in with `receive` and come out with `read`; bytes to say go in with `write` and come out with
/// `takeOutput`.
///
/// The server must present a certificate of a trusted authority for the expected name, and one of the
/// pinned keys if there are any, before the first byte of the application goes out. Nothing here blocks.
final class TLSSession {
    /// The state of a handshake after a step.
    enum Handshake: Equatable {
        /// The handshake needs more bytes of the other side, or its output must be sent.
        case pending
        /// The handshake is complete on this side. A TLS 1.3 server may still refuse the client certificate
        /// afterwards.
        case done
        /// The handshake failed; the connection is useless.
        case failed(Failure)
    }

    /// OpenSSL's connection, `SSL *`.
    private let tls: OpaquePointer
    // Memory buffers (BIO) of bytes from and for the network. `tls` owns both and frees them.
    private let incoming: OpaquePointer
    private let outgoing: OpaquePointer
    /// The server's name, for messages.
    private let host: String
    /// Hashes of public keys that are accepted, `sha256//…` as in libcurl; empty for any key.
    private let pinnedKeys: [String]
    /// Why the server's certificate was not accepted. On the heap, because OpenSSL's callback keeps the
    /// address.
    private let verdict = UnsafeMutablePointer<shim_openssl_verdict>.allocate(capacity: 1)

    /// Prepares a client session; nothing is sent yet.
    ///
    /// - Parameters:
    ///   - contents: certificates and key in force.
    ///   - host: the name or the IP address that the server's certificate must be for.
    ///   - authorities: the system's authorities, for `contents` without any.
    /// - Throws: `OutputError` with code `badFile` or `library`.
    init(
        _ contents: TLSMaterial.Contents, _ options: TLSOptions, host: String,
        authorities: SystemAuthorities = SystemAuthorities.find()
    ) throws(OutputError) {
        ERR_clear_error()
        guard let context = SSL_CTX_new(TLS_client_method()) else { throw TLSSession.noMemory }
        // OpenSSL counts references: `SSL_new` takes one, so the context lives as long as the session.
        defer {
            SSL_CTX_free(context)
            ERR_clear_error()
        }
        verdict.initialize(to: shim_openssl_verdict())
        verdict.pointee.allows_common_name = options.allowsCommonName ? 1 : 0
        shim_openssl_note_verdict(context, verdict)
        try TLSSession.prepare(context, contents, options, authorities)
        guard let tls = SSL_new(context) else { throw TLSSession.noMemory }
        guard let incoming = BIO_new(BIO_s_mem()), let outgoing = BIO_new(BIO_s_mem()) else {
            SSL_free(tls)
            throw TLSSession.noMemory
        }
        SSL_set_bio(tls, incoming, outgoing)
        SSL_set_connect_state(tls)
        // An address is compared with the certificate's IP entries; a server name (SNI) must not be sent
        // for it (RFC 6066, section 3). For a name, `*.example.org` counts, and `w*.example.org` does not
        // (RFC 9525, section 6.3).
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

    /// The error if OpenSSL cannot allocate.
    static let noMemory = OutputError(.library, "OpenSSL could not be set up: no memory")

    /// Sets version, authorities and client certificate of a new context. Renegotiation is refused: it
    /// would let a server ask for a second handshake at any time.
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
        try CertificateFile(pem: contents.certificate, path: "certificate.file").present(
            in: context, key: contents.key)
    }

    /// Takes bytes that came from the network.
    func receive(_ bytes: ArraySlice<UInt8>) {
        var written = 0
        // A memory BIO accepts all bytes unless there is no memory. In that case the session gets no more
        // input, and the connection ends by its timeout.
        _ = bytes.withUnsafeBytes { BIO_write_ex(incoming, $0.baseAddress, $0.count, &written) }
    }

    /// Removes and returns the bytes that must go into the network now. To be called after each other call:
    /// also reading may produce output, such as an alert or a key update.
    func takeOutput() -> [UInt8] {
        let count = BIO_ctrl_pending(outgoing)
        guard count > 0 else { return [] }
        var bytes = [UInt8](repeating: 0, count: count)
        var read = 0
        guard BIO_read_ex(outgoing, &bytes, count, &read) == 1 else { return [] }
        return Array(bytes[..<read])
    }

    /// Continues the handshake as far as the received bytes allow; checks the pinned keys when it is
    /// complete.
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

    /// The bytes decrypted since the last call. `end` is set once TLS has ended, orderly or not; no bytes
    /// follow then.
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

    /// Encrypts bytes; false if TLS has ended. In pieces of 1 MiB, because OpenSSL's length is a 32-bit
    /// `int`.
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

    /// Produces the `close_notify` alert, which says that this side sends nothing more.
    func end() {
        ERR_clear_error()
        _ = SSL_shutdown(tls)
        ERR_clear_error()
    }

    /// Expiry of the server's certificate; nil before the handshake.
    var peerExpiry: Timestamp? { CertificateFile.peerEnd(of: tls) }

    /// Whether the server's public key is one of the pinned keys; true if none is pinned. The hash is over
    /// the DER form of the public key (SubjectPublicKeyInfo), as in RFC 7469, section 2.4.
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

    /// The failure that OpenSSL's error queue describes, as a message that says what to do.
    private func failure() -> Failure {
        var text = [CChar](repeating: 0, count: 256)
        let code = ERR_get_error()
        ERR_clear_error()
        guard code != 0 else { return Failure(kind: .tls, message: "\(host) broke off TLS") }
        ERR_error_string_n(code, &text, text.count)
        let said = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        if let refusal = TransferFailure.refusedByServer(said, host) {
            return Failure(kind: .tls, message: refusal)
        }
        guard verdict.pointee.error == X509_V_OK else {
            let about = String(cString: X509_verify_cert_error_string(Int(verdict.pointee.error)))
            return Failure(kind: .tls, message: TransferFailure.verification(verdict.pointee, host, about))
        }
        return Failure(kind: .tls, message: TransferFailure.noTLS(host, said))
    }
}
