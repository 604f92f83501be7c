internal import Model

extension Entry where Owner: SettingsSection {
    /// The settings of a secret, each with its place.
    ///
    /// - Parameters:
    ///   - inline: where the secret itself is and why one would set it; nil where it is too long for that.
    ///   - what: what the file and the credential hold: `the token`.
    ///   - example: a secret, and the name of its file and credential.
    static func secret(
        _ name: String, inline: (place: any WritableKeyPath<Owner, Secret?> & Sendable, why: String)?,
        file: any WritableKeyPath<Owner, String?> & Sendable,
        credential: any WritableKeyPath<Owner, String?> & Sendable, _ what: String,
        example: (secret: String, file: String), only scope: DestinationUse.Scope = .all
    ) -> [Entry] {
        let text = inline.map {
            Entry.setting(name, $0.place, optional: .secret, $0.why, example: "\"\(example.secret)\"", only: scope)
        }
        return (text.map { [$0] } ?? []) + [
            .setting(
                "\(name)_file", file, optional: .path, "The file that holds \(what); reread when it changes.",
                example: "\"/etc/spoolship/\(example.file)\"", only: scope),
            .setting(
                "\(name)_credential", credential, optional: .credentialName,
                "The systemd credential that holds \(what) (LoadCredential= in the unit).",
                example: "\"\(example.file.split(separator: ".").joined(separator: "-"))\"", only: scope),
        ]
    }
}
