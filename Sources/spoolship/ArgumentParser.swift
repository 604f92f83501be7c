internal import Configuration

/// Separates the options of a command from its arguments, which may be mixed in any order.
///
/// `--name value`, `--name=value`, `-l value` and `-lvalue` mean the same. `--` ends the options. `-`
/// (standard input or output) and negative numbers are arguments, so that `interval -1` needs no `--`.
/// Letters are not combined: `-ab` is read as `-a` with the value `b`.
struct ArgumentParser {
    /// The command whose options are known.
    let command: Command

    /// Parses the words after the command's name.
    ///
    /// - Throws: `CommandFailure` with code 64 for an unknown option, a missing or unexpected value, or a
    ///   second value of an option that takes one.
    func parse(_ words: [String]) throws(CommandFailure) -> (arguments: [String], options: [String: [String]])
    {
        var arguments: [String] = []
        var options: [String: [String]] = [:]
        var rest = words[...]
        while let word = rest.popFirst() {
            if word == "--" {
                arguments += rest
                break
            }
            guard ArgumentParser.isOption(word) else {
                arguments.append(word)
                continue
            }
            let (option, attached) = try find(word)
            var value = ""
            if let name = option.value {
                // An empty value is a mistake (`--config "$FILE"` without `FILE`), except for KEY=VALUE
                // options, which report it themselves.
                guard let found = attached ?? rest.popFirst(), !found.isEmpty || name.contains("=") else {
                    throw CommandFailure(.usage, "\(word) needs a value: \(shown(option)) \(name)")
                }
                // `--app --json` more likely misses a value than names an app `--json`. `--app=--json` is
                // accepted.
                guard attached != nil || !ArgumentParser.isOption(found) else {
                    throw CommandFailure(
                        .usage,
                        "\(word) needs a value before \(found); for one with a dash: "
                            + "\(shown(option))=\(found)"
                    )
                }
                value = found
            } else if attached != nil {
                throw CommandFailure(.usage, "\(shown(option)) takes no value")
            }
            if options[option.name] != nil && !option.repeats && option.value != nil {
                throw CommandFailure(.usage, "\(shown(option)) was given twice")
            }
            options[option.name, default: []].append(value)
        }
        return (arguments, options)
    }

    /// Whether a word is an option: it begins with a dash, is not `-`, and is not a negative number.
    private static func isOption(_ word: String) -> Bool {
        word.hasPrefix("-") && word != "-" && word.dropFirst().first?.isNumber != true
    }

    /// The option as messages name it.
    private func shown(_ option: Command.Option) -> String { "--\(option.name)" }

    /// The option that a word names, and the value attached to it by `=` or to the letter.
    private func find(_ word: String) throws(CommandFailure) -> (Command.Option, attached: String?) {
        if word.hasPrefix("--") {
            let name = word.dropFirst(2).prefix { $0 != "=" }
            let attached = name.endIndex == word.endIndex ? nil : String(word[name.endIndex...].dropFirst())
            if let option = command.allOptions.first(where: { $0.name == name }) { return (option, attached) }
            let near = nearestName(to: String(name), among: command.allOptions.map(\.name))
            throw unknown("--\(name)", near.map { "--\($0)" })
        }
        let letter = word[word.index(after: word.startIndex)]
        let attached = word.dropFirst(2)
        if let option = command.allOptions.first(where: { $0.letter == letter }) {
            return (option, attached.isEmpty ? nil : String(attached))
        }
        // `-json` for `--json`: suggested, not accepted.
        let long = command.allOptions.first { $0.name == word.dropFirst() }
        throw unknown(word, long.map { "--\($0.name)" })
    }

    /// The error for an unknown option, with the nearest known one.
    private func unknown(_ word: String, _ near: String?) -> CommandFailure {
        let hint = near.map { "did you mean \($0)?" } ?? "`spoolship help \(command.name)` lists them"
        return CommandFailure(.usage, "no option \(word) of \"\(command.name)\"; \(hint)")
    }
}
