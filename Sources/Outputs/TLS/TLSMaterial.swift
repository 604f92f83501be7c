internal import EventLoops
internal import Model

/// The certificates and the key that a destination's connections use, read again when their files change.
///
/// The content in force is kept in memory. Files that do not fit together (a new certificate whose key is
/// not there yet) change nothing: the last good content stays in force until all files are right. Without
/// this, a renewal in two steps would break connections between the steps.
struct TLSMaterial {
    /// Contents of the files in PEM. If the contents are equal, connections need not be made again.
    struct Contents: Equatable {
        /// Authorities to trust; empty for the system's.
        var authorities: [UInt8] = []
        /// Client certificate with its chain; empty for none.
        var certificate: [UInt8] = []
        /// Private key of the client certificate; empty without one.
        var key: [UInt8] = []
    }

    /// The last good content of all files.
    private(set) var contents = Contents()
    /// Earliest expiry in the client certificate's file; nil without one.
    private(set) var certificateExpiry: Timestamp?
    /// Earliest expiry of the trusted certificates of `caFile`; nil without that setting.
    private(set) var authorityExpiry: Timestamp?

    /// The files; nil for settings that are not set. Without `keyFile` the key is in the certificate's
    /// file.
    private var authorities: WatchedFile?
    private var certificate: WatchedFile?
    private var key: WatchedFile?

    /// Reads the files for the first time; throws as `refresh` does. A bundle of authorities may have 4
    /// MiB, because the system's own has some hundred certificates.
    init(_ options: TLSOptions) throws(OutputError) {
        authorities = options.caFile.map { WatchedFile(path: $0, limit: 4 << 20) }
        certificate = options.certificateFile.map { WatchedFile(path: $0) }
        key = options.keyFile.map { WatchedFile(path: $0) }
        try refresh()
    }

    /// Whether any file is configured.
    var hasFiles: Bool { authorities != nil || certificate != nil }

    /// Whether a file has changed since it was read; costs one `stat` for each file.
    var hasChanged: Bool { [authorities, certificate, key].contains { $0?.hasChanged ?? false } }

    /// Reads all files again and checks that they hold what they should and fit together.
    ///
    /// - Throws: `OutputError`; the content in force stays. A file with a wrong content is not read again
    ///   until it changes.
    mutating func refresh() throws(OutputError) {
        try authorities?.read()
        try certificate?.read()
        try key?.read()
        var next = Contents()
        var ends: (own: Timestamp?, trusted: Timestamp?)
        if let authorities {
            next.authorities = authorities.content
            ends.trusted = try CertificateFile(pem: authorities.content, path: authorities.path).firstExpiry
        }
        if let certificate {
            let parsed = try CertificateFile(pem: certificate.content, path: certificate.path)
            let keyFile = key ?? certificate
            try parsed.checkKey(pem: keyFile.content, path: keyFile.path)
            next.certificate = certificate.content
            next.key = keyFile.content
            ends.own = parsed.firstExpiry
        }
        contents = next
        (certificateExpiry, authorityExpiry) = ends
    }
}
