internal import Glibc
internal import Model

/// `${NAME}` in the strings of the configuration: the value of a variable of the environment.
///
/// `${NAME:-text}` is `text` if the variable is unset or empty, `$${` is a literal `${`, any other `$` is a dollar
/// sign. A variable's value is taken as it is: `${` in it means nothing. Keys, numbers and values of containers are not expanded.
public enum Variables {
    /// The value of a variable of this process; nil when it is unset, or not UTF-8.
    public static func ofProcess(_ name: String) -> String? {
        getenv(name).flatMap { String(validatingCString: $0) }
    }

    /// A tree with the variables in its strings replaced; what cannot be replaced is added to the problems.
    static func fill(
        _ node: TOMLNode, from environment: (String) -> String?, context: inout ReadContext
    ) -> TOMLNode {
        switch node.value {
        case .string(let text):
            guard text.utf8.contains(UInt8(ascii: "$")) else { return node }
            do throws(Mistake) {
                let filled = try Variables.filled(text, from: environment)
                return TOMLNode(
                    value: .string(filled.text), position: node.position, isFromEnvironment: filled.isFromEnvironment)
            } catch {
                context.add(error.code, error.message, at: node.position)
                // The text as it is written could be a second mistake that nobody made.
                return TOMLNode(value: node.value, position: node.position, isFromEnvironment: true)
            }
        case .array(let elements):
            let filled = elements.map { fill($0, from: environment, context: &context) }
            return TOMLNode(
                value: .array(filled), position: node.position,
                isFromEnvironment: filled.contains(where: \.isFromEnvironment))
        case .table(let members):
            let filled = members.map { member in
                TOMLNode.Member(
                    key: member.key, keyPosition: member.keyPosition,
                    node: fill(member.node, from: environment, context: &context))
            }
            return TOMLNode(
                value: .table(filled), position: node.position,
                isFromEnvironment: filled.contains(where: \.node.isFromEnvironment))
        default: return node
        }
    }

    struct Mistake: Error {
        let code: Problem.Code
        let message: String
    }

    /// A text with its variables replaced, and whether there were any.
    static func filled(
        _ text: String, from environment: (String) -> String?
    ) throws(Mistake) -> (text: String, isFromEnvironment: Bool) {
        var result = ""
        var isFromEnvironment = false
        var rest = text.unicodeScalars[...]
        while let dollar = rest.firstIndex(of: "$") {
            result += String(rest[..<dollar])
            rest = rest[dollar...]
            if rest.starts(with: "$${".unicodeScalars) {
                result += "${"
                rest = rest.dropFirst(3)
            } else if rest.starts(with: "${".unicodeScalars) {
                guard let end = rest.firstIndex(of: "}") else {
                    throw Mistake(code: .syntax, message: "${ without }; write $${ where ${ itself is meant")
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

    /// The value of `NAME` or `NAME:-text`.
    private static func value(
        _ inside: String, from environment: (String) -> String?
    ) throws(Mistake) -> String {
        let name = inside.prefix { $0 != ":" }
        let rest = inside[name.endIndex...]
        let isName =
            name.utf8.first.map { !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } == true
            && name.hasOnlyLettersDigits(and: "_")
        guard isName, rest.isEmpty || rest.hasPrefix(":-") else {
            throw Mistake(
                code: .syntax,
                message:
                    "${\(inside.prefix(40))} names no variable; write ${NAME} or ${NAME:-text}, and $${ where ${ is meant"
            )
        }
        let found = environment(String(name))
        if rest.isEmpty {
            guard let found else {
                throw Mistake(
                    code: .missing,
                    message: "the environment has no variable \(name); set it, or write ${\(name):-text} for a default")
            }
            return found
        }
        guard let found, !found.isEmpty else { return String(rest.dropFirst(2)) }
        return found
    }
}
