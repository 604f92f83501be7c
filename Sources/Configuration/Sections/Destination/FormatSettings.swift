internal import Model

extension DestinationSettings {
    /// The sections of formats.
    static let formatEntries: [Entry<DestinationSettings>] = [
        .section("elasticsearch", \.elasticsearch, "Format elasticsearch.", only: .formats([.elasticsearch])),
        .section("loki", \.loki, "Format loki.", only: .formats([.loki])),
        .section("otlp", \.otlp, "Format otlp.", only: .formats([.otlp])),
        .section("splunk_hec", \.splunk, "Format splunk_hec.", only: .formats([.splunkHEC])),
        .section("ga4", \.ga4, "Format ga4.", only: .formats([.ga4])),
    ]

    /// Keys of older configurations, in which the settings of formats were in the destination itself.
    static let oldEntries: [Entry<DestinationSettings>] =
        inside("elasticsearch", \.elasticsearch, ["ecs"]) + inside("loki", \.loki, ["labels"])
        + inside("splunk_hec", \.splunk, ["host", "source", "sourcetype", "indexer_acknowledgement"])
        + inside("ga4", \.ga4, ["measurement_id"]) + [
            .setting("otlp_encoding", \.otlp.encoding, .choice, "Now of the format.")
                .renamed(to: "otlp.encoding"),
            .setting("index", \.formatIndex, optional: .template(.index), "Now of the format.")
                .renamed { $0.format == .splunkHEC ? "splunk_hec.index" : "elasticsearch.index" },
            .setting(
                "structured_metadata", \.formatMetadata, StructuredMetadata.settingType, "Now of the format."
            )
            .renamed { $0.format == .splunkHEC ? "splunk_hec.fields" : "loki.structured_metadata" },
        ]

    /// Old keys that a section has under the same name.
    private static func inside<Section: SettingsSection>(
        _ section: String, _ place: any WritableKeyPath<DestinationSettings, Section> & Sendable,
        _ keys: [String]
    ) -> [Entry<DestinationSettings>] {
        Section.entries.filter { keys.contains($0.name) }.map {
            $0.inside(place).renamed(to: "\(section).\($0.name)")
        }
    }

    /// The setting that `index` of an old configuration sets: Splunk's index for that format, otherwise the
    /// index of Elasticsearch.
    private var formatIndex: Template? {
        get { index }
        set {
            if format == .splunkHEC {
                splunk.index = newValue
            } else {
                elasticsearch.index = newValue
            }
        }
    }

    /// What an old configuration sends beside the events.
    private var formatMetadata: StructuredMetadata {
        get { format == .splunkHEC ? splunk.fields : loki.structuredMetadata }
        set {
            if format == .splunkHEC {
                splunk.fields = newValue
            } else {
                loki.structuredMetadata = newValue
            }
        }
    }
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
        .setting("encoding", \.encoding, .choice, "json for receivers that do not read protobuf.")
    ]
}

extension SplunkSettings: SettingsSection {
    static let entries: [Entry<SplunkSettings>] = [
        .setting(
            "index", \.index, optional: .template(.index),
            "The index; by default the token's. Events may fill it in: events-{app}.", example: "\"main\""
        ).listedElsewhere(),
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
