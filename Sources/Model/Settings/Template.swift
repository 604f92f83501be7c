/// A setting that events fill in: text with placeholders in braces for what an event or its batch says.
///
/// Parsed once, when the settings are read. Values from events are made safe for the template's place
/// before they are inserted.
public struct Template: Sendable, Hashable, ExpressibleByStringLiteral {
    /// What the resulting text is used for, which determines what it may contain.
    package enum Place: Sendable, CaseIterable {
        case index, topic, subject, label, key
        /// A header.
        case request
        /// The path or query of an address.
        case address
    }

    /// A placeholder.
    package enum Field: Sendable, Hashable {
        case app, level, name
        /// A member of the event: its name, or a path with dots.
        case member(String)
        /// Day (`2026-11-22`) and hour (`07`) of the event's time, in UTC.
        case date, hour
        /// Day and hour at which the oldest event of the batch was accepted, in UTC.
        case batchDate, batchHour
        case priority, destination, installID, batchID
    }

    /// A part of the template.
    package enum Piece: Sendable, Hashable {
        case text(String)
        case field(Field)
    }

    /// What is wrong with a template, as the continuation of its text: `must be …`.
    package struct Mistake: Error { package let message: String }

    /// Text and placeholders, in order.
    package let pieces: [Piece]
    package let place: Place

    /// The member with the path of the file that a record was read from: `{file}`.
    fileprivate static let filePath = "log.file.path"

    /// Longest value in bytes that an event can insert for a placeholder.
    package static let longestValue = 64

    /// - Throws: `Mistake` for an unknown placeholder, an unmatched brace, or a text that the place may
    ///   not accept once the longest values are inserted.
    package init(_ text: String, for place: Place) throws(Mistake) {
        var pieces: [Piece] = []
        var rest = text[...]
        while let open = rest.firstIndex(where: { $0 == "{" || $0 == "}" }) {
            if open > rest.startIndex {
                pieces.append(.text(String(rest[..<open])))
            }
            if place.hasLiteralBraces, rest[open...].dropFirst().first == rest[open] {
                pieces.append(.text(String(rest[open])))
                rest = rest[open...].dropFirst(2)
                continue
            }
            guard rest[open] == "{", let close = rest[open...].firstIndex(of: "}") else {
                throw Mistake(message: "has an unmatched brace; \(place.braceAdvice)")
            }
            let name = rest[rest.index(after: open)..<close]
            guard let field = place.field(name) else {
                let known = (place.fields.map(\.name) + ["file", "member:PATH"]).map { "{\($0)}" }.joined(
                    separator: ", ")
                let advice = place.hasLiteralBraces ? "; \(place.braceAdvice)" : ""
                throw Mistake(
                    message: "has {\(name)}, which is not a placeholder; known are \(known)\(advice)")
            }
            pieces.append(.field(field))
            rest = rest[rest.index(after: close)...]
        }
        if !rest.isEmpty {
            pieces.append(.text(String(rest)))
        }
        self.init(pieces, for: place)
        if let mistake = place.mistake(of: self) { throw Mistake(message: mistake) }
    }

    package init(_ pieces: [Piece], for place: Place) {
        self.pieces = pieces
        self.place = place
    }

    /// Whether a text contains something that looks like a placeholder: `{app}`, `{member:team}`. A
    /// header may contain JSON, whose braces are not followed by a name.
    package static func hasPlaceholders(_ text: String) -> Bool {
        text.split(separator: "{", omittingEmptySubsequences: false).dropFirst().contains { part in
            let name = part.prefix { $0.isASCII && ($0.isLetter || $0 == "_") }
            let next = part.dropFirst(name.count).first
            return !name.isEmpty && (next == "}" || next == ":")
        }
    }

    /// A text without placeholders.
    public init(stringLiteral text: String) { self.init(text.isEmpty ? [] : [.text(text)], for: .label) }

    /// The template as it is written in the configuration.
    package var text: String {
        filled { field in
            if case .member(let path) = field { return "{member:\(path)}" }
            return "{\(place.fields.first { $0.field == field }?.name ?? "")}"
        }
    }

    package var isEmpty: Bool { pieces.isEmpty }

    /// The template's placeholders, in order.
    package var fields: [Field] {
        pieces.compactMap { if case .field(let field) = $0 { field } else { nil } }
    }

    /// The longest text that can result, with the letter x for values of events.
    package var longest: String { filled { String(repeating: "x", count: $0.longest) } }

    /// The text with placeholders replaced by what `value` returns, which must be safe for the place.
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
    /// Whether the events of a batch may have different values.
    package var isOfEvent: Bool {
        switch self {
        case .app, .level, .name, .member, .date, .hour: true
        case .batchDate, .batchHour, .priority, .destination, .installID, .batchID: false
        }
    }

    /// Longest value in bytes.
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
    /// Whether the text may contain braces that are not placeholders. Names of indexes and topics never
    /// do.
    fileprivate var hasLiteralBraces: Bool { self == .request || self == .address }

    fileprivate var braceAdvice: String {
        hasLiteralBraces ? "for a brace itself write {{ or }}" : "braces cannot be escaped"
    }

    /// Placeholders of the place, in addition to `file` and `member:PATH`. In a key, date and hour are
    /// those of the batch, so that its events need not be read.
    fileprivate var fields: [(name: String, field: Template.Field)] {
        let all: [(String, Template.Field)] = [
            ("app", .app), ("level", .level), ("name", .name), ("priority", .priority),
        ]
        guard self == .key else {
            let ofEvent = all + [("date", .date), ("hour", .hour)]
            // Only an address may need it: each request has the id in a header of its own.
            return self == .address ? ofEvent + [("batch_id", .batchID)] : ofEvent
        }
        return all + [
            ("date", .batchDate), ("hour", .batchHour), ("event_date", .date), ("event_hour", .hour),
            ("install_id", .installID), ("destination", .destination), ("batch_id", .batchID),
        ]
    }

    /// The placeholder with a name; nil if it is unknown.
    fileprivate func field(_ name: Substring) -> Template.Field? {
        if name.hasPrefix("member:") {
            let path = name.dropFirst("member:".count)
            return path.isEmpty ? nil : .member(String(path))
        }
        if name == "file" { return .member(Template.filePath) }
        return fields.first { $0.name == name }?.field
    }

    /// Why the place does not accept the longest result; nil if it does. Names of indexes are not
    /// checked, because Elasticsearch and Splunk have different rules.
    fileprivate func mistake(of template: Template) -> String? {
        let longest = template.longest
        switch self {
        case .topic where !longest.isKafkaTopic:
            return
                "must be a topic's name: letters, digits, dots, _ and -, at most 249 with the longest values"
        case .subject where !longest.isNATSSubject:
            return
                "must be words separated by dots, without blanks, * and >, at most 255 bytes with the "
                + "longest values"
        case .key: return keyMistake(of: template, longest)
        case .index, .topic, .subject, .label, .request, .address: return nil
        }
    }

    /// Why the longest result cannot be the key of an object; nil if it can.
    private func keyMistake(of template: Template, _ longest: String) -> String? {
        guard template.fields.contains(.batchID) else {
            return "lacks {batch_id}: batches would replace each other"
        }
        guard longest.utf8.count <= 900, longest.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            return "must have no control characters, and 900 bytes at most with the longest values"
        }
        // A server or a proxy may resolve these parts, while the signature is for the path as it was
        // sent.
        let parts = longest.split(separator: "/", omittingEmptySubsequences: false)
        return parts.contains { $0.isEmpty || $0 == "." || $0 == ".." }
            ? "has an empty part, \".\" or \"..\" between slashes" : nil
    }
}
