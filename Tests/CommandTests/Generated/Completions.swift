@testable import spoolship

/// Completions for shells, made of the table of commands.
struct Completions {
    private let commands: [Command]

    init(_ commands: [Command]) { self.commands = commands }

    /// The words that can stand first, in the table's order.
    private var firstWords: [String] {
        var words: [String] = []
        for command in commands {
            let word = String(command.name.prefix { $0 != " " })
            if !words.contains(word) { words.append(word) }
        }
        return words
    }

    /// The words that can stand second behind a first one.
    private func secondWords(_ first: String) -> [String] {
        commands.map(\.name).filter { $0.hasPrefix(first + " ") }.map {
            String($0.dropFirst(first.count + 1))
        }
    }

    private var families: [String] { firstWords.filter { !secondWords($0).isEmpty } }

    /// What describes a first word: its command's summary, or the words that can follow.
    private func description(_ first: String) -> String {
        commands.first { $0.name == first }?.summary ?? secondWords(first).joined(separator: ", ")
    }

    private func optionWords(_ command: Command) -> String {
        command.allOptions.flatMap { ["--\($0.name)"] + ($0.letter.map { ["-\($0)"] } ?? []) }.joined(
            separator: " ")
    }

    /// What can be in the place of a value or an argument.
    private enum Words {
        case choices([String])
        case files
        /// Nobody can guess it.
        case anything

        /// - Parameter placeholder: what help calls it: `FILE`.
        init(_ choices: [String], _ placeholder: String) {
            // By words: to search a text for another brings the library of regular expressions, 1.5 MB.
            let isFile = placeholder.split { !$0.isLetter }.contains { $0 == "FILE" || $0 == "DIRECTORY" }
            self = choices.isEmpty ? isFile ? .files : .anything : .choices(choices)
        }
    }

    private func words(_ option: Command.Option) -> Words? { option.value.map { Words(option.choices, $0) } }

    private func words(_ command: Command) -> Words { Words(command.choices, command.arguments) }

    /// How bash offers them.
    private func bashReply(_ words: Words) -> String {
        switch words {
        case .choices(let choices):
            "mapfile -t COMPREPLY < <(compgen -W \"\(choices.joined(separator: " "))\" -- \"$word\")"
        case .files: "mapfile -t COMPREPLY < <(compgen -f -- \"$word\")"
        case .anything: "COMPREPLY=()"
        }
    }

    /// The cases of bash's completion for values of options.
    private var bashValues: [String] {
        commands.flatMap { command in
            command.options.compactMap { option -> String? in
                guard let words = self.words(option) else { return nil }
                let names = ["--\(option.name)"] + (option.letter.map { ["-\($0)"] } ?? [])
                let patterns = names.map { "\"\(command.name) \($0)\"" }.joined(separator: " | ")
                return "\(patterns)) \(bashReply(words)); return ;;"
            }
        }
    }

    /// The cases for arguments.
    private var bashArguments: [String] {
        commands.filter { $0.name != "help" }.map { "\"\($0.name)\") \(bashReply(words($0))) ;;" }
    }

    /// For bash.
    var bash: String {
        """
        # bash completion for spoolship; made by scripts/generate.
        _spoolship() {
            local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
            local command=${COMP_WORDS[1]} first=2 options=""
            if [[ $previous == --config ]]; then
                mapfile -t COMPREPLY < <(compgen -f -- "$word")
                return
            fi
            if ((COMP_CWORD == 1)); then
                mapfile -t COMPREPLY < <(compgen -W "\(firstWords.joined(separator: " "))" -- "$word")
                return
            fi
            case $command in
            \(families.map { "\($0))\n        if ((COMP_CWORD == 2)); then\n            mapfile -t COMPREPLY < <(compgen -W \"\(secondWords($0).joined(separator: " "))\" -- \"$word\")\n            return\n        fi\n        command=\"$command ${COMP_WORDS[2]}\" first=3\n        ;;" }.joined(separator: "\n    "))
            esac
            case $command in
            \(commands.map { "\"\($0.name)\") options=\"\(optionWords($0))\" ;;" }.joined(separator: "\n    "))
            esac
            case "$command $previous" in
            *" --socket") mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
            \(bashValues.joined(separator: "\n    "))
            esac
            if [[ $word == -* ]]; then
                mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
            elif [[ $command == help ]] && ((COMP_CWORD == first)); then
                mapfile -t COMPREPLY < <(compgen -W "\(firstWords.joined(separator: " ")) configuration" -- "$word")
            else
                case $command in
                \(bashArguments.joined(separator: "\n        "))
                esac
            fi
        }
        complete -o filenames -F _spoolship spoolship

        """.withoutEmptyCase
    }

