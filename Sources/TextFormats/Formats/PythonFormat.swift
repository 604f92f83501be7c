/// Python's logging: `asctime LEVEL name: message`, `asctime - name - LEVEL - message`, `LEVEL:name:message`;
/// and the layouts of gunicorn, uvicorn, celery, loguru, Flask, Airflow, Scrapy and Django.
enum PythonFormat {
    /// Whether a line begins a record: with a date, or a level and a colon. A traceback begins otherwise.
    static func begins(_ line: Bytes) -> Bool {
        guard line.count >= 8 else { return false }
        if line[0] &- 0x30 < 10 { return line[4] == UInt8(ascii: "-") && line[7] == UInt8(ascii: "-") }
        if line[0] == UInt8(ascii: "[") { return line[1] &- 0x30 < 10 && line[5] == UInt8(ascii: "-") }
        return bare(line) != nil || uvicorn(line) != nil || leveled(line) != nil
    }

    /// Length of the level of `LEVEL time message` or `LEVEL [logger] message`, layouts of Django's and
    /// Alembic's pages; nil if the line is another one.
    private static func leveled(_ line: Bytes) -> Int? {
        // The first 9 bytes hold the longest level, `CRITICAL`, and its blank.
        guard let length = line.prefix(9).firstIndex(of: UInt8(ascii: " ")), line.prefix(length).isLevel,
            line.prefix(length).buffer.allSatisfy({ $0 >= 0x41 && $0 <= 0x5A })
        else { return nil }
        let rest = line.dropping(length).trimmed
        guard rest.count > 10 else { return nil }
        let isDate = rest[0] &- 0x30 < 10 && rest[4] == UInt8(ascii: "-") && rest[7] == UInt8(ascii: "-")
        return isDate || rest[0] == UInt8(ascii: "[") ? length : nil
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
            guard afterBracketedTime(&reader, into: &writer) else { return false }
        }
        _ = reader.skip(" ")
        writer.text("message", reader.rest)
        return true
    }

    /// Reads what is between a time in brackets and the message: gunicorn's `[71] [INFO]`, Flask's `ERROR
    /// in app:`, Airflow's `{task.py:13} INFO -`.
    private static func afterBracketedTime(
        _ reader: inout LineReader, into writer: inout RecordWriter
    ) -> Bool {
        reader.skipBlanks()
        var hasLogger = false
        if reader.skip("{") {
            guard let place = reader.until("}") else { return false }
            writer.present("logger", place)
            hasLogger = true
            reader.skipBlanks()
        }
        var hasPID = false
        while reader.next == UInt8(ascii: "[") {
            guard let text = reader.bracketed() else { return false }
            if text.trimmed.isLevel {
                writer.text("level", text.trimmed)
                return true
            }
            guard text.isDigits, !hasPID else { return reader.fail("a level") }
            writer.number("pid", text)
            hasPID = true
            reader.skipBlanks()
        }
        let start = reader.p
        let level = reader.word()
        guard level.isLevel else {
            reader.p = start
            return reader.fail("a level")
        }
        writer.text("level", level)
        if !hasLogger, reader.rest.hasPrefix(" in "), let colon = reader.rest.prefix(100).firstIndex(of: ": ")
        {
            writer.present("logger", reader.rest.prefix(colon).dropping(4))
            reader.p += colon + 1
        } else {
            _ = reader.skip(" -")
        }
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
        if let length = leveled(reader.rest) {
            writer.text("level", reader.rest.prefix(length))
            reader.p += length
            reader.skipBlanks()
            if reader.next == UInt8(ascii: "[") {
                guard let logger = reader.bracketed() else { return false }
                writer.present("logger", logger.trimmed)
                _ = reader.skip(" ")
            } else {
                guard reader.time(words: 2, into: &writer) else { return false }
            }
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
        var hasLogger = false
        // `[MainThread] [INFO ]`, or Scrapy's `[scrapy.core.engine] INFO:`: a name before the level.
        if reader.next == UInt8(ascii: "[") {
            let before = reader.p
            guard let name = reader.bracketed() else { return false }
            if name.trimmed.isLevel {
                reader.p = before
            } else {
                let isThread = name.hasPrefix("MainThread") || name.hasPrefix("Thread")
                writer.present(isThread ? "thread" : "logger", name.trimmed)
                hasLogger = !isThread
                reader.skipBlanks()
            }
            if reader.next == UInt8(ascii: "[") {
                let second = reader.p
                guard let text = reader.bracketed() else { return false }
                guard text.trimmed.isLevel else {
                    reader.p = second
                    return reader.fail("a level")
                }
                writer.text("level", text.trimmed)
                return afterLevel(&reader, into: &writer, mayHaveLogger: !hasLogger)
            }
        }
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
            guard second.isLevel, !hasLogger else {
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
        return afterLevel(&reader, into: &writer, mayHaveLogger: !hasLogger)
    }

    /// Reads what follows the level: `shop.cart: message`, or the message alone.
    ///
    /// - Parameter mayHaveLogger: false if the logger came before the level; a record has one.
    private static func afterLevel(
        _ reader: inout LineReader, into writer: inout RecordWriter, mayHaveLogger: Bool
    ) -> Bool {
        reader.skipBlanks()
        guard mayHaveLogger else {
            writer.text("message", reader.rest)
            return true
        }
        let start = reader.p
        let logger = reader.word()
        // A name with a colon is the logger; other words belong to the message.
        if logger.count > 1, logger.last == UInt8(ascii: ":") {
            writer.text("logger", logger.prefix(logger.count - 1))
            _ = reader.skip(" ")
        } else {
            reader.p = start
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
