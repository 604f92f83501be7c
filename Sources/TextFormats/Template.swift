internal import EventLoops
internal import Glibc

/// Fields between fixed text, which is the fastest way to read a line.
///
/// A field ends where the literal after it begins. A field between quotes ends at the first quote that has no
/// backslash before it, because access logs escape quotes inside values. Reading is linear: a field searches
/// for its literal once, and a time at most six times.
struct Template: Sendable {
    /// The kinds of fields: what the text of a field must be and what is written.
    enum Kind: Sendable {
        /// Any text.
        case text
        /// A number if JSON's grammar agrees, otherwise a text.
        case number
        /// The time of the record; a text that is not a time makes the record fail. If the field has a name,
        /// its text is written beside `timestamp`.
        case time
        /// The time of the record if the text is a time; otherwise a text under the field's name.
        case maybeTime
        /// The first line of an HTTP request: `GET /path HTTP/1.1` becomes `method`, `path` and `protocol`,
        /// other text becomes `request`.
        case request
        /// A name and a port, `shop.example:443`: `vhost` and `port`.
        case hostPort
        /// The remainder of the record. Only the last field can be one.
        case rest
        /// PostgreSQL's `LEVEL:  message`, to the end of the record: `level` and `message`.
        case severityAndMessage
        /// A text that may hold the byte that ends it, which has no blank after it until the next field ends:
        /// the user in PostgreSQL's `%u@%d `. The last such byte counts.
        case account
        /// PostgreSQL's `%q`, which takes no text: only sessions write what follows. In the other processes'
        /// lines the severity follows at once.
        case sessionsOnly
        /// Read, but not written.
        case skipped
    }

    /// A field as the compiler makes it.
    struct Field: Sendable {
        /// The kind of the field's value.
        var kind: Kind
        /// Name as it is written, in quotes and with a colon; empty if the kind has fixed names.
        var name: [UInt8] = []
        /// The text after the field; empty for the last one.
        var literal: [UInt8] = []
        /// Whether the field is between quotes, in which a backslash precedes a quote.
        var isQuoted = false
        /// Whether the record may end with this field, because only some logs have the fields after it.
        var mayEnd = false
    }

    /// A field without arrays: their references would be counted for each field of each line.
    struct Step {
        /// See `Field.kind`.
        let kind: Kind
        /// See `Field.name`; a slice of the program's memory.
        let name: Bytes
        /// See `Field.literal`; a slice of the program's memory.
        let literal: Bytes
        /// See `Field.isQuoted`.
        let isQuoted: Bool
        /// See `Field.mayEnd`.
        let mayEnd: Bool
        /// Whether the fast way for plain text may read the field (`parsePlain`).
        let mayBePlain: Bool

        /// A field whose name and literal are in memory that stays.
        init(_ field: Field, name: Bytes, literal: Bytes) {
            kind = field.kind
            self.name = name
            self.literal = literal
            isQuoted = field.isQuoted
            mayEnd = field.mayEnd
            let isKnown =
                switch field.kind {
                case .text, .number, .request, .skipped: true
                default: false
                }
            mayBePlain = isKnown && !literal.isEmpty && name.count <= JSONBuffer.shortCopy
        }
    }

    /// The compiled fields, and the memory of their names and literals. A class, because it must be freed
    /// once.
    ///
    /// Unchecked because of its pointers; immutable after `init`.
    private final class Program: @unchecked Sendable {
        // Immutable after `init`.
        /// The fields in order.
        let steps: UnsafeMutableBufferPointer<Step>
        /// The text before the first field.
        let prefix: Bytes
        /// All memory that the slices refer to.
        private var memory: [UnsafeMutablePointer<UInt8>] = []

        /// Copies names and literals into memory of its own.
        init(_ fields: [Field], prefix text: [UInt8]) {
            steps = .allocate(capacity: fields.count)
            let prefix = Program.copy(text)
            self.prefix = Bytes(UnsafePointer(prefix), text.count)
            memory.append(prefix)
            for (index, field) in fields.enumerated() {
                let name = Program.copy(field.name)
                let literal = Program.copy(field.literal)
                memory += [name, literal]
                steps.initializeElement(
                    at: index,
                    to: Step(
                        field, name: Bytes(UnsafePointer(name), field.name.count),
                        literal: Bytes(UnsafePointer(literal), field.literal.count)))
            }
        }

