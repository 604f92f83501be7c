internal import Configuration
internal import Model

/// The settings in force, each with its origin, for `check --print` and `diagnose`. Secrets are masked.
struct EffectiveConfiguration {
    /// The settings that are printed.
    let settings: Settings

    init(_ settings: Settings) { self.settings = settings }

    /// The settings in today's words: a key that nobody has to set is printed only if it is set, and settings
    /// of another type or format than a destination has never. What is printed gives no notes when it is read
    /// back, except for what was set so.
    private var printed: [EffectiveSetting] {
        settings.effective.filter { setting in
            guard !setting.isForeign else { return false }
            return !setting.isRetired || settings.origin(of: setting.path) != .standard
        }
    }

    /// The settings as TOML, each with its origin in a comment. It can be read back, except for masked
    /// secrets.
    var toml: String {
        var text = ""
        // The section of the last line, so that a heading is printed only when it changes.
        var section: SectionPlace?
        for setting in printed {
            guard let value = setting.value else { continue }
            if setting.section != section {
                text += "\(section == nil ? "" : "\n")\(setting.section.heading)\n"
                section = setting.section
            }
            text += HelpText.pad("\(setting.name) = \(value.toml)", to: 48)
            let limit =
                inForce(setting).map { "; \($0) is in force, a thirty-second of queue.max_size" } ?? ""
            text += "  # \(settings.origin(of: setting.path))\(limit)\n"
        }
        return text
    }

    /// The effective batch size, if the queue is too small for the configured one; nil if the configured
    /// value is in force, and for all other settings.
    private func inForce(_ setting: EffectiveSetting) -> String? {
        settings.loweredBatchSize(setting.path).map(SizeText.print)
    }

    /// The settings as a JSON array of objects: `setting`, `value`, `origin`, and `in_force` if it differs.
    var json: JSONValue {
        .array(
            printed.map { setting in
                var members = [JSONValue.Member("setting", .string(setting.path))]
                if let value = setting.value {
                    members.append(.init("value", value.json))
                }
                members.append(.init("origin", .string("\(settings.origin(of: setting.path))")))
                if let size = inForce(setting) {
                    members.append(.init("in_force", .string(size)))
                }
                return .object(members)
            })
    }
}
