/// Java's loggers: a time; level, thread and logger in the order of the layout; the message with its stack
/// trace. Covers the default layouts of logback, log4j2, java.util.logging, Spring Boot, Tomcat, Kafka and
/// Elasticsearch.
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
        while true {
            reader.skipBlanks()
            if reader.next == UInt8(ascii: "[") {
                guard let text = reader.bracketed() else { return false }
                // Spring Boot writes the application before the thread, in brackets too; log4j2 may bracket
                // the level.
                if !hasLevel, text.trimmed.isLevel {
                    writer.text("level", text.trimmed)
                    hasLevel = true
                } else if hasThread || reader.rest.hasPrefix(" [") {
                    writer.present(hasThread ? "context" : "application", text.trimmed)
                } else {
                    writer.present("thread", text.trimmed)
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
                reader.p += 4
            } else {
                reader.p = start
                break
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

/// Python's logging: `asctime LEVEL name: message`, `asctime - name - LEVEL - message`, `LEVEL:name:message`;
/// and the layouts of gunicorn, uvicorn, celery and loguru.
enum PythonFormat {
    /// Whether a line begins a record: with a date, or a level and a colon. A traceback begins otherwise.
    static func begins(_ line: Bytes) -> Bool {
        guard line.count >= 8 else { return false }
        if line[0] &- 0x30 < 10 { return line[4] == UInt8(ascii: "-") && line[7] == UInt8(ascii: "-") }
        if line[0] == UInt8(ascii: "[") { return line[1] &- 0x30 < 10 && line[5] == UInt8(ascii: "-") }
        return bare(line) != nil || uvicorn(line) != nil
    }

    /// Offset of the colon of uvicorn's `LEVEL:     message`; nil if the line is another one.
    private static func uvicorn(_ line: Bytes) -> Int? {
        // The first 9 bytes hold the longest level, `CRITICAL`, and its colon.
        guard let colon = line.prefix(9).firstIndex(of: UInt8(ascii: ":")), line.prefix(colon).isLevel,
            line.prefix(colon).buffer.allSatisfy({ $0 >= 0x41 && $0 <= 0x5A }),
            line.dropping(colon + 1).first == UInt8(ascii: " ")
        else { return nil }
        return colon
    }

    /// Reads the layouts with the time in brackets: gunicorn's `[time] [pid] [LEVEL] message`, celery's
    /// `[time: LEVEL/process] message`.
    private static func bracketedTime(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        // celery: `[2026-11-29 10:00:00,123: INFO/MainProcess] message`. A bracket before the colon means
        // gunicorn.
        if let index = reader.rest.firstIndex(of: ": "), index < 30,
            reader.rest.prefix(index).firstIndex(of: UInt8(ascii: "]")) == nil
        {
            guard reader.time(upTo: index, into: &writer) else { return false }
            reader.p += 2
            guard let source = reader.until(UInt8(ascii: "]")) else { return false }
            let slash = source.firstIndex(of: UInt8(ascii: "/")) ?? source.count
            writer.text("level", source.prefix(slash))
            writer.present("process", source.dropping(slash + 1))
        } else {
            guard reader.bracketedTime(into: &writer) else { return false }
            // gunicorn: `[2026-11-29 10:00:00 +0000] [71] [INFO] message`.
            if reader.skip(" ["), let pid = reader.digits() {
                guard reader.expect("]") else { return false }
                writer.number("pid", pid)
            }
            guard reader.expect(" ["), let level = reader.until(UInt8(ascii: "]")) else { return false }
            guard level.isLevel else { return reader.fail("a level") }
            writer.text("level", level)
        }
        _ = reader.skip(" ")
        writer.text("message", reader.rest)
        return true
    }

    /// Offset of the first colon of `LEVEL:name:message`, the layout of `logging.basicConfig()`; nil if the
    /// line is another one.
    private static func bare(_ line: Bytes) -> Int? {
        guard let colon = line.prefix(9).firstIndex(of: UInt8(ascii: ":")), line.prefix(colon).isLevel,
            // Only capitals: a sentence such as `Error: no such file` is not a record of this layout.
            line.prefix(colon).buffer.allSatisfy({ $0 >= 0x41 && $0 <= 0x5A }),
            let second = line.dropping(colon + 1).firstIndex(of: UInt8(ascii: ":")),
            line.dropping(colon + 1).prefix(second).firstIndex(of: UInt8(ascii: " ")) == nil
        else { return nil }
        return colon
    }

    /// Reads a record. The layouts differ in what follows the time.
    static func parse(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        if let colon = bare(reader.rest) {
            writer.text("level", reader.rest.prefix(colon))
            reader.p += colon + 1
            guard let logger = reader.until(UInt8(ascii: ":")) else { return false }
            writer.text("logger", logger)
            writer.text("message", reader.rest)
            return true
        }
        if let colon = uvicorn(reader.rest) {
            writer.text("level", reader.rest.prefix(colon))
            reader.p += colon + 1
            reader.skipBlanks()
            writer.text("message", reader.rest)
            return true
        }
        if reader.next == UInt8(ascii: "[") { return bracketedTime(&reader, into: &writer) }
        // `2026-11-29T10:00:00` is one word, `2026-11-29 10:00:00,123` two.
        let isOneWord = reader.rest.count > 10 && reader.rest[10] == UInt8(ascii: "T")
        guard reader.time(words: isOneWord ? 1 : 2, into: &writer) else { return false }
        if reader.skip("- ") { return dashes(&reader, into: &writer) }
        if reader.skip("| ") { return bars(&reader, into: &writer) }
        reader.skipBlanks()
        let start = reader.p
        var level = reader.word()
        // `[INFO]` and `INFO:` are the level in other layouts.
        if level.first == UInt8(ascii: "["), level.last == UInt8(ascii: "]"), level.count > 2 {
            level = level.dropping(1).prefix(level.count - 2)
        }
        if level.last == UInt8(ascii: ":") {
            level = level.prefix(level.count - 1)
        }
        guard level.isLevel else {
            // `shop.cart WARNING message`.
            reader.skipBlanks()
            let second = reader.word()
            guard second.isLevel else {
                reader.p = start
                return reader.fail("a level")
            }
            writer.text("logger", level)
            writer.text("level", second)
            _ = reader.skip(" ")
            writer.text("message", reader.rest)
            return true
        }
        writer.text("level", level)
        reader.skipBlanks()
        let afterLevel = reader.p
        let logger = reader.word()
        // A name with a colon is the logger; other words belong to the message.
        if logger.count > 1, logger.last == UInt8(ascii: ":") {
            writer.text("logger", logger.prefix(logger.count - 1))
            _ = reader.skip(" ")
        } else {
            reader.p = afterLevel
        }
        writer.text("message", reader.rest)
        return true
    }

    /// Reads the remainder of loguru's `time | INFO     | shop.cart:pay:12 - message`.
    private static func bars(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        guard let level = reader.until(" | ") else { return false }
        // `SUCCESS` is a level of loguru only, between INFO and WARNING.
        guard level.trimmed.isLevel || level.trimmed.equals("SUCCESS") else { return reader.fail("a level") }
        writer.text("level", level.trimmed)
        guard let logger = reader.until(" - ") else { return false }
        writer.text("logger", logger)
        writer.text("message", reader.rest)
        return true
    }

    /// Reads the remainder of `time - shop.cart - INFO - message`; the logger may be missing.
    private static func dashes(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        guard var word = reader.until(" - ") else { return false }
        // The first word is the logger, unless it is a level: then the layout has no logger.
        if !word.isLevel {
            writer.text("logger", word)
            let start = reader.p
            guard let level = reader.until(" - ") else { return false }
            guard level.isLevel else {
                reader.p = start
                return reader.fail("a level")
            }
            word = level
        }
        writer.text("level", word)
        writer.text("message", reader.rest)
        return true
    }
}

/// Go's package log, `2026/11/29 10:00:00 message`, and panics with the stacks of goroutines.
enum GoFormat {
    /// Whether a line begins a record: with a time or a panic.
    static func begins(_ line: Bytes) -> Bool {
        isPanic(line)
            || line.count >= 19 && line[4] == UInt8(ascii: "/") && line[7] == UInt8(ascii: "/")
                && line[10] == UInt8(ascii: " ") && line[13] == UInt8(ascii: ":") && line[0] &- 0x30 < 10
    }

    /// Whether the runtime reports a crash.
    private static func isPanic(_ line: Bytes) -> Bool {
        line.hasPrefix("panic: ") || line.hasPrefix("fatal error: ")
    }

    /// Reads a record. A panic has no time.
    static func parse(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        if isPanic(reader.rest) {
            // The runtime writes no level; a panic ends the program.
            writer.word("severity", "fatal")
        } else {
            guard reader.time(words: 2, into: &writer) else { return false }
        }
        writer.text("message", reader.rest)
        return true
    }
}
