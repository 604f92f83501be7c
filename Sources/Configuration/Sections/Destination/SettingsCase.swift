internal import Model

/// A case of an enum with settings of its own, such as `s3` of a destination: how the settings are got out of
/// the whole and put back, so that their rows can be rows of the whole.
struct SettingsCase<Whole: Sendable, Part: SettingsSection>: Sendable {
    /// The destinations that are this case.
    let scope: DestinationUse.Scope
    /// The settings; nil if the whole is another case.
    let part: @Sendable (Whole) -> Part?
    /// Puts the settings back, which makes the whole this case.
    let put: @Sendable (Part, inout Whole) -> Void
}
