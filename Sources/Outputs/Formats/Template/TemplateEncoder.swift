internal import Digests
internal import EventLoops
internal import Events
package import Model

/// Bodies for services that have no format here: a text for each event, with texts before, between and
/// after them.
package struct TemplateEncoder: BatchEncoder {
    /// The texts of the settings (`body`).
    private let settings: BodySettings
    /// This machine's name, for events that name none.
    private let host: String
    /// Where events have their message.
    private let messages: MessagePaths

    /// - Parameters:
    ///   - host: this machine's name, for events that name none; nil if events do not give it.
    ///   - messages: where events have their message, besides the usual members.
    package init(
        _ settings: BodySettings, host: String? = nil, messages: MessagePaths = MessagePaths()
    ) {
        self.settings = settings
        self.host = host ?? ""
        self.messages = messages
    }

    package var traits: FormatTraits { FormatTraits(answerBytes: (65_536, 256), namesOwners: true) }

    /// The body: the template filled in for each event, with the separator between events, between the texts
    /// of `begin` and `end`.
    package func encode(_ lines: [UInt8], of header: BatchHeader) throws(OutputError) -> [UInt8] {
        var text = JSONText(capacity: lines.count + lines.count / 2)
        var times = TimestampWriter()
        text.raw(settings.begin.utf8)
        for (place, event) in try EventView.all(lines).enumerated() {
            if place > 0 {
                text.raw(settings.separator.utf8)
            }
            for piece in settings.event?.pieces ?? [] {
                switch piece {
                case .text(let literal): text.raw(literal.utf8)
                case .field(let field): write(field, of: event, at: place, in: header, to: &text, &times)
                }
            }
        }
        text.raw(settings.end.utf8)
        return text.bytes
    }

    /// Writes a placeholder of an event. Texts are escaped for a JSON string, because that is where
    /// templates put them.
    private func write(
        _ field: BodyTemplate.Field, of event: EventView, at index: Int, in header: BatchHeader,
        to text: inout JSONText, _ times: inout TimestampWriter
    ) {
        let time = event.time ?? header.acceptedAt
        var known: String { header.apps.indices.contains(index) ? header.apps[index] : "" }
        switch field {
        case .event: text.raw(event.line)
        case .base64: text.raw(Base64.encode(Array(event.line)).utf8)
        case .json(let path):
            if let value = value(at: path, of: event) {
                text.raw(value.bytes)
            } else {
                text.raw("null")
            }
        case .text(let path):
            // A record's message has many names.
            if path == "message",
                let message = OTLPFields.message(in: event.line, at: messages.of(event.owner(known)))
            {
                text.inside(String(decoding: message, as: UTF8.self))
                break
            }
            guard let value = value(at: path, of: event), value.kind != .null else { break }
            text.inside(value.string ?? value.text)
        case .app: text.inside(event.owner(known) ?? "")
        case .name: text.inside(event.name)
        case .level: text.raw((event.severity?.value.level.rawValue ?? "").utf8)
        case .host: text.inside((event["host_name"] ?? event.device?["host_name"])?.string ?? host)
        case .id: text.inside(event.stableID(in: header.id, at: index))
        case .time: text.raw(times.text(of: time))
        case .seconds: text.raw(SplunkEncoder.seconds(time).utf8)
        case .milliseconds: text.number(time.milliseconds)
        case .nanoseconds: text.number(time.nanoseconds)
        }
    }

    /// A member, or else a property of that name.
    private func value(at path: String, of event: EventView) -> JSONSlice? {
        event.member(at: path) ?? event.properties.last { $0.key == path }?.value
    }
}
