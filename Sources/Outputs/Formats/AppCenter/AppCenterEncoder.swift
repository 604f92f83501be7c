internal import Digests
internal import Events
package import Model

/// Writes App Center's ingestion envelope, `{"logs": […]}`, for servers that replace App Center.
///
/// Properties, and members beside them, are typed: string, boolean, long, double, dateTime. null, lists and
/// objects have no type there and are left out.
///
/// Source: App Center SDK for Apple, `MSACAppCenterIngestion`, `MSACEventLog`, `MSACDevice`.
package struct AppCenterEncoder: BatchEncoder {
    /// The agent's install id, which the header `Install-ID` requires.
    private let installID: String

    /// - Parameter installID: the agent's, sent as `Install-ID`. The destination's token is the app secret.
    package init(installID: String) { self.installID = installID }

    package var traits: FormatTraits {
        FormatTraits(
            tokenPlace: .header("App-Secret"), arguments: "api-version=1.0.0",
            headers: [("Install-ID", installID)], mayLeaveOut: true)
    }

    /// Members of the device with App Center's names for them, and the JSON to send for a required one that
    /// is unknown.
    private static let device: [(own: String, theirs: StaticString, placeholder: StaticString?)] = [
        ("sdk_name", "sdkName", #""spoolship""#), ("sdk_version", "sdkVersion", #""0""#),
        ("model", "model", nil),
        ("manufacturer", "oemName", nil), ("os_name", "osName", #""Linux""#),
        ("os_version", "osVersion", #""0""#),
        ("os_build", "osBuild", nil), ("locale", "locale", #""und""#),
        ("time_zone_offset", "timeZoneOffset", "0"),
        ("app_version", "appVersion", #""0""#), ("app_build", "appBuild", #""0""#),
    ]

    /// The envelope of a batch, a log for each event.
    package func encode(_ lines: [UInt8], of header: BatchHeader) throws(OutputError) -> [UInt8] {
        let events = try EventView.all(lines)
        var text = JSONText(capacity: lines.count * 2)
        text.raw(#"{"logs":["#)
        for (index, event) in events.enumerated() {
            write(event, of: header, at: index, to: &text)
            text.raw(",")
        }
        text.close("]}")
        return text.bytes
    }

    /// Writes one log: a session's start, or an event.
    private func write(_ event: EventView, of header: BatchHeader, at index: Int, to text: inout JSONText) {
        let startsSession = event["type"]?.string == "start_session"
        text.raw(startsSession ? #"{"type":"startSession","timestamp":"# : #"{"type":"event","timestamp":"#)
        text.string("\(event.time ?? header.acceptedAt)")
        if let session = event.sessionID {
            text.raw(#","sid":"#, string: AppCenterEncoder.uuid(session))
        }
        if !startsSession {
            text.raw(#","id":"#, string: AppCenterEncoder.uuid(event.stableID(in: header.id, at: index)))
            text.raw(#","name":"#, string: event.name)
            writeProperties(of: event, to: &text)
        }
        writeDevice(of: event, to: &text)
        text.raw("}")
    }

    /// Number of properties that have no type in App Center: null, lists and objects.
    package func leftOut(_ lines: [UInt8]) throws(OutputError) -> Int {
        try EventView.all(lines).reduce(0) { count, event in
            guard event["type"]?.string != "start_session" else { return count + event.values.count }
            return count + event.values.count { AppCenterEncoder.typed($0.value) == nil }
        }
    }

    /// An id in the form of a UUID, which the service demands: the id itself if it is one, otherwise a UUID
    /// made from its hash, always the same for the same id.
    ///
    /// Source: RFC 9562, section 5.8 (version 8): a hash with the bits of version and variant.
    package static func uuid(_ id: String) -> String {
        guard UUIDv7(id) == nil else { return id }
        var hash = Array(SHA256.bytes(Array(id.utf8)).prefix(16))
        hash[6] = hash[6] & 0x0F | 0x80
        hash[8] = hash[8] & 0x0F | 0x80
        return UUIDv7(bytes: hash)?.description ?? id
    }

    /// Writes the properties that have a type.
    private func writeProperties(of event: EventView, to text: inout JSONText) {
        let typed = event.values.compactMap { name, value in AppCenterEncoder.typed(value).map { (name, $0) }
        }
        guard !typed.isEmpty else { return }
        text.raw(#","typedProperties":["#)
        for (name, (type, value)) in typed {
            text.raw("{")
            text.member("type", type)
            text.member("name", name)
            text.raw(#""value":"#)
            text.raw(value)
            text.raw("},")
        }
        text.close("]")
    }

    /// A value with its type in App Center; nil if it has none. A text that is a time of RFC 3339 becomes a
    /// `dateTime`.
    private static func typed(_ json: JSONSlice) -> (type: String, value: [UInt8])? {
        switch json.kind {
        case .boolean: return ("boolean", Array(json.bytes))
        case .number: return (json.integer == nil ? "double" : "long", Array(json.bytes))
        case .string:
            let string = json.string ?? ""
            var text = JSONText()
            if let time = EventView.time(string) {
                text.string("\(time)")
                return ("dateTime", text.bytes)
            }
            text.string(string)
            return ("string", text.bytes)
        case .null, .array, .object: return nil
        }
    }

    /// Writes the device, with placeholders for required members that are unknown.
    private func writeDevice(of event: EventView, to text: inout JSONText) {
        let members = event.device?.members ?? []
        text.raw(#","device":{"#)
        for (own, theirs, placeholder) in AppCenterEncoder.device {
            let value = members.last { $0.key == own }?.value
            guard value != nil || placeholder != nil else { continue }
            text.raw("\"")
            text.raw(theirs)
            text.raw("\":")
            if let value {
                text.raw(value.bytes)
            } else if let placeholder {
                text.raw(placeholder)
            }
            text.raw(",")
        }
        if let country = event["country"], country.kind == .string {
            text.raw(#""carrierCountry":"#)
            text.raw(country.bytes)
        }
        text.close("}")
    }
}
