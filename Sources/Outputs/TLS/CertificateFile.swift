internal import COpenSSL
package import EventLoops
internal import Glibc

/// The certificates of a PEM file, the first one the owner's.
package struct CertificateFile: ~Copyable {
    private let leaf: OpaquePointer
    private let path: String
    /// When they expire, in their order; never empty.
    package let expiries: [Timestamp]

    /// - Throws: `OutputError` with code `badFile` when there is no certificate in it.
    package init(pem: [UInt8], path: String) throws(OutputError) {
        ERR_clear_error()
        let memory = shim_openssl_copy(pem, pem.count)
        defer { BIO_free(memory) }
        guard let leaf = PEM_read_bio_X509(memory, nil, nil, nil) else {
            throw OutputError(.badFile, "\(path) holds no certificate in PEM (-----BEGIN CERTIFICATE-----)")
        }
        self.leaf = leaf
        self.path = path
        var expiries = [CertificateFile.expiry(of: leaf)]
        while let next = PEM_read_bio_X509(memory, nil, nil, nil) {
            expiries.append(CertificateFile.expiry(of: next))
            X509_free(next)
        }
        // The last reading fails for want of another certificate.
        ERR_clear_error()
        self.expiries = expiries
    }

    deinit { X509_free(leaf) }

    /// When the first of them expires.
    var firstExpiry: Timestamp { expiries.reduce(expiries[0], min) }

    /// - Throws: `OutputError` with code `badFile` when there is no key, it is encrypted, or not this certificate's.
    package func checkKey(pem: [UInt8], path keyPath: String) throws(OutputError) {
        ERR_clear_error()
        let memory = shim_openssl_copy(pem, pem.count)
        defer { BIO_free(memory) }
        // Without its own callback the library would ask for a password on the terminal.
        let key = PEM_read_bio_PrivateKey(memory, nil, { _, _, _, _ in -1 }, nil)
        defer { EVP_PKEY_free(key) }
        ERR_clear_error()
        guard let key else {
            throw OutputError(.badFile, "\(keyPath) holds no private key in PEM, or one with a password; take it off")
        }
        let fits = X509_check_private_key(leaf, key) == 1
        ERR_clear_error()
        guard fits else {
            throw OutputError(.badFile, "the key of \(keyPath) does not belong to the certificate of \(path)")
        }
    }

    private static func expiry(of certificate: OpaquePointer) -> Timestamp {
        end(of: certificate) ?? Timestamp(nanoseconds: .max)
    }

    /// When a certificate ends; nil when it does not say so.
    static func end(of certificate: OpaquePointer) -> Timestamp? {
        var time = tm()
        guard ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &time) == 1 else { return nil }
        return Timestamp(milliseconds: Int64(timegm(&time)) * 1000)
    }
}
