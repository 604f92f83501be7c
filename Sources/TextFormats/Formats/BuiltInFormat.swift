/// The formats that a template cannot describe: with optional parts, several layouts or records of several
/// lines. Each has an enum in this folder with `parse`, and with `begins` if its records may have several
/// lines.
///
/// A reader returns false, with a note of what was expected, at the first place that does not fit. It may
/// have written members before that: the caller drops the object.
enum BuiltInFormat: Sendable {
    case nginxError, apacheError, syslog, klog, mysqlSlow, mysqlError, redis, haproxy, java, python, go,
        auditd, logfmt

    /// Whether a record may have several lines, as a stack trace or an SQL statement after the first.
    var joinsLines: Bool {
        switch self {
        case .nginxError, .klog, .mysqlSlow, .mysqlError, .redis, .java, .python, .go: true
        case .apacheError, .syslog, .haproxy, .auditd, .logfmt: false
        }
    }

    /// Whether a line is the first of a record. A beginning is decided by a few fixed places, because this
    /// looks at each line of the file, and the following lines may hold anything.
    func begins(_ line: Bytes, after previous: Bytes) -> Bool {
        switch self {
        case .nginxError: NginxErrorFormat.begins(line)
        case .klog: KlogFormat.begins(line)
        case .mysqlSlow: MySQLSlowFormat.begins(line, after: previous)
        case .mysqlError: MySQLErrorFormat.begins(line)
        case .redis: RedisFormat.begins(line)
        case .java: JavaFormat.begins(line)
        case .python: PythonFormat.begins(line)
        case .go: GoFormat.begins(line)
        case .apacheError, .syslog, .haproxy, .auditd, .logfmt: true
        }
    }

    /// Reads a record and writes its members.
    func parse(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        switch self {
        case .nginxError: NginxErrorFormat.parse(&reader, into: &writer)
        case .apacheError: ApacheErrorFormat.parse(&reader, into: &writer)
        case .syslog: SyslogFormat.parse(&reader, into: &writer)
        case .klog: KlogFormat.parse(&reader, into: &writer)
        case .mysqlSlow: MySQLSlowFormat.parse(&reader, into: &writer)
        case .mysqlError: MySQLErrorFormat.parse(&reader, into: &writer)
        case .redis: RedisFormat.parse(&reader, into: &writer)
        case .haproxy: HAProxyFormat.parse(&reader, into: &writer)
        case .java: JavaFormat.parse(&reader, into: &writer)
        case .python: PythonFormat.parse(&reader, into: &writer)
        case .go: GoFormat.parse(&reader, into: &writer)
        case .auditd: AuditdFormat.parse(&reader, into: &writer)
        case .logfmt: LogfmtFormat.parse(&reader, into: &writer)
        }
    }
}

extension LineReader {
    /// Reads `[time]` and writes it as `timestamp`.
    mutating func bracketedTime(into writer: inout RecordWriter) -> Bool {
        guard expect("[") else { return false }
        guard let close = rest.firstIndex(of: UInt8(ascii: "]")) else { return fail("]") }
        guard time(upTo: close, into: &writer) else { return false }
        p += 1
        return true
    }

    /// Reads a time of `length` bytes, after a bracket if there is one, and writes it as `timestamp`.
    mutating func time(upTo length: Int, into writer: inout RecordWriter) -> Bool {
        let text = rest.prefix(length)
        let inner = text.first == UInt8(ascii: "[") ? text.dropping(1) : text
        guard let time = writer.time(of: inner) else { return fail("a time") }
        writer.time(time)
        p += length
        return true
    }

    /// Reads a time of some words, writes it as `timestamp`, and steps over a blank after it. Blanks between
    /// the words may be several, as before a day of one digit. On failure the position stays.
    mutating func time(words: Int, into writer: inout RecordWriter) -> Bool {
        let start = p
        var text = Bytes(p, 0)
        for index in 0..<words {
            if index > 0 {
                skipBlanks()
            }
            guard !word().isEmpty else { break }
            text = Bytes(start, p - start)
        }
        guard let time = writer.time(of: text) else {
            p = start
            return fail("a time")
        }
        _ = skip(" ")
        writer.time(time)
        return true
    }
}

extension Bytes {
    /// Whether the text is the name of a severity. Small letters count as capitals; of longer names only
    /// eight letters are compared.
    var isLevel: Bool {
        guard count >= 3, count <= 9 else { return false }
        var letters: UInt64 = 0
        for index in 0..<min(count, 8) { letters = letters << 8 | UInt64(start[index] & 0xDF) }
        return Bytes.levels.contains(letters)
    }

    /// Names of severities in Java, Python and syslog, as numbers of up to eight letters: a set of numbers
    /// needs no text for each line.
    private static let levels = Set(
        [
            "TRACE", "DEBUG", "INFO", "WARN", "WARNING", "ERROR", "FATAL", "CRITICAL", "SEVERE", "FINE",
            "FINER",
            "FINEST", "CONFIG", "NOTICE", "ALERT", "EMERG", "CRIT", "NOTSET",
        ].map { $0.utf8.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) } })
}
