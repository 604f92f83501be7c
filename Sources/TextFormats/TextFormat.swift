//  TextFormats: reads lines of text logs and writes each as a JSON object.
//
//  What it promises. A line that is read becomes one JSON object on one line. Each value is the line's bytes;
//  bytes that are not UTF-8 become U+FFFD. A line that cannot be read is left as it is, and the caller gets
//  the column where reading stopped and what was expected there. No line makes it read beyond the memory that
//  the caller calls readable, allocate without a bound or take more than linear time.
//
//  What it knows: bytes, times and RE2. It knows nothing of files, events or configuration. `Events` decides
//  what becomes of a line that is not of the format; `Spool` frames records by `TextFormat.begins`.
//
//  Parts:
//  - `TextFormat`: a compiled format. Begin reading here, with `parse` and `begins`.
//  - `FormatTable`: the built-in formats, each with samples that the tests read and that become
//    `docs/text-formats.md`. `FormatGuess` finds the format that lines look like, for `check`.
//  - `Template` and `TemplateCompiler`: fields between fixed text, from our own and nginx's `$name`, Apache's
//    LogFormat and PostgreSQL's log_line_prefix. It reads access logs, and is the fastest way.
//  - `TextPatternFormat`: an RE2 expression with named groups. `ColumnFormat`: CSV and TSV.
//  - `BuiltInFormat` and `Formats/`: what a template cannot say, as optional fields and several layouts.
//  - `TextTime`: the times of text logs; `TimeReader` finds their parts, `TimeParts` what instant they mean.
//  - `RecordWriter`: the object that is being written, in a `JSONBuffer`; `LogTimes` reads its time, and
//    `TimestampMember` is that time's text.
//  - `Bytes` and `LineReader`: a slice of the line, and the position of reading in it.
//
//  Rules. A `TextFormat` is immutable after `init` and may be used by any thread; a `RecordWriter` belongs to
//  one caller, who uses it for every line, so that a line allocates nothing. Lines are hostile, the settings
//  are not: no length, number or offset of a line is trusted. A `-` that stands for a missing
//  value is left out, except in CSV, TSV, logfmt and auditd. What a `TextFailure` says goes to logs, so it
//  may hold parts of the format, and never parts of the line.

/// The settings of an app that say how its lines are written, as `[apps.NAME]` has them.
public struct TextFormatSettings: Sendable, Equatable {
    /// Name of a built-in format (see `FormatTable.names`), or a template with `$` or `%`; nil if it is not
    /// set.
    public var parse: String?
    /// RE2 expression with named groups, each of which becomes a member; nil if it is not set. Not with
    /// `parse`.
    public var pattern: String?
    /// RE2 expression that matches the first line of a record, if records have several lines. If nil, the
    /// format decides.
    public var firstLine: String?
    /// Names of the columns of `csv` and `tsv`; for `json_in`, the one name of the member that holds the
    /// object.
    public var columns: [String] = []
    /// Fields that become JSON numbers if their text is a number by JSON's grammar; otherwise they stay
    /// texts.
    public var numbers: [String] = []
    /// Name of the member that keeps the original line; nil keeps none.
    public var keepLine: String?

    /// Settings without a format: lines are JSON.
    public init() {}

    /// Whether nothing asks for a format. `columns`, `numbers` and `keepLine` alone have no effect.
    public var isEmpty: Bool { parse == nil && pattern == nil && firstLine == nil }
}

/// A mistake in a format's settings, in words for the person who wrote them.
public struct TextFormatError: Error, Sendable, Equatable {
    /// The setting to correct: `parse`, `pattern`, `first_line` or `columns`.
    public let key: String
    /// What is wrong, and what to do.
    public let message: String
}

/// The place where a line stopped matching the format.
public struct TextFailure: Sendable, Equatable {
    /// Column in bytes, counted from 1.
    public let column: Int
    /// What was expected there: a literal of the format, or the kind of a field. Never content of the line,
    /// because it is logged.
    public let expected: String

