internal import COpenSSL
package import EventLoops
internal import Glibc

/// The certificates of a PEM file: a bundle of authorities, or a certificate with its chain, the owner's
/// first.
///
/// Used for three things: expiry for metrics, the check that certificate and key fit, and loading into
/// OpenSSL. Owns OpenSSL's objects, which is why it cannot be copied.
package struct CertificateFile: ~Copyable {
    // OpenSSL's `X509` objects, in the order of the file; never empty.
    private let certificates: [OpaquePointer]
    /// The file's name, for messages only.
    private let path: String

    /// Parses all certificates of a file's content.
    ///
    /// - Throws: `OutputError` with code `badFile` if the content has no certificate.
    package init(pem: [UInt8], path: String) throws(OutputError) {
        self.path = path
        let memory = shim_openssl_copy(pem, pem.count)
        // Reading ends with an error, because no further certificate is there. OpenSSL's error queue
        // belongs to the thread: an error left in it would be reported as the reason of an unrelated later
        // failure.
        defer {
            BIO_free(memory)
            ERR_clear_error()
        }
        certificates = Array(sequence(state: ()) { _ in PEM_read_bio_X509(memory, nil, nil, nil) })
        guard !certificates.isEmpty else {
            throw OutputError(
                .badFile, "\(path) contains no certificate in PEM (-----BEGIN CERTIFICATE-----)")
        }
    }

    deinit { for certificate in certificates { X509_free(certificate) } }

    /// Expiry of each certificate, in the order of the file; never empty. A certificate with an unreadable
    /// date counts as one that never expires.
    package var expiries: [Timestamp] {
        certificates.map { CertificateFile.end(of: $0) ?? Timestamp(nanoseconds: .max) }
    }

    /// Earliest of the expiries.
    var firstExpiry: Timestamp? { expiries.min() }

    /// Checks that the first certificate and a private key belong together, so that a half-finished renewal
    /// is noticed before the old pair is given up.
    ///
    /// - Throws: `OutputError` with code `badFile` if there is no key, it has a password, or it belongs to
    ///   another certificate.
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

    /// Adds the certificates to the authorities that a TLS context trusts.
    func trust(in context: OpaquePointer) throws(OutputError) {
        let store = SSL_CTX_get_cert_store(context)
        guard certificates.allSatisfy({ X509_STORE_add_cert(store, $0) == 1 }) else {
            throw TLSSession.noMemory
        }
    }

    /// Makes a TLS context present the first certificate with its key to servers, and the others as its
    /// chain.
    func present(in context: OpaquePointer, key pem: [UInt8]) throws(OutputError) {
        let key = CertificateFile.key(pem)
        defer { EVP_PKEY_free(key) }
        guard let key, SSL_CTX_use_certificate(context, certificates[0]) == 1,
            certificates.dropFirst().allSatisfy({ shim_openssl_add_to_chain(context, $0) == 1 }),
            SSL_CTX_use_PrivateKey(context, key) == 1
        else { throw OutputError(.badFile, "the client's certificate and key cannot be used") }
    }

    /// The private key of PEM text, which the caller must free; nil if the text has no key, or one with a
    /// password.
    private static func key(_ pem: [UInt8]) -> OpaquePointer? {
        let memory = shim_openssl_copy(pem, pem.count)
        defer {
            BIO_free(memory)
            ERR_clear_error()
        }
        // Without a callback, OpenSSL would ask for a password on the terminal and block the agent.
        return PEM_read_bio_PrivateKey(memory, nil, { _, _, _, _ in -1 }, nil)
    }

    /// Expiry of the certificate that the other side of a connection presented; nil if it presented none.
    static func peerEnd(of tls: OpaquePointer) -> Timestamp? {
        guard let certificate = SSL_get1_peer_certificate(tls) else { return nil }
        defer { X509_free(certificate) }
        return end(of: certificate)
    }

    /// Expiry of a certificate; nil if its date is unreadable.
    private static func end(of certificate: OpaquePointer) -> Timestamp? {
        var time = tm()
        guard ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &time) == 1 else { return nil }
        return Timestamp(milliseconds: Int64(timegm(&time)) * 1000)
    }
}
