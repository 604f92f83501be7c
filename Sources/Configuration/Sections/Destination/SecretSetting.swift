internal import Model

extension Entry where Owner: SettingsSection {
    /// The rows of a secret: the secret itself, a file, a credential.
    ///
    /// - Parameters:
    ///   - inline: the property of the secret itself, and its reason; nil if a secret is too long for a line.
    ///   - what: what the file and the credential contain, for messages: `the token`.
    ///   - example: a secret, and a name for its file and credential.
    static func secret(
        _ name: String, inline: (place: Place<Secret?>, why: String)?,
        file: @autoclosure @escaping @Sendable () -> Place<String?>,
        credential: @autoclosure @escaping @Sendable () -> Place<String?>, _ what: String,
        example: (secret: String, file: String), only scope: DestinationUse.Scope = .all
    ) -> [Entry] {
        let text = inline.map {
            Entry.setting(
                name, $0.place, optional: .secret, $0.why, example: "\"\(example.secret)\"", only: scope)
        }
        return (text.map { [$0] } ?? []) + [
            .setting(
                "\(name)_file", file(), optional: .path,
                "The file that holds \(what); reread when it changes.",
                example: "\"/etc/spoolship/\(example.file)\"", only: scope),
            .setting(
                "\(name)_credential", credential(), optional: .credentialName,
                "The systemd credential that holds \(what) (LoadCredential= in the unit).",
                example: "\"\(example.file.split(separator: ".").joined(separator: "-"))\"", only: scope),
        ]
    }
}
