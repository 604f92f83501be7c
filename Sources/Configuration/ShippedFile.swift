extension Settings {
    /// The text of the shipped `etc/spoolship.toml`, every setting explained. A test holds the file to it.
    public static var shippedFile: String {
        """
        # The configuration of Spoolship (TOML 1.0).
        #
        # Every setting is here with its default, commented out: remove the # to change it. Files in conf.d/*.toml
        # beside this one are read after it, in the order of their names: single settings override, [[sections]] add up.
        # Durations and sizes carry their unit: "250ms", "6s", "2m", "12h", "25d"; "64KiB" and "10MiB" (2^10, 2^20),
        # "10MB" (10^6).
        #
        # ${NAME} in a string is the environment variable NAME, ${NAME:-text} has a default, $${ is a literal ${.
        #
        # `spoolship check` finds mistakes, `spoolship check --print` shows what is in force and where it comes from,
        # `systemctl reload spoolship` applies changes, all or none of them.

        """ + description.map { $0.shippedText() }.joined()
    }
}

extension SectionDescription {
    /// The section as in the shipped file, where it is in the sections `prefix` (`destination.`), perhaps commented out.
    package func shippedText(prefix: String = "", commented: Bool = false) -> String {
        // A heading alone would make an empty destination, app or rule.
        let commented = commented || kind != .once
        var text = "\n\n" + SectionDescription.comment(why) + (commented ? "#" : "") + heading(prefix: prefix) + "\n"
        for case .setting(let setting) in entries { text += "\n" + setting.shippedText }
        for case .section(let section) in entries {
            text += section.shippedText(
                prefix: "\(prefix)\(name).\(kind == .named ? "NAME." : "")", commented: commented)
        }
        return text
    }

    /// A comment of lines of at most 118 columns.
    static func comment(_ text: String) -> String {
        var lines = ["#"]
        for word in text.split(separator: " ") {
            if lines[lines.count - 1].count + word.count >= 118 { lines.append("#") }
            lines[lines.count - 1] += " " + word
        }
        return lines.joined(separator: "\n") + "\n"
    }
}

extension SettingDescription {
    /// What is allowed, for a person: `size, 24KiB to 128TiB`; `one of wait, evict`.
    package var allowed: String {
        if type == "choice" { return "one of \(range)" }
        return range.isEmpty ? type : "\(type), \(range)"
    }

    var shippedText: String {
        var notes = allowed
        if defaultValue == nil { notes += "; not set" }
        if let example, defaultValue != nil { notes += "; as \(example)" }
        if needsRestart { notes += "; a change needs a restart" }
        return SectionDescription.comment(why) + SectionDescription.comment("(\(notes))")
            + "#\(name) = \(defaultValue?.toml ?? example ?? "\"\"")\n"
    }
}
