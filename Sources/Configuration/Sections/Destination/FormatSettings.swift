internal import Model

extension HTTPSettings {
    /// The sections of formats.
    static let formatSectionEntries: [Entry<HTTPSettings>] = [
        .section("elasticsearch", of: .elasticsearch, "Format elasticsearch."),
        .section("loki", of: .loki, "Format loki."),
        .section("otlp", of: .otlp, "Format otlp."),
        .section("splunk_hec", of: .splunkHEC, "Format splunk_hec."),
        .section("ga4", of: .ga4, "Format ga4."),
    ]

    /// Keys of older configurations, in which the settings of formats were in the destination itself.
    static let oldEntries: [Entry<HTTPSettings>] =
        old("elasticsearch", .elasticsearch, ["ecs"]) + old("loki", .loki, ["labels"])
        + old("splunk_hec", .splunkHEC, ["host", "source", "sourcetype", "indexer_acknowledgement"])
        + old("ga4", .ga4, ["measurement_id"]) + old("otlp", .otlp, ["encoding"], called: "otlp_encoding")
        + either("index", ("elasticsearch", .elasticsearch, "index"), splunk: "index")
        + either("structured_metadata", ("loki", .loki, "structured_metadata"), splunk: "fields")

    /// Old keys of a section's settings, which had the same names or another one.
    @_semantics("optimize.sil.specialize.generic.never") @inline(never)
    private static func old<Format: SettingsSection>(
        _ section: String, _ place: SettingsCase<HTTPSettings, Format>, _ keys: [String],
        called name: String? = nil
    ) -> [Entry<HTTPSettings>] {
        Format.entries.filter { keys.contains($0.name) }.map { row in
            row.inside(place).called(name ?? row.name).renamed(to: "\(section).\(row.name)")
        }
    }

    /// An old key that set something of Splunk for format `splunk_hec`, and otherwise something of another
    /// format.
    @_semantics("optimize.sil.specialize.generic.never") @inline(never)
    private static func either<Format: SettingsSection>(
        _ key: String, _ other: (section: String, place: SettingsCase<HTTPSettings, Format>, name: String),
        splunk: String
    ) -> [Entry<HTTPSettings>] {
        old("splunk_hec", .splunkHEC, [splunk], called: key).flatMap { ofSplunk in
            old(other.section, other.place, [other.name], called: key).map { row in
                row.unless({ $0.format.name == .splunkHEC }, ofSplunk).renamed {
                    $0.format.name == .splunkHEC
                        ? "splunk_hec.\(splunk)" : "\(other.section).\(other.name)"
                }
            }
        }
    }
}

/// The cases of `FormatSettings`, for the rows of each format.
extension SettingsCase<HTTPSettings, ElasticsearchSettings> {
    static let elasticsearch = SettingsCase(
        scope: .formats([.elasticsearch]),
        part: { if case .elasticsearch(let part) = $0.format { part } else { nil } },
        put: { $1.format = .elasticsearch($0) })
}

extension SettingsCase<HTTPSettings, LokiSettings> {
    static let loki = SettingsCase(
        scope: .formats([.loki]), part: { if case .loki(let part) = $0.format { part } else { nil } },
        put: { $1.format = .loki($0) })
}

extension SettingsCase<HTTPSettings, OTLPSettings> {
    static let otlp = SettingsCase(
        scope: .formats([.otlp]), part: { if case .otlp(let part) = $0.format { part } else { nil } },
        put: { $1.format = .otlp($0) })
}

extension SettingsCase<HTTPSettings, SplunkSettings> {
    static let splunkHEC = SettingsCase(
        scope: .formats([.splunkHEC]),
        part: { if case .splunkHEC(let part) = $0.format { part } else { nil } },
        put: { $1.format = .splunkHEC($0) })
}

extension SettingsCase<HTTPSettings, GA4Settings> {
    static let ga4 = SettingsCase(
        scope: .formats([.ga4]), part: { if case .ga4(let part) = $0.format { part } else { nil } },
        put: { $1.format = .ga4($0) })
}

extension SettingsCase<HTTPSettings, BodySettings> {
    static let template = SettingsCase(
        scope: .formats([.template]),
        part: { if case .template(let part) = $0.format { part } else { nil } },
        put: { $1.format = .template($0) })
}

