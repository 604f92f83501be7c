package import EventLoops
package import Model

/// Writes requests of Google Analytics 4's Measurement Protocol: at most 25 events each, all of one client.
///
/// Properties, and members beside them (`message`, `level`, those of a record), become parameters. Names
/// are converted to the accepted form (letters, digits and `_`, beginning with a letter, at most 40
/// characters), because the service drops other names silently. It acknowledges everything: only its debug
/// view shows what it does with an event. Source: Google Analytics developer guides, "Measurement
/// Protocol": "Sending events", "Limitations".
package struct GA4Encoder: PiecewiseEncoder {
    /// Most events in a request.
    package static let eventsInRequest = 25
    /// Most parameters of an event, those that are added included.
    static let parameters = 25
    /// Most bytes in a request (the documented limit is 130 kB).
    static let bytesInRequest = 130_000
    /// Greatest age of an event: the service accepts 72 hours, and drops older events silently.
    static let oldest = Duration.seconds(72 * 3600)

    /// Id of the data stream.
    private let measurementID: String

    /// - Parameter measurementID: id of the data stream, `G-XXXXXXX`. The destination's token is its API
    ///   secret.
    package init(measurementID: String) { self.measurementID = measurementID }

    package var traits: FormatTraits {
        FormatTraits(
            tokenPlace: .argument("api_secret"), arguments: "measurement_id=\(measurementID.percentEncoded)",
            mayLeaveOut: true)
    }

    /// Divides a batch: each request has at most 25 events or 130 kB of one client, in the order of its
    /// first event.
    package func requests(_ lines: [UInt8]) throws(OutputError) -> [[Int]] {
        var requests: [[Int]] = []
        var bytes: [Int] = []
        var open: [Client: Int] = [:]
        for (index, event) in try EventView.all(lines).enumerated() {
            let client = Client(event)
            var text = JSONText()
            // Any time will do: all times take the same room, except for a digit that the margin of 8 bytes
            // covers.
            _ = GA4Encoder.write(
                event, at: event.time ?? Timestamp(milliseconds: 1_800_000_000_000), to: &text)
            let size = text.bytes.count + 8
            if let number = open[client], requests[number].count < GA4Encoder.eventsInRequest,
                bytes[number] + size <= GA4Encoder.bytesInRequest
            {
                requests[number].append(index)
                // bounded: bytes of a batch in memory.
                bytes[number] += size
            } else {
                open[client] = requests.count
                requests.append([index])
                bytes.append(client.size + size)
            }
        }
        return requests
    }

    /// Events that are too old. Sent, they would be acknowledged and vanish.
    package func refusals(
        _ lines: [UInt8], of header: BatchHeader, at now: Timestamp
    ) throws(OutputError) -> [RejectedEvent] {
        let failure = Failure(
            kind: .local,
            message: "Google Analytics accepts no event older than 72 hours; this one was not sent")
        return try EventView.all(lines).enumerated().compactMap { index, event in
            now - (event.time ?? header.acceptedAt) > GA4Encoder.oldest
                ? RejectedEvent(index: index, failure: failure, isFinal: true) : nil
        }
    }

    /// Number of names that were changed, of values that are neither text nor number or are too long, and
    /// of parameters beyond 25.
    package func leftOut(_ lines: [UInt8]) throws(OutputError) -> Int {
        var text = JSONText()
        return try EventView.all(lines).reduce(0) {
            $0 + GA4Encoder.write($1, at: Timestamp(milliseconds: 0), to: &text)
        }
    }

    /// The body of one request, whose events all have the same client.
    package func encode(_ lines: [UInt8], of header: BatchHeader) throws(OutputError) -> [UInt8] {
        let events = try EventView.all(lines)
        guard let first = events.first else { return [] }
        let client = Client(first)
        var text = JSONText(capacity: lines.count * 2)
        text.raw("{")
        text.member("client_id", client.id)
        if let user = client.user {
            text.member("user_id", user)
        }
        text.raw(#""events":["#)
        for event in events {
            _ = GA4Encoder.write(event, at: event.time ?? header.acceptedAt, to: &text)
            text.raw(",")
        }
        text.close("]}")
        return text.bytes
    }

    /// Writes an event.
    ///
    /// - Returns: how many names and values could not be sent as they are.
    private static func write(_ event: EventView, at time: Timestamp, to text: inout JSONText) -> Int {
        var changed = 0
        let name = GA4Encoder.eventName(event.name)
        if name != event.name {
            changed += 1
        }
        text.raw(#"{"name":"#, string: name)
        text.raw(#","timestamp_micros":"#)
        text.number(time.nanoseconds / 1000)
        text.raw(#","params":{"engagement_time_msec":"#)
        // Without an engagement time, the event counts for no active user.
        let engagement = event.properties.last { $0.key == "engagement_time_msec" }?.value.integer
        text.number(engagement.flatMap { $0 > 0 ? $0 : nil } ?? 1)
        var room = GA4Encoder.parameters - 1
        if let session = event.sessionID {
            text.raw(#","session_id":"#, string: GA4Encoder.sessionNumber(session))
            room -= 1
        }
        var seen: Set<String> = ["engagement_time_msec", "session_id"]
        for property in event.values where property.key != "client_id" && property.key != "user_id" {
            if property.key == "engagement_time_msec", engagement.map({ $0 > 0 }) == true { continue }
            let name = GA4Encoder.name(property.key, reserved: ReservedNames.parameters)
            guard room > 0, let (value, isWhole) = GA4Encoder.value(property.value),
                seen.insert(name).inserted
            else {
                changed += 1
                continue
            }
            if name != property.key || !isWhole {
                changed += 1
            }
            text.raw(",", string: name)
            text.raw(":")
            text.raw(value)
            room -= 1
        }
        text.raw("}}")
        return changed
    }

    /// An event's name in the accepted form.
    static func eventName(_ text: String) -> String { name(text, reserved: ReservedNames.events) }

    /// A name in the accepted form; a reserved one, or one that does not begin with a letter, gets the
    /// prefix `e_`.
    private static func name(_ text: String, reserved: Set<String>) -> String {
        let kept = text.unicodeScalars.map { scalar -> Character in
            let isPlain = scalar.isASCII && (Character(scalar).isLetter || Character(scalar).isNumber)
            return isPlain ? Character(scalar) : "_"
        }
        let name = String(kept)
        let isFree =
            name.first?.isLetter == true && !reserved.contains(name)
            && !ReservedNames.prefixes.contains { name.hasPrefix($0) }
        return String((isFree ? name : "e_\(name)").prefix(40))
    }

    /// A value that the service accepts: a number, or a text of at most 100 characters; nil for other
    /// kinds. `isWhole` is false if the text was cut.
    private static func value(_ json: JSONSlice) -> (json: [UInt8], isWhole: Bool)? {
        var text = JSONText()
        var isWhole = true
        switch json.kind {
        case .number: return (Array(json.bytes), true)
        case .string:
            let string = json.string ?? ""
            let kept = String(string.prefix(100))
            isWhole = kept.utf8.count == string.utf8.count
            text.string(kept)
        case .boolean: text.string(json.text)
        case .null, .array, .object: return nil
        }
        return (text.bytes, isWhole)
    }

    /// A session's id as digits, which the protocol demands: always the same for the same session.
    ///
    /// Source: FNV-1a (Fowler, Noll, Vo), shifted to 53 bits, which a reader with doubles keeps exactly.
    static func sessionNumber(_ session: String) -> String {
        if !session.isEmpty, session.utf8.allSatisfy({ (0x30...0x39).contains($0) }) { return session }
        let hash = session.utf8.reduce(UInt64(0xCBF2_9CE4_8422_2325)) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        return String(hash >> 11)
    }

    /// Whose actions the events describe: all events of a request must have the same client.
    private struct Client: Hashable {
        /// Value of `client_id`.
        let id: String
        /// Value of `user_id`; nil if events have none.
        let user: String?

        /// Most bytes that the client takes in a request: every byte of its ids may be escaped as six.
        var size: Int { 64 + 6 * (id.utf8.count + (user?.utf8.count ?? 0)) }

        /// From the event, or else from the machine.
        init(_ event: EventView) {
            id = event["client_id"]?.string ?? event.device?["install_id"]?.string ?? "spoolship"
            user = event["user_id"]?.string
        }
    }
}
