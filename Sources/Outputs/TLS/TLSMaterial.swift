internal import EventLoops
internal import Model

/// The certificates and the key that connections are made with, read again when their files change.
///
/// What is in force is kept in memory. Files that do not fit together (a certificate is there, its key not yet) change
/// nothing: the last good ones stay until both are right.
struct TLSMaterial {
    struct Contents: Equatable {
        var authorities: [UInt8] = []
        var certificate: [UInt8] = []
        var key: [UInt8] = []
    }

    /// What is in force; empty parts mean the system's certificates, and none of its own.
    private(set) var contents = Contents()
    /// When the first of the agent's own certificates expires; nil without one.
    private(set) var certificateExpiry: Timestamp?
    /// When the first of the trusted certificates of `caFile` expires; nil without one.
    private(set) var authorityExpiry: Timestamp?

    private var authorities: WatchedFile?
    private var certificate: WatchedFile?
    private var key: WatchedFile?

    /// Reads the files for the first time; throws as `refresh`.
    init(_ options: TLSOptions) throws(OutputError) {
        authorities = options.caFile.map { WatchedFile(path: $0, limit: 4 << 20) }
        certificate = options.certificateFile.map { WatchedFile(path: $0) }
        key = options.keyFile.map { WatchedFile(path: $0) }
        try refresh()
    }

    var hasFiles: Bool { authorities != nil || certificate != nil }

    var hasChanged: Bool { [authorities, certificate, key].contains { $0?.hasChanged ?? false } }

    /// Reads all files again and checks that they are what they should be.
    ///
    /// - Throws: `OutputError`; what was in force stays so. A file that is wrong is not read again until it changes.
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
