internal import COpenSSL
internal import Glibc

/// Reads certificates and keys as the agent will, to tell before it does what is wrong with them.
enum PEMFile {
    /// What is wrong with a file of certificates.
    enum Mistake: Error, Equatable {
        /// There is no certificate in it.
        case noCertificate
        /// There is no private key in it that can be read without a passphrase.
        case noKey
        /// The key is another certificate's.
        case otherKey
    }

    /// The whole seconds until the first certificate (or, of several, the last to do so) ends; negative when it has.
    ///
    /// - Parameter chain: whether the first certificate counts (our own, then its issuers), or the best of all (CAs).
    static func secondsLeft(of text: [UInt8], chain: Bool) throws(Mistake) -> Int {
        let bio = try memory(text)
        defer { BIO_free(bio) }
        var best: Int?
        while let certificate = PEM_read_bio_X509(bio, nil, nil, nil) {
            defer { X509_free(certificate) }
            var days: Int32 = 0
            var seconds: Int32 = 0
            guard ASN1_TIME_diff(&days, &seconds, nil, X509_get0_notAfter(certificate)) == 1 else { continue }
            // bounded: both have 32 bits.
            let left = Int(days) * 86_400 + Int(seconds)
            best = max(best ?? left, left)
            if chain { break }
        }
        ERR_clear_error()
        guard let best else { throw .noCertificate }
        return best
    }

    /// Looks whether a key is the first certificate's.
    static func matchKey(_ key: [UInt8], certificate: [UInt8]) throws(Mistake) {
        defer { ERR_clear_error() }
        let certificates = try memory(certificate)
        defer { BIO_free(certificates) }
        guard let first = PEM_read_bio_X509(certificates, nil, nil, nil) else { throw .noCertificate }
        defer { X509_free(first) }
        let keys = try memory(key)
        defer { BIO_free(keys) }
        // A key with a passphrase must not ask for it on the terminal.
        guard let found = PEM_read_bio_PrivateKey(keys, nil, { _, _, _, _ in 0 }, nil) else { throw .noKey }
        defer { EVP_PKEY_free(found) }
        guard X509_check_private_key(first, found) == 1 else { throw .otherKey }
    }

    private static func memory(_ text: [UInt8]) throws(Mistake) -> OpaquePointer {
        // The library copies nothing: it is given memory of its own.
        guard let bio = BIO_new(BIO_s_mem()) else { throw .noCertificate }
        guard text.isEmpty || BIO_write(bio, text, Int32(clamping: text.count)) == Int32(clamping: text.count) else {
            BIO_free(bio)
            throw .noCertificate
        }
        return bio
    }
}