    /// How zsh offers them.
    private func zshAction(_ words: Words) -> String {
        switch words {
        case .choices(let choices): "(\(choices.joined(separator: " ")))"
        case .files: "_files"
        // An action that is a space offers nothing.
        case .anything: " "
        }
    }

    /// For zsh.
    var zsh: String {
        func quoted(_ text: String) -> String {
            text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''")
        }
        // First what zsh takes apart, then what ends the quotation.
        func escaped(_ text: String) -> String {
            quoted(text.reduce(into: "") { $0 += "[]:\\".contains($1) ? "\\\($1)" : "\($1)" })
        }
        func option(_ option: Command.Option) -> [String] {
            let value = option.value.map { ":\(escaped($0)):\(zshAction(Words(option.choices, $0)))" } ?? ""
            let mark = option.repeats ? "*" : ""
            let help = "[\(escaped(option.help))]\(value)"
            return ["'\(mark)--\(option.name)\(help)'"]
                + (option.letter.map { ["'\(mark)-\($0)\(help)'"] } ?? [])
        }
        let lines = firstWords.map { "        '\(escaped($0)):\(escaped(description($0)))'" }
        var text = """
            #compdef spoolship
            # zsh completion for spoolship; made by scripts/generate.
            _spoolship() {
                local -a commands
                commands=(
            \(lines.joined(separator: "\n"))
                )
                if ((CURRENT == 2)); then
                    _describe command commands
                    return
                fi
                local command=$words[2] shift=1

            """
        for family in families {
            text += """
                    if [[ $command == \(family) ]]; then
                        if ((CURRENT == 3)); then
                            compadd \(secondWords(family).joined(separator: " "))
                            return
                        fi
                        command="$command $words[3]" shift=2
                    fi

                """
        }
        text += "    shift $shift words\n    ((CURRENT -= shift))\n    case $command in\n"
        for command in commands {
            let options = command.allOptions.flatMap(option).joined(separator: " \\\n            ")
            let words =
                command.name == "help"
                ? "'*:command:(\(firstWords.joined(separator: " ")) configuration)'"
                : "'*:argument:\(zshAction(self.words(command)))'"
            text +=
                "    '\(command.name)')\n        _arguments \\\n            \(options) \\\n            \(words)\n        ;;\n"
        }
        return text + "    esac\n}\n_spoolship \"$@\"\n"
    }

    /// For fish.
    var fish: String {
        func quoted(_ text: String) -> String {
            "'" + text.reduce(into: "") { $0 += $1 == "'" || $1 == "\\" ? "\\\($1)" : "\($1)" } + "'"
        }
        var text = "# fish completion for spoolship; made by scripts/generate.\n"
        for first in firstWords {
            text +=
                "complete -c spoolship -f -n __fish_use_subcommand -a \(first) -d \(quoted(description(first)))\n"
        }
        for family in families {
            let seconds = secondWords(family)
            for second in seconds {
                let summary = commands.first { $0.name == "\(family) \(second)" }?.summary ?? ""
                text += "complete -c spoolship -f -n '__fish_seen_subcommand_from \(family);"
                text += " and not __fish_seen_subcommand_from \(seconds.joined(separator: " "))'"
                text += " -a \(second) -d \(quoted(summary))\n"
            }
        }
        text +=
            "complete -c spoolship -f -n '__fish_seen_subcommand_from help' -a '\(firstWords.joined(separator: " ")) configuration'\n"
        for command in commands {
            let words = command.name.split(separator: " ")
            let condition = words.map { "__fish_seen_subcommand_from \($0)" }.joined(separator: "; and ")
            switch self.words(command) {
            case .choices(let choices):
                text += "complete -c spoolship -f -n '\(condition)' -a '\(choices.joined(separator: " "))'\n"
            case .anything where command.name != "help":
                text += "complete -c spoolship -f -n '\(condition)'\n"
            case .files, .anything: break
            }
            for option in command.allOptions {
                text += "complete -c spoolship -n '\(condition)' -l \(option.name)"
                if let letter = option.letter { text += " -s \(letter)" }
                switch self.words(option) {
                case .choices(let choices)?: text += " -x -a '\(choices.joined(separator: " "))'"
                case .files?: text += " -r -F"
                case .anything?: text += " -x"
                case nil: break
                }
                text += " -d \(quoted(option.help))\n"
            }
        }
        return text
    }
}

extension String {
    /// bash allows an empty case, but it reads better without one.
    fileprivate var withoutEmptyCase: String {
        let empty = "    case $command in\n    \n    esac\n"
        guard let start = indices.first(where: { self[$0...].hasPrefix(empty) }) else { return self }
        return String(self[..<start] + self[index(start, offsetBy: empty.count)...])
    }
}
