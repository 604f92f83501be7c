internal import Model

extension Entry where Owner: SettingsSection {
    /// The row of a secret, and those of its old keys, `NAME_file` and `NAME_credential`.
    ///
    /// - Parameters:
    ///   - place: the secret.
    ///   - why: what it is.
    ///   - example: a name for its file.
    ///   - isInline: whether it may be written in the configuration itself.
    @_semantics("optimize.sil.specialize.generic.never") @inline(never)
    static func secret(
        _ name: String, _ place: @autoclosure @escaping @Sendable () -> Place<SecretSource?>,
        file: @autoclosure @escaping @Sendable () -> Place<String?>,
        credential: @autoclosure @escaping @Sendable () -> Place<String?>, _ why: String,
        example: String, isInline: Bool = true, only scope: DestinationUse.Scope = .all
    ) -> [Entry] {
        [
            .setting(
                name, place(), optional: isInline ? .secretSource : .secretFile, why,
                example: "\"file:/etc/spoolship/\(example)\"", only: scope),
            .setting("\(name)_file", file(), optional: .path, why).renamed(to: name),
            .setting("\(name)_credential", credential(), optional: SecretSource.credentialNameType, why)
                .renamed(to: name),
        ]
    }
}

extension SecretSource {
    /// The name of a systemd credential. It becomes the name of a file in CREDENTIALS_DIRECTORY, so it must
    /// not begin with a dot or contain a slash.
    static var credentialNameType: ValueType<String> {
        .checked("credential name", mustBe: "a credential's name: letters, digits, _, - and .") { name in
            !name.hasPrefix(".") && name.utf8.count <= 255 && name.hasOnlyLettersDigits(and: "_-.")
        }
    }
}
