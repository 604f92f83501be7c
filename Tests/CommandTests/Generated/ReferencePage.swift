import Configuration

/// docs/reference.md: every setting in a table, by section.
enum ReferencePage {
    static var text: String {
        var text = """
            # Reference of settings

            Every setting with its default, as `spoolship help configuration` and `man spoolship.toml` have it too. The configuration is
            `/etc/spoolship/spoolship.toml`, then `conf.d/*.toml` beside it in the order of their names: single settings override, `[[sections]]` add
            up. Durations and sizes carry their unit: `"250ms"`, `"6s"`, `"12h"`, `"25d"`; `"64KiB"` (2^10), `"10MB"` (10^6). `${NAME}` in a string is
            an environment variable, `${NAME:-text}` has a default, `$${` is a literal `${`. Most people need few of them: [recipes](recipes.md).


            """
        text += "| section | |\n| --- | --- |\n"
        for section in Settings.listed {
            text +=
                "| [`\(section.shownHeading)`](#\(anchor(section.shownHeading))) | \(escaped(section.why)) |\n"
        }
        for section in Settings.listed { text += page(section, prefix: "", level: "##") }
        return text
    }

    private static func page(_ section: SectionDescription, prefix: String, level: String) -> String {
        let heading = section.shownHeading(prefix: prefix)
        var text = "\n\(level) \(heading)\n\n\(section.explanation)\n"
        if !section.listed.isEmpty {
            text += "\n| setting | default | allowed | |\n| --- | --- | --- | --- |\n"
        }
        for case .setting(let setting) in section.listed {
            let standard =
                setting.defaultValue.map { "`\($0.toml)`" } ?? setting.example.map { "–, as `\($0)`" } ?? "–"
            let note = setting.needsRestart ? " A change needs a restart." : ""
            text +=
                "| `\(setting.name)` | \(escaped(standard)) | \(escaped(setting.allowed)) | \(escaped(setting.why))\(note) |\n"
        }
        for case .section(let inner) in section.listed {
            let name = section.kind == .named ? "\(section.name).NAME" : section.name
            text += page(inner, prefix: "\(prefix)\(name).", level: level + "#")
        }
        return text
    }

    /// A pipe would end a cell.
    private static func escaped(_ text: String) -> String {
        text.split(separator: "|", omittingEmptySubsequences: false).joined(separator: "\\|")
    }

    /// The link to a heading, as GitHub makes it.
    private static func anchor(_ heading: String) -> String {
        heading.lowercased().filter { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "-" }
    }
}

extension SectionDescription {
    fileprivate var shownHeading: String { shownHeading(prefix: "") }

    fileprivate func shownHeading(prefix: String) -> String {
        switch kind {
        case .once: "[\(prefix)\(name)]"
        case .list: "[[\(prefix)\(name)]]"
        case .named: "[\(prefix)\(name).NAME]"
        }
    }
}
