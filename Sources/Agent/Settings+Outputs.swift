internal import Configuration
internal import Model
internal import Outputs

extension DestinationSettings {
    /// How this destination is reached over HTTP.
    ///
    /// - Throws: `AgentError` with code `configuration` if there is no address.
    func httpOptions(userAgent: String) throws(AgentError) -> HTTPOptions {
        guard let url else { throw AgentError(.configuration, "destination \(name) has no url") }
        var options = HTTPOptions(url: url.text)
        options.compression = compression
        options.headers = headers.sorted { $0.key < $1.key }.map { HTTPOptions.Header($0.key, $0.value.revealed) }
        options.authorization = authorization
        options.tls = TLSOptions(
            caFile: tls.caFile, certificateFile: tls.certificateFile, keyFile: tls.keyFile, pinnedKeys: tls.pinnedKeys,
            minimumVersion: tls.minimumVersion == .tls13 ? .tls13 : .tls12)
        if let proxy { options.proxy = .address(Outputs.Secret(proxy.text)) }
        options.connectTimeout = connectTimeout
        options.requestTimeout = requestTimeout
        options.connectionAge = maxConnectionAge
        // Else a young connection would go to where the name no longer leads.
        options.nameAge = min(options.nameAge, maxConnectionAge)
        options.allowHTTP2 = httpVersion == .http2
        options.allowPlainHTTP = allowPlainHTTP
        options.answers = answerTable
        options.batchIDParameter = batchIDParameter
        options.userAgent = userAgent
        return options
    }

    /// How many events a request may hold, where the format bounds that; nil: a whole batch.
    var eventsPerRequest: Int? { kind == .http && format == .ga4 ? GA4Encoder.eventsInRequest : nil }

    /// How batches are written into requests.
    ///
    /// - Parameters:
    ///   - installID: names this installation to formats that ask for it.
    ///   - version: the agent's.
    /// - Throws: `AgentError` with code `configuration` for a missing part.
    func encoder(installID: String?, version: String) throws(AgentError) -> any BatchEncoder {
        switch format {
        case .ndjson: return NDJSONEncoder()
        case .json: return JSONArrayEncoder()
        case .elasticsearch: return ElasticsearchEncoder(index: index)
        case .loki: return LokiEncoder(labels: labels)
        case .splunkHEC: return SplunkEncoder(channel: indexerAcknowledgement ? installID : nil)
        case .otlp: return OTLPEncoder(otlpEncoding == .json ? .json : .protobuf, version: version)
        case .ga4:
            guard let measurementID else {
                throw AgentError(.configuration, "destination \(name) needs measurement_id")
            }
            return GA4Encoder(measurementID: measurementID)
        case .appCenter:
            guard let installID else { throw AgentError(.configuration, "destination \(name) needs an install id") }
            return AppCenterEncoder(installID: installID)
        }
    }

    private var authorization: HTTPOptions.Authorization {
        if let user, let password { return .basic(user: user, password: password.forOutputs) }
        guard let token else { return .none }
        return .token(token.forOutputs, scheme: tokenScheme)
    }

    private var answerTable: AnswerTable {
        var table = AnswerTable()
        for (key, override) in outcomes {
            let meaning: AnswerTable.Meaning =
                switch override {
                case .acknowledge: .acknowledge
                case .retry: .retry
                case .split: .split
                case .bisect: .bisect
                case .hold: .hold
                }
            if let status = Int(key) {
                table.overrides[status] = meaning
            } else if let digit = key.first?.wholeNumberValue {
                table.classOverrides[digit] = meaning
            }
        }
        return table
    }
}

extension Configuration.SecretSource {
    fileprivate var forOutputs: Outputs.SecretSource {
        switch self {
        case .inline(let secret): .inline(Outputs.Secret(secret.revealed))
        case .file(let path): .file(path)
        case .credential(let name): .credential(name)
        }
    }
}
