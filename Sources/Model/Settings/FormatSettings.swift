/// The format that an HTTP receiver reads, with the settings that only this format has.
package enum FormatSettings: Sendable, Equatable {
    case ndjson, json
    case elasticsearch(ElasticsearchSettings)
    case loki(LokiSettings)
    case otlp(OTLPSettings)
    case splunkHEC(SplunkSettings)
    case ga4(GA4Settings)
    case appCenter
    case template(BodySettings)

    /// A format with the defaults of its settings.
    package init(_ name: HTTPSettings.Format) {
        self =
            switch name {
            case .ndjson: .ndjson
            case .json: .json
            case .elasticsearch: .elasticsearch(ElasticsearchSettings())
            case .loki: .loki(LokiSettings())
            case .otlp: .otlp(OTLPSettings())
            case .splunkHEC: .splunkHEC(SplunkSettings())
            case .ga4: .ga4(GA4Settings())
            case .appCenter: .appCenter
            case .template: .template(BodySettings())
            }
    }

    /// The format's name.
    package var name: HTTPSettings.Format {
        switch self {
        case .ndjson: .ndjson
        case .json: .json
        case .elasticsearch: .elasticsearch
        case .loki: .loki
        case .otlp: .otlp
        case .splunkHEC: .splunkHEC
        case .ga4: .ga4
        case .appCenter: .appCenter
        case .template: .template
        }
    }

    /// The index, for the formats that have one.
    package var index: Template? {
        switch self {
        case .elasticsearch(let settings): settings.index
        case .splunkHEC(let settings): settings.index
        case .ndjson, .json, .loki, .otlp, .ga4, .appCenter, .template: nil
        }
    }

    /// Required keys of the format, and whether they are not set.
    var missing: [(key: String, isMissing: Bool)] {
        switch self {
        case .ga4(let settings): [("ga4.measurement_id", settings.measurementID == nil)]
        case .template(let body): [("body.event", body.event == nil)]
        case .ndjson, .json, .elasticsearch, .loki, .otlp, .splunkHEC, .appCenter: []
        }
    }
}

/// `[destination.elasticsearch]`.
public struct ElasticsearchSettings: Sendable, Equatable {
    /// The index; nil if the address names it.
    package var index: Template?
    /// Whether what the agent adds is named as in the Elastic Common Schema.
    package var ecs = false

    package init() {}
}

/// `[destination.loki]`.
public struct LokiSettings: Sendable, Equatable {
    /// Labels of the streams.
    package var labels: [String: Template] = [:]
    /// What is sent beside the events.
    package var structuredMetadata = StructuredMetadata.ids

    package init() {}
}

/// `[destination.otlp]`.
public struct OTLPSettings: Sendable, Equatable {
    package var encoding = OTLPEncoding.protobuf
    /// Members that are looked for before those of common loggers; nil without them.
    package var trace: TraceMembers?

    package init() {}
}

/// Members or paths of what a record says of its trace, each list in order of precedence.
public struct TraceMembers: Sendable, Equatable {
    package var id: [String] = []
    package var spanID: [String] = []
    package var flags: [String] = []

    package init() {}
}

/// `[destination.splunk_hec]`: metadata of events; nil for the token's.
public struct SplunkSettings: Sendable, Equatable {
    package var index: Template?
    package var host: Template?
    package var source: Template?
    package var sourcetype: Template?
    /// What is sent beside the events.
    package var fields = StructuredMetadata.ids
    /// Whether to wait until the indexer has the events.
    package var indexerAcknowledgement = false

    package init() {}
}

/// `[destination.ga4]`.
public struct GA4Settings: Sendable, Equatable {
    package var measurementID: String?

    package init() {}
}
