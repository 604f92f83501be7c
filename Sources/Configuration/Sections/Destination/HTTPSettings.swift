internal import Model

/// What only a destination of type `http` has. The keys are those of `[[destination]]` itself; the groups of
/// rows have their places between its other rows.
extension HTTPSettings: SettingsSection {
    static let entries: [Entry<HTTPSettings>] =
        formatEntries + tokenEntries + versionEntries + answerEntries + sectionEntries + formatSectionEntries
        + oldEntries

    static let formatEntries: [Entry<HTTPSettings>] = [
        .setting("format", \.formatName, .choice, "The format that the receiver reads.")
    ]

    static let tokenEntries: [Entry<HTTPSettings>] = [
        .pair(
            "token_in", .init("place", \.tokenIn, .choice),
            .init("scheme", \.tokenScheme, optional: .text()),
            "header: where the format's receivers expect the token; query: the token is arguments of the"
                + " url as it is (Azure's SAS). scheme: the word before the token in the Authorization"
                + " header, if it differs from the format's.",
            example: "{ scheme = \"ApiKey\" }"),
        .setting("token_scheme", \.tokenScheme, optional: .text(), "Now token_in.scheme.")
            .renamed(to: "token_in.scheme"),
    ]

    static let versionEntries: [Entry<HTTPSettings>] = [
        .setting("http_version", \.version, .choice, "The version of HTTP.")
            .retired("1.1 costs no more CPU than 2, and every receiver reads it")
    ]

    static let answerEntries: [Entry<HTTPSettings>] = [
        .setting(
            "outcomes", \.outcomes,
            .map(of: .choice, names: "a status (404) or a class (4xx)", accepts: isStatusOrClass),
            "Answers whose meaning differs from the default.",
            example: "{ 404 = \"retry\", 4xx = \"hold\" }"),
        .setting(
            "batch_id_parameter", \.batchIDParameter,
            optional: .checked("string", mustBe: "the name of a query parameter", { $0.isHeaderName }),
            "The query parameter that carries the batch's id, if the receiver removes repeats by it.",
            example: "\"insert_deduplication_token\""),
        .setting(
            "content_type", \.contentType, optional: .text(),
            "The body's Content-Type, if the receiver wants another than the format's (Fluent Bit:"
                + " application/json).",
            example: "\"application/json\""),
        .pair(
            "accept", .init("status", \.accept.statuses, AcceptSettings.statusesType),
            .init("body", \.accept.body, optional: .text()),
            "The statuses that acknowledge, if not each of 200 to 299, and a text that the answer must hold"
                + " (blanks do not count), for receivers that answer 200 to errors: any other success sends"
                + " the batch again.",
            example: "{ status = [202], body = '\"FailedRecordCount\":0' }"),
    ]

    static let sectionEntries: [Entry<HTTPSettings>] = [
        .section("aws", \.aws, "Signs requests for an AWS service."),
        .section("body", of: .template, "Format template: the text of requests."),
    ]

    /// The format, as its row reads and writes it: another one begins with the defaults of its settings.
    private var formatName: Format {
        get { format.name }
        set {
            if newValue != format.name {
                format = FormatSettings(newValue)
            }
        }
    }
}

/// Whether a text is a status (404) or a class of statuses (4xx). `Int` also reads signs and leading zeros,
/// hence the length.
private func isStatusOrClass(_ name: String) -> Bool {
    if let status = Int(name) { return (100...599).contains(status) && name.utf8.count == 3 }
    return ["1xx", "2xx", "3xx", "4xx", "5xx"].contains(name)
}

extension BodyTemplate {
    /// A template of the body of requests, up to 4 KiB.
    static var settingType: ValueType<BodyTemplate> {
        let text = ValueType<String>.text(maxLength: 4096)
        return ValueType("template") { node throws(Problem) in
            let value = try text.parse(node)
            return try relaying(try BodyTemplate(value)) { (mistake: BodyTemplate.Mistake) in
                Problem(.outOfRange, mistake.message)
            }
        } print: {
            .string($0.text)
        }
    }

    /// A text that may be empty and may contain line feeds: a piece that stands before, between or after
    /// events.
    static var fragmentType: ValueType<String> {
        ValueType("string", range: "") { node throws(Problem) in
            guard case .string(let text) = node.value else { throw .wrongType("a string", node) }
            guard text.utf8.count <= 1024 else { throw Problem(.outOfRange, "is longer than 1024 bytes") }
            return text
        }.standingForNothing("")
    }
}

extension AcceptSettings {
    /// Statuses of HTTP that acknowledge a batch. Only successes: other statuses are for `outcomes`.
    static var statusesType: ValueType<[Int]> {
        ValueType("statuses", range: "200 to 299") { node throws(Problem) in
            guard case .array(let nodes) = node.value else {
                throw .wrongType("a list of statuses, such as [202]", node)
            }
            var statuses: [Int] = []
            for node in nodes { statuses.append(try ValueType<Int>.count(200...299).parse(node)) }
            return statuses
        } print: { statuses in
            statuses.isEmpty ? nil : .array(statuses.map { .integer(Int64($0)) })
        }
    }
}