    package init(column: Int, expected: String) {
        self.column = column
        self.expected = expected
    }
}

/// A format that is compiled once; immutable, so any thread may use it.
public final class TextFormat: Sendable {
    /// The settings that it was compiled from; formats are compared by them.
    public let settings: TextFormatSettings

    /// The way of reading a record.
    private let kind: Kind
    /// The compiled `first_line`; nil leaves the beginnings of records to `kind`.
    private let first: TextExpression?
    /// Name of the member for the original line, in quotes and with a colon; empty if the line is not kept.
    private let keptName: [UInt8]
    /// Whether a record may have several lines. If false, callers frame by line feeds and never call
    /// `begins`.
    public let joinsLines: Bool
    /// Whether lines are parsed; false if only `first_line` is set, or nothing. Stored, because `kind` counts
    /// references for each line that asks it.
    public let parses: Bool
    /// Name of the member whose text is the record, if the format is `json_in`; otherwise nil.
    public let jsonMember: [UInt8]?
    /// Whether a line may be a header of columns. Stored for the same reason as `parses`.
    private let mayHaveHeader: Bool

    /// Most bytes of one record of several lines, 64 KiB. A longer record is split, so that a log in which no
    /// line begins a record is not read as one endless record.
    public static let mostRecordBytes = 64 << 10
    /// Most lines of one record; bounds the work for a log of empty lines, which stays far below 64 KiB.
    public static let mostRecordLines = 500

    /// The ways of reading a record.
    enum Kind: Sendable {
        /// Fields between fixed text.
        case template(Template)
        /// A regular expression.
        case pattern(TextPatternFormat)
        /// A reader for one program's records.
        case builtIn(BuiltInFormat)
        /// CSV or TSV.
        case columns(ColumnFormat)
        /// An object that is the text of this member.
        case jsonIn([UInt8])
        /// Records begin as `first_line` says, and are not parsed: they become the text of an event.
        case none

        /// Whether a record may have several lines without `first_line`. A template can tell only if it
        /// begins with a time, because then a continuation line does not look like a beginning.
        var joinsLines: Bool {
            switch self {
            case .builtIn(let format): format.joinsLines
            case .template(let template): template.beginsWithTime
            case .pattern, .columns, .jsonIn, .none: false
            }
        }
    }

    /// Compiles settings; they must not be empty.
    ///
    /// - Throws: `TextFormatError` if `parse` and `pattern` are both set, the format is unknown, or a
    ///   template or an expression is invalid.
    public init(_ settings: TextFormatSettings) throws(TextFormatError) {
        self.settings = settings
        guard settings.parse == nil || settings.pattern == nil else {
            throw TextFormatError(
                key: "pattern", message: "parse and pattern are both set; remove one of them")
        }
        kind = try TextFormat.kind(of: settings)
        first = try settings.firstLine.map { text throws(TextFormatError) in
            try TextExpression(text, key: "first_line")
        }
        keptName = settings.keepLine.map { RecordWriter.quotedName($0) } ?? []
        if case .jsonIn(let name) = kind {
            guard first == nil else {
                throw TextFormatError(
                    key: "first_line", message: "json_in reads an object on each line; remove first_line")
            }
            jsonMember = name
        } else {
            jsonMember = nil
        }
        if case .columns = kind {
            mayHaveHeader = true
        } else {
            mayHaveHeader = false
        }
        if case .none = kind {
            parses = false
        } else {
            parses = true
        }
        joinsLines = first != nil || kind.joinsLines
    }

