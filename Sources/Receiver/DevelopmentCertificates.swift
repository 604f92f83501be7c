public import EventLoops
internal import Glibc

/// The certificates of a development receiver: made on first use, kept in a directory, made anew before they expire.
public struct DevelopmentCertificates: Sendable, Equatable {
    /// The file that clients must trust.
    public let caFile: String
    /// The server's certificate.
    public let certificateFile: String
    /// The server's private key, readable by its owner alone.
    public let keyFile: String

    /// The certificates of a directory, which is made (0700) when it is not there.
    ///
    /// They are renewed, and the authority with them, a week before they expire.
    /// - Throws: `ReceiverError` with code `file` or `certificate`.
    public init(directory: String, now: Timestamp) throws(ReceiverError) {
        caFile = "\(directory)/ca.pem"
        certificateFile = "\(directory)/server.pem"
        keyFile = "\(directory)/server.key"
        // Each directory on the way, for the owner alone.
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
        // The authority's key is thrown away: nobody can make another certificate that its clients would trust.
        try PrivateFile.replace(keyFile, with: identity.key)
        try PrivateFile.replace(certificateFile, with: identity.certificate)
        try PrivateFile.replace(caFile, with: authority.certificate, mode: 0o644)
    }

    /// The server's certificate and key, as the receiver takes them.
    ///
    /// - Throws: `ReceiverError` with code `file`.
    public func identity() throws(ReceiverError) -> CertificateAuthority.Identity {
        .init(certificate: try PrivateFile.read(certificateFile), key: try PrivateFile.read(keyFile))
    }

    /// Whether all files are there and were made in the last 818 days.
    private func isUsable(at now: Timestamp) -> Bool {
        [caFile, certificateFile, keyFile].allSatisfy { path in
            var status = stat()
            // bounded: compared only.
            guard stat(path, &status) == 0, status.st_size > 0 else { return false }
            // bounded: by the type that they become.
            let age = now - Timestamp(seconds: status.st_mtim.tv_sec, nanoseconds: 0)
            return age >= .seconds(-3600) && age < .seconds(818 * 86_400 - 3600)
        }
    }
}

/// Small files that are replaced whole.
public enum PrivateFile {
    /// The text of a file of at most 1 MiB.
    ///
    /// - Throws: `ReceiverError` with code `file`.
    public static func read(_ path: String) throws(ReceiverError) -> String {
        let raw = open(path, O_RDONLY | O_CLOEXEC)
        guard raw >= 0 else { throw ReceiverError(.file, "cannot read \(path): \(SystemError.message(errno))") }
        let file = Descriptor(raw)
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        let count = Glibc.read(file.raw, &buffer, buffer.count)
        guard count > 0 else { throw ReceiverError(.file, "nothing to read in \(path)") }
        return String(decoding: buffer[..<count], as: UTF8.self)
    }

    /// Writes a text under a new name and renames it over the old one.
    ///
    /// - Parameter mode: default: for the owner alone.
    /// - Throws: `ReceiverError` with code `file`.
    public static func replace(_ path: String, with text: String, mode: UInt32 = 0o600) throws(ReceiverError) {
        let draft = "\(path).part"
        unlink(draft)
        let raw = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode)
        guard raw >= 0 else { throw ReceiverError(.file, "cannot make \(draft): \(SystemError.message(errno))") }
        let file = Descriptor(raw)
        let bytes = Array(text.utf8)
        guard write(file.raw, bytes, bytes.count) == bytes.count, rename(draft, path) == 0 else {
            throw ReceiverError(.file, "cannot write \(path): \(SystemError.message(errno))")
        }
    }
}
