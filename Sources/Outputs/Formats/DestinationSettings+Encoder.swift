internal import EventLoops
package import Logs
package import Model

extension DestinationSettings {
    func templateScope(
        installID: String? = nil, log: Log?, time: any TimeSource = SystemTime()
    ) -> TemplateScope {
        TemplateScope(
            destination: DestinationName(name), mostValues: templateValues, installID: installID ?? "", log: log,
            time: time)
    }

    /// How batches are written into requests.
    ///
    /// - Parameters:
    ///   - installID: names this installation to formats that ask for it.
    ///   - hostName: this machine's as events say it; nil when they do not.
    ///   - log: where it is said that templates have more values than they may.
    /// - Throws: `OutputError` with code `invalidSetting` when the format needs an install id and there is none.
    package func encoder(
        installID: String?, hostName: String?, version: String, log: Log? = nil
    ) throws(OutputError) -> any BatchEncoder {
        let scope = templateScope(installID: installID, log: log)
        switch format {
        case .ndjson: return NDJSONEncoder()
        case .json: return JSONArrayEncoder()
        case .elasticsearch: return ElasticsearchEncoder(index: index, scope)
        case .loki: return LokiEncoder(labels: labels, host: hostName, structuredMetadata: structuredMetadata, scope)
        case .splunkHEC:
            return SplunkEncoder(self, channel: indexerAcknowledgement ? installID : nil, host: hostName, scope)
        case .otlp: return OTLPEncoder(otlpEncoding, version: version)
        case .ga4: return GA4Encoder(measurementID: measurementID ?? "")
        case .appCenter:
            guard let installID else { throw OutputError(.invalidSetting, "format app_center needs an install id") }
            return AppCenterEncoder(installID: installID)
        }
    }
}
