/// `[destination.body]`: how format `template` writes a request.
public struct BodySettings: Sendable, Equatable {
    /// HTTP methods that a request may use.
    package enum Method: String, Sendable, CaseIterable {
        case post = "POST"
        case put = "PUT"
    }

    /// The text for each event; required with format `template`.
    package var event: BodyTemplate?
    /// Texts before the first event, between two events, and behind the last one.
    package var begin = ""
    package var separator = ""
    package var end = ""
    package var method = Method.post

    package init() {}
}

/// `accept`: what an answer must be to acknowledge a batch. Without it every status from 200 to 299 does, and
/// the events of a receiver that reports errors with 200 would be lost.
public struct AcceptSettings: Sendable, Equatable {
    /// Statuses that acknowledge; empty for all of 200 to 299.
    package var statuses: [Int] = []
    /// A text that the answer's body must contain, ignoring blanks; nil for any body.
    package var body: String?

    package init() {}
}

/// The text that format `template` writes for one event: JSON or anything else, with placeholders
/// `{{…}}`.
///
/// Two braces, because JSON never has two opening braces in a row, and `${…}` is a variable of the
/// environment.
public struct BodyTemplate: Sendable, Hashable {
    /// A placeholder.
    package enum Field: Sendable, Hashable {
        /// The event as it is stored: JSON.
        case event
        /// The event as it is stored, in Base64.
        case base64
        /// A member's value as JSON; `null` if it is missing.
        case json(String)
        /// A member's value as the content of a JSON string; empty if it is missing.
        case text(String)
        case app, name, level, host, id
        /// The event's time in RFC 3339; and since 1970 in seconds with a fraction, in milliseconds,
        /// and in nanoseconds.
        case time, seconds, milliseconds, nanoseconds
    }

    /// A part of the template.
    package enum Piece: Sendable, Hashable {
        case text(String)
        case field(Field)
    }

    /// What is wrong with a template, as the continuation of "NAME …".
    package struct Mistake: Error { package let message: String }

    /// The template as it is written in the configuration.
    package let text: String
    package let pieces: [Piece]

    private static let fields: KeyValuePairs<String, Field> = [
        "event": .event, "base64": .base64, "app": .app, "name": .name, "level": .level, "host": .host,
        "id": .id,
        "time": .time, "seconds": .seconds, "milliseconds": .milliseconds, "nanoseconds": .nanoseconds,
    ]

    /// - Throws: `Mistake` for an unknown placeholder, or one without its closing braces.
    package init(_ text: String) throws(Mistake) {
        var pieces: [Piece] = []
        var literal = ""
        var rest = text[...]
        while let open = rest.firstIndex(of: "{") {
            let next = rest.index(after: open)
            guard next < rest.endIndex, rest[next] == "{" else {
                literal += rest[...open]
                rest = rest[next...]
                continue
            }
            let name = rest[rest.index(after: next)...].prefix { $0 != "}" }
            guard rest[name.endIndex...].hasPrefix("}}") else { throw Mistake(message: "has {{ without }}") }
            literal += rest[..<open]
            if !literal.isEmpty {
                pieces.append(.text(literal))
            }
            literal = ""
            pieces.append(.field(try BodyTemplate.field(String(name))))
            rest = rest[name.endIndex...].dropFirst(2)
        }
        literal += rest
        if !literal.isEmpty {
            pieces.append(.text(literal))
        }
        self.text = text
        self.pieces = pieces
    }

    /// The placeholder with a name.
    private static func field(_ name: String) throws(Mistake) -> Field {
        if let known = fields.first(where: { $0.key == name }) { return known.value }
        if name.hasPrefix("json:"), name.utf8.count > 5 { return .json(String(name.dropFirst(5))) }
        if name.hasPrefix("text:"), name.utf8.count > 5 { return .text(String(name.dropFirst(5))) }
        let known = (fields.map(\.key) + ["json:PATH", "text:PATH"]).map { "{{\($0)}}" }.joined(
            separator: ", ")
        throw Mistake(message: "has {{\(name)}}, which is not a placeholder; known are \(known)")
    }
}