    /// Chooses the way of reading. A name has priority over a template, because no name contains `$` or `%`.
    private static func kind(of settings: TextFormatSettings) throws(TextFormatError) -> Kind {
        if let pattern = settings.pattern {
            return .pattern(try TextPatternFormat(pattern, numbers: settings.numbers))
        }
        guard let parse = settings.parse else { return .none }
        if let separator = ["csv": UInt8(ascii: ","), "tsv": UInt8(ascii: "\t")][parse] {
            guard !settings.columns.isEmpty else {
                throw TextFormatError(key: "columns", message: "\(parse) needs columns, a list of names")
            }
            return .columns(ColumnFormat(separator, settings.columns, numbers: settings.numbers))
        }
        if parse.hasPrefix("json_in") { return .jsonIn(try jsonMember(parse, settings.columns)) }
        if let row = FormatTable.row(named: parse) {
            switch row.reader {
            case .template(let text):
                return .template(try TemplateCompiler.compile(text, numbers: settings.numbers))
            case .builtIn(let format): return .builtIn(format)
            }
        }
        guard parse.contains("$") || parse.contains("%") else {
            let names = FormatTable.names.joined(separator: ", ")
            throw TextFormatError(
                key: "parse",
                message: "unknown format \"\(parse)\"; use a template with $name, or one of \(names)")
        }
        return .template(try TemplateCompiler.compile(parse, numbers: settings.numbers))
    }

    /// The member of `json_in:NAME`, `json_in(NAME)`, or `json_in` with `columns`.
    private static func jsonMember(_ parse: String, _ columns: [String]) throws(TextFormatError) -> [UInt8] {
        var name = String(parse.dropFirst(7))
        if name.hasPrefix(":") {
            name.removeFirst()
        } else if name.hasPrefix("("), name.hasSuffix(")") {
            name = String(name.dropFirst().dropLast())
        } else if name.isEmpty {
            name = columns.count == 1 ? columns[0] : ""
        }
        guard !name.isEmpty else {
            throw TextFormatError(key: "parse", message: "json_in needs a member's name: json_in:log")
        }
        return Array(name.utf8)
    }

    /// Names of the members that a parsed record may have beside `timestamp`; nil if they depend on the
    /// record. With them a caller knows beforehand that no rule concerns a record's members, and need not
    /// scan the record.
    public var memberNames: [[UInt8]]? {
        let names: [[UInt8]]? =
            switch kind {
            case .template(let template): template.memberNames
            case .pattern(let pattern): pattern.memberNames
            case .columns(let columns): columns.memberNames
            case .builtIn, .jsonIn, .none: nil
            }
        // Callers compare plain names, and these have JSON's escapes.
        guard let names, !names.contains(where: { $0.contains(UInt8(ascii: "\\")) }) else { return nil }
        return names + (keptName.isEmpty ? [] : [RecordWriter.name(quoted: keptName)])
    }

    /// The format's name for the log and for `status`: the value of `parse`, or which setting takes its
    /// place.
    public var name: String { settings.parse ?? (settings.pattern == nil ? "first_line" : "pattern") }

    /// Whether the pattern lacks `^` at its beginning. RE2 then tries a match at each byte, which is slow on
    /// lines that do not match; `check` warns.
    public var isUnanchoredPattern: Bool {
        if case .pattern = kind { return settings.pattern?.hasPrefix("^") == false }
        return false
    }

    // MARK: Records of several lines

    /// Whether a line is the first of a record. Programs mix lines of JSON with lines of text: without
    /// `first_line` a line of JSON is a record alone, and the line after it begins another.
    ///
    /// - Parameters:
    ///   - line: the line, without its line feed; a carriage return at its end does not count. An empty line
    ///     belongs to the record before it, unless that is a line of JSON.
    ///   - previous: the line before it; empty for the first line. MariaDB's slow log needs it.
    public func begins(_ line: UnsafeRawBufferPointer, after previous: UnsafeRawBufferPointer) -> Bool {
        let bytes = Bytes(line).withoutReturn
        guard !bytes.isEmpty else { return first == nil && TextFormat.isObject(previous) }
        if let first { return first.finds(bytes) }
        if TextFormat.isObject(line) || TextFormat.isObject(previous) { return true }
        return switch kind {
        case .builtIn(let format): format.begins(bytes, after: Bytes(previous).withoutReturn)
        case .template(let template): template.begins(bytes)
        case .pattern, .columns, .jsonIn, .none: true
        }
    }

