public import Model

/// Where a destination's events go, with what only its type has. Made of the settings once all files were read.
public enum DestinationTarget: Sendable, Equatable {
    /// A server that is sent requests.
    case http(EndpointURL, HTTPFormat)
    /// A bucket; without an address Amazon's in its region.
    case s3(EndpointURL?, S3Settings)
    /// NATS JetStream.
    case nats(EndpointURL, NATSSettings)
    /// Apache Kafka.
    case kafka(KafkaSettings)
    /// A file on this machine.
    case file(path: String)
    /// The agent's standard output.
    case stdout
}

/// How a batch is written into a request, with what only that format has.
public enum HTTPFormat: Sendable, Equatable {
    /// One event a line.
    case ndjson
    /// One JSON array.
    case json
    /// `_bulk`; without an index the address names it.
    case elasticsearch(index: String?)
    /// Loki's push API, with the labels of the streams.
    case loki(labels: [String: String], structuredMetadata: Bool)
    /// OpenTelemetry logs.
    case otlp(OTLPEncoding)
    /// Splunk's collector.
    case splunkHEC(SplunkSettings)
    /// Google Analytics 4.
    case ga4(measurementID: String)
    /// App Center's envelope.
    case appCenter
}

/// What only Splunk's collector has.
public struct SplunkSettings: Sendable, Equatable {
    /// Whether the indexer's acknowledgement is waited for.
    public var indexerAcknowledgement = false
    /// The machine that events come from; nil for this one's name.
    public var host: String?
    /// Where they come from; nil for the token's.
    public var source: String?
    /// What they are; nil for the token's.
    public var sourcetype: String?
    /// Where they are kept; nil for the token's.
    public var index: String?
}

/// What a destination lacks.
public struct MissingSettings: Error, Sendable, Equatable {
    /// The keys without which it cannot be; at least one.
    public let keys: [String]
}

extension DestinationSettings {
    /// What the settings make.
    ///
    /// - Throws: which settings are missing; a configuration that was read has them all.
    public func target() throws(MissingSettings) -> DestinationTarget {
        switch kind {
        case .http:
            let format = httpFormat
            guard let url, let format else {
                throw MissingSettings(keys: (format == nil ? ["measurement_id"] : []) + (url == nil ? ["url"] : []))
            }
            return .http(url, format)
        case .s3:
            guard s3.missing.isEmpty else { throw MissingSettings(keys: s3.missing) }
            return .s3(url, s3)
        case .nats:
            guard let url, nats.subject != nil else {
                throw MissingSettings(keys: (nats.subject == nil ? ["nats.subject"] : []) + (url == nil ? ["url"] : []))
            }
            return .nats(url, nats)
        case .kafka:
            guard kafka.missing.isEmpty else { throw MissingSettings(keys: kafka.missing) }
            return .kafka(kafka)
        case .file:
            guard let path else { throw MissingSettings(keys: ["path"]) }
            return .file(path: path)
        case .stdout: return .stdout
        }
    }

    /// - Returns: nil for `ga4` without its measurement id.
    private var httpFormat: HTTPFormat? {
        switch format {
        case .ndjson: .ndjson
        case .json: .json
        case .elasticsearch: .elasticsearch(index: index)
        case .loki: .loki(labels: labels, structuredMetadata: structuredMetadata)
        case .otlp: .otlp(otlpEncoding)
        case .splunkHEC:
            .splunkHEC(
                SplunkSettings(
                    indexerAcknowledgement: indexerAcknowledgement, host: host, source: source, sourcetype: sourcetype,
                    index: index))
        case .ga4: measurementID.map { .ga4(measurementID: $0) }
        case .appCenter: .appCenter
        }
    }
}

extension DestinationSettings {
    /// Which setting says where it is on the network.
    public var addressKey: String { kind == .kafka ? "kafka.brokers" : "url" }

    /// Where it is on the network: as set, Amazon's for a bucket without an address, the first broker. Nil for files.
    public var address: EndpointURL? {
        switch kind {
        case .s3 where url == nil: s3.aws.region.flatMap { EndpointURL("https://s3.\($0).amazonaws.com") }
        case .kafka: kafka.addresses.first
        default: url
        }
    }

    /// Where its servers are, the first one first; empty for files. One of them is enough to reach it.
    public var addresses: [EndpointURL] {
        guard let address else { return [] }
        return switch kind {
        case .nats: nats.addresses(after: address)
        case .kafka: kafka.addresses
        default: [address]
        }
    }
}

extension DestinationSettings.Kind {
    /// Whether it is reached over the network.
    var isServer: Bool { self != .file && self != .stdout }

    /// Whether it is reached over the network and may have a user.
    var takesUser: Bool { isServer && self != .s3 }

    /// How its address may begin; empty for what has none, or names its servers elsewhere.
    var schemes: [String] {
        switch self {
        case .http, .s3: ["https", "http"]
        case .nats: ["nats", "tls"]
        case .kafka, .file, .stdout: []
        }
    }
}
