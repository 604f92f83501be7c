internal import Configuration
internal import Model

/// The settings in force, each with where it comes from. Secrets are masked.
struct EffectiveConfiguration {
    let settings: Settings

    init(_ settings: Settings) { self.settings = settings }

    /// As TOML that can be read back, but for what is masked.
    var toml: String {
        var text = ""
        var section: SectionPlace?
        for setting in settings.effective {
            guard let value = setting.value else { continue }
            if setting.section != section {
                text += "\(section == nil ? "" : "\n")\(setting.section.heading)\n"
                section = setting.section
            }
            text += HelpText.pad("\(setting.name) = \(value.toml)", to: 48)
            let limit = inForce(setting).map { "; \($0) is in force, a thirty-second of queue.max_size" } ?? ""
            text += "  # \(settings.origin(of: setting.path))\(limit)\n"
        }
        return text
    }

    /// What holds instead of a setting's value; nil where the value itself does.
    private func inForce(_ setting: EffectiveSetting) -> String? {
        settings.loweredBatchSize(setting.path).map(SizeText.print)
    }

    var json: JSONValue {
        .array(
            settings.effective.map { setting in
                var members = [JSONValue.Member("setting", .string(setting.path))]
                if let value = setting.value { members.append(.init("value", value.json)) }
                members.append(.init("origin", .string("\(settings.origin(of: setting.path))")))
                if let size = inForce(setting) { members.append(.init("in_force", .string(size))) }
                return .object(members)
            })
    }
}