extension ElasticsearchSettings: SettingsSection {
    static let entries: [Entry<ElasticsearchSettings>] = [
        .setting(
            "index", \.index, optional: .template(.index),
            "The index, also that of [destination.splunk_hec], which has one by its token. Events may fill it"
                + " in: events-{app}-{date}.", example: "\"events\""),
        .setting(
            "ecs", \.ecs, .boolean,
            "true names what the agent adds as the Elastic Common Schema does: host.name, service.name,"
                + " event.ingested, log.level."),
    ]
}

extension LokiSettings: SettingsSection {
    static let entries: [Entry<LokiSettings>] = [
        .setting(
            "labels", \.labels, .map(of: .template(.label), names: "a-z, 0-9 and _", accepts: isLabelName),
            "Labels of the streams, beside host and app (an empty one leaves that out). Events may fill them"
                + " in.",
            example: "{ job = \"spoolship\", level = \"{level}\" }"),
        .setting(
            "structured_metadata", \.structuredMetadata, StructuredMetadata.settingType,
            "Members whose values go beside the events, as [\"trace_id\", \"http.status\"]. true sends"
                + " only what the agent knows (ids, level); false nothing, for a Loki that refuses them"
                + " (before 3.0)."),
    ]
}

extension OTLPSettings: SettingsSection {
    static let entries: [Entry<OTLPSettings>] = [
        .setting("encoding", \.encoding, .choice, "json for receivers that do not read protobuf."),
        .setting(
            "trace", \.trace, optional: TraceMembers.settingType,
            "Members or paths of a trace's id (32 hexadecimal digits or a traceparent), its span's (16) and"
                + " its flags (a number, hexadecimal digits or true): the first usable of each is taken,"
                + " before those of common loggers.",
            example: "{ id = [\"ctx.trace\"], span_id = [\"ctx.span\"], flags = [\"ctx.flags\"] }"),
    ]
}

extension TraceMembers {
    /// A table of lists of paths, by what they lead to.
    fileprivate static var settingType: ValueType<TraceMembers> {
        let parts: [(name: String, place: any WritableKeyPath<TraceMembers, [String]> & Sendable)] = [
            ("id", \.id), ("span_id", \.spanID), ("flags", \.flags),
        ]
        let lists = ValueType<[String: [String]]>.map(of: .members, names: "id, span_id and flags") { name in
            parts.contains { $0.name == name }
        }
        return ValueType("table of lists of paths", range: "id, span_id, flags") { node throws(Problem) in
            let written = try lists.parse(node)
            guard !written.isEmpty else { throw Problem(.missing, "has neither id, span_id nor flags") }
            var members = TraceMembers()
            for part in parts { members[keyPath: part.place] = written[part.name] ?? [] }
            return members
        } print: { members in
            lists.print(
                Dictionary(uniqueKeysWithValues: parts.map { ($0.name, members[keyPath: $0.place]) })
                    .filter { !$0.value.isEmpty })
        }
    }
}

extension SplunkSettings: SettingsSection {
    static let entries: [Entry<SplunkSettings>] = [
        .setting(
            "index", \.index, optional: .template(.index),
            "The index; by default the token's. Events may fill it in: events-{app}.", example: "\"main\""),
        .setting(
            "host", \.host, optional: .template(.label),
            "The machine; by default this machine's name. Events may fill in this and the next two, as they"
                + " may index.",
            example: "\"web-1\""),
        .setting(
            "source", \.source, optional: .template(.label),
            "The source; by default the file's path, where an event has it in log.file.path, else the"
                + " token's.",
            example: "\"spoolship\""),
        .setting(
            "sourcetype", \.sourcetype, optional: .template(.label),
            "The source type; by default the token's.", example: "\"_json\""),
        .setting(
            "fields", \.fields, StructuredMetadata.settingType,
            "Members whose values go beside the events, as [\"trace_id\", \"http.status\"]. true sends"
                + " only what the agent knows (ids, level); false nothing."),
        .setting(
            "indexer_acknowledgement", \.indexerAcknowledgement, .boolean,
            "true waits until the indexer has the events, if the token has acknowledgement on."),
    ]
}

extension GA4Settings: SettingsSection {
    static let entries: [Entry<GA4Settings>] = [
        .setting(
            "measurement_id", \.measurementID, optional: .text(),
            "The measurement id; the API secret is the token.", example: "\"G-XXXXXXX\"")
    ]
}

/// Whether a text can be the name of a Loki label: a letter or `_`, then letters, digits and `_`, as in
/// Prometheus.
private func isLabelName(_ name: String) -> Bool {
    guard let first = name.first, first.isASCII, first.isLetter || first == "_" else { return false }
    return name.hasOnlyLettersDigits(and: "_")
}
