internal import CBuild
internal import CCurl
internal import CGzip
internal import COpenSSL
internal import CSQLite
internal import CZstd

/// What this binary was built from, for `version`, `diagnose` and the User-Agent of requests.
enum Build {
    /// The version of the program by semver.org.
    static let version = "0.1.0"

    /// The commit that it was built from; the build script passes it, otherwise a placeholder.
    static let commit = String(cString: cbuild_commit())

    /// The compiler, in steps that a `#if compiler` can tell apart. Swift has no other way to ask for it.
    static var toolchain: String {
        #if compiler(>=6.5)
            "Swift 6.5 or newer"
        #elseif compiler(>=6.4)
            "Swift 6.4"
        #elseif compiler(>=6.3.1)
            "Swift 6.3.1"
        #elseif compiler(>=6.3)
            "Swift 6.3"
        #else
            "Swift 6.2"
        #endif
    }

    /// The libraries and the versions that are loaded at run time, which can differ from those of the build.
    /// isa-l is the exception: it can only be asked at build time.
    static var libraries: [(name: String, version: String)] {
        [
            ("sqlite", String(cString: sqlite3_libversion())),
            ("curl", curlVersion),
            ("openssl", OpenSSL_version(OPENSSL_VERSION_STRING).map { String(cString: $0) } ?? "unknown"),
            ("zstd", String(cString: ZSTD_versionString())),
            ("isa-l", String(cString: cgzip_version())),
        ]
    }

    /// curl's own version. curl reports the versions of all its parts in one text, its own first:
    /// `libcurl/7.88.1 OpenSSL/…`.
    private static var curlVersion: String {
        guard let text = curl_version() else { return "unknown" }
        let own = String(cString: text).prefix { $0 != " " }
        return String(own.split(separator: "/").last ?? own)
    }
}
