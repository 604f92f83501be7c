internal import EventLoops
public import Model

/// Google Analytics 4, Measurement Protocol: at most 25 events a request, all of one client.
///
/// Names are brought into the form that is taken, since others vanish without a word: letters, digits and `_`, beginning
/// with a letter, at most 40 of them. The protocol acknowledges everything: what it does with an event only its own
/// debug view tells.
/// Source: Google Analytics developer guides, "Measurement Protocol": "Sending events", "Limitations".
public struct GA4Encoder: BatchEncoder {
    /// The most events that a request may hold.
    public static let eventsInRequest = 25
    /// The most parameters that an event may have, those that are added included.
    static let parameters = 25

    private let measurementID: String

    /// - Parameter measurementID: the stream's, `G-XXXXXXX`; the token is its API secret.
    public init(measurementID: String) {
        self.measurementID = measurementID
    }

    /// `application/json`.
    public var contentType: String { "application/json" }
    /// The measurement id.
    public var arguments: String { "measurement_id=\(HTTPAddress.escape(measurementID))" }
    /// `api_secret` in the address: the protocol knows no other place.
    public var tokenPlace: TokenPlace { .argument("api_secret") }
    /// `true`.
    public var boundsRequests: Bool { true }

    /// A request for each 25 events of a client, in the order of their first events.
    public func requests(_ lines: [UInt8]) throws(OutputError) -> [[Int]] {
        var requests: [[Int]] = []
        var open: [Client: Int] = [:]
        for (index, event) in try EventView.all(lines).enumerated() {
            let client = Client(event)
            if let number = open[client], requests[number].count < GA4Encoder.eventsInRequest {
                requests[number].append(index)
            } else {
                open[client] = requests.count
                requests.append([index])
            }
        }
        return requests
    }

    /// One client's events.
    public func encode(_ lines: [UInt8], of header: BatchHeader) throws(OutputError) -> [UInt8] {
        let events = try EventView.all(lines)
        guard let first = events.first else { return [] }
        let client = Client(first)
        var text = JSONText(capacity: lines.count * 2)
        text.raw(#"{"client_id":"#)
        text.string(client.id)
        if let user = client.user {
            text.raw(#","user_id":"#)
            text.string(user)
        }
        text.raw(#","events":["#)
        for event in events {
            write(event, of: header, to: &text)
            text.raw(",")
        }
        text.dropLast()
        text.raw("]}")
        return text.bytes
    }

    private func write(_ event: EventView, of header: BatchHeader, to text: inout JSONText) {
        text.raw(#"{"name":"#)
        text.string(GA4Encoder.name(event.name))
        text.raw(#","timestamp_micros":"#)
        text.number((event.time ?? header.acceptedAt).nanoseconds / 1000)
        text.raw(#","params":{"engagement_time_msec":1"#)
        var room = GA4Encoder.parameters - 1
        if let session = event.sessionID {
            text.raw(#","session_id":"#)
            text.string(GA4Encoder.sessionNumber(session))
            room -= 1
        }
        var seen: Set<String> = ["engagement_time_msec", "session_id"]
        for property in event.properties where room > 0 {
            let name = GA4Encoder.name(property.key)
            guard let value = GA4Encoder.value(property.value), seen.insert(name).inserted else { continue }
            text.raw(",")
            text.string(name)
            text.raw(":")
            text.raw(value)
            room -= 1
        }
        text.raw("}}")
    }

    /// A name that is taken.
    static func name(_ text: String) -> String {
        let kept = text.unicodeScalars.map { scalar -> Character in
            let isPlain = scalar.isASCII && (Character(scalar).isLetter || Character(scalar).isNumber)
            return isPlain ? Character(scalar) : "_"
        }
        let name = String(kept)
        return String((name.first?.isLetter == true ? name : "e_\(name)").prefix(40))
    }

    /// A value that is taken: a number, or a text of at most 100 characters; nil for what has no place.
    private static func value(_ json: JSONSlice) -> [UInt8]? {
        var text = JSONText()
        switch json.kind {
        case .number: return Array(json.bytes)
        case .string: text.string(String((json.string ?? "").prefix(100)))
        case .boolean: text.string(json.text)
        case .null, .array, .object: return nil
        }
        return text.bytes
    }

    /// A session's id as the digits that the protocol wants: the same for the same session.
    ///
    /// Source: FNV-1a (Fowler, Noll, Vo), cut to 53 bits, which every reader keeps exactly.
    static func sessionNumber(_ session: String) -> String {
        if !session.isEmpty, session.utf8.allSatisfy({ (0x30...0x39).contains($0) }) { return session }
        let hash = session.utf8.reduce(UInt64(0xCBF2_9CE4_8422_2325)) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        return String(hash >> 11)
    }

    /// Whose events they are.
    private struct Client: Hashable {
        let id: String
        let user: String?

        /// By the event's own word, or else by the machine.
        init(_ event: EventView) {
            id = event["client_id"]?.string ?? event.device?["install_id"]?.string ?? "spoolship"
            user = event["user_id"]?.string
        }
    }
}
