public import Model

/// How serious an event or a record is, on OpenTelemetry's scale.
///
/// Source: OpenTelemetry, "Logs Data Model", fields `SeverityNumber` and `SeverityText`, and its table of
/// other scales.
public struct Severity: Sendable, Hashable, Comparable {
    /// From 1 (trace) to 24 (fatal).
    public let number: Int
    /// The range of four numbers that it belongs to.
    package var level: SeverityLevel {
        switch number {
        case ...4: .trace
        case ...8: .debug
        case ...12: .info
        case ...16: .warn
        case ...20: .error
        default: .fatal
        }
    }

    /// - Parameter number: clamped to 1…24.
    public init(number: Int) { self.number = min(max(number, 1), 24) }

    /// The lowest number of a range.
    public init(_ level: SeverityLevel) {
        number = 1 + 4 * (SeverityLevel.allCases.firstIndex(of: level) ?? 0)
    }

    /// Members in which common loggers write it, in the order in which they are looked at. Dots lead into
    /// objects.
    public static let usualMembers = [
        "severity", "level", "lvl", "levelname", "log.level", "@l", "s", "PRIORITY", "error_severity",
        "record.level.name", "@level", "LogLevel", "Level", "levelno", "label", "sev", "priority",
    ]

    /// How the value of a member is read.
    public enum Reading: Sendable, Hashable {
        /// A word, or a number on a scale.
        case scale(SeverityScale)
        /// A word or a number. A single digit is on syslog's scale if the record is GELF; any other number is
        /// read as by `auto`.
        case level
        /// A word only: numbers in such a member mean something else.
        case words
        /// A word with a capital first letter, as Falco writes it. In small letters `priority` is the
        /// priority of an event.
        case capitalWords
    }

    /// How one of these members is read. `PRIORITY` is the journal's syslog number, `severity`
    /// OpenTelemetry's, and `levelno` that of Python's `logging`.
    public static func reading(of member: String) -> Reading {
        switch member {
        case "PRIORITY": .scale(.syslog)
        case "severity": .scale(.otel)
        case "levelno": .scale(.python)
        case "level": .level
        case "label": .words
        case "priority": .capitalWords
        default: .scale(.auto)
        }
    }

    /// The scale of a bare number in one of these members.
    public static func scale(of member: String) -> SeverityScale {
        if case .scale(let scale) = reading(of: member) {
            scale
        } else {
            .auto
        }
    }

    /// Whether a record with that `version` is GELF (Graylog Extended Log Format).
    public static func isGELF(version: String?) -> Bool { version == "1.1" || version == "1.0" }

    /// Severity numbers of the words of common loggers and of syslog, in small letters.
    private static let words = [
        "trace": 1, "verbose": 1, "finest": 1, "finer": 2, "silly": 1, "t": 1, "vrb": 1,
        "debug": 5, "fine": 5, "config": 6, "d": 5, "dbg": 5, "d1": 5, "d2": 4, "d3": 3, "d4": 2, "d5": 1,
        "debug1": 5, "debug2": 4, "debug3": 3, "debug4": 2, "debug5": 1,
        // Apache httpd's levels below debug.
        "trace1": 4, "trace2": 3, "trace3": 2, "trace4": 2, "trace5": 1, "trace6": 1, "trace7": 1,
        "trace8": 1,
        "info": 9, "information": 9, "informational": 9, "inf": 9, "i": 9, "log": 9, "http": 9, "notice": 10,
        "note": 9, "system": 9, "detail": 9, "hint": 9, "context": 9, "statement": 9, "query": 9,
        "location": 9,
        "success": 10,
        "warn": 13, "warning": 13, "wrn": 13, "w": 13,
        "error": 17, "err": 17, "eror": 17, "severe": 17, "e": 17, "critical": 18, "crit": 18, "c": 18,
        "alert": 19,
        "dpanic": 19,
        "fatal": 21, "ftl": 21, "f": 21, "emergency": 21, "emerg": 21, "panic": 21,
    ]

    /// Severity numbers of syslog's severities 0 (emergency) to 7 (debug); RFC 5424, section 6.2.1.
    private static let ofSyslog = [21, 19, 18, 17, 13, 10, 9, 5]

    /// The severity of a word in upper or lower case, or of a number of at most three digits; nil for an
    /// unknown word.
    public init?(text: String, in scale: SeverityScale = .auto) {
        if let number = Severity.words[text.lowercased()] ?? Severity.offset(text) {
            self.init(number: number)
        } else if let whole = Int(text), text.utf8.count <= 3 {
            self.init(whole, in: scale)
        } else {
            return nil
        }
    }

    /// The severity of a text in a member that is read like that.
    ///
    /// - Parameter isGELF: evaluated only if the result depends on it.
    public init?(text: String, as reading: Reading, isGELF: @autoclosure () -> Bool) {
        switch reading {
        case .scale(let scale): self.init(text: text, in: scale)
        case .level:
            let isDigit = text.utf8.count == 1 && Int(text) != nil
            self.init(text: text, in: isDigit && isGELF() ? .syslog : .auto)
        case .words:
            guard Int(text) == nil else { return nil }
            self.init(text: text)
        case .capitalWords:
            guard let first = text.utf8.first, (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(first) else {
                return nil
            }
            self.init(text: text)
        }
    }

    /// Levels between two words as Go's `slog` writes them: `DEBUG-4`, `INFO+2`. Nil for any other text.
    private static func offset(_ text: String) -> Int? {
        guard let sign = text.utf8.firstIndex(where: { $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "+") }),
            ["debug", "info", "warn", "error"].contains(text[..<sign].lowercased()),
            let word = words[text[..<sign].lowercased()], text.utf8.count <= 9,
            let offset = Int(text[sign...])
        else { return nil }
        return word + offset
    }

    /// The severity of a number; nil if the number has no meaning on the scale. On `auto`, two digits are
    /// levels as of bunyan and pino (10 to 60), and three digits as of Monolog (100 to 600).
    public init?(_ value: Int, in scale: SeverityScale) {
        switch (scale, value) {
        case (.syslog, 0...7): self.init(number: Severity.ofSyslog[value])
        case (.otel, 1...24): self.init(number: value)
        case (.python, 1...59): self.init(number: [1, 5, 9, 13, 17, 18][value / 10])
        case (.auto, 10...69): self.init(number: value / 10 * 4 - 3)
        case (.auto, 100...699):
            self.init(
                number: [5, 9, 13, 17, 18, 21][value / 100 - 1] + (value == 250 || value == 550 ? 1 : 0))
        default: return nil
        }
    }

    /// Compares by number.
    public static func < (left: Severity, right: Severity) -> Bool { left.number < right.number }
}

extension SeverityLevel {
    /// The level as JSON text. Each record of a text log gets it, so no line assembles it.
    var quoted: StaticString {
        switch self {
        case .trace: "\"trace\""
        case .debug: "\"debug\""
        case .info: "\"info\""
        case .warn: "\"warn\""
        case .error: "\"error\""
        case .fatal: "\"fatal\""
        }
    }
}
