internal import CTOML

/// Reads TOML texts, and continues after a syntax error to find the next one.
enum TOMLText {
    /// Most syntax errors that are searched for. A file with more is not TOML.
    static let mostMistakes = 20

    /// Name of a section whose heading could not be read: nothing in it is reported. U+0001 cannot be typed
    /// as a key by accident.
    static let unreadableSection = "\u{1}unreadable"

    /// Reads a text. The parser stops at its first error; to find the others, the line of the error is
    /// blanked and the text is read again, as long as errors move forward.
    ///
    /// - Returns: the root table of what could be read, and the syntax errors in the order of lines.
    static func read(_ text: String, file: String, sources: SourceLines) -> (
        root: TOMLNode, problems: [Problem]
    ) {
        var text = text
        var lines: [String] = []
        var problems: [Problem] = []
        var lastLine = 0
        while problems.count < mostMistakes {
            do throws(Mistake) { return (try parse(text, file: file), problems) } catch {
                // Zero if the parser has no place for the error.
                guard error.line > 0 else {
                    problems.append(
                        Problem(.syntax, error.message, at: Position(file: file, line: 1, column: 1)))
                    break
                }
                if lines.isEmpty {
                    lines = SourceLines.split(text)
                }
                // The parser may stop after the last line: then something at the end was not closed.
                let line = min(error.line, lines.count)
                guard line > lastLine else { break }
                lastLine = line
                let position = Position(file: file, line: line, column: max(1, error.column))
                problems.append(Problem(.syntax, error.message, at: position, sourceLine: sources[position]))
                lines[line - 1] =
                    SourceLines.isHeading(lines[line - 1]) ? "[\"\\u0001unreadable\".\"\(line)\"]" : ""
                text = lines.joined(separator: "\n")
            }
        }
        return (empty, problems)
    }

    /// An empty root table.
    private static let empty = TOMLNode(value: .table([]))

    /// A syntax error, with the place where the parser stopped.
    private struct Mistake: Error {
        /// What is wrong.
        let message: String
        /// The line from 1 on; 0 if it is not known.
        let line: Int
        /// The column from 1 on.
        let column: Int
    }

    /// Parses a text with toml++.
    private static func parse(_ text: String, file: String) throws(Mistake) -> TOMLNode {
        // The bridge always returns a document; C cannot say so.
        guard let document = ctoml_parse(text, text.utf8.count) else {
            throw Mistake(message: "the parser failed", line: 1, column: 1)
        }
        defer { ctoml_free(document) }
        var line: UInt32 = 0
        var column: UInt32 = 0
        if let message = ctoml_error(document, &line, &column) {
            throw Mistake(message: words(of: String(cString: message)), line: Int(line), column: Int(column))
        }
        let nodes = UnsafeBufferPointer(start: ctoml_nodes(document), count: ctoml_count(document))
        return tree(of: nodes, file: file)
    }

    /// The parser's message, without what all of its messages have in common.
    private static func words(of message: String) -> String {
        let prefix = "Error while parsing "
        guard message.hasPrefix(prefix), let colon = message.firstIndex(of: ":") else {
            return "not TOML: " + message
        }
        return "not TOML (\(message[..<colon].dropFirst(prefix.count)))" + message[colon...]
    }

    /// Makes a tree of the parser's flat list, in which the members of a table follow it.
    private static func tree(of nodes: UnsafeBufferPointer<ctoml_node>, file: String) -> TOMLNode {
        var children: [[Int]] = Array(repeating: [], count: nodes.count)
        for (index, node) in nodes.enumerated() where node.parent >= 0 {
            children[Int(node.parent)].append(index)
        }
        var built: [TOMLNode?] = Array(repeating: nil, count: nodes.count)
        // From the end, because a node comes after its parent: all members are built before their table.
        for index in nodes.indices.reversed() {
            let node = nodes[index]
            let value: TOMLNode.Value
            switch Int(node.kind) {
            case CTOML_TABLE:
                let members = children[index].compactMap { child -> TOMLNode.Member? in
                    guard let member = built[child] else { return nil }
                    let entry = nodes[child]
                    return TOMLNode.Member(
                        key: string(entry.key, entry.key_length),
                        keyPosition: position(entry.key_line, entry.key_column, file), node: member)
                }
                value = .table(members.sorted { order(of: $0) < order(of: $1) })
            case CTOML_ARRAY: value = .array(children[index].compactMap { built[$0] })
            case CTOML_STRING: value = .string(string(node.text, node.text_length))
            case CTOML_INTEGER: value = .integer(node.integer)
            case CTOML_FLOAT: value = .double(node.number)
            case CTOML_BOOLEAN: value = .boolean(node.boolean)
            // Dates and times. No setting has one, so the kind is enough for the message.
            default: value = .date
            }
            built[index] = TOMLNode(value: value, position: position(node.line, node.column, file))
        }
        return built.first.flatMap { $0 } ?? empty
    }

    /// The order of members in the file, which toml++ does not keep.
    private static func order(of member: TOMLNode.Member) -> (Int, Int) {
        (member.keyPosition?.line ?? 0, member.keyPosition?.column ?? 0)
    }

    /// A position; nil if the parser has none.
    private static func position(_ line: UInt32, _ column: UInt32, _ file: String) -> Position? {
        line == 0 ? nil : Position(file: file, line: Int(line), column: Int(column))
    }

    /// A text of the parser.
    private static func string(_ start: UnsafePointer<CChar>?, _ length: Int) -> String {
        UnsafeBufferPointer(start: start, count: length).withMemoryRebound(to: UInt8.self) {
            String(decoding: $0, as: UTF8.self)
        }
    }
}
