internal import Model

/// The lines of the configuration files, for messages: what may be secret in them is hidden.
///
/// Messages go to logs at a reload. A mistake beside a token must not carry the token there, not even when the mistake
/// is in the token's own name: so in sections that hold secrets only values of known harmless settings are shown.
struct SourceLines: Sendable, Equatable {
    private var files: [String: [String]] = [:]

    mutating func add(_ text: String, file: String) { files[file] = SourceLines.split(text) }

    /// A text's lines, without the carriage returns that may end them.
    static func split(_ text: String) -> [String] {
        // By bytes: a carriage return and its line feed are one character, which is no line feed.
        text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { line in
            String(Substring(line.last == UInt8(ascii: "\r") ? line.dropLast() : line))
        }
    }

    static func isHeading(_ line: String) -> Bool {
        line.utf8.first { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\t") } == UInt8(ascii: "[")
    }

    /// The line at a place, with `****` instead of what may be secret.
    subscript(position: Position?) -> String? {
        guard let position, let lines = files[position.file], lines.indices.contains(position.line - 1) else {
            return nil
        }
        let line = lines[position.line - 1]
        let text = line.drop { $0 == " " || $0 == "\t" }
        if text.isEmpty || text.first == "#" || text.first == "[" { return line }
        let section = lines[..<(position.line - 1)].last(where: SourceLines.isHeading)
        let isHarmless = section.map { SourceLines.harmlessSections.contains(SourceLines.firstWord($0)) } ?? false
        guard let equals = text.firstIndex(of: "=") else { return isHarmless ? line : "****" }
        let key = SourceLines.lastWord(text[..<equals])
        let root = SourceLines.firstWord(String(text[..<equals]))
        let value = text[text.index(after: equals)...]
        let isShown =
            (isHarmless || SourceLines.harmlessKeys.contains(key)
                || (section == nil && SourceLines.harmlessSections.contains(root)))
            && !(value.contains { $0 == "@" || $0 == "?" } && String(value).holds("://"))
        return isShown ? line : String(line[...equals]) + " ****"
    }

    private static let harmlessSections = Set(Settings.description.map(\.name)).subtracting(["destination"])

    /// What a destination may say that is no secret.
    private static let harmlessKeys = Set(
        Settings.description.filter { $0.name == "destination" }.flatMap { harmlessKeys(of: $0) })

    private static func harmlessKeys(of section: SectionDescription) -> [String] {
        section.entries.flatMap { entry in
            switch entry {
            case .setting(let setting): setting.type.hasSuffix("secret") ? [] : [setting.name]
            case .section(let inner): harmlessKeys(of: inner)
            }
        }
    }

    private static func firstWord(_ text: String) -> String {
        String(text.drop { " \t[\"'".contains($0) }.prefix { !" \t].\"'=".contains($0) })
    }

    private static func lastWord(_ text: Substring) -> String {
        let words = text.split { " \t.\"'".contains($0) }
        return words.last.map(String.init) ?? ""
    }
}
