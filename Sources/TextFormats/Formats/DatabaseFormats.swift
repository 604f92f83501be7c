internal import EventLoops

/// Redis and Valkey: `4531:M 29 Nov 2026 10:00:00.495 # message`, that is process id, role, time and
/// severity. Source: serverLogRaw in https://github.com/redis/redis/blob/unstable/src/server.c.
enum RedisFormat {
    /// Whether a line begins with a process id and a role. A crash report, whose lines have neither, belongs
    /// to the line before it.
    static func begins(_ line: Bytes) -> Bool {
        // 12 bytes have room for each process id and the colon.
        guard let colon = line.prefix(12).firstIndex(of: UInt8(ascii: ":")), line.prefix(colon).isDigits
        else {
            return false
        }
        return role(line.dropping(colon + 1)) != nil || line.dropping(colon + 1).hasPrefix("signal-handler (")
    }

    /// The role that the letter after the colon says; nil for another letter.
    private static func role(_ text: Bytes) -> StaticString? {
        guard text.count > 2, text[1] == UInt8(ascii: " ") else { return nil }
        return switch text[0] {
        case UInt8(ascii: "M"): "master"
        case UInt8(ascii: "S"): "replica"
        case UInt8(ascii: "C"): "child"
        case UInt8(ascii: "X"): "sentinel"
        default: nil
        }
    }

    /// Reads a record.
    static func parse(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        guard let pid = reader.digits(), reader.expect(":") else { return false }
        writer.number("pid", pid)
        if reader.skip("signal-handler (") { return signal(&reader, into: &writer) }
        guard let role = role(reader.rest) else { return reader.fail("M, S, C or X") }
        writer.word("role", role)
        reader.p += 2
        guard reader.time(words: 4, into: &writer) else { return false }
        // The severity is one character before the message.
        let severity: StaticString? =
            switch reader.next {
            case UInt8(ascii: "."): "debug"
            case UInt8(ascii: "-"), UInt8(ascii: "*"): "info"
            case UInt8(ascii: "#"): "warn"
            default: nil
            }
        guard let severity else { return reader.fail(". - * or #") }
        reader.p += 1
        writer.word("severity", severity)
        _ = reader.skip(" ")
        writer.text("message", reader.rest)
        return true
    }

    /// The line of a signal handler, which has the seconds since 1970 in place of role and time:
    /// `12:signal-handler (1795946400) Received SIGTERM`.
    private static func signal(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        guard let seconds = reader.digits(), seconds.count <= 12, reader.expect(") ") else { return false }
        writer.word("role", "signal-handler")
        // bounded: twelve digits.
        writer.time(
            Timestamp(seconds: seconds.buffer.reduce(0) { $0 * 10 + Int($1 &- 0x30) }, nanoseconds: 0))
        writer.text("message", reader.rest)
        return true
    }
}

/// The logs of MySQL, MariaDB and Percona Server.
enum MySQLFormats {
    // MARK: The slow query log

    /// Whether a line begins a record of the slow query log. MariaDB leaves out `# Time:` if the second is
    /// that of the record before, so `# User@Host:` begins a record too, unless a time is before it.
    static func slowBegins(_ line: Bytes, after previous: Bytes) -> Bool {
        line.hasPrefix("# Time: ") || line.hasPrefix("# User@Host: ") && !previous.hasPrefix("# Time: ")
            || isSlowHeader(line)
    }

    /// Whether a line is the first of the three that the server writes when it opens the log, also after
    /// `FLUSH LOGS`: `/usr/sbin/mariadbd, Version: 10.11.14-MariaDB (Debian 12). started with:`.
    private static func isSlowHeader(_ line: Bytes) -> Bool {
        line.last == UInt8(ascii: ":") && line.count > 14
            && line.dropping(line.count - 14).equals(" started with:")
            && line.firstIndex(of: ", Version: ") != nil
    }

