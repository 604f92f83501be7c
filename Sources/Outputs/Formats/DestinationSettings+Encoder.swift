internal import EventLoops
package import Logs
package import Model

extension DestinationSettings {
    /// What the destination's templates need besides events.
    func templateScope(
        installID: String? = nil, log: Log?, time: any TimeSource = SystemTime()
    ) -> TemplateScope {
        TemplateScope(
            destination: DestinationName(name), mostValues: templateValues, installID: installID ?? "",
            log: log,
            time: time)
    }

    /// The encoder of the destination's format.
    ///
    /// - Parameters:
    ///   - http: what only a destination over HTTP has.
    ///   - installID: id of this installation, for formats that send it.
    ///   - hostName: this machine's name as events give it; nil if they do not.
    ///   - version: the agent's version, for OTLP.
    ///   - messages: where events have their message, for formats that take it out of them.
    ///   - log: where templates report values beyond their bound.
    /// - Throws: `OutputError` with code `invalidSetting` if the format needs an install id and it is nil.
    package func encoder(
        _ http: HTTPSettings, installID: String?, hostName: String?, version: String,
        messages: MessagePaths = MessagePaths(), log: Log? = nil
    ) throws(OutputError) -> any BatchEncoder {
        let scope = templateScope(installID: installID, log: log)
        switch http.format {
        case .ndjson: return NDJSONEncoder()
        case .json: return JSONArrayEncoder()
        case .elasticsearch(let elasticsearch):
            return ElasticsearchEncoder(index: elasticsearch.index, ecs: elasticsearch.ecs, scope)
        case .loki(let loki):
            return LokiEncoder(
                labels: loki.labels, host: hostName, structuredMetadata: loki.structuredMetadata, scope)
        case .splunkHEC(let splunk):
            return SplunkEncoder(
                splunk, channel: splunk.indexerAcknowledgement ? installID : nil, host: hostName, scope)
        case .otlp(let otlp):
            return OTLPEncoder(
                otlp.encoding, version: version, host: hostName, keys: OTLPKeys(otlp), messages: messages)
        case .ga4(let ga4): return GA4Encoder(measurementID: ga4.measurementID ?? "")
        case .template(let body): return TemplateEncoder(body, host: hostName, messages: messages)
        case .appCenter:
            guard let installID else {
                throw OutputError(.invalidSetting, "format app_center needs an install id")
            }
            return AppCenterEncoder(installID: installID)
        }
    }
}
