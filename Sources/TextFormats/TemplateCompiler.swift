/// Compiles templates in three notations: `$name` (ours and nginx's log_format), `%x` of Apache's LogFormat,
/// and `%x` of PostgreSQL's log_line_prefix. A template that has a `$` is of the first; PostgreSQL's is
/// recognised by `isPostgreSQL`.
///
/// Sources: https://nginx.org/en/docs/http/ngx_http_log_module.html,
/// https://httpd.apache.org/docs/2.4/mod/mod_log_config.html,
/// https://www.postgresql.org/docs/current/runtime-config-logging.html.
enum TemplateCompiler {
    /// Most fields of a template. Settings with more are a mistake.
    static let mostFields = 64

    /// Compiles a template.
    ///
    /// - Parameter numbers: names of text fields that become numbers.
    /// - Throws: `TextFormatError` for `parse` if the template is invalid or ambiguous.
    static func compile(_ text: String, numbers: [String]) throws(TextFormatError) -> Template {
        var parts: [Part]
        if text.contains("$") {
            parts = try dollar(Array(text.utf8))
        } else if isPostgreSQL(text) {
            parts = postgreSQL(Array(text.utf8))
            // PostgreSQL writes level and message after its prefix, which the setting does not mention.
            if parts.last?.isMessage != true {
                parts.append(.field(Template.Field(kind: .severityAndMessage)))
            }
        } else {
            parts = try apache(Array(text.utf8))
        }
        return try template(parts, numbers: Set(numbers))
    }

    // MARK: Parts

    /// A piece of a template's text.
    private enum Part {
        /// Text that the record must have at this place.
        case literal([UInt8])
        /// A value of the record.
        case field(Template.Field)

        /// Whether the part takes the remainder of the record.
        var isMessage: Bool {
            if case .field(let field) = self { return field.kind.isLast }
            return false
        }
    }

    /// Joins literals and fields, and refuses a template whose fields cannot be separated: two fields without
    /// text between them, or a field after one that takes all that is left.
    private static func template(_ parts: [Part], numbers: Set<String>) throws(TextFormatError) -> Template {
        var prefix: [UInt8] = []
        var fields: [Template.Field] = []
        // Whether the text before the next field ends with a quote.
        var quotesNext = false
        // Names as they are stored in fields, so that they can be compared.
        let numberNames = Set(numbers.map { RecordWriter.quotedName($0) })
        for part in parts {
            switch part {
            case .literal(let text):
                if fields.isEmpty {
                    prefix += text
                } else {
                    fields[fields.count - 1].literal += text
                }
                quotesNext = text.last == UInt8(ascii: "\"")
            case .field(var field):
                // The end of a field is found by the text after it. Without that text its length would be a
                // guess.
                if let last = fields.last, last.literal.isEmpty, !last.kind.isZeroWidth,
                    !field.kind.isZeroWidth
                {
                    throw TextFormatError(
                        key: "parse",
                        message: "two fields of the template have no text between them; put some there")
                }
                // A field that takes the remainder leaves nothing for another one.
                if let last = fields.last, last.kind.isLast {
                    throw TextFormatError(key: "parse", message: "only the last field can be :rest")
                }
                // `numbers` changes plain texts only: a time or a request keeps its kind.
                if numberNames.contains(field.name), case .text = field.kind {
                    field.kind = .number
                }
                field.isQuoted = quotesNext
                quotesNext = false
                fields.append(field)
            }
        }
        // Quoted means a quote on both sides.
        for index in fields.indices where fields[index].isQuoted {
            fields[index].isQuoted = fields[index].literal.first == UInt8(ascii: "\"")
        }
        guard !fields.isEmpty, fields.count <= mostFields else {
            throw TextFormatError(
                key: "parse", message: "a template has 1 to \(mostFields) fields, not \(fields.count)")
        }
        // No literal ends the last field: it takes what is left.
        if let last = fields.last, last.literal.isEmpty, case .text = last.kind {
            fields[fields.count - 1].kind = .rest
        }
        return Template(prefix: prefix, fields: fields)
    }

    // MARK: $name

