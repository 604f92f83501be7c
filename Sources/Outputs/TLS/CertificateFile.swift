internal import COpenSSL
package import EventLoops
internal import Glibc

/// The certificates of a PEM file, the first one the owner's.
package struct CertificateFile: ~Copyable {
    // Never empty.
    private let certificates: [OpaquePointer]
    private let path: String

    /// - Throws: `OutputError` with code `badFile` when there is no certificate in it.
    package init(pem: [UInt8], path: String) throws(OutputError) {
        self.path = path
        let memory = shim_openssl_copy(pem, pem.count)
        // The last reading fails for want of another certificate.
        defer {
            BIO_free(memory)
            ERR_clear_error()
        }
        certificates = Array(sequence(state: ()) { _ in PEM_read_bio_X509(memory, nil, nil, nil) })
        guard !certificates.isEmpty else {
            throw OutputError(.badFile, "\(path) contains no certificate in PEM (-----BEGIN CERTIFICATE-----)")
        }
    }

    deinit { for certificate in certificates { X509_free(certificate) } }

    /// When they expire, in their order; never empty.
    package var expiries: [Timestamp] {
        certificates.map { CertificateFile.end(of: $0) ?? Timestamp(nanoseconds: .max) }
    }

    var firstExpiry: Timestamp? { expiries.min() }

    /// - Throws: `OutputError` with code `badFile` when there is no key, it is encrypted, or not this certificate's.
    package func checkKey(pem: [UInt8], path keyPath: String) throws(OutputError) {
        let key = CertificateFile.key(pem)
        defer { EVP_PKEY_free(key) }
        guard let key else {
            throw OutputError(.badFile, "\(keyPath) contains no private key in PEM, or one with a password")
        }
        let fits = X509_check_private_key(certificates[0], key) == 1
        ERR_clear_error()
        guard fits else {
            throw OutputError(.badFile, "the key of \(keyPath) does not belong to the certificate of \(path)")
        }
    }

    /// Has them trusted, and those that they vouch for.
    func trust(in context: OpaquePointer) throws(OutputError) {
        let store = SSL_CTX_get_cert_store(context)
        guard certificates.allSatisfy({ X509_STORE_add_cert(store, $0) == 1 }) else { throw TLSSession.noMemory }
    }

    /// Has them shown to servers, with the owner's key.
    func present(in context: OpaquePointer, key pem: [UInt8]) throws(OutputError) {
        let key = CertificateFile.key(pem)
        defer { EVP_PKEY_free(key) }
        guard let key, SSL_CTX_use_certificate(context, certificates[0]) == 1,
            certificates.dropFirst().allSatisfy({ shim_openssl_add_to_chain(context, $0) == 1 }),
            SSL_CTX_use_PrivateKey(context, key) == 1
        else { throw OutputError(.badFile, "the client's certificate and key cannot be used") }
    }

    /// The private key of a PEM file, for the caller to free; nil when there is none, or one with a password.
    private static func key(_ pem: [UInt8]) -> OpaquePointer? {
        let memory = shim_openssl_copy(pem, pem.count)
        defer {
            BIO_free(memory)
            ERR_clear_error()
        }
        // Without its own callback the library would ask for a password on the terminal.
        return PEM_read_bio_PrivateKey(memory, nil, { _, _, _, _ in -1 }, nil)
    }

    /// When the certificate ends that the other side of a connection has shown; nil without one.
    static func peerEnd(of tls: OpaquePointer) -> Timestamp? {
        guard let certificate = SSL_get1_peer_certificate(tls) else { return nil }
        defer { X509_free(certificate) }
        return end(of: certificate)
    }

    /// When a certificate ends; nil when it does not say so.
    private static func end(of certificate: OpaquePointer) -> Timestamp? {
        var time = tm()
        guard ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &time) == 1 else { return nil }
        return Timestamp(milliseconds: Int64(timegm(&time)) * 1000)
    }
}
