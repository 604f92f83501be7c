import Configuration

@testable import spoolship

/// Manual pages in the language of man(7), made of the tables of commands and settings.
struct ManualPages {
    let commands: [Command]

    /// The day of the version that the pages describe; moves with it.
    private static let date = "2026\\-11\\-22"

    /// spoolship(1).
    var program: String {
        var page = """
            .\\" Made by scripts/generate.
            .TH SPOOLSHIP 1 "\(ManualPages.date)" "Spoolship \(Build.version)" "User Commands"
            .SH NAME
            spoolship \\- ships the events that apps write to a spool directory
            .SH SYNOPSIS
            .B spoolship
            .I COMMAND
            .RI [ OPTIONS ]
            .SH DESCRIPTION
            Apps write JSON events to files in a spool directory. Spoolship makes sure that each one arrives at its
            destinations, once, in order of importance, over TLS, or reports why it did not.
            .PP
            Options and arguments come in any order;
            .B \\-\\-
            ends the options.
            .SH COMMANDS

            """
        // What holds for several commands is said once.
        var said: Set<String> = []
        for command in commands {
            page +=
                ".SS \(roff(command.name)) \(roff(command.arguments))\n\(roff(sentence(command.summary)))\n"
            for paragraph in paragraphs(command.details) where said.insert(paragraph).inserted {
                page += ".PP\n\(roff(paragraph))\n"
            }
            for option in command.options { page += term(HelpText.shown(option), option.help) }
        }
        page += ".SH OPTIONS OF EVERY COMMAND\n"
        for option in [Command.Option.config, .socket, .help] {
            page += term(HelpText.shown(option), option.help)
        }
        page += ".SH EXIT STATUS\n"
        for code in ExitCode.allCases {
            page += ".TP\n.B \(code.rawValue)\n\(roff(sentence(code.meaning)))\n"
        }
        return page + """
            .SH EXAMPLES
            What is wrong with the configuration, and whether the destinations answer:
            .PP
            .RS
            # spoolship check \\-\\-connect
            .RE
            .PP
            One event, by hand:
            .PP
            .RS
            $ spoolship track "Video clicked" \\-p Category=Music \\-p seconds=12.5
            .RE
            .PP
            Nothing is sent for at most an hour, then again:
            .PP
            .RS
            # spoolship pause \\-\\-token deploy \\-\\-ttl 1h
            .br
            # spoolship resume \\-\\-token deploy
            .RE
            .PP
            What a bug report needs:
            .PP
            .RS
            # spoolship diagnose \\-\\-output report.txt
            .RE
            .SH ENVIRONMENT
            .TP
            .BR https_proxy ", " http_proxy ", " all_proxy ", " no_proxy
            The way to destinations that name no
            .IR proxy ;
            the last names hosts that are reached without one.
            .TP
            .B NO_COLOR
            When set and not empty, no colours are used.
            .TP
            .B CREDENTIALS_DIRECTORY
            Where systemd keeps the credentials that the configuration names.
            .TP
            .BR AWS_ACCESS_KEY_ID ", " AWS_SECRET_ACCESS_KEY ", " AWS_SESSION_TOKEN
            The key of destinations of type s3 with
            .IR "credentials = environment" .
            .SH FILES
            .TP
            .I /etc/spoolship/spoolship.toml
            The configuration; see
            .BR spoolship.toml (5).
            .TP
            .I /etc/spoolship/conf.d/*.toml
            More of it.
            .TP
            .I /var/spool/spoolship
            The spool.
            .TP
            .I /var/lib/spoolship
            The queue, and what must survive a restart.
            .SH SEE ALSO
            .BR spoolship.toml (5)

            """
    }