    /// Variables of nginx that are numbers. Others are texts unless `numbers` or `:number` says otherwise.
    private static let nginxNumbers: Set<String> = [
        "status", "body_bytes_sent", "bytes_sent", "request_length", "request_time", "connection",
        "connection_requests", "upstream_response_time", "upstream_connect_time", "upstream_header_time",
        "upstream_status", "upstream_response_length", "upstream_bytes_received", "upstream_bytes_sent",
        "remote_port", "server_port", "content_length", "gzip_ratio", "pid", "msec",
    ]
    /// Names under which a time is expected. Times may hold blanks, so that such a field does not end at the
    /// first one.
    private static let times: Set<String> = [
        "time_local", "time_iso8601", "time", "timestamp", "ts", "datetime", "date", "asctime",
    ]

    /// Splits a template at `$name` and `${name}`.
    private static func dollar(_ text: [UInt8]) throws(TextFormatError) -> [Part] {
        var parts: [Part] = []
        var literal: [UInt8] = []
        var index = 0
        while index < text.count {
            guard text[index] == UInt8(ascii: "$") else {
                literal.append(text[index])
                index += 1
                continue
            }
            // Braces allow a name that is followed by letters, and names with dots or a kind.
            let isBraced = index + 1 < text.count && text[index + 1] == UInt8(ascii: "{")
            let start = index + (isBraced ? 2 : 1)
            var end = start
            while end < text.count, isBraced ? text[end] != UInt8(ascii: "}") : isNamePart(text[end]) {
                end += 1
            }
            guard end > start, !isBraced || end < text.count else {
                throw TextFormatError(
                    key: "parse",
                    message: "$ without a name at byte \(index + 1) of the template; use $name or ${name}"
                )
            }
            if !literal.isEmpty {
                parts.append(.literal(literal))
            }
            literal = []
            parts.append(.field(try field(String(decoding: text[start..<end], as: UTF8.self))))
            index = end + (isBraced ? 1 : 0)
        }
        if !literal.isEmpty {
            parts.append(.literal(literal))
        }
        return parts
    }

    /// Whether a byte may be part of a `$name` without braces.
    private static func isNamePart(_ byte: UInt8) -> Bool {
        byte | 0x20 >= 0x61 && byte | 0x20 <= 0x7A || byte &- 0x30 < 10 || byte == UInt8(ascii: "_")
    }

    /// The field of `name`, `name:number`, `name:time`, `name:rest` or `name:text`. The built-in formats also
    /// use the kinds `request` and `host_port`, and a `?` after the kind for a field that may end the record.
    private static func field(_ text: String) throws(TextFormatError) -> Template.Field {
        let words = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(
            String.init)
        let name = words[0]
        var kind = words.count > 1 ? words[1] : ""
        let mayEnd = kind.hasSuffix("?")
        if mayEnd {
            kind.removeLast()
        }
        var field = Template.Field(kind: .text, name: RecordWriter.quotedName(name))
        field.mayEnd = mayEnd
        switch kind {
        case "text": break
        // Without a kind the name decides, as the variables of nginx have known types.
        case "":
            if nginxNumbers.contains(name) {
                field.kind = .number
            }
            if times.contains(name) {
                field.kind = .maybeTime
            }
            // `timestamp` is written by the time itself, so it needs no name; a member of that name would be
            // a second one.
            if name == "timestamp" {
                field.name = []
            }
        case "number": field.kind = .number
        case "rest": field.kind = .rest
        case "time":
            // Named explicitly, so the record fails without a time; `maybeTime` would keep the text.
            field.kind = .time
            if name == "timestamp" {
                field.name = []
            }
        case "request": field.kind = .request
        case "host_port": field.kind = .hostPort
        default:
            throw TextFormatError(
                key: "parse", message: "unknown kind of field \"\(kind)\"; use number, time or rest")
        }
        return field
    }

    // MARK: Apache's LogFormat

