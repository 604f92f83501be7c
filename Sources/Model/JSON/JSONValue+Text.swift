extension JSONValue: CustomStringConvertible {
    /// The value as JSON text in one line.
    public var description: String {
        var text = ""
        write(to: &text, indent: nil)
        return text
    }

    /// The value as JSON text over several lines, for people.
    public var pretty: String {
        var text = ""
        write(to: &text, indent: 0)
        return text
    }

    /// - Parameter indent: depth of the present line; nil to write everything in one line.
    private func write(to text: inout String, indent: Int?) {
        switch self {
        case .null: text += "null"
        case .bool(let value): text += value ? "true" : "false"
        case .integer(let number): text += "\(number)"
        case .double(let number): text += number.isFinite ? "\(number)" : "null"
        case .string(let string): JSONValue.writeString(string, to: &text)
        case .array(let elements):
            JSONValue.writeList("[", elements, "]", to: &text, indent: indent) { element, text, indent in
                element.write(to: &text, indent: indent)
            }
        case .object(let members):
            JSONValue.writeList("{", members, "}", to: &text, indent: indent) { member, text, indent in
                JSONValue.writeString(member.key, to: &text)
                text += indent == nil ? ":" : ": "
                member.value.write(to: &text, indent: indent)
            }
        }
    }

    private static func writeList<Element>(
        _ open: String, _ elements: [Element], _ close: String, to text: inout String, indent: Int?,
        _ write: (Element, inout String, Int?) -> Void
    ) {
        text += open
        for (index, element) in elements.enumerated() {
            if index > 0 {
                text += ","
            }
            if let indent {
                text += "\n" + String(repeating: "  ", count: indent + 1)
            }
            write(element, &text, indent.map { $0 + 1 })
        }
        if let indent, !elements.isEmpty {
            text += "\n" + String(repeating: "  ", count: indent)
        }
        text += close
    }

    /// Writes a string in quotes, with control characters escaped. DEL is escaped too, because the text
    /// may go to a terminal.
    private static func writeString(_ string: String, to text: inout String) {
        text += "\""
        for scalar in string.unicodeScalars {
            switch scalar {
            case "\"": text += #"\""#
            case "\\": text += #"\\"#
            case "\n": text += #"\n"#
            case "\r": text += #"\r"#
            case "\t": text += #"\t"#
            case _ where scalar.value < 0x20 || scalar.value == 0x7F:
                text += scalar.value < 16 ? "\\u000" : "\\u00"
                text += String(scalar.value, radix: 16)
            default: text.unicodeScalars.append(scalar)
            }
        }
        text += "\""
    }
}
