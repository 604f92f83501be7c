internal import EventLoops
internal import Glibc
internal import Model

/// A secret from the configuration, a file or a systemd credential; read again when its file changes. If
/// the new content cannot be used, the last good secret stays.
struct SecretProvider {
    /// The last good secret.
    private(set) var current: Secret?
    /// The file that holds the secret; nil for a secret in the configuration.
    private var file: WatchedFile?
    /// Whether the secret may have several lines, as a NATS credentials file does.
    private let hasLines: Bool

    /// Reads the secret for the first time.
    ///
    /// - Parameters:
    ///   - hasLines: whether the secret may have several lines.
    ///   - credentialsDirectory: the directory in which systemd puts a service's credentials
    ///     (systemd.exec(5), `LoadCredential=`); nil if systemd did not start the agent.
    /// - Throws: `OutputError` if there is no credentials directory, or as `refresh` does.
    init(
        _ source: SecretSource, hasLines: Bool = false,
        credentialsDirectory: String? = getenv("CREDENTIALS_DIRECTORY").map { String(cString: $0) }
    ) throws(OutputError) {
        self.hasLines = hasLines
        switch source {
        case .inline(let secret):
            current = secret
        case .file(let path):
            file = WatchedFile(path: path, limit: 65_536)
        case .credential(let name):
            guard let credentialsDirectory else {
                throw OutputError(
                    .unreadable,
                    "no $CREDENTIALS_DIRECTORY for credential \(name): add LoadCredential=\(name):… to the unit"
                )
            }
            file = WatchedFile(path: "\(credentialsDirectory)/\(name)", limit: 65_536)
        }
        try refresh()
    }

    var hasFile: Bool { file != nil }

    var hasChanged: Bool { file?.hasChanged ?? false }

    /// Reads the file again. One line feed at the end, which editors add, does not belong to the secret.
    ///
    /// - Throws: `OutputError` if the file is unreadable, blank or holds control characters, which could
    ///   end a header line early; the last good secret stays.
    mutating func refresh() throws(OutputError) {
        try file?.read()
        guard let file else { return }
        var bytes = file.content[...]
        if bytes.last == UInt8(ascii: "\n") {
            bytes.removeLast()
        }
        if bytes.last == UInt8(ascii: "\r") {
            bytes.removeLast()
        }
        guard !bytes.allSatisfy({ $0 <= 0x20 }) else {
            throw OutputError(.badFile, "\(file.path) is empty; it should contain a secret")
        }
        let isGood = bytes.allSatisfy {
            $0 >= 0x20 && $0 != 0x7F || hasLines && [0x09, 0x0A, 0x0D].contains($0)
        }
        guard isGood, let text = String(validating: bytes, as: UTF8.self) else {
            throw OutputError(
                .badFile,
                hasLines
                    ? "\(file.path) is not text"
                    : "\(file.path) contains more than one line of text; it should contain only a secret")
        }
        current = Secret(text)
    }
}