    /// Directives of Apache without an argument: kind and member.
    private static let apacheFields: [Character: (kind: Template.Kind, name: String)] = [
        "h": (.text, "client"), "a": (.text, "client"), "l": (.text, "ident"), "u": (.text, "user"),
        "t": (.time, "timestamp"), "r": (.request, "request"), "s": (.number, "status"),
        "b": (.number, "size"),
        "B": (.number, "size"), "O": (.number, "bytes_sent"), "I": (.number, "bytes_received"),
        "D": (.number, "duration_us"), "T": (.number, "duration"), "v": (.text, "vhost"),
        "V": (.text, "vhost"),
        "p": (.number, "port"), "P": (.number, "pid"), "m": (.text, "method"), "U": (.text, "path"),
        "q": (.text, "query"), "H": (.text, "protocol"), "f": (.text, "file"), "k": (.number, "keepalive"),
        "X": (.text, "connection"), "L": (.text, "log_id"), "A": (.text, "server"), "R": (.text, "handler"),
        "S": (.number, "bytes"),
    ]

    /// Splits Apache's LogFormat.
    private static func apache(_ text: [UInt8]) throws(TextFormatError) -> [Part] {
        var parts: [Part] = []
        var literal: [UInt8] = []
        var index = 0
        while index < text.count {
            let byte = text[index]
            index += 1
            // A template that was copied from a configuration file escapes its quotes.
            if byte == UInt8(ascii: "\\"), index < text.count, text[index] == UInt8(ascii: "\"") { continue }
            guard byte == UInt8(ascii: "%"), index < text.count else {
                literal.append(byte)
                continue
            }
            // `%%` is a percent sign.
            if text[index] == UInt8(ascii: "%") {
                literal.append(byte)
                index += 1
                continue
            }
            // Modifiers say which request or status is meant, and do not change the form: `%>s`,
            // `%!200,304{…}i`.
            while index < text.count, "<>!,0123456789".utf8.contains(text[index]) { index += 1 }
            var argument = ""
            if index < text.count, text[index] == UInt8(ascii: "{") {
                // A missing brace is reported as an unknown directive below.
                let end = text[index...].firstIndex(of: UInt8(ascii: "}")) ?? text.count
                argument = String(decoding: text[(index + 1)..<end], as: UTF8.self)
                index = min(end + 1, text.count)
            }
            let letter = index < text.count ? Character(Unicode.Scalar(text[index])) : " "
            index += 1
            guard let field = apacheField(letter, argument) else {
                throw TextFormatError(key: "parse", message: "unknown directive %\(letter) in the template")
            }
            // `%t` alone is in brackets, which the directive does not show.
            if letter == "t", argument.isEmpty {
                literal.append(UInt8(ascii: "["))
            }
            if !literal.isEmpty {
                parts.append(.literal(literal))
            }
            // The bracket that closes the time begins the next literal.
            literal = letter == "t" && argument.isEmpty ? [UInt8(ascii: "]")] : []
            parts.append(.field(field))
        }
        if !literal.isEmpty {
            parts.append(.literal(literal))
        }
        return parts
    }

    /// The field of a directive; nil if it is unknown. Headers, cookies and variables are named by their
    /// argument.
    private static func apacheField(_ letter: Character, _ argument: String) -> Template.Field? {
        switch (letter, argument.lowercased()) {
        case ("i", "referer"): return Template.Field(kind: .text, name: RecordWriter.quotedName("referer"))
        case ("i", "user-agent"): return Template.Field(kind: .text, name: RecordWriter.quotedName("agent"))
        case ("i", let name), ("o", let name), ("C", let name), ("e", let name), ("n", let name),
            ("x", let name):
            // `-` is not usual in names of members, and would have to be quoted in paths: `X-Request-Id`
            // becomes `x_request_id`.
            let member = String(name.map { $0 == "-" ? "_" : $0 })
            return name.isEmpty ? nil : Template.Field(kind: .text, name: RecordWriter.quotedName(member))
        case ("t", let form) where !form.isEmpty:
            return Template.Field(kind: .maybeTime, name: RecordWriter.quotedName("time"))
        default:
            guard let (kind, name) = apacheFields[letter] else { return nil }
            return Template.Field(kind: kind, name: name == "timestamp" ? [] : RecordWriter.quotedName(name))
        }
    }

    // MARK: PostgreSQL's log_line_prefix

