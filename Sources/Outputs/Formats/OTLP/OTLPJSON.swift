internal import Digests

/// The protocol's JSON: 64-bit numbers are strings.
enum OTLPJSON {
    static func request(_ groups: [OTLPGroup], version: String) -> [UInt8] {
        var text = JSONText(capacity: 4096)
        text.raw(#"{"resourceLogs":["#)
        for group in groups {
            text.raw(#"{"resource":{"attributes":"#)
            write(group.resource, to: &text)
            text.raw(#"},"scopeLogs":[{"scope":{"name":"spoolship""#)
            if !version.isEmpty {
                text.raw(#","version":"#)
                text.string(version)
            }
            text.raw(#"},"logRecords":["#)
            for record in group.records {
                write(record, to: &text)
                text.raw(",")
            }
            text.dropLast()
            text.raw("]}]},")
        }
        if !groups.isEmpty { text.dropLast() }
        text.raw("]}")
        return text.bytes
    }

    /// What an answer says of rejected records; nil when it says nothing.
    static func partialSuccess(_ answer: [UInt8]) -> (rejected: Int64, message: String)? {
        guard let partial = JSONSlice(answer[...])?["partialSuccess"] else { return nil }
        let count = partial["rejectedLogRecords"]
        return (
            count?.integer ?? count?.string.flatMap { Int64($0) } ?? 0, partial["errorMessage"]?.string ?? ""
        )
    }

    private static func write(_ record: OTLPRecord, to text: inout JSONText) {
        text.raw(#"{"timeUnixNano":""#)
        text.number(record.time)
        text.raw(#"","observedTimeUnixNano":""#)
        text.number(record.observed)
        text.raw(#"","severityNumber":"#)
        text.number(record.severity.number)
        if !record.severity.text.isEmpty {
            text.raw(#","severityText":"#)
            text.string(record.severity.text)
        }
        for (name, id) in [("traceId", record.traceID), ("spanId", record.spanID)] where !id.isEmpty {
            text.raw(",")
            text.string(name)
            text.raw(":")
            // Unlike other bytes. Source: OTLP, "JSON Protobuf Encoding".
            text.string(Hexadecimal.text(id))
        }
        text.raw(#","eventName":"#)
        text.string(record.name)
        text.raw(#","body":{"stringValue":"#)
        text.string(record.body)
        text.raw(#"},"attributes":"#)
        write(record.attributes, to: &text)
        text.raw("}")
    }

    private static func write(_ attributes: [OTLPAttribute], to text: inout JSONText) {
        text.raw("[")
        for attribute in attributes {
            text.raw(#"{"key":"#)
            text.string(attribute.key)
            text.raw(#","value":"#)
            write(attribute.value, to: &text)
            text.raw("},")
        }
        if !attributes.isEmpty { text.dropLast() }
        text.raw("]")
    }

    private static func write(_ value: OTLPValue, to text: inout JSONText) {
        switch value {
        case .empty: text.raw("{}")
        case .string(let string):
            text.raw(#"{"stringValue":"#)
            text.string(string)
            text.raw("}")
        case .boolean(let boolean): text.raw(boolean ? #"{"boolValue":true}"# : #"{"boolValue":false}"#)
        case .integer(let integer):
            text.raw(#"{"intValue":""#)
            text.number(integer)
            text.raw("\"}")
        case .double(let double):
            text.raw(#"{"doubleValue":"#)
            text.raw("\(double)".utf8)
            text.raw("}")
        case .array(let values):
            text.raw(#"{"arrayValue":{"values":["#)
            for value in values {
                write(value, to: &text)
                text.raw(",")
            }
            if !values.isEmpty { text.dropLast() }
            text.raw("]}}")
        case .map(let attributes):
            text.raw(#"{"kvlistValue":{"values":"#)
            write(attributes, to: &text)
            text.raw("}}")
        }
    }
}
