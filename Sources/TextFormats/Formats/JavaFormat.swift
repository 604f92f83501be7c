/// Java's loggers: a time; level, thread and logger in the order of the layout; the message with its stack
/// trace. Covers the default layouts of logback, log4j2, java.util.logging, Spring Boot, Quarkus, WildFly,
/// Tomcat, Kafka and Elasticsearch.
enum JavaFormat {
    /// Whether a line begins a record: with a time, alone or in brackets.
    static func begins(_ line: Bytes) -> Bool {
        if line.first == UInt8(ascii: "[") { return beginsWithTime(line.dropping(1)) }
        return beginsWithTime(line)
    }

    /// Whether a line begins with a time that Java's layouts have, by its punctuation.
    private static func beginsWithTime(_ line: Bytes) -> Bool {
        guard line.count >= 12 else { return false }
        guard line[0] &- 0x30 < 10 else { return beginsInWords(line) }
        // In this order: `10:00:00`, `2026-11-29`, `29-Nov-2026`, `2026/11/29`.
        return line[2] == UInt8(ascii: ":") && line[5] == UInt8(ascii: ":")
            || line[4] == UInt8(ascii: "-") && line[7] == UInt8(ascii: "-") && line[1] &- 0x30 < 10
            || line[2] == UInt8(ascii: "-") && line[6] == UInt8(ascii: "-")
            || line[4] == UInt8(ascii: "/") && line[7] == UInt8(ascii: "/")
    }

    /// Whether a line begins as java.util.logging's records do: `Nov 29, 2026 10:00:00 AM`.
    private static func beginsInWords(_ line: Bytes) -> Bool {
        line.count > 20 && line[3] == UInt8(ascii: " ") && line[4] &- 0x30 < 10
            && line[6] == UInt8(ascii: ",")
            && line[7] == UInt8(ascii: " ") && line[8] &- 0x30 < 10 && line[12] == UInt8(ascii: " ")
    }

    /// Reads java.util.logging's records, whose first line says when and where, and the second begins with
    /// the level: `Nov 29, 2026 10:00:00 AM com.example.Cart pay`, `SEVERE: failed`. Source: the default
    /// format of `java.util.logging.SimpleFormatter` in the documentation of Java 17.
    private static func twoLines(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        guard reader.time(words: 5, into: &writer) else { return false }
        guard let place = reader.until(0x0A) else { return false }
        guard let level = reader.until(": "), level.isLevel else { return reader.fail("a level") }
        writer.text("level", level)
        // The class and the method; without them the name of the logger.
        let end = place.firstIndex(of: UInt8(ascii: " ")) ?? place.count
        writer.present("logger", place.prefix(end))
        writer.present("method", place.dropping(end + 1))
        writer.text("message", reader.rest)
        return true
    }

    /// Reads the layouts with the time in brackets: Kafka's `[time] LEVEL message (logger)` and
    /// Elasticsearch's `[time][LEVEL ][logger   ] [node] message`.
    private static func bracketedTime(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        guard reader.bracketedTime(into: &writer) else { return false }
        // Elasticsearch pads level and logger with blanks inside of their brackets.
        if reader.next == UInt8(ascii: "[") {
            guard let level = reader.bracketed() else { return false }
            // Any word counts as a level: Elasticsearch has one of its own, `DEPRECATION`.
            writer.text("level", level.trimmed)
            if reader.next == UInt8(ascii: "["), let logger = reader.bracketed() {
                writer.present("logger", logger.trimmed)
            }
            if reader.skip(" ["), let node = reader.until(UInt8(ascii: "]")) {
                writer.present("node", node)
            }
            _ = reader.skip(" ")
            writer.text("message", reader.rest)
            return true
        }
        reader.skipBlanks()
        // Kafka has no brackets around the level, so only a known word counts as a level: otherwise a message
        // in brackets would be read as a record with its first word as the level.
        let start = reader.p
        let level = reader.word()
        guard level.isLevel else {
            reader.p = start
            return reader.fail("a level")
        }
        writer.text("level", level)
        _ = reader.skip(" ")
        // Kafka's logger ends the first line, before a stack trace. A text in parentheses with a blank is
        // part of the message.
        let text = reader.rest
        let first = text.prefix(text.firstIndex(of: 0x0A) ?? text.count)
        guard first.last == UInt8(ascii: ")"), let open = first.lastIndex(of: " ("),
            first.dropping(open + 2).firstIndex(of: UInt8(ascii: " ")) == nil
        else {
            writer.text("message", text)
            return true
        }
        writer.present("logger", first.dropping(open + 2).prefix(first.count - open - 3))
        writer.text("message", first.prefix(open), text.dropping(first.count))
        return true
    }