        deinit {
            for piece in memory { piece.deallocate() }
            steps.deallocate()
        }

        /// Copies bytes, with room after them.
        private static func copy(_ bytes: [UInt8]) -> UnsafeMutablePointer<UInt8> {
            // Names are copied by a fixed length, beyond their ends.
            let capacity = bytes.count + JSONBuffer.shortCopy
            let copy = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity)
            copy.initialize(repeating: 0, count: capacity)
            bytes.withUnsafeBufferPointer {
                if let start = $0.baseAddress {
                    copy.update(from: start, count: $0.count)
                }
            }
            return copy
        }
    }

    /// The compiled fields; kept alive by `withExtendedLifetime` while their pointers are used.
    private let program: Program
    /// The fields in order.
    private var fields: UnsafeMutableBufferPointer<Step> { program.steps }

    /// A template of a text and the fields after it.
    init(prefix: [UInt8], fields: [Field]) {
        program = Program(fields, prefix: prefix)
    }

    /// Names of the members that a record may have beside `timestamp`; nil if they depend on the record. With
    /// two times the second `timestamp` is a member like others, and a name with escapes cannot be compared.
    var memberNames: [[UInt8]]? {
        var names: [[UInt8]] = []
        var times = 0
        for field in fields {
            switch field.kind {
            case .time, .maybeTime: times += 1
            case .request: names += ["method", "path", "protocol", "request"].map { Array($0.utf8) }
            case .hostPort: names += ["vhost", "port"].map { Array($0.utf8) }
            case .severityAndMessage: names += ["level", "message"].map { Array($0.utf8) }
            case .text, .number, .rest, .account, .sessionsOnly, .skipped: break
            }
            if !field.name.isEmpty {
                names.append(RecordWriter.name(quoted: Array(field.name.buffer)))
            }
        }
        return times > 1 || names.contains { $0.contains(UInt8(ascii: "\\")) } ? nil : names
    }

    /// Whether the beginning of a line shows that a record begins, because it has a time there.
    var beginsWithTime: Bool {
        guard let first = fields.first else { return false }
        if case .time = first.kind { return true }
        return false
    }

    /// Whether a line begins a record: it begins with the prefix and, if the first field is a time, with a
    /// time.
    func begins(_ line: Bytes) -> Bool {
        var reader = LineReader(line)
        guard reader.skip(program.prefix) else { return false }
        guard beginsWithTime, let field = fields.first else { return true }
        // The literal after the time, often a blank, may occur in the time: try up to six texts, each longer
        // than the last.
        let start = reader.p
        for _ in 0..<6 {
            guard let more = Template.value(of: field, &reader) else { return false }
            if TextTime.isTime(Bytes(start, more.end - start)) { return true }
        }
        return false
    }

    /// Reads a record and writes its members; returns false, with a note, at the first place that does not
    /// fit.
    func parse(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        withExtendedLifetime(program) {
            let prefix = program.prefix
            guard reader.skip(prefix) else {
                return reader.fail(String(decoding: prefix.buffer, as: UTF8.self))
            }
            let fields = fields
            let loads = writer.json.loads(upTo: reader.end)
            var index = 0
            while index < fields.count {
                if loads, fields[index].mayBePlain,
                    Template.parsePlain(fields[index], &reader, into: &writer)
                {
                    if fields[index].mayEnd, reader.isAtEnd { return true }
                    index += 1
                    continue
                }
                switch fields[index].kind {
                case .rest, .severityAndMessage:
                    return Template.parseLast(fields[index], &reader, into: &writer)
                case .sessionsOnly:
                    // A process without a session: what follows `%q` is missing, so continue with the last
                    // field, the message.
                    if SeverityPrefix(reader.rest) != nil {
                        index = fields.count - 1
                        continue
                    }
                    guard reader.skip(fields[index].literal) else { return reader.fail("LEVEL:  ") }
                case .time, .maybeTime:
                    guard Template.parseTime(fields[index], &reader, into: &writer) else { return false }
                case .account:
                    guard let value = Template.account(fields[index], &reader) else { return false }
                    Template.write(value, of: fields[index], into: &writer)
                default:
                    if let value = Template.value(of: fields[index], &reader) {
                        Template.write(value, of: fields[index], into: &writer)
                        if fields[index].mayEnd, reader.isAtEnd { return true }
                    } else {
                        guard fields[index].mayEnd else { return false }
                        return Template.parseShort(fields[index], &reader, into: &writer)
                    }
                }
                index += 1
            }
            return reader.isAtEnd ? true : reader.fail("the end of the line")
        }
    }

    /// Reads and writes a field of plain text with the literal after it, which most fields are. Returns
    /// false, with nothing read and nothing written, for any other field.
    @inline(__always)
    private static func parsePlain(
        _ field: Step, _ reader: inout LineReader, into writer: inout RecordWriter
    ) -> Bool {
        let start = reader.p
        let mark = writer.mark
        let found: UnsafePointer<UInt8>?
        switch field.kind {
        case .request:
            found = RequestLine.writePlain(
                from: start, to: field.literal[0], before: reader.end, into: &writer)
        case .number:
            found = writer.json.plainField(
                field.name, isNumber: true, from: start, to: field.literal[0], before: reader.end)
        default:
            found = writer.json.plainField(
                field.name, isNumber: false, from: start, to: field.literal[0], before: reader.end)
        }
        guard let found else { return false }
        reader.p = found
        if reader.skip(field.literal) { return true }
        // Only the quote is left of the record, which this field may end.
        if field.mayEnd, field.isQuoted, reader.end - found == 1 {
            reader.p = reader.end
            return true
        }
        reader.p = start
        writer.goBack(to: mark)
        return false
    }

    /// Reads a field at which the record ends before the format does. The field must not hold the mark that
    /// would have ended it, or the record is another one.
    @inline(never)
    private static func parseShort(
        _ field: Step, _ reader: inout LineReader, into writer: inout RecordWriter
    ) -> Bool {
        var value = reader.fieldStart
        if field.isQuoted {
            guard value.last == UInt8(ascii: "\"") else { return false }
            value = value.prefix(value.count - 1)
        }
        let mark: UInt8 = field.isQuoted ? UInt8(ascii: "\"") : UInt8(ascii: " ")
        guard value.firstIndex(of: mark) == nil || field.isQuoted && value.last != UInt8(ascii: "\\") else {
            return false
        }
        write(value, of: field, into: &writer)
        reader.p = reader.rest.end
        return true
    }

    // MARK: Times

    /// Reads a time. The literal after it may occur in it, so it ends at the first such literal before which
    /// there is a time. Returns nil, with a note and at the old position, if there is no time.
    @inline(__always)
    private static func time(
        _ field: Step, _ reader: inout LineReader, _ writer: inout RecordWriter
    ) -> (time: Timestamp, text: Bytes)? {
        let start = reader.p
        guard let value = value(of: field, &reader) else { return nil }
        // `10:00` is a time as `10:00:00` is: if a colon follows, the longest text counts.
        let isLongest = field.literal.first == UInt8(ascii: ":")
        var found = writer.time(of: value).map { ($0, value) }
        if found != nil, !isLongest { return found }
        var end = reader.p
        for _ in 0..<5 {
            guard let more = Template.value(of: field, &reader) else { break }
            let longer = Bytes(start, more.end - start)
            guard let time = writer.time(of: longer) else { continue }
            found = (time, longer)
            end = reader.p
            if !isLongest { break }
        }
        if let found {
            reader.p = end
            return found
        }
        reader.p = start
        _ = reader.fail("a time")
        return nil
    }

    /// Reads a field that is or may be a time.
    @inline(__always)
    private static func parseTime(
        _ field: Step, _ reader: inout LineReader, into writer: inout RecordWriter
    ) -> Bool {
        if let (time, text) = time(field, &reader, &writer) {
            writer.time(time)
            if !field.name.isEmpty {
                writer.member(quoted: field.name, text)
            }
            return true
        }
        guard case .maybeTime = field.kind, let value = value(of: field, &reader) else { return false }
        if !value.isEmpty, !value.equals("-"), !field.name.isEmpty {
            writer.member(quoted: field.name, value)
        }
        return true
    }

    // MARK: Values

    /// Reads a field up to the literal after it, over which it steps; nil, with a note, if the literal is
    /// missing.
    @inline(__always)
    private static func value(of field: Step, _ reader: inout LineReader) -> Bytes? {
        reader.fieldFrom = reader.p
        if field.isQuoted { return quoted(field, &reader) }
        if field.literal.count == 1 { return reader.until(field.literal[0]) }
        if field.literal.isEmpty {
            let value = reader.rest
            reader.p = value.end
            return value
        }
        return reader.until(field.literal)
    }

    /// Reads a field up to the last place of its literal, one byte, before the next blank; nil, with a note,
    /// if the literal is missing.
    private static func account(_ field: Step, _ reader: inout LineReader) -> Bytes? {
        let start = reader.p
        guard value(of: field, &reader) != nil else { return nil }
        let word = reader.rest.prefix(reader.rest.firstIndex(of: UInt8(ascii: " ")) ?? 0)
        if let last = word.lastIndex(of: field.literal[0]) {
            reader.p += last + 1
        }
        return Bytes(start, reader.p - 1 - start)
    }

    /// Reads a field up to the quote that ends it, and steps over the literal, which begins with that quote.
    @inline(__always)
    private static func quoted(_ field: Step, _ reader: inout LineReader) -> Bytes? {
        let start = reader.p
        var from = start
        while let distance = Bytes(from, reader.rest.end - from).firstIndex(of: UInt8(ascii: "\"")) {
            let quote = from + distance
            // A quote ends the field after an even number of backslashes: `\\"` is an escaped backslash and a
            // quote.
            var slashes = 0
            while quote - slashes > start, quote[-1 - slashes] == UInt8(ascii: "\\") { slashes += 1 }
            if slashes % 2 == 0 {
                reader.p = quote
                guard reader.skip(field.literal) else {
                    // Only the quote is left of the record: the field may end it.
                    if field.mayEnd, reader.rest.count == 1 {
                        reader.p = quote + 1
                        return Bytes(start, quote - start)
                    }
                    _ = reader.fail(String(decoding: field.literal.buffer, as: UTF8.self))
                    return nil
                }
                return Bytes(start, quote - start)
            }
            from = quote + 1
        }
        reader.p = reader.rest.end
        _ = reader.fail("\"")
        return nil
    }

    /// Writes a value by its kind. A missing value (empty or `-`) is left out.
    @inline(__always)
    private static func write(_ value: Bytes, of field: Step, into writer: inout RecordWriter) {
        let isMissing = value.isEmpty || value.count == 1 && value[0] == UInt8(ascii: "-")
        guard !isMissing else { return }
        switch field.kind {
        case .text, .account:
            if field.isQuoted, value.firstIndex(of: UInt8(ascii: "\\")) != nil {
                writer.unescaped(quoted: field.name, value)
            } else {
                writer.member(quoted: field.name, value)
            }
        case .number: writer.number(quoted: field.name, value)
        case .request: RequestLine.write(value, isEscaped: field.isQuoted, into: &writer)
        case .hostPort: hostPort(value, into: &writer)
        case .time, .maybeTime, .rest, .severityAndMessage, .sessionsOnly, .skipped: break
        }
    }

    /// Writes `vhost` and `port`. The last colon counts, because an IPv6 address has others.
    private static func hostPort(_ value: Bytes, into writer: inout RecordWriter) {
        guard let colon = value.lastIndex(of: UInt8(ascii: ":")) else {
            writer.present("vhost", value)
            return
        }
        writer.present("vhost", value.prefix(colon))
        writer.number("port", value.dropping(colon + 1))
    }

    /// Reads a field that ends with the record.
    private static func parseLast(
        _ field: Step, _ reader: inout LineReader, into writer: inout RecordWriter
    ) -> Bool {
        guard case .severityAndMessage = field.kind else {
            if !reader.isAtEnd, !reader.rest.equals("-") {
                writer.member(quoted: field.name, reader.rest)
            }
            return true
        }
        guard let severity = SeverityPrefix(reader.rest) else { return reader.fail("LEVEL:  ") }
        writer.text("level", severity.word)
        writer.text("message", severity.message)
        return true
    }
}

extension Template.Kind {
    /// Whether the field takes all that is left, so that none can follow.
    var isLast: Bool {
        switch self {
        case .rest, .severityAndMessage: true
        default: false
        }
    }
}
