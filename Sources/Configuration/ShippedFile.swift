/// Texts that are made of the table of settings.
public enum ShippedFile {
    /// The text of the shipped `etc/spoolship.toml`: what most people set, commented out. A test compares the
    /// file with it.
    ///
    /// It is short, and people write into `conf.d`, so that an upgrade rarely has to ask about an edited
    /// file.
    public static var text: String {
        """
        # The configuration of Spoolship. `man spoolship.toml` lists all settings; each has a default.
        #
        # Write yours into files in conf.d/*.toml beside this one, which are read after it, in the order of \
        their names:
        # single settings override, [[sections]] add up. `spoolship check` finds mistakes, `systemctl \
        reload spoolship`
        # applies changes, all or none of them.

        # Where everything goes.
        #[[destination]]
        #name = "main"
        #url = "https://logs.example.com/"

        # Logs that are read where they are.
        #[apps.web]
        #read = ["/var/log/nginx/*.log"]

        # What happens to events on their way.
        #[[rule]]
        #when = "level < 'info'"
        #discard = true

        [queue]
        #max_size = "256MiB"

        [stats]
        #listen = "127.0.0.1:9464"

        """
    }

    /// Each setting with its default and explanation, as a configuration file, for `help configuration`.
    public static var reference: String {
        """
        # The settings of Spoolship (TOML 1.0).
        #
        # Every setting is here with its default, commented out. Files in conf.d/*.toml beside the \
        configuration file are
        # read after it, in the order of their names: single settings override, [[sections]] add up.
        # Durations and sizes carry their unit: "250ms", "6s", "2m", "12h", "25d"; "64KiB" and "10MiB" \
        (2^10, 2^20),
        # "10MB" (10^6).
        #
        # ${NAME} in a string is the environment variable NAME, ${NAME:-text} has a default, $${ is a \
        literal ${.
        #
        # `spoolship check` finds mistakes, `spoolship check --print` shows what is in force and where it \
        comes from,
        # `systemctl reload spoolship` applies changes, all or none of them.

        """ + Settings.description.map { $0.shippedText() }.joined()
    }
}

extension SectionDescription {
    /// The section as in the reference; `prefix` is the path of the section that it is in (`destination.`).
    package func shippedText(prefix: String = "", commented: Bool = false) -> String {
        // A heading that is not commented out would make an empty destination, app or rule.
        let commented = commented || kind != .once
        var text =
            "\n\n" + SectionDescription.comment(explanation) + (commented ? "#" : "")
            + heading(prefix: prefix) + "\n"
        for case .setting(let setting) in listed { text += "\n" + setting.shippedText }
        for case .section(let section) in listed {
            text += section.shippedText(
                prefix: "\(prefix)\(name).\(kind == .named ? "NAME." : "")", commented: commented)
        }
        return text
    }

    /// A comment in lines of at most 118 columns.
    // Words are not divided, so a longer word makes a longer line.
    static func comment(_ text: String) -> String {
        var lines = ["#"]
        for word in text.split(separator: " ") {
            if lines[lines.count - 1].count + word.count >= 118 {
                lines.append("#")
            }
            lines[lines.count - 1] += " " + word
        }
        return lines.joined(separator: "\n") + "\n"
    }
}

extension SettingDescription {
    /// What is allowed, for a person: `size, 24KiB to 128TiB`; `one of wait, evict`.
    package var allowed: String { SettingDescription.allowed(type, range) }

    /// The same, for a type that has no row yet.
    static func allowed(_ type: String, _ range: String) -> String {
        if type == "choice" { return "one of \(range)" }
        return range.isEmpty ? type : "\(type), \(range)"
    }

    /// The setting as in the reference: reason, what is allowed, and the commented-out default.
    var shippedText: String {
        // The notes in brackets: what is allowed, and what the default does not show.
        var notes = allowed
        if defaultValue == nil {
            notes += "; not set"
        }
        if let example, defaultValue != nil {
            notes += "; as \(example)"
        }
        if needsRestart {
            notes += "; a change needs a restart"
        }
        return SectionDescription.comment(why) + SectionDescription.comment("(\(notes))")
            + "#\(name) = \(defaultValue?.toml ?? example ?? "\"\"")\n"
    }
}
