internal import EventLoops

/// How lines look: the settings of `agent.log_format`.
public enum LogFormat: String, Sendable, CaseIterable {
    /// A verb phrase and `key=value` fields.
    case text
    /// One JSON object a line.
    case json
}

/// Turns a message into one line of bytes, its line feed included.
///
/// Field values come from the outside (paths, names, answers): whatever they hold, they can neither begin a line of
/// their own nor pass for another field, and a line has an end (at most about 8 KiB).
struct LogFormatter: Sendable {
    /// Whether lines begin with `<6>` for systemd instead of time and level.
    let forJournal: Bool

    private static let longestValue = 1024
    private static let longestLine = 8192

    func line(_ message: LogMessage, at time: Timestamp, as format: LogFormat) -> [UInt8] {
        var line: [UInt8] = []
        line.reserveCapacity(160)
        if forJournal { line.append(contentsOf: "<\(message.level.systemdPriority)>".utf8) }
        switch format {
        case .text: appendText(message, time, to: &line)
        case .json: appendJSON(message, time, to: &line)
        }
        line.append(UInt8(ascii: "\n"))
        return line
    }

    private func appendText(_ message: LogMessage, _ time: Timestamp, to line: inout [UInt8]) {
        if !forJournal { line.append(contentsOf: "\(time) \(message.level.name) ".utf8) }
        LogFormatter.appendEscaped(message.text, to: &line)
        for (index, field) in message.fields.enumerated() {
            guard line.count < LogFormatter.longestLine else {
                line.append(contentsOf: " fields_left_out=\(message.fields.count - index)".utf8)
                return
            }
            line.append(UInt8(ascii: " "))
            LogFormatter.appendEscaped(field.key, to: &line)
            line.append(UInt8(ascii: "="))
            if LogFormatter.isPlain(field.value) {
                line.append(contentsOf: field.value.utf8)
            } else {
                LogFormatter.appendQuoted(field.value, to: &line)
            }
        }
    }

    private func appendJSON(_ message: LogMessage, _ time: Timestamp, to line: inout [UInt8]) {
        line.append(contentsOf: "{\"time\":\"\(time)\",\"level\":\"\(message.level.name)\",\"message\":".utf8)
        LogFormatter.appendQuoted(message.text, to: &line)
        for (index, field) in message.fields.enumerated() {
            guard line.count < LogFormatter.longestLine else {
                line.append(contentsOf: ",\"fields_left_out\":\(message.fields.count - index)".utf8)
                break
            }
            line.append(UInt8(ascii: ","))
            // Every key once: ours keep their names.
            let taken = field.key == "time" || field.key == "level" || field.key == "message"
            LogFormatter.appendQuoted(taken ? field.key + "_" : field.key, to: &line)
            line.append(UInt8(ascii: ":"))
            LogFormatter.appendQuoted(field.value, to: &line)
        }
        line.append(UInt8(ascii: "}"))
    }

    /// Whether a value can stand without quotes: visible ASCII without quotes, backslashes and equals signs.
    private static func isPlain(_ value: String) -> Bool {
        guard !value.isEmpty, value.utf8.count <= longestValue else { return false }
        return value.utf8.allSatisfy {
            $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") && $0 != UInt8(ascii: "=")
        }
    }

    private static func appendQuoted(_ value: String, to line: inout [UInt8]) {
        line.append(UInt8(ascii: "\""))
        appendEscaped(value, to: &line)
        line.append(UInt8(ascii: "\""))
    }

    /// Appends text as a JSON string has it, cut to the longest value; what moves a cursor or turns the text is escaped.
    private static func appendEscaped(_ text: String, to line: inout [UInt8]) {
        let limit = line.count + longestValue
        for scalar in text.unicodeScalars {
            guard line.count < limit else {
                line.append(contentsOf: "…".utf8)
                return
            }
            switch scalar {
            case "\"": line.append(contentsOf: #"\""#.utf8)
            case "\\": line.append(contentsOf: #"\\"#.utf8)
            case "\n": line.append(contentsOf: #"\n"#.utf8)
            case "\r": line.append(contentsOf: #"\r"#.utf8)
            case "\t": line.append(contentsOf: #"\t"#.utf8)
            case _ where isDangerous(scalar):
                for unit in String(scalar).utf16 {
                    line.append(contentsOf: "\\u\(unit.digits(4, radix: 16))".utf8)
                }
            default: line.append(contentsOf: String(scalar).utf8)
            }
        }
    }

    private static func isDangerous(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: true
        default: false
        }
    }
}

extension LogLevel {
    /// The priority that systemd and syslog give it. Source: sd-daemon(3).
    var systemdPriority: Int { [3, 4, 6, 7, 7][rawValue] }
}
