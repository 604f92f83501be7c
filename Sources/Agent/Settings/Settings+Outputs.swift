internal import Configuration
internal import EventLoops
internal import Model
internal import Outputs

extension DestinationSettings {
    /// What the settings make.
    ///
    /// - Throws: `AgentError` with code `configuration` if something is missing.
    func completeTarget() throws(AgentError) -> DestinationTarget {
        return try relaying(try target()) { (error: MissingSettings) in
            AgentError(.configuration, "destination \(name) has no \(error.keys.joined(separator: " and no "))")
        }
    }

    /// How this destination is reached over HTTP.
    ///
    /// - Throws: `OutputError` with code `invalidSetting` where the environment lacks credentials that the settings expect there.
    func httpOptions(_ url: EndpointURL, userAgent: String) throws(OutputError) -> HTTPOptions {
        var options = HTTPOptions(url: url.text)
        setConnection(of: &options, userAgent: userAgent)
        options.contentType = contentType
        options.headers = headers.sorted { $0.key < $1.key }.map { HTTPOptions.Header($0.key, $0.value.revealed) }
        options.authorization = try authorization()
        options.allowHTTP2 = httpVersion == .http2
        options.answers = answerTable
        options.batchIDParameter = batchIDParameter
        return options
    }

    /// What all that is reached over HTTP has in common.
    private func setConnection(of options: inout HTTPOptions, userAgent: String) {
        options.compression = compression
        options.tls = tls
        if let proxy { options.proxy = .address(Secret(proxy.text)) }
        options.connectTimeout = connectTimeout
        options.requestTimeout = requestTimeout
        options.connectionAge = maxConnectionAge
        // Else a young connection would go to where the name no longer leads.
        options.nameAge = min(options.nameAge, maxConnectionAge)
        options.allowPlainHTTP = allowPlainHTTP
        options.userAgent = userAgent
    }

    /// How batches become objects.
    ///
    /// - Throws: `OutputError` with code `invalidSetting` for a template without meaning, and as above.
    func s3Options(
        _ endpoint: EndpointURL?, _ settings: S3Settings, userAgent: String
    ) throws(OutputError) -> S3Options {
        var options = S3Options(
            bucket: settings.bucket ?? "", endpoint: endpoint?.text, key: try ObjectKey(settings.key),
            aws: try settings.aws.options(service: "s3"))
        options.usesPathStyle = settings.pathStyle
        options.neverOverwrites = settings.ifNoneMatch
        options.storageClass = settings.storageClass
        options.encryption = settings.serverSideEncryption
        setConnection(of: &options.http, userAgent: userAgent)
        return options
    }

    /// How batches become messages of a subject.
    func natsOptions(_ url: EndpointURL, _ settings: NATSSettings, version: String) -> NATSOptions {
        var options = NATSOptions(subject: settings.subject ?? "", servers: settings.addresses(after: url).map(\.text))
        options.stream = settings.stream
        options.content = settings.message
        options.compression = compression
        options.duplicateWindow = settings.duplicateWindow
        if let credentials = settings.credentials.source {
            options.authorization = .credentials(credentials)
        } else if let nkey = settings.nkey.source {
            options.authorization = .nkey(nkey)
        } else if let user, let password = password.source {
            options.authorization = .user(user, password: password)
        } else if let token = token.source {
            options.authorization = .token(token)
        }
        options.tls = tls
        options.isTLSFirst = settings.tlsFirst
        options.allowPlainText = allowPlainHTTP
        options.followsCluster = settings.followCluster
        options.inboxPrefix = settings.inboxPrefix
        if let proxy { options.proxy = Secret(proxy.text) }
        options.connectTimeout = connectTimeout
        options.requestTimeout = requestTimeout
        options.connectionAge = maxConnectionAge
        options.agentVersion = version
        return options
    }

