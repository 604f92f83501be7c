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
