internal import Model

/// The lines of the configuration files, for messages. What may be secret in them is hidden.
///
/// Messages go to logs at a reload. A mistake beside a token must not carry the token there, not even if the
/// token's own key is mistyped. So in sections with secrets only values of keys that are known to be harmless
/// are shown.
struct SourceLines: Sendable, Equatable {
    /// Lines by file.
    private var files: [String: [String]] = [:]

    /// Adds a file.
    mutating func add(_ text: String, file: String) { files[file] = SourceLines.split(text) }

    /// The lines of a text, without the carriage returns that may end them.
    static func split(_ text: String) -> [String] {
        // Split by bytes: Swift takes CR LF for one character, which is not equal to a line feed.
        text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { line in
            String(Substring(line.last == UInt8(ascii: "\r") ? line.dropLast() : line))
        }
    }

    /// Whether a line is the heading of a section.
    static func isHeading(_ line: String) -> Bool {
        line.utf8.first { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\t") } == UInt8(ascii: "[")
    }

    /// The line at a position, with `****` in place of what may be secret.
    subscript(position: Position?) -> String? {
        guard let position, let lines = files[position.file], lines.indices.contains(position.line - 1) else {
            return nil
        }
        let line = lines[position.line - 1]
        let text = line.drop { $0 == " " || $0 == "\t" }
        if text.isEmpty || text.first == "#" || text.first == "[" { return line }
        let section = lines[..<(position.line - 1)].last(where: SourceLines.isHeading)
        let isHarmless =
            section.map { SourceLines.harmlessSections.contains(SourceLines.firstWord($0)) } ?? false
        guard let equals = text.firstIndex(of: "=") else { return isHarmless ? line : "****" }
        let key = SourceLines.lastWord(text[..<equals])
        let root = SourceLines.firstWord(String(text[..<equals]))
        let value = text[text.index(after: equals)...]
        let isShown =
            (isHarmless || SourceLines.harmlessKeys.contains(key)
                || (section == nil && SourceLines.harmlessSections.contains(root)))
            && !SourceLines.keyFiles.contains(key)
            && !(value.contains { $0 == "@" || $0 == "?" } && String(value).holds("://"))
        return isShown ? line : String(line[...equals]) + " ****"
    }

    /// Position in the file of a character of a string value, by its column in the value; `start` is where
    /// the value begins. Nil if the value is not written literally on one line (escapes, variables).
    func place(ofColumn column: Int, in start: Position) -> Position? {
        guard let line = self[start].map({ Array($0.unicodeScalars) }), start.column <= line.count else {
            return nil
        }
        let quote = line[start.column - 1]
        guard quote == "\"" || quote == "'" else { return nil }
        let quotes = line[(start.column - 1)...].prefix { $0 == quote }.count
        guard quotes == 1 || quotes == 3, start.column - 1 + quotes < line.count else { return nil }
        let before = line[(start.column - 1 + quotes)...].prefix(column - 1)
        // An escape or a variable is longer in the file than in the text.
        guard before.count == column - 1, !before.contains("\\"), !before.contains("$"),
            !before.contains(quote)
        else { return nil }
        return Position(file: start.file, line: start.line, column: start.column + quotes + column - 1)
    }

    /// Keys whose value names a file with a secret. They are masked, because people write the secret itself
    /// there by mistake. `credentials` is a choice for AWS and a file for NATS: a line shows only its last
    /// word.
    private static let keyFiles: Set<String> = ["credentials", "hash_key"]
    /// Sections that have no secrets.
    private static let harmlessSections = Set(Settings.description.map(\.name)).subtracting(["destination"])

    /// Keys of destinations that have no secrets.
    private static let harmlessKeys = Set(
        Settings.description.filter { $0.name == "destination" }.flatMap { harmlessKeys(of: $0) })

    /// Keys of a section that have no secrets, with those of sections in it.
    private static func harmlessKeys(of section: SectionDescription) -> [String] {
        section.oldKeys.map(\.name)
            + section.entries.flatMap { entry in
                switch entry {
                case .setting(let setting): setting.type.hasSuffix("secret") ? [] : [setting.name]
                case .section(let inner): harmlessKeys(of: inner)
                }
            }
    }

    /// The first name in a text: of a heading, or of a key.
    private static func firstWord(_ text: String) -> String {
        String(text.drop { " \t[\"'".contains($0) }.prefix { !" \t].\"'=".contains($0) })
    }

    /// The last name in a key with dots.
    private static func lastWord(_ text: Substring) -> String {
        let words = text.split { " \t.\"'".contains($0) }
        return words.last.map(String.init) ?? ""
    }
}