    /// How batches become records of a topic.
    func kafkaOptions(_ settings: KafkaSettings) -> KafkaOptions {
        var options = KafkaOptions(topic: settings.topic ?? "", brokers: settings.brokers)
        options.key = settings.key == "none" ? nil : settings.key
        options.headers = headers.sorted { $0.key < $1.key }.map { HTTPOptions.Header($0.key, $0.value.revealed) }
        options.compression = compression
        if let user, let password = password.source {
            options.login = KafkaOptions.Login(settings.mechanism, user: user, password: password)
        }
        options.usesTLS = settings.tls
        options.tls = tls
        options.allowPlainText = allowPlainHTTP
        options.connectTimeout = connectTimeout
        options.requestTimeout = requestTimeout
        options.connectionAge = maxConnectionAge
        options.properties = settings.options
        return options
    }

    /// How many events a request may hold, where the format bounds that; nil: a whole batch.
    var eventsPerRequest: Int? { kind == .http && format == .ga4 ? GA4Encoder.eventsInRequest : nil }

    private func authorization() throws(OutputError) -> HTTPOptions.Authorization {
        if aws.region != nil { return .aws(try aws.options(service: aws.service)) }
        if let options = oauth2.options { return .oauth2(options) }
        if let user, let password = password.source { return .basic(user: user, password: password) }
        guard let token = token.source else { return .none }
        return .token(token, scheme: tokenScheme)
    }

    private var answerTable: AnswerTable {
        var table = AnswerTable()
        for (key, meaning) in outcomes {
            if let status = Int(key) {
                table.overrides[status] = meaning
            } else if let digit = key.first?.wholeNumberValue {
                table.classOverrides[digit] = meaning
            }
        }
        return table
    }
}

extension OAuth2Settings {
    /// How access tokens are asked for; nil when they are not.
    fileprivate var options: OAuth2Options? {
        guard let tokenURL, let clientID, let source = secret.source else { return nil }
        var options = OAuth2Options(tokenURL: tokenURL.text, clientID: clientID, clientSecret: source)
        options.scope = scope
        options.audience = audience
        options.caFile = caFile
        return options
    }
}

extension AWSSettings {
    /// Whom requests are signed for.
    fileprivate func options(service: String) throws(OutputError) -> AWSOptions {
        let source: AWSOptions.Source =
            switch credentials {
            case .key: .key(id: accessKeyID ?? "", secret: secret.source ?? .inline(Secret("")))
            case .environment: try .environment()
            case .instance: .instance()
            case .container: try .container()
            case .webIdentity: try .webIdentity()
            }
        var options = AWSOptions(region: region ?? "", service: service, source: source)
        options.role = assumeRole.map { AWSOptions.Role(arn: $0, externalID: externalID) }
        options.tokenService = AWSOptions.variable("AWS_ENDPOINT_URL_STS")
        return options
    }
}

extension HTTPFormat {
    /// How batches are written into requests.
    ///
    /// - Parameters:
    ///   - installID: names this installation to formats that ask for it.
    ///   - hostName: this machine's as events say it; nil when they do not.
    ///   - version: the agent's.
    /// - Throws: `AgentError` with code `configuration` when the format needs an install id and there is none.
    func encoder(installID: String?, hostName: String?, version: String) throws(AgentError) -> any BatchEncoder {
        switch self {
        case .ndjson: return NDJSONEncoder()
        case .json: return JSONArrayEncoder()
        case .elasticsearch(let index): return ElasticsearchEncoder(index: index)
        case .loki(let labels, let structuredMetadata):
            return LokiEncoder(labels: labels, host: hostName, structuredMetadata: structuredMetadata)
        case .splunkHEC(let splunk):
            return SplunkEncoder(
                channel: splunk.indexerAcknowledgement ? installID : nil,
                metadata: SplunkEncoder.Metadata(
                    host: splunk.host, source: splunk.source, sourcetype: splunk.sourcetype, index: splunk.index),
                host: hostName)
        case .otlp(let encoding): return OTLPEncoder(encoding, version: version)
        case .ga4(let measurementID): return GA4Encoder(measurementID: measurementID)
        case .appCenter:
            guard let installID else { throw AgentError(.configuration, "format app_center needs an install id") }
            return AppCenterEncoder(installID: installID)
        }
    }
}
