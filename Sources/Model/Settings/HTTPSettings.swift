/// What only a destination of type `http` has: the format, and how requests and answers differ from the
/// usual.
public struct HTTPSettings: Sendable, Equatable {
    /// The formats that an HTTP receiver reads, by their names in the configuration.
    package enum Format: String, Sendable, CaseIterable {
        case ndjson
        /// One JSON array.
        case json
        /// `_bulk` of Elasticsearch, OpenSearch, Quickwit and ZincSearch.
        case elasticsearch
        case loki
        case otlp
        case splunkHEC = "splunk_hec"
        /// Google Analytics 4, Measurement Protocol.
        case ga4
        case appCenter = "app_center"
        /// The body that `[destination.body]` describes.
        case template
    }

    /// The version of HTTP. 1.1 costs less if there is one request at a time.
    package enum Version: String, Sendable, CaseIterable {
        case http1 = "1.1"
        case http2 = "2"
    }

    /// Where a token goes.
    package enum TokenIn: String, Sendable, CaseIterable {
        /// Where the format's receivers expect it: usually in the Authorization header.
        case header
        /// The secret is arguments of the address, such as a SAS token of Azure.
        case query
    }

    package var format = FormatSettings.ndjson
    /// The word before the token in the Authorization header; nil for the format's.
    package var tokenScheme: String?
    package var tokenIn = TokenIn.header
    package var aws = AWSSettings()
    package var accept = AcceptSettings()
    package var version = Version.http1
    /// Answers with another meaning than the default, by status (`404`) or class (`4xx`).
    package var outcomes: [String: AnswerMeaning] = [:]
    /// Query parameter that carries the batch's id, for receivers that remove repetitions by it.
    package var batchIDParameter: String?
    package var contentType: String?

    package init() {}
}
