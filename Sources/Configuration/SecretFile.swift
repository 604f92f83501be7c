internal import Model

/// Where a key or a secret is: `file:/path`, or `credential:name` for a credential that systemd gives the
/// service (systemd.exec(5), `LoadCredential=`).
package enum SecretFile: Sendable, Hashable {
    /// An absolute path.
    case file(String)
    /// Name of a credential.
    case credential(String)

    /// Path of the file.
    ///
    /// - Parameter directory: the directory of credentials, $CREDENTIALS_DIRECTORY; nil if systemd set none.
    package func path(credentials directory: String?) -> String {
        switch self {
        case .file(let path): path
        case .credential(let name): "\(directory ?? "$CREDENTIALS_DIRECTORY")/\(name)"
        }
    }

    /// The setting as it is written.
    var text: String {
        switch self {
        case .file(let path): "file:\(path)"
        case .credential(let name): "credential:\(name)"
        }
    }
}

extension SecretFile {
    /// The type of settings that name such a file.
    static var valueType: ValueType<SecretFile> {
        let text = ValueType<String>.text(maxLength: 4095)
        return ValueType<SecretFile>("file:/path or credential:name") { node throws(Problem) in
            let value = try text.parse(node)
            if value.hasPrefix("file:/") { return .file(String(value.dropFirst(5))) }
            let name = value.dropFirst("credential:".count)
            if value.hasPrefix("credential:"), !name.isEmpty, !name.contains("/") {
                return .credential(String(name))
            }
            // The value may be the secret itself, so it is not quoted.
            throw Problem(
                .outOfRange, "must be \"file:\" and an absolute path, or \"credential:\" and a name")
        } print: {
            .string($0.text)
        }
    }
}
