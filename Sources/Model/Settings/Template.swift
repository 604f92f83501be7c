/// A setting that events fill in: text, and placeholders in braces for what an event or its batch says.
///
/// Parsed once, where the settings are read. What an event says is made safe for the place before it takes a placeholder's.
public struct Template: Sendable, Hashable, ExpressibleByStringLiteral {
    /// What comes of a template, which says what it may hold.
    package enum Place: Sendable, CaseIterable { case index, topic, subject, label, key }

    package enum Field: Sendable, Hashable {
        case app, level, name
        /// A member of the event: its name, or a path with dots.
        case member(String)
        /// The day, `2026-11-22`, and the hour, `07`, of the event's own time, in UTC.
        case date, hour
        /// Those of the time at which the oldest event of the batch was accepted.
        case batchDate, batchHour
        case priority, destination, installID, batchID
    }

    package enum Piece: Sendable, Hashable {
        case text(String)
        case field(Field)
    }

    /// What is wrong with a template, as the continuation of its text: `must be …`.
    package struct Mistake: Error { package let message: String }

    package let pieces: [Piece]
    package let place: Place

    /// The most bytes that an event puts in the place of one of its placeholders.
    package static let longestValue = 64

    /// - Throws: `Mistake`: an unknown placeholder, half a brace, or what the place does not take at some length.
    package init(_ text: String, for place: Place) throws(Mistake) {
        var pieces: [Piece] = []
        var rest = text[...]
        while let open = rest.firstIndex(where: { $0 == "{" || $0 == "}" }) {
            if open > rest.startIndex { pieces.append(.text(String(rest[..<open]))) }
            guard rest[open] == "{", let close = rest[open...].firstIndex(of: "}") else {
                throw Mistake(message: "has an unmatched brace; braces cannot be escaped")
            }
            let name = rest[rest.index(after: open)..<close]
            guard let field = place.field(name) else {
                let known = (place.fields.map(\.name) + ["member:PATH"]).map { "{\($0)}" }.joined(separator: ", ")
                throw Mistake(message: "has {\(name)}, which is not a placeholder; known are \(known)")
            }
            pieces.append(.field(field))
            rest = rest[rest.index(after: close)...]
        }
        if !rest.isEmpty { pieces.append(.text(String(rest))) }
        self.init(pieces, for: place)
        if let mistake = place.mistake(of: self) { throw Mistake(message: mistake) }
    }

    package init(_ pieces: [Piece], for place: Place) {
        self.pieces = pieces
        self.place = place
    }

    /// A text without placeholders.
    public init(stringLiteral text: String) { self.init(text.isEmpty ? [] : [.text(text)], for: .label) }

    package var text: String {
        filled { field in
            if case .member(let path) = field { return "{member:\(path)}" }
            return "{\(place.fields.first { $0.field == field }?.name ?? "")}"
        }
    }

    package var isEmpty: Bool { pieces.isEmpty }

    package var fields: [Field] {
        pieces.compactMap { if case .field(let field) = $0 { field } else { nil } }
    }

    /// The longest text that can come of it, of letters only where there are placeholders.
    package var longest: String { filled { String(repeating: "x", count: $0.longest) } }

    /// What comes of it; `value` gives what takes a placeholder's place, safe there.
    package func filled(_ value: (Field) -> String) -> String {
        var text = ""
        for piece in pieces {
            switch piece {
            case .text(let part): text += part
            case .field(let field): text += value(field)
            }
        }
        return text
    }
}

extension Template.Field {
    /// Whether the events of a batch may differ in it.
    package var isOfEvent: Bool {
        switch self {
        case .app, .level, .name, .member, .date, .hour: true
        case .batchDate, .batchHour, .priority, .destination, .installID, .batchID: false
        }
    }

    /// The most bytes that take its place.
    fileprivate var longest: Int {
        switch self {
        case .app, .name, .member: Template.longestValue
        case .date, .batchDate: 10
        case .hour, .batchHour: 2
        case .level, .priority: 8
        case .destination: 40
        case .installID, .batchID: 36
        }
    }
}

extension Template.Place {
    /// What may be in braces, besides `member:PATH`. A key's day and hour are the batch's, which needs no look at its events.
    fileprivate var fields: [(name: String, field: Template.Field)] {
        let all: [(String, Template.Field)] = [
            ("app", .app), ("level", .level), ("name", .name), ("priority", .priority),
        ]
        guard self == .key else { return all + [("date", .date), ("hour", .hour)] }
        return all + [
            ("date", .batchDate), ("hour", .batchHour), ("event_date", .date), ("event_hour", .hour),
            ("install_id", .installID), ("destination", .destination), ("batch_id", .batchID),
        ]
    }

    fileprivate func field(_ name: Substring) -> Template.Field? {
        if name.hasPrefix("member:") {
            let path = name.dropFirst("member:".count)
            return path.isEmpty ? nil : .member(String(path))
        }
        return fields.first { $0.name == name }?.field
    }

    /// Why the place does not take what comes of a template; nil where it does. What Elasticsearch wants of an index, Splunk does not.
    fileprivate func mistake(of template: Template) -> String? {
        let longest = template.longest
        switch self {
        case .topic where !longest.isKafkaTopic:
            return "must be a topic's name: letters, digits, dots, _ and -, at most 249 with the longest values"
        case .subject where !longest.isNATSSubject:
            return
                "must be words separated by dots, without blanks, * and >, at most 255 bytes with the longest values"
        case .key: return keyMistake(of: template, longest)
        case .index, .topic, .subject, .label: return nil
        }
    }

    private func keyMistake(of template: Template, _ longest: String) -> String? {
        guard template.fields.contains(.batchID) else { return "lacks {batch_id}: batches would replace each other" }
        guard longest.utf8.count <= 900, longest.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            return "must have no control characters, and 900 bytes at most with the longest values"
        }
        // A server, or a proxy before it, may resolve these, and the signature is of what was sent.
        let parts = longest.split(separator: "/", omittingEmptySubsequences: false)
        return parts.contains { $0.isEmpty || $0 == "." || $0 == ".." }
            ? "has an empty part, \".\" or \"..\" between slashes" : nil
    }
}
