internal import EventLoops

/// The slow query log of MySQL, MariaDB and Percona Server.
enum MySQLSlowFormat {
    /// Whether a line begins a record of the slow query log. MariaDB leaves out `# Time:` if the second is
    /// that of the record before, so `# User@Host:` begins a record too, unless a time is before it.
    static func begins(_ line: Bytes, after previous: Bytes) -> Bool {
        line.hasPrefix("# Time: ") || line.hasPrefix("# User@Host: ") && !previous.hasPrefix("# Time: ")
            || isHeader(line)
    }

    /// Whether a line is the first of the three that the server writes when it opens the log, also after
    /// `FLUSH LOGS`: `/usr/sbin/mariadbd, Version: 10.11.14-MariaDB (Debian 12). started with:`.
    private static func isHeader(_ line: Bytes) -> Bool {
        line.last == UInt8(ascii: ":") && line.count > 14
            && line.dropping(line.count - 14).equals(" started with:")
            && line.firstIndex(of: ", Version: ") != nil
    }

    /// Reads a record of the slow query log: lines of `#`, `use` and `SET`, and the statement, which is the
    /// message.
    static func parse(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        if isHeader(reader.rest.prefix(reader.rest.firstIndex(of: 0x0A) ?? reader.rest.count)) {
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
                guard let time = writer.time(of: line.dropping(8).trimmed) else {
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
}
