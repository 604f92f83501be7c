internal import EventLoops
package import Model

extension DestinationSettings {
    /// How batches are written into requests.
    ///
    /// - Parameters:
    ///   - installID: names this installation to formats that ask for it.
    ///   - hostName: this machine's as events say it; nil when they do not.
    ///   - version: the agent's.
    /// - Throws: `OutputError` with code `invalidSetting` when the format needs an install id and there is none.
    package func encoder(
        installID: String?, hostName: String?, version: String
    ) throws(OutputError) -> any BatchEncoder {
        switch format {
        case .ndjson: return NDJSONEncoder()
        case .json: return JSONArrayEncoder()
        case .elasticsearch: return ElasticsearchEncoder(index: index)
        case .loki: return LokiEncoder(labels: labels, host: hostName, structuredMetadata: structuredMetadata)
        case .splunkHEC:
            return SplunkEncoder(self, channel: indexerAcknowledgement ? installID : nil, host: hostName)
        case .otlp: return OTLPEncoder(otlpEncoding, version: version)
        case .ga4: return GA4Encoder(measurementID: measurementID ?? "")
        case .appCenter:
            guard let installID else { throw OutputError(.invalidSetting, "format app_center needs an install id") }
            return AppCenterEncoder(installID: installID)
        }
    }
}