    /// spoolship.toml(5).
    var configuration: String {
        var page = """
            .\\" Made by scripts/generate.
            .TH SPOOLSHIP.TOML 5 "\(ManualPages.date)" "Spoolship \(Build.version)" "File Formats"
            .SH NAME
            spoolship.toml \\- configuration of spoolship
            .SH SYNOPSIS
            .I /etc/spoolship/spoolship.toml
            .br
            .I /etc/spoolship/conf.d/*.toml
            .SH DESCRIPTION
            The files are TOML 1.0. Those in
            .I conf.d
            are read after the first, in the order of their names: single settings override, sections in double brackets
            add up. Every setting has a default, but for destinations, which have to be named.
            .PP
            Durations and sizes carry their unit: 250ms, 6s, 2m, 12h, 25d; 64KiB and 10MiB are powers of 2, 10MB is
            10,000,000 bytes. A bare number is refused, because 10000 has been read as seconds and as milliseconds.
            .PP
            Unknown settings are mistakes. \\fBspoolship check\\fP finds all of them;
            \\fBsystemctl reload spoolship\\fP applies changes, all or none of them.

            """
        for section in Settings.listed { page += self.section(section, prefix: "", heading: ".SH") }
        return page + ".SH SEE ALSO\n.BR spoolship (1)\n"
    }

    private func section(_ section: SectionDescription, prefix: String, heading: String) -> String {
        let name = prefix + section.name
        let shown: String
        switch section.kind {
        case .once: shown = "[\(name)]"
        case .list: shown = "[[\(name)]]"
        case .named: shown = "[\(name).NAME]"
        }
        var page = "\(heading) \(roff(shown))\n\(roff(section.explanation))\n"
        for case .setting(let setting) in section.listed {
            page += ".TP\n.BR \(roff(setting.name)) \" (\(roff(setting.allowed)))\"\n\(roff(setting.why))\n"
            if let value = setting.defaultValue {
                page += "Default: \(roff(value.toml)).\n"
            } else {
                page += "Not set by default.\n"
            }
            if setting.needsRestart { page += "A change needs a restart.\n" }
        }
        for case .section(let inner) in section.listed {
            page += self.section(
                inner, prefix: name + (section.kind == .named ? ".NAME." : "."), heading: ".SS")
        }
        return page
    }

    private func term(_ name: String, _ text: String) -> String {
        let name = String(name.drop { $0 == " " })
        return ".TP\n.B \(roff(name))\n\(roff(sentence(text)))\n"
    }

    private func sentence(_ text: String) -> String {
        guard let first = text.first else { return text }
        return first.uppercased() + text.dropFirst() + (text.hasSuffix(".") ? "" : ".")
    }

    private func paragraphs(_ text: String) -> [String] {
        var paragraphs = [""]
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.isEmpty {
                paragraphs.append("")
            } else {
                paragraphs[paragraphs.count - 1] +=
                    (paragraphs[paragraphs.count - 1].isEmpty ? "" : " ") + line
            }
        }
        return paragraphs.filter { !$0.isEmpty }
    }

    /// Text that the formatter takes as it is.
    private func roff(_ text: String) -> String {
        var result = ""
        for character in text {
            switch character {
            case "\\": result += "\\e"
            case "-": result += "\\-"
            case "\"": result += "\\(dq"
            case "…": result += "..."
            default: result.append(character)
            }
        }
        return result.hasPrefix(".") || result.hasPrefix("'") ? "\\&" + result : result
    }
}

extension ExitCode {
    /// What it means, in the manual.
    var meaning: String {
        switch self {
        case .success: "done"
        case .negative: "the answer is no"
        case .usage: "the command line is wrong"
        case .badData: "the data given is wrong"
        case .unreachable: "the agent cannot be reached"
        case .software: "a defect of spoolship"
        case .cannotCreate: "a file cannot be created"
        case .inputOutput: "reading or writing failed"
        case .temporaryFailure: "it cannot be done now; try again later"
        case .noPermission: "not allowed; run as another user"
        case .configuration: "the configuration is wrong"
        case .deadline: "time ran out"
        }
    }
}