    /// Reads a record of the slow query log: lines of `#`, `use` and `SET`, and the statement, which is the
    /// message.
    static func slow(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        if isSlowHeader(reader.rest.prefix(reader.rest.firstIndex(of: 0x0A) ?? reader.rest.count)) {
            writer.text("message", reader.rest)
            return true
        }
        guard reader.rest.hasPrefix("# Time: ") || reader.rest.hasPrefix("# User@Host: ") else {
            return reader.fail("# Time: ")
        }
        // Whether a time was written: `# Time:` is more exact than `SET timestamp`, and comes first.
        var hasTime = false
        var database = Bytes.none
        // Whether the id of the thread was written: MySQL's `log_slow_extra` has it twice.
        var hasThread = false
        // The lines of MariaDB's `log_slow_verbosity=explain`, which follow each other.
        var plan = Bytes.none
        // Any order is accepted: which lines there are depends on the version and its settings.
        while reader.next == UInt8(ascii: "#") {
            let line = line(&reader)
            if line.hasPrefix("# Time: ") {
                guard let time = TextTime.parse(line.dropping(8).trimmed, writer) else {
                    return reader.fail("a time")
                }
                writer.time(time)
                hasTime = true
            } else if line.hasPrefix("# User@Host: ") {
                hasThread = user(line.dropping(13), into: &writer)
            } else if line.hasPrefix("# explain: ") {
                let start = plan.isEmpty ? line.start : plan.start
                plan = Bytes(start, line.end - start)
            } else {
                pairs(line.dropping(2), database: &database, hasThread: hasThread, into: &writer)
            }
        }
        // A table of a header and a line for each step: one text, as the server wrote it.
        writer.present("explain", plan)
        // `use` and `SET timestamp` are added by the server, at most one of each; the first other line begins
        // the statement.
        statement: while true {
            let start = reader.p
            let line = line(&reader)
            if line.hasPrefix("use "), line.last == UInt8(ascii: ";") {
                database = line.dropping(4).prefix(line.count - 5)
            } else if line.hasPrefix("SET "), let index = line.firstIndex(of: "timestamp="), index <= 40,
                line.last == UInt8(ascii: ";")
            {
                // Other assignments may be before the timestamp, as `SET
                // last_insert_id=1,timestamp=1795946400;`. They are short: a statement of the client that
                // sets one is further to the right. The timestamp is the second in which the statement began.
                if !hasTime, let time = epoch(line.dropping(index + 10)) {
                    writer.time(time)
                }
                hasTime = true
            } else {
                reader.p = start
                break statement
            }
        }
        // Written here, because the database can come from a comment line or from `use`.
        writer.present("database", database.unquoted)
        if !reader.isAtEnd {
            writer.text("message", reader.rest)
        }
        return true
    }

    /// Reads a line without its line feed, and without a carriage return before it.
    private static func line(_ reader: inout LineReader) -> Bytes {
        let rest = reader.rest
        let end = rest.firstIndex(of: 0x0A) ?? rest.count
        reader.p += min(end + 1, rest.count)
        let line = rest.prefix(end)
        return line.last == 0x0D ? line.prefix(end - 1) : line
    }

    /// Writes who ran the query: `shop[shop] @ web-1 [10.0.0.9]  Id:   510`. The name in brackets is the
    /// account that the server checked; it counts if the name before it is empty.
    ///
    /// - Returns: whether the text has the id of the thread.
    private static func user(_ text: Bytes, into writer: inout RecordWriter) -> Bool {
        // Without ` @ ` the whole text is the name.
        let at = text.firstIndex(of: " @ ") ?? text.count
        let name = text.prefix(at)
        let open = name.firstIndex(of: UInt8(ascii: "[")) ?? name.count
        let inner = name.dropping(open + 1)
        writer.present("user", open > 0 ? name.prefix(open) : inner.prefix(max(inner.count - 1, 0)))
        let host = text.dropping(at + 3)
        let address = host.firstIndex(of: UInt8(ascii: "[")) ?? host.count
        writer.present("host", host.prefix(address).trimmed)
        let client = host.dropping(address + 1)
        // Between the name of the host and its brackets is a blank.
        let close = client.firstIndex(of: UInt8(ascii: "]")) ?? client.count
        writer.present("client", client.prefix(close))
        guard let id = client.firstIndex(of: "Id:") else { return false }
        writer.number("thread", client.dropping(id + 3).trimmed)
        return true
    }

