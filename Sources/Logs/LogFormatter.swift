internal import EventLoops

/// The form of lines; the words of `agent.log.format`.
public enum LogFormat: String, Sendable, CaseIterable {
    /// A phrase and `key=value` fields.
    case text
    /// A JSON object on each line.
    case json
}

/// Turns a message into a line of bytes with its line feed.
///
/// Values of fields come from outside (paths, names, answers). Escapes prevent them from beginning a line
/// or looking like another field, and a line ends after about 10 KiB: 8 KiB, and the field that crosses
/// that bound.
struct LogFormatter: Sendable {
    /// Whether lines begin with `<6>` for systemd (sd-daemon(3)), in place of time and level, which
    /// journald adds itself.
    let forJournal: Bool

    /// Bytes of a value that are kept.
    private static let longestValue = 1024
    /// Bytes of a line after which fields are left out; their number is given instead.
    private static let longestLine = 8192

    /// The line of a message.
    func line(_ message: LogMessage, at time: Timestamp, as format: LogFormat) -> [UInt8] {
        var line: [UInt8] = []
        line.reserveCapacity(160)
        if forJournal {
            line.append(contentsOf: "<\(message.level.systemdPriority)>".utf8)
        }
        switch format {
        case .text: appendText(message, time, to: &line)
        case .json: appendJSON(message, time, to: &line)
        }
        line.append(UInt8(ascii: "\n"))
        return line
    }

    /// Appends the message as text.
    private func appendText(_ message: LogMessage, _ time: Timestamp, to line: inout [UInt8]) {
        if !forJournal {
            line.append(contentsOf: "\(time) \(message.level.name) ".utf8)
        }
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

    /// Appends the message as a JSON object.
    private func appendJSON(_ message: LogMessage, _ time: Timestamp, to line: inout [UInt8]) {
        line.append(contentsOf: "{\"time\":\"\(time)\",\"level\":\"\(message.level.name)\",\"message\":".utf8)
        LogFormatter.appendQuoted(message.text, to: &line)
        for (index, field) in message.fields.enumerated() {
            guard line.count < LogFormatter.longestLine else {
                line.append(contentsOf: ",\"fields_left_out\":\(message.fields.count - index)".utf8)
                break
            }
            line.append(UInt8(ascii: ","))
            // Keys must be unique: a field with one of our names gets an underscore.
            let taken = field.key == "time" || field.key == "level" || field.key == "message"
            LogFormatter.appendQuoted(taken ? field.key + "_" : field.key, to: &line)
            line.append(UInt8(ascii: ":"))
            LogFormatter.appendQuoted(field.value, to: &line)
        }
        line.append(UInt8(ascii: "}"))
    }

    /// Whether a value needs no quotes: printable ASCII without blanks, quotes, backslashes and equals
    /// signs.
    private static func isPlain(_ value: String) -> Bool {
        guard !value.isEmpty, value.utf8.count <= longestValue else { return false }
        return value.utf8.allSatisfy {
            $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\")
                && $0 != UInt8(ascii: "=")
        }
    }

    /// Appends a text in quotes.
    private static func appendQuoted(_ value: String, to line: inout [UInt8]) {
        line.append(UInt8(ascii: "\""))
        appendEscaped(value, to: &line)
        line.append(UInt8(ascii: "\""))
    }

    /// Appends text with the escapes of JSON, cut to the longest value. Characters that move a terminal's
    /// cursor or reverse text are escaped too.
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
            case _ where !PrintableText.isPrintable(scalar):
                line.append(contentsOf: PrintableText.escape(of: scalar).utf8)
            default: line.append(contentsOf: String(scalar).utf8)
            }
        }
    }
}

extension LogLevel {
    /// The level as a priority of syslog. Source: sd-daemon(3).
    var systemdPriority: Int { [3, 4, 6, 7, 7][rawValue] }
}
