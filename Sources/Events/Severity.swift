public import Model

/// How serious an event or a record is.
///
/// Source: OpenTelemetry, "Logs Data Model", fields `SeverityNumber` and `SeverityText`, and its table of other scales.
public struct Severity: Sendable, Hashable, Comparable {
    /// From 1 (trace) to 24 (fatal).
    public let number: Int
    package var level: SeverityLevel { SeverityLevel.allCases[(number - 1) / 4] }

    /// - Parameter number: clamped to 1…24.
    public init(number: Int) { self.number = min(max(number, 1), 24) }

    /// The least serious one of a range.
    public init(_ level: SeverityLevel) { number = 1 + 4 * (SeverityLevel.allCases.firstIndex(of: level) ?? 0) }

    /// The members in which loggers write it, in the order in which they are looked at; dots lead into objects.
    public static let usualMembers = [
        "severity", "level", "lvl", "levelname", "log.level", "@l", "s", "PRIORITY", "error_severity",
        "record.level.name",
    ]

    /// What a bare number means in one of these members.
    public static func scale(of member: String) -> SeverityScale {
        member == "PRIORITY" ? .syslog : member == "severity" ? .otel : .auto
    }

    /// The words of common loggers and of syslog, in small letters.
    private static let words = [
        "trace": 1, "verbose": 1, "finest": 1, "finer": 2, "silly": 1, "t": 1, "vrb": 1,
        "debug": 5, "fine": 5, "config": 6, "d": 5, "dbg": 5, "d1": 5, "d2": 4, "d3": 3, "d4": 2, "d5": 1,
        "debug1": 5, "debug2": 4, "debug3": 3, "debug4": 2, "debug5": 1,
        "info": 9, "information": 9, "informational": 9, "inf": 9, "i": 9, "log": 9, "http": 9, "notice": 10,
        "success": 10,
        "warn": 13, "warning": 13, "wrn": 13, "w": 13,
        "error": 17, "err": 17, "eror": 17, "severe": 17, "e": 17, "critical": 18, "crit": 18, "c": 18, "alert": 19,
        "dpanic": 19,
        "fatal": 21, "ftl": 21, "f": 21, "emergency": 21, "emerg": 21, "panic": 21,
    ]

    private static let ofSyslog = [21, 19, 18, 17, 13, 10, 9, 5]

    /// The severity that a text says: a word in any case, or a number; nil for a word that is not known.
    public init?(text: String, in scale: SeverityScale = .auto) {
        if let number = Severity.words[text.lowercased()] {
            self.init(number: number)
        } else if let whole = Int(text), text.utf8.count <= 3 {
            self.init(whole, in: scale)
        } else {
            return nil
        }
    }

    /// The severity that a number says; nil for one that means nothing in that scale.
    public init?(_ value: Int, in scale: SeverityScale) {
        switch (scale, value) {
        case (.syslog, 0...7): self.init(number: Severity.ofSyslog[value])
        case (.otel, 1...24): self.init(number: value)
        case (.python, 1...59): self.init(number: [1, 5, 9, 13, 17, 18][value / 10])
        case (.auto, 10...69): self.init(number: value / 10 * 4 - 3)
        case (.auto, 100...699):
            self.init(number: [5, 9, 13, 17, 18, 21][value / 100 - 1] + (value == 250 || value == 550 ? 1 : 0))
        default: return nil
        }
    }

    /// By number.
    public static func < (left: Severity, right: Severity) -> Bool { left.number < right.number }
}