    /// Writes the pairs of a line: `Query_time: 13.694022  Lock_time: 0.019665 Rows_sent: 1`. Names become
    /// small letters, because MySQL and MariaDB write them differently. A name of more than 64 bytes is not
    /// the server's.
    private static func pairs(
        _ text: Bytes, database: inout Bytes, hasThread: Bool, into writer: inout RecordWriter
    ) {
        var reader = LineReader(text)
        while !reader.isAtEnd {
            reader.skipBlanks()
            let name = reader.word()
            guard name.count > 1, name.last == UInt8(ascii: ":") else {
                // A word without a colon is not a name: it is skipped, so that one unknown text does not hide
                // the pairs after it.
                guard !name.isEmpty else { return }
                continue
            }
            reader.skipBlanks()
            let start = reader.p
            var value = reader.word()
            // The value may be missing, as after `Schema:`; then the next name is here.
            if value.last == UInt8(ascii: ":") {
                reader.p = start
                value = Bytes.none
            }
            guard !value.isEmpty else { continue }
            let key = name.prefix(name.count - 1)
            if key.equals("Schema") {
                database = value
            } else if key.equals("Thread_id") {
                if !hasThread {
                    writer.number("thread", value)
                }
            } else if key.count <= 64 {
                writer.lowercased(key, value)
            }
        }
    }

    /// The time of up to twelve digits, seconds since 1970; nil without a digit.
    private static func epoch(_ text: Bytes) -> Timestamp? {
        var seconds = 0
        var index = 0
        while index < min(text.count, 12), text[index] &- 0x30 < 10 {
            seconds = seconds * 10 + Int(text[index] &- 0x30)
            index += 1
        }
        return index > 0 ? Timestamp(seconds: seconds, nanoseconds: 0) : nil
    }

    // MARK: The error log

    /// Whether a line begins a record of the error log: it begins with a time, in the form of today or of
    /// MySQL before 5.7 (`261129 10:00:00`).
    static func errorBegins(_ line: Bytes) -> Bool {
        guard line.count > 15, line[0] &- 0x30 < 10 else { return false }
        if line[6] == UInt8(ascii: " ") { return line[9] == UInt8(ascii: ":") }
        return line[4] == UInt8(ascii: "-") && line[7] == UInt8(ascii: "-") && line[13] == UInt8(ascii: ":")
    }

    /// Reads a record of the error log: `2026-11-29T10:00:00.123456Z 0 [Warning] [MY-010068] [Server]
    /// message`. MariaDB writes no code and no subsystem, and its time is two words.
    static func error(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        let start = reader.p
        // MySQL writes `2026-11-29T10:00:00.123456Z`, MariaDB `2026-11-29 10:00:00` and older versions
        // `261129 10:00:00`.
        let isOneWord = reader.rest.count > 10 && reader.rest[10] == UInt8(ascii: "T")
        guard reader.time(words: isOneWord ? 1 : 2, into: &writer) else {
            reader.p = start
            return reader.fail("a time")
        }
        reader.skipBlanks()
        if reader.next &- 0x30 < 10, let thread = reader.digits() {
            writer.number("thread", thread)
            reader.skipBlanks()
        }
        // The start script writes to the same file, without a level; so does the server when it crashes:
        // `UTC - mysqld got signal 11 ;`.
        if reader.rest.hasPrefix("mysqld_safe ") || reader.rest.hasPrefix("UTC - ") {
            writer.text("message", reader.rest)
            return true
        }
        guard reader.expect("["), let level = reader.until(UInt8(ascii: "]")) else { return false }
        writer.text("level", level)
        _ = reader.skip(" ")
        // `[MY-010068] [Server]`: MySQL 8.
        if reader.rest.hasPrefix("[MY-"), let close = reader.rest.firstIndex(of: "] [") {
            writer.text("code", Bytes(reader.p + 1, close - 1))
            reader.p += close + 3
            guard let subsystem = reader.until(UInt8(ascii: "]")) else { return false }
            writer.text("subsystem", subsystem)
            _ = reader.skip(" ")
        }
        writer.text("message", reader.rest)
        return true
    }
}
