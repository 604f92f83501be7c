internal import Model

/// `[destination.body]`: the text of requests of format `template`.
///
/// The pieces are written as they are: whether the whole is what the receiver reads cannot be checked here.
extension BodySettings: SettingsSection {
    static let entries: [Entry<BodySettings>] = [
        .setting(
            "event", \.event, optional: BodyTemplate.settingType,
            "What is written for each event. Placeholders: {{event}}, {{base64}}, {{json:PATH}} (a member "
                + "as JSON), {{text:PATH}} (inside quotes), {{app}}, {{name}}, {{level}}, {{host}}, {{id}}, "
                + "{{time}}, {{seconds}}, {{milliseconds}}, {{nanoseconds}}.",
            example: "'{\"data\":\"{{base64}}\"}'"),
        .pair(
            // Fragments may be empty or contain line feeds; `.text` would refuse both.
            "request", .init("text", \.request, requestType),
            .init("separator", \.separator, BodyTemplate.fragmentType),
            "The whole request, with {{events}} for its events, and what is between two of them.",
            example: "{ text = '{\"messages\":[{{events}}]}', separator = ',' }"),
        .setting("separator", \.separator, BodyTemplate.fragmentType, "Now request.separator.")
            .renamed(to: "request.separator"),
        .setting("begin", \.begin, BodyTemplate.fragmentType, "Now before {{events}} in request.")
            .renamed(to: "request"),
        .setting("end", \.end, BodyTemplate.fragmentType, "Now behind {{events}} in request.")
            .renamed(to: "request"),
        .setting("method", \.method, .choice, "The method of requests."),
    ]

    /// Stands for the events in `request`.
    private static let mark = "{{events}}"

    /// What is before the events and behind them, with a mark between.
    private var request: String {
        get { begin + BodySettings.mark + end }
        set {
            guard let parts = newValue.parted(at: BodySettings.mark) else { return }
            begin = parts.before
            end = parts.behind
        }
    }

    /// A text with one mark.
    private static let requestType = ValueType<String>("template") { node throws(Problem) in
        guard case .string(let text) = node.value else { throw .wrongType("a string", node) }
        guard text.utf8.count <= 2048 else { throw Problem(.outOfRange, "is longer than 2048 bytes") }
        guard let parts = text.parted(at: mark), parts.behind.parted(at: mark) == nil else {
            throw Problem(.outOfRange, "must have {{events}} once, where the events are written")
        }
        return text
    } print: {
        .string($0)
    }.standingForNothing(mark)
}

extension String {
    /// The text before the first occurrence of another, and the text behind it; nil without one.
    // `firstRange(of:)` would link the library of regular expressions.
    fileprivate func parted(at mark: String) -> (before: String, behind: String)? {
        var place = startIndex
        while place < endIndex {
            if self[place...].hasPrefix(mark) {
                return (String(self[..<place]), String(self[place...].dropFirst(mark.count)))
            }
            place = index(after: place)
        }
        return nil
    }
}
