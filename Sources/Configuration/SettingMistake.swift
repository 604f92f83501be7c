internal import Model

/// A mistake in a setting that only its user can find, such as an expression that does not compile.
public struct SettingMistake: Sendable, Equatable {
    /// Path of the setting or section: `rule.2.when`.
    public let path: String
    /// Column in the setting's text, in characters from 1; nil if the mistake concerns the setting as a
    /// whole.
    public let column: Int?
    /// What is wrong and what to do, without the setting's name.
    public let message: String
    /// Whether the configuration can be used nevertheless.
    public let isWarning: Bool

    /// A mistake.
    package init(path: String, column: Int? = nil, message: String, isWarning: Bool = false) {
        self.path = path
        self.column = column
        self.message = message
        self.isWarning = isWarning
    }
}
