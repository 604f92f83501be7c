internal import EventLoops
internal import Events
package import Model

/// Writes events as syslog messages, each preceded by its length (`octet counting`).
///
/// Source: RFC 5424, section 6 (message); RFC 6587, section 3.4.1 (octet counting), which RFC 5425 requires
/// over TLS. A line feed in an event would end the message under the other framing of RFC 6587.
package struct SyslogEncoder: Sendable {
    /// The messages of a batch, and the events that cannot be sent.
    struct Messages {
        /// All messages with their lengths, one after the other.
        var bytes: [UInt8] = []
        /// Events whose messages exceed `syslog.message.max_size`. A receiver cuts or drops a longer message
        /// without saying so.
        var tooLong: [RejectedEvent] = []
    }

    private let settings: SyslogSettings
    /// This machine's name, for events that name none.
    private let host: String
    /// Where events have their message.
    private let messagePaths: MessagePaths

    /// - Parameters:
    ///   - host: this machine's name, for events that name none; nil leaves the field `-`.
    ///   - messages: where events have their message, besides the usual members.
    package init(_ settings: SyslogSettings, host: String?, messages: MessagePaths = MessagePaths()) {
        self.settings = settings
        self.host = host ?? ""
        messagePaths = messages
    }

    /// The messages of all events, in order. Events that are too long are left out and returned as
    /// rejected, finally: another attempt would be as long.
    func messages(_ events: [EventView], of header: BatchHeader) -> Messages {
        var result = Messages()
        var times = TimestampWriter()
        for (index, event) in events.enumerated() {
            let message = message(event, at: index, in: header, &times)
            guard message.count <= settings.maxMessage else {
                let failure = Failure(
                    kind: .local,
                    message: "its message has \(message.count) bytes;"
                        + " syslog.message.max_size is \(settings.maxMessage)")
                result.tooLong.append(RejectedEvent(index: index, failure: failure, isFinal: true))
                continue
            }
            result.bytes.append(contentsOf: "\(message.count) ".utf8)
            result.bytes.append(contentsOf: message)
        }
        return result
    }

    /// One message: priority, version 1, time, host, app, `-` for the unknown process id, event name,
    /// structured data with the event's id, and the text.
    private func message(
        _ event: EventView, at index: Int, in header: BatchHeader, _ times: inout TimestampWriter
    ) -> [UInt8] {
        let priority = settings.facility.number * 8 + SyslogEncoder.severity(of: event)
        let known = header.apps.indices.contains(index) ? header.apps[index] : ""
        let name = (event["host_name"] ?? event.device?["host_name"])?.string ?? host
        var message = Array("<\(priority)>1 ".utf8)
        message.append(contentsOf: SyslogEncoder.time(event.time ?? header.acceptedAt, &times))
        message.append(UInt8(ascii: " "))
        message.append(contentsOf: SyslogEncoder.word(name, 255))
        message.append(UInt8(ascii: " "))
        message.append(contentsOf: SyslogEncoder.word(event.owner(known) ?? "", 48))
        // PROCID is unknown: `-`.
        message.append(contentsOf: " - ".utf8)
        message.append(contentsOf: SyslogEncoder.word(event.name, 32))
        message.append(contentsOf: " [\(settings.structuredDataID)".utf8)
        SyslogEncoder.add("event_id", event.stableID(in: header.id, at: index), to: &message)
        for path in settings.structuredData {
            let value = event.member(at: path) ?? event.properties.last { $0.key == path }?.value
            guard let value, value.kind != .null else { continue }
            SyslogEncoder.add(path, value.string ?? value.text, to: &message)
        }
        message.append(contentsOf: "] ".utf8)
        switch settings.message {
        case .event: message.append(contentsOf: event.line)
        case .text:
            // Many receivers end the message at a NUL.
            let text = OTLPFields.message(of: event.line, at: messagePaths.of(event.owner(known)))
            message.append(contentsOf: text.lazy.map { $0 == 0 ? UInt8(ascii: " ") : $0 })
        }
        return message
    }

    /// The level as a number of RFC 5424, section 6.2.1. An event without a level is a notice (5), the
    /// default of RFC 3164, because the field is required.
    private static func severity(of event: EventView) -> Int {
        switch event.severity?.value.level {
        case .fatal: 2
        case .error: 3
        case .warn: 4
        case .info: 6
        case .debug, .trace: 7
        case nil: 5
        }
    }

    /// A time with at most six digits of a second, as RFC 5424, section 6.2.3, demands; further digits are
    /// cut off.
    private static func time(_ time: Timestamp, _ times: inout TimestampWriter) -> [UInt8] {
        let text = times.text(of: time)
        // `2026-11-20T10:00:00.123456789Z`
        guard text.count > 27 else { return Array(text) }
        return text.prefix(26) + [UInt8(ascii: "Z")]
    }

    /// A word of the head: printable ASCII without blanks, at most `longest` bytes, other bytes as `_`; `-`
    /// if empty. Without this an event's content could forge further fields (RFC 5424, section 6).
    private static func word(_ text: String, _ longest: Int) -> [UInt8] {
        let bytes = text.utf8.prefix(longest).map { (0x21...0x7E).contains($0) ? $0 : UInt8(ascii: "_") }
        return bytes.isEmpty ? [UInt8(ascii: "-")] : bytes
    }

    /// Adds a parameter of the structured data, with `"`, `\` and `]` escaped (RFC 5424, section 6.3.3).
    /// Names have at most 32 bytes.
    private static func add(_ name: String, _ value: String, to message: inout [UInt8]) {
        message.append(UInt8(ascii: " "))
        message.append(
            contentsOf: name.utf8.prefix(32).map { byte in
                (0x21...0x7E).contains(byte) && !"=]\"".utf8.contains(byte) ? byte : UInt8(ascii: "_")
            })
        message.append(contentsOf: "=\"".utf8)
        for byte in value.utf8 {
            if "\"\\]".utf8.contains(byte) {
                message.append(UInt8(ascii: "\\"))
            }
            message.append(byte == 0 ? UInt8(ascii: " ") : byte)
        }
        message.append(UInt8(ascii: "\""))
    }
}
