internal import EventLoops
internal import Events
public import Model

/// App Center's ingestion envelope, `{"logs": […]}`, for self-hosted replacements.
///
/// Properties are typed: string, boolean, long, double, dateTime; null, lists and objects have no type there and are left
/// out (ac20).
/// Source: App Center SDK for Apple, `MSACAppCenterIngestion`, `MSACEventLog`, `MSACDevice`.
public struct AppCenterEncoder: BatchEncoder {
    private let installID: String

    /// - Parameter installID: the agent's, sent as `Install-ID`; the token is the app secret.
    public init(installID: String) {
        self.installID = installID
    }

    /// `application/json`.
    public var contentType: String { "application/json" }
    /// The version of the interface.
    public var arguments: String { "api-version=1.0.0" }
    /// `App-Secret`.
    public var tokenPlace: TokenPlace { .header("App-Secret") }
    /// `Install-ID`.
    public var headers: [HTTPOptions.Header] { [.init("Install-ID", installID)] }

    /// The device's members, by the names that App Center has for them.
    private static let device: [(own: String, theirs: StaticString)] = [
        ("sdk_name", "sdkName"), ("sdk_version", "sdkVersion"), ("model", "model"), ("manufacturer", "oemName"),
        ("os_name", "osName"), ("os_version", "osVersion"), ("os_build", "osBuild"), ("locale", "locale"),
        ("time_zone_offset", "timeZoneOffset"), ("app_version", "appVersion"), ("app_build", "appBuild"),
    ]

    /// A container of logs.
    public func encode(_ lines: [UInt8], of header: BatchHeader) throws(OutputError) -> [UInt8] {
        let events = try EventView.all(lines)
        var text = JSONText(capacity: lines.count * 2)
        text.raw(#"{"logs":["#)
        for (index, event) in events.enumerated() {
            write(event, of: header, at: index, to: &text)
            text.raw(",")
        }
        if !events.isEmpty { text.dropLast() }
        text.raw("]}")
        return text.bytes
    }

    private func write(_ event: EventView, of header: BatchHeader, at index: Int, to text: inout JSONText) {
        let startsSession = event["type"]?.string == "start_session"
        text.raw(startsSession ? #"{"type":"startSession","timestamp":"# : #"{"type":"event","timestamp":"#)
        text.string(TimestampText.text(event.time ?? header.acceptedAt))
        if let session = event.sessionID {
            text.raw(#","sid":"#)
            text.string(session)
        }
        if !startsSession {
            text.raw(#","id":"#)
            text.string(event.stableID(in: header.id, at: index))
            text.raw(#","name":"#)
            text.string(event.name)
            writeProperties(of: event, to: &text)
        }
        writeDevice(of: event, to: &text)
        text.raw("}")
    }

    private func writeProperties(of event: EventView, to text: inout JSONText) {
        var isFirst = true
        for property in event.properties {
            guard let (type, value) = AppCenterEncoder.typed(property.value) else { continue }
            text.raw(isFirst ? #","typedProperties":[{"type":"# : #",{"type":"#)
            isFirst = false
            text.string(type)
            text.raw(#","name":"#)
            text.string(property.key)
            text.raw(#","value":"#)
            text.raw(value)
            text.raw("}")
        }
        if !isFirst { text.raw("]") }
    }

    /// A value with its type; nil for what has none.
    private static func typed(_ json: JSONSlice) -> (type: String, value: [UInt8])? {
        switch json.kind {
        case .boolean: return ("boolean", Array(json.bytes))
        case .number: return (json.integer == nil ? "double" : "long", Array(json.bytes))
        case .string:
            let string = json.string ?? ""
            var text = JSONText()
            if let time = EventView.time(string) {
                text.string(TimestampText.text(time))
                return ("dateTime", text.bytes)
            }
            text.string(string)
            return ("string", text.bytes)
        case .null, .array, .object: return nil
        }
    }

    private func writeDevice(of event: EventView, to text: inout JSONText) {
        let members = event.device?.members ?? []
        text.raw(#","device":{"#)
        var isFirst = true
        for (own, theirs) in AppCenterEncoder.device {
            guard let value = members.last(where: { $0.key == own })?.value else { continue }
            text.raw(isFirst ? "\"" : ",\"")
            text.raw(theirs)
            text.raw("\":")
            text.raw(value.bytes)
            isFirst = false
        }
        if let country = event["country"], country.kind == .string {
            text.raw(isFirst ? #""carrierCountry":"# : #","carrierCountry":"#)
            text.raw(country.bytes)
        }
        text.raw("}")
    }
}