    /// Whether a `%` template is PostgreSQL's: it has one of PostgreSQL's usual escapes, and none of those
    /// that nearly every access log has. Some letters mean something in both.
    private static func isPostgreSQL(_ text: String) -> Bool {
        let ofApache = ["%>s", "%{", "\"%r", "%b", "%B", "%O", "%U", " %s"].contains { text.holds($0) }
        return !ofApache && ["%m", "%n", "%q", "%d", "%c", "%p"].contains { text.holds($0) }
    }

    /// PostgreSQL's escapes: kind and member; an empty name if the kind has fixed names.
    private static let postgreSQLFields: [UInt8: (kind: Template.Kind, name: String)] = [
        UInt8(ascii: "a"): (.text, "application"), UInt8(ascii: "u"): (.text, "user"),
        UInt8(ascii: "d"): (.text, "database"), UInt8(ascii: "r"): (.text, "client"),
        UInt8(ascii: "h"): (.text, "client"), UInt8(ascii: "b"): (.text, "backend"),
        UInt8(ascii: "p"): (.number, "pid"), UInt8(ascii: "P"): (.number, "leader_pid"),
        UInt8(ascii: "t"): (.time, ""), UInt8(ascii: "m"): (.time, ""),
        UInt8(ascii: "n"): (.maybeTime, "time"),
        UInt8(ascii: "i"): (.text, "command"), UInt8(ascii: "e"): (.text, "sqlstate"),
        UInt8(ascii: "c"): (.text, "session"), UInt8(ascii: "l"): (.number, "session_line"),
        UInt8(ascii: "s"): (.text, "session_start"), UInt8(ascii: "v"): (.text, "virtual_transaction"),
        UInt8(ascii: "x"): (.number, "transaction"), UInt8(ascii: "Q"): (.text, "query_id"),
        UInt8(ascii: "q"): (.sessionsOnly, ""),
    ]

    /// Splits PostgreSQL's log_line_prefix. An unknown letter is literal, so that `%%` is a percent sign.
    private static func postgreSQL(_ text: [UInt8]) -> [Part] {
        var parts: [Part] = []
        var literal: [UInt8] = []
        var index = 0
        while index < text.count {
            let byte = text[index]
            index += 1
            guard byte == UInt8(ascii: "%"), index < text.count else {
                literal.append(byte)
                continue
            }
            // A width pads the value, as in `%-10u`.
            while index < text.count, "-0123456789".utf8.contains(text[index]) { index += 1 }
            guard index < text.count else { break }
            let letter = text[index]
            index += 1
            guard let (kind, name) = postgreSQLFields[letter] else {
                literal.append(letter)
                continue
            }
            if !literal.isEmpty {
                parts.append(.literal(literal))
            }
            literal = []
            parts.append(
                .field(Template.Field(kind: kind, name: name.isEmpty ? [] : RecordWriter.quotedName(name))))
        }
        if !literal.isEmpty {
            parts.append(.literal(literal))
        }
        return withAccount(parts)
    }

    /// The parts of `%u@%d ` with the user as a text that may hold `@`, as the users of Kerberos and LDAP do.
    private static func withAccount(_ parts: [Part]) -> [Part] {
        var parts = parts
        for index in parts.indices.dropLast(3) {
            guard case .field(var user) = parts[index], user.name == RecordWriter.quotedName("user"),
                case .literal([UInt8(ascii: "@")]) = parts[index + 1], case .field = parts[index + 2],
                case .literal(let end) = parts[index + 3], end.first == UInt8(ascii: " ")
            else { continue }
            user.kind = .account
            parts[index] = .field(user)
        }
        return parts
    }
}

extension Template.Kind {
    /// Whether the field takes no text, so that it needs no literal before the next field.
    var isZeroWidth: Bool {
        if case .sessionsOnly = self { return true }
        return false
    }
}

extension String {
    /// Whether a text contains another. `contains` of the standard library would add 1.5 MB of regular
    /// expressions to the binary.
    fileprivate func holds(_ part: String) -> Bool {
        utf8.indices.contains { utf8[$0...].starts(with: part.utf8) }
    }
}
