package import EventLoops
internal import Glibc
internal import Model

/// The certificates of a development receiver: made on first use, kept in a directory, renewed before they
/// expire.
package struct DevelopmentCertificates: Sendable, Equatable {
    /// File of the authority, which clients must trust.
    package let caFile: String
    /// File of the server's certificate.
    package let certificateFile: String
    /// File of the server's private key, readable by its owner only.
    package let keyFile: String

    /// The certificates of a directory, which is made with mode 0700 if it is missing. A week before they
    /// expire, they are made again, with a new authority that clients must trust.
    ///
    /// - Throws: `ReceiverError` with code `file` or `certificate`.
    package init(directory: String, now: Timestamp) throws(ReceiverError) {
        caFile = "\(directory)/ca.pem"
        certificateFile = "\(directory)/server.pem"
        keyFile = "\(directory)/server.key"
        // Missing parent directories are made too, for their owner only.
        for (index, byte) in directory.utf8.enumerated().dropFirst() where byte == UInt8(ascii: "/") {
            mkdir(String(decoding: Array(directory.utf8)[..<index], as: UTF8.self), 0o700)
        }
        if mkdir(directory, 0o700) != 0, errno != EEXIST {
            throw ReceiverError(.file, "cannot make \(directory): \(SystemError.message(errno))")
        }
        guard !isUsable(at: now) else { return }
        let authority = try CertificateAuthority(now: now)
        let identity = try authority.issue(
            .init(notBefore: now - .seconds(3600), notAfter: now + .seconds(825 * 86_400)))
        // The authority's key is discarded: no further certificate can be made that its clients would
        // trust.
        for (path, text, mode) in [
            (keyFile, identity.key, 0o600), (certificateFile, identity.certificate, 0o600),
            (caFile, authority.certificate, 0o644),
        ] as [(String, String, UInt32)] {
            try relaying(try WholeFile.replace(path, with: Array(text.utf8), mode: mode, isDurable: false)) {
                (error: SystemError) in ReceiverError(.file, "cannot write \(path): \(error)")
            }
        }
    }

    /// The server's certificate and key for the receiver.
    ///
    /// - Throws: `ReceiverError` with code `file`.
    package func identity() throws(ReceiverError) -> CertificateAuthority.Identity {
        func text(_ path: String) throws(ReceiverError) -> String {
            let bytes = try relaying(try WholeFile.bytes(of: path, atMost: 1 << 20)) { (error: SystemError) in
                ReceiverError(.file, "\(path) cannot be read: \(error)")
            }
            return String(decoding: bytes ?? [], as: UTF8.self)
        }
        return .init(certificate: try text(certificateFile), key: try text(keyFile))
    }

    /// Whether all files exist and were made in the last 818 days: certificates are valid for 825 days, the
    /// longest that browsers accept.
    private func isUsable(at now: Timestamp) -> Bool {
        [caFile, certificateFile, keyFile].allSatisfy { path in
            guard let status = FileStatus(path), status.size > 0 else { return false }
            let age = now - status.modified
            return age >= .seconds(-3600) && age < .seconds(818 * 86_400 - 3600)
        }
    }
}
