internal import Glibc
internal import Model

/// `${NAME}` in strings of the configuration: the value of an environment variable.
///
/// `${NAME:-text}` is `text` if the variable is unset or empty, `$${` is a literal `${`, and another `$` is a
/// dollar sign. The value is used as it is: `${` in it means nothing. Keys, numbers and values of containers
/// are not expanded. In `parse` of an app `${name:time}` is a field of a text format, so only a text that is
/// one variable is replaced there.
public enum Variables {
    /// The value of a variable of this process; nil if it is unset, or not UTF-8.
    public static func ofProcess(_ name: String) -> String? {
        getenv(name).flatMap { String(validatingCString: $0) }
    }

    /// Replaces the variables in a tree's strings; what cannot be replaced becomes a problem.
    ///
    /// - Parameter path: the names of the tables that the node is in.
    static func fill(
        _ node: inout TOMLNode, from environment: (String) -> String?, context: inout ReadContext,
        under path: [String] = []
    ) {
        switch node.value {
        // Most strings have no `$` and are not copied.
        case .string(let text) where text.utf8.contains(UInt8(ascii: "$")):
            do throws(Problem) {
                let filled = try filled(text, from: environment)
                node.value = .string(filled.text)
                node.isFromEnvironment = filled.isFromEnvironment
            } catch {
                context.add(error.code, error.message, at: node.position)
                // The unexpanded text would cause a second problem (a bad URL, for example), which is not a
                // mistake of its own.
                node.isFromEnvironment = true
            }
        case .array(var elements):
            for index in elements.indices {
                fill(&elements[index], from: environment, context: &context, under: path)
            }
            node.value = .array(elements)
            // One variable is enough: messages then do not quote the list.
            node.isFromEnvironment = elements.contains(where: \.isFromEnvironment)
        case .table(var members):
            for index in members.indices {
                let key = members[index].key
                if key == "parse", path.count == 2, path[0] == "apps",
                    case .string(let text) = members[index].node.value, !isOneVariable(text)
                {
                    members[index].node.value = .string(template(text))
                } else {
                    fill(&members[index].node, from: environment, context: &context, under: path + [key])
                }
            }
            node.value = .table(members)
            node.isFromEnvironment = members.contains(where: \.node.isFromEnvironment)
        default: break
        }
    }

    /// Whether a text is `${NAME}` or `${NAME:-text}` and nothing else.
    private static func isOneVariable(_ text: String) -> Bool {
        let bytes = text.utf8
        guard text.hasPrefix("${"), let end = bytes.firstIndex(of: UInt8(ascii: "}")),
            bytes.index(after: end) == bytes.endIndex
        else { return false }
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else { return true }
        return text[colon...].hasPrefix(":-")
    }

    /// The template of a text format: `${` stands for itself, and so does `$${`, as everywhere.
    private static func template(_ text: String) -> String {
        var result = ""
        var rest = text.unicodeScalars[...]
        while let dollar = rest.firstIndex(of: "$") {
            result += String(rest[..<dollar])
            rest = rest[dollar...].dropFirst(rest[dollar...].starts(with: "$${".unicodeScalars) ? 2 : 1)
            result += "$"
        }
        return result + String(rest)
    }

    /// A text with its variables replaced, and whether it had variables.
    static func filled(
        _ text: String, from environment: (String) -> String?
    ) throws(Problem) -> (text: String, isFromEnvironment: Bool) {
        var result = ""
        var isFromEnvironment = false
        // Unicode scalars instead of characters: a combining mark after `$` would be part of the character,
        // which then is not `$`.
        var rest = text.unicodeScalars[...]
        while let dollar = rest.firstIndex(of: "$") {
            result += String(rest[..<dollar])
            rest = rest[dollar...]
            if rest.starts(with: "$${".unicodeScalars) {
                result += "${"
                rest = rest.dropFirst(3)
            } else if rest.starts(with: "${".unicodeScalars) {
                guard let end = rest.firstIndex(of: "}") else {
                    throw Problem(.syntax, "${ without }; write $${ for a literal ${")
                }
                let inside = String(rest[rest.index(rest.startIndex, offsetBy: 2)..<end])
                rest = rest[rest.index(after: end)...]
                result += try value(inside, from: environment)
                isFromEnvironment = true
            } else {
                result += "$"
                rest = rest.dropFirst()
            }
        }
        return (result + String(rest), isFromEnvironment)
    }

    /// The value for `NAME` or `NAME:-text`.
    private static func value(_ inside: String, from environment: (String) -> String?) throws(Problem)
        -> String
    {
        let name = inside.prefix { $0 != ":" }
        let rest = inside[name.endIndex...]
        // As in shells, `${1}` and other parameters are not variables of the environment.
        guard name.first?.isNumber == false, name.hasOnlyLettersDigits(and: "_"),
            rest.isEmpty || rest.hasPrefix(":-")
        else {
            throw Problem(
                .syntax,
                "${\(inside.prefix(40))} names no variable; write ${NAME} or ${NAME:-text}, and $${ for a "
                    + "literal ${"
            )
        }
        let found = environment(String(name))
        // `:-` also replaces an empty value, as in shells.
        if let found, rest.isEmpty || !found.isEmpty { return found }
        guard !rest.isEmpty else {
            throw Problem(
                .missing,
                "the environment has no variable \(name); set it, or write ${\(name):-text} for a default")
        }
        return String(rest.dropFirst(2))
    }
}