    /// The thread of ` (main) `, as WildFly and Quarkus write it after the logger in brackets; nil if
    /// something else is here.
    private static func parenthesized(_ text: Bytes) -> Bytes? {
        guard text.hasPrefix(" ("), let close = text.prefix(100).firstIndex(of: ") "),
            text.prefix(close).firstIndex(of: 0x0A) == nil
        else { return nil }
        return text.dropping(2).prefix(close - 2)
    }

    /// Whether Spring Boot's ` 4711 --- ` follows: the bracket before it is of Sleuth, and not the thread.
    private static func isBeforePid(_ text: Bytes) -> Bool {
        guard let dashes = text.prefix(16).firstIndex(of: " --- ") else { return false }
        return text.prefix(dashes).trimmed.isDigits
    }

    /// Reads Spring Boot's brackets after the process id: the application if it has a name, the thread, and
    /// from version 3.2 on the trace and the span, or blanks in their place.
    private static func bootBrackets(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        var texts = (Bytes.none, Bytes.none, Bytes.none)
        var count = 0
        while count < 3 {
            reader.skipBlanks()
            guard reader.next == UInt8(ascii: "[") else { break }
            guard let text = reader.bracketed() else { return false }
            texts = (texts.1, texts.2, text)
            count += 1
        }
        // The last text is at the end: `texts.2`.
        let last = texts.2.trimmed
        let isTrace = last.count == 49 && last[32] == UInt8(ascii: "-")
        guard count == 3 || count == 2 && (isTrace || last.isEmpty) else {
            writer.present("application", texts.1.trimmed)
            writer.present("thread", last)
            return true
        }
        writer.present("application", texts.0.trimmed)
        writer.present("thread", texts.1.trimmed)
        if isTrace {
            writer.text("trace_id", last.prefix(32))
            writer.text("span_id", last.dropping(33))
        } else {
            writer.present("context", last)
        }
        return true
    }

    /// Reads a record.
    static func parse(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        if reader.next == UInt8(ascii: "[") { return bracketedTime(&reader, into: &writer) }
        if reader.next &- 0x30 >= 10 { return twoLines(&reader, into: &writer) }
        // `2026-11-29T10:00:00` and `10:00:00.123` are one word, other times are two.
        let isOneWord =
            reader.rest.count > 10 && (reader.rest[10] == UInt8(ascii: "T") || reader.rest[2] == 0x3A)
        guard reader.time(words: isOneWord ? 1 : 2, into: &writer) else { return false }
        // Levels, threads and process ids may come in any order, until another word comes: that is the
        // logger or the message.
        var hasLevel = false
        var hasThread = false
        head: while true {
            reader.skipBlanks()
            if reader.next == UInt8(ascii: "[") {
                guard let text = reader.bracketed() else { return false }
                let inner = text.trimmed
                // log4j2 may bracket the level.
                if !hasLevel, inner.isLevel {
                    writer.text("level", inner)
                    hasLevel = true
                } else if hasLevel, !hasThread, let thread = parenthesized(reader.rest) {
                    writer.present("logger", inner)
                    writer.present("thread", thread)
                    reader.p = thread.end + 2
                    writer.text("message", reader.rest)
                    return true
                } else if hasThread || isBeforePid(reader.rest) {
                    writer.present("context", inner)
                } else {
                    writer.present("thread", inner)
                    hasThread = true
                }
                continue
            }
            let start = reader.p
            let word = reader.word()
            if !hasLevel, word.isLevel {
                writer.text("level", word)
                hasLevel = true
            } else if word.isDigits, reader.rest.hasPrefix(" --- ") {
                writer.number("pid", word)
                reader.p += 5
                guard bootBrackets(&reader, into: &writer) else { return false }
                reader.skipBlanks()
                break head
            } else {
                reader.p = start
                break head
            }
        }
        // Without a level the line is more likely of another program, whose lines would be cut up wrongly.
        guard hasLevel else { return reader.fail("a level") }
        let logger = reader.word()
        // Only a mark after the word, or dots in it, distinguishes a logger from the first word of the
        // message.
        let afterLogger = reader.p
        reader.skipBlanks()
        if reader.skip("- ") || reader.skip("-- ") || reader.skip(": ") {
            writer.present("logger", logger)
        } else if logger.last == UInt8(ascii: ":"), logger.count > 1 {
            writer.text("logger", logger.prefix(logger.count - 1))
        } else if logger.count > 2, logger.buffer.contains(UInt8(ascii: ".")),
            afterLogger < reader.p || reader.isAtEnd
        {
            // Tomcat writes the class and the method, and then the message without a mark.
            writer.text("logger", logger)
        } else if logger.equals("-") || logger.equals("--") || logger.equals(":") {
            // The layout has no logger.
        } else {
            // The word is part of the message.
            reader.p = logger.start
        }
        writer.text("message", reader.rest)
        return true
    }
}