    /// Whether a line looks like a JSON object with members. A line of a stack trace or a dump may be
    /// `{main}` or `{a=1}`, so a quote must follow the brace.
    private static func isObject(_ line: UnsafeRawBufferPointer) -> Bool {
        guard line.first == UInt8(ascii: "{"), line.last(where: { $0 > 0x20 }) == UInt8(ascii: "}") else {
            return false
        }
        return line.dropFirst().first { $0 > 0x20 } == UInt8(ascii: "\"")
    }

    // MARK: Parsing

    /// Whether a line only names the columns of `csv` or `tsv`, as the first line of many files does. It is
    /// no record.
    public func isHeader(_ line: UnsafeRawBufferPointer) -> Bool {
        guard mayHaveHeader, case .columns(let columns) = kind else { return false }
        return columns.isHeader(Bytes(line).withoutReturn)
    }

    /// Writes a record as an object, with a line feed after it.
    ///
    /// - Parameters:
    ///   - record: one line, or several with line feeds between them, without the last line feed. Lines that
    ///     end with CR and LF are read as if they ended with LF.
    ///   - readable: number of bytes that may be loaded from the record's first byte on, at least its
    ///     length. Texts are copied 16 bytes at a time if that many are readable.
    ///   - keepsLine: false leaves out the member for the original line, which may hold a withheld value.
    ///   - writer: gets the object; its content is valid only if the result is nil.
    /// - Returns: nil if the record was written; otherwise the place where it stopped matching the format.
    public func parse(
        _ record: UnsafeRawBufferPointer, readable: Int, keepsLine: Bool = true,
        into writer: inout RecordWriter
    ) -> TextFailure? {
        let bytes = Bytes(record).withoutReturn
        guard joinsLines, let lines = bytes.withLineFeedsOnly else {
            return parse(bytes, readable: max(readable, bytes.count), keepsLine: keepsLine, into: &writer)
        }
        return lines.withUnsafeBytes {
            parse(Bytes($0), readable: $0.count, keepsLine: keepsLine, into: &writer)
        }
    }

    /// Writes a record whose lines end with line feeds.
    private func parse(
        _ bytes: Bytes, readable: Int, keepsLine: Bool, into writer: inout RecordWriter
    ) -> TextFailure? {
        writer.begin(readableTo: bytes.start + readable)
        var reader = LineReader(bytes)
        let isParsed =
            switch kind {
            case .template(let template): template.parse(&reader, into: &writer)
            case .builtIn(let format): format.parse(&reader, into: &writer)
            case .columns(let columns): columns.parse(&reader, into: &writer)
            case .pattern(let pattern): pattern.parse(&reader, into: &writer)
            case .jsonIn, .none: reader.fail("a format")
            }
        guard isParsed else { return reader.failure }
        if !keptName.isEmpty, keepsLine {
            writer.member(quoted: keptName, bytes)
            writer.noteMembersKnown(false)
        }
        writer.end()
        return nil
    }

    /// Writes a text as `{"message":…}`, with a line feed after it: an event from a line that has no format.
    ///
    /// - Parameters:
    ///   - text: the line or lines, without the last line feed. CR and LF between lines become LF.
    ///   - readable: as in `parse`.
    ///   - more: further members, already JSON; empty for none.
    public static func wrap(
        _ text: UnsafeRawBufferPointer, readable: Int, more: [UInt8] = [], into writer: inout RecordWriter
    ) {
        let bytes = Bytes(text)
        if let lines = bytes.withLineFeedsOnly {
            return lines.withUnsafeBytes { wrap($0, readable: $0.count, more: more, into: &writer) }
        }
        writer.begin(readableTo: bytes.start + max(readable, bytes.count))
        writer.text("message", bytes)
        if !more.isEmpty {
            writer.json.raw(more)
        }
        writer.end()
    }
}

extension TextFormat: Equatable {
    /// Formats with the same settings read the same, so compiled forms need no comparison.
    public static func == (left: TextFormat, right: TextFormat) -> Bool { left.settings == right.settings }
}
