internal import COpenSSL
internal import Control
internal import EventLoops

/// A server's certificate and key, ready for connections. Thread-safe: OpenSSL counts the references of a
/// context, which nothing changes after `init`.
final class ServerIdentity: @unchecked Sendable {
    /// OpenSSL's `SSL_CTX *`.
    fileprivate let context: OpaquePointer

    /// - Throws: `ReceiverError` with code `certificate` if certificate and key are unreadable or do not
    ///   belong together.
    init(_ identity: CertificateAuthority.Identity) throws(ReceiverError) {
        guard let context = SSL_CTX_new(TLS_server_method()) else {
            throw ReceiverError(.certificate, "cannot set up OpenSSL: no memory")
        }
        self.context = context
        // OpenSSL's queue of errors belongs to the thread: what is left in it would be reported elsewhere.
        defer { ERR_clear_error() }
        _ = shim_openssl_set_minimum(context, TLS1_2_VERSION)
        shim_openssl_forbid_renegotiation(context)
        guard ServerIdentity.present(identity, in: context) else {
            throw ReceiverError(
                .certificate, "cannot start the server: do certificate and key belong together?")
        }
    }

    deinit { SSL_CTX_free(context) }

    /// Loads the certificate, its chain and its key; false if one is unreadable, or they do not fit.
    private static func present(
        _ identity: CertificateAuthority.Identity, in context: OpaquePointer
    ) -> Bool {
        let certificates = shim_openssl_copy(identity.certificate, identity.certificate.utf8.count)
        let key = shim_openssl_copy(identity.key, identity.key.utf8.count)
        defer {
            BIO_free(certificates)
            BIO_free(key)
        }
        var isFirst = true
        while let certificate = PEM_read_bio_X509(certificates, nil, nil, nil) {
            defer { X509_free(certificate) }
            guard
                isFirst
                    ? SSL_CTX_use_certificate(context, certificate) == 1
                    : shim_openssl_add_to_chain(context, certificate) == 1
            else { return false }
            isFirst = false
        }
        // Without a callback, OpenSSL would ask for a password on the terminal.
        guard let own = PEM_read_bio_PrivateKey(key, nil, { _, _, _, _ in -1 }, nil) else { return false }
        defer { EVP_PKEY_free(own) }
        return SSL_CTX_use_PrivateKey(context, own) == 1 && SSL_CTX_check_private_key(context) == 1
    }
}

/// TLS of one connection on the server's side: OpenSSL on two memory buffers.
final class ServerTLS: ConnectionCipher {
    /// OpenSSL's connection, `SSL *`.
    private let tls: OpaquePointer
    // Memory buffers (BIO) of bytes from and for the network. `tls` owns both and frees them.
    private let incoming: OpaquePointer
    private let outgoing: OpaquePointer

    /// Nil if there is no memory.
    init?(_ identity: ServerIdentity) {
        defer { ERR_clear_error() }
        guard let tls = SSL_new(identity.context) else { return nil }
        guard let incoming = BIO_new(BIO_s_mem()) else {
            SSL_free(tls)
            return nil
        }
        guard let outgoing = BIO_new(BIO_s_mem()) else {
            BIO_free(incoming)
            SSL_free(tls)
            return nil
        }
        SSL_set_bio(tls, incoming, outgoing)
        SSL_set_accept_state(tls)
        self.tls = tls
        self.incoming = incoming
        self.outgoing = outgoing
    }

    deinit {
        SSL_free(tls)
        ERR_clear_error()
    }

    func decrypt(_ bytes: UnsafeRawBufferPointer) -> (bytes: [UInt8], isEnded: Bool) {
        var written = 0
        guard BIO_write_ex(incoming, bytes.baseAddress, bytes.count, &written) == 1 else { return ([], true) }
        var clear: [UInt8] = []
        // As large as the content of the largest record (RFC 8446, section 5.1).
        return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 16_384) { block in
            while true {
                ERR_clear_error()
                // Also does the handshake, as far as its bytes have arrived.
                let count = SSL_read(tls, block.baseAddress, Int32(block.count))
                guard count > 0 else {
                    let error = SSL_get_error(tls, count)
                    ERR_clear_error()
                    return (clear, error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)
                }
                clear.append(contentsOf: block[..<Int(count)])
            }
        }
    }

    func encrypt(_ bytes: [UInt8]) -> [UInt8] {
        var rest = bytes[...]
        // In pieces, because OpenSSL's length is a 32-bit `int`.
        while !rest.isEmpty {
            let piece = rest.prefix(1 << 20)
            let count = piece.withUnsafeBytes { SSL_write(tls, $0.baseAddress, Int32($0.count)) }
            guard count > 0 else { break }
            rest = rest.dropFirst(Int(count))
        }
        ERR_clear_error()
        return takeOutput()
    }

    func takeOutput() -> [UInt8] {
        let count = BIO_ctrl_pending(outgoing)
        guard count > 0 else { return [] }
        var read = 0
        return [UInt8](unsafeUninitializedCapacity: count) { block, size in
            size = BIO_read_ex(outgoing, block.baseAddress, count, &read) == 1 ? read : 0
        }
    }

    func end() -> [UInt8] {
        _ = SSL_shutdown(tls)
        ERR_clear_error()
        return takeOutput()
    }
}
