import Model
import TestKit
import Testing

@testable import Configuration

@Suite("What the settings of a destination affect")
struct DestinationTests {
    /// Another value than the default, for each setting: a new setting is added here, or the test fails.
    private static let values: [String: JSONValue] = [
        "name": .string("other"), "type": .string("file"), "url": .string("https://example.com/other"),
        "allow_plain_http": .bool(true), "format": .string("loki"), "compression": .string("zstd"),
        "by_default": .bool(false), "purpose": .string("analytics"),
        "headers": .object([.init("X-A", .string("b"))]),
        "token": .string("secret-1"),
        "user": .string("me"), "password": .string("secret-1"),
        "proxy": .string("http://user:secret-1@proxy:1"),
        "http_version": .string("2"), "connect_timeout": .string("7s"), "request_timeout": .string("77s"),
        "max_connection_age": .string("7s"), "rate_limit": .double(7),
        "outcomes": .object([.init("404", .string("retry"))]), "batch_id_parameter": .string("token"),
        "elasticsearch.index": .string("events"), "elasticsearch.ecs": .bool(true),
        "loki.labels": .object([.init("job", .string("a"))]), "loki.structured_metadata": .bool(false),
        "template_values": .integer(7),
        "otlp.encoding": .string("json"),
        "otlp.trace": .object([.init("id", .array([.string("a.b")]))]),
        "ga4.measurement_id": .string("G-1"),
        "path": .string("/a"), "tls.ca_file": .string("/a"),
        "content_type": .string("application/json"),
        "accept": .object([.init("status", .array([.integer(202)])), .init("body", .string("a"))]),
        "body.event": .string("{{event}}"),
        "body.request": .string("[{{events}}]"),
        "body.method": .string("PUT"), "token_in": .string("query"),
        "splunk_hec.index": .string("a"), "splunk_hec.host": .string("a"), "splunk_hec.source": .string("a"),
        "splunk_hec.sourcetype": .string("a"), "splunk_hec.fields": .bool(false),
        "splunk_hec.indexer_acknowledgement": .bool(true),
        "tls.certificate": .object([.init("file", .string("/a")), .init("key_file", .string("/a"))]),
        "tls.pinned_keys": .array([.string("sha256//47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=")]),
        "tls.minimum_version": .string("1.3"), "s3.bucket": .string("events"),
        "s3.region": .string("eu-central-1"),
        "s3.key": .string("x/{batch_id}"), "s3.storage": .string("STANDARD_IA"),
        "s3.credentials": .string("instance"), "s3.access_key_id": .string("a"),
        "s3.secret_access_key": .string("secret-1"), "s3.assume_role": .string("arn:aws:iam::1:role/a"),
        "aws.region": .string("eu-central-1"), "aws.service": .string("aoss"),
        "aws.credentials": .string("web_identity"), "aws.access_key_id": .string("a"),
        "aws.secret_access_key": .string("secret-1"), "aws.assume_role": .string("arn:aws:iam::1:role/a"),
        "oauth2.token_url": .string("https://a/token"),
        "oauth2.client_id": .string("a"), "oauth2.client_secret": .string("secret-1"),
        "oauth2.grant": .string("jwt_bearer"), "oauth2.private_key": .string("file:/a"),
        "oauth2.subject": .string("a"),
        "oauth2.scope": .string("a"), "oauth2.audience": .string("a"),
        "nats.subject": .string("a"),
        "nats.servers": .array([.string("tls://b")]), "nats.follow_cluster": .bool(false),
        "nats.stream": .string("A"), "nats.message": .string("event"),
        "nats.nkey": .string("secret-1"), "nats.credentials": .string("credential:a"),
        "interval": .string("1m"), "batch_events": .integer(10), "batch_size": .string("1MB"),
        "parallel_batches": .integer(1), "critical_delay": .string("1s"), "max_age": .string("1d"),
        "when_behind": .string("skip"),
        "nats.tls_first": .bool(true), "nats.inbox_prefix": .string("a"),
        "kafka.brokers": .array([.string("b:9092")]), "kafka.topic": .string("a"),
        "kafka.key": .string("none"),
        "kafka.tls": .bool(false), "kafka.mechanism": .string("PLAIN"),
        "kafka.options": .object([.init("linger.ms", .string("50"))]),
        "tls.allow_common_name": .bool(true), "syslog.facility": .string("local0"),
        "syslog.message": .string("text"),
        "syslog.structured_data": .array([.string("a")]),
    ]

    /// Those that cannot change what a destination answers. Everything else has to change the fingerprint.
    private static let neutral: Set<String> = [
        "interval", "batch_events", "batch_size", "parallel_batches", "critical_delay",
        "max_age",
        "when_behind",
        "name", "by_default", "purpose", "connect_timeout", "request_timeout", "max_connection_age",
        "rate_limit",
    ]

    /// A destination of the type and format that have the setting, with the setting if there is a value.
    private func destination(_ path: String, _ value: JSONValue? = nil) throws -> DestinationSettings {
        var settings = DestinationSettings()
        let setting = settings.effective(in: .root).first { $0.path == path }
        switch try #require(setting, "\(path)").use.scope {
        case .types(let kinds): settings.reach = .init(kinds[0])
        case .formats(let formats): settings.http.format = FormatSettings(formats[0])
        case .all, .servers, .requests: break
        }
        guard let value else { return settings }
        var node = try #require(TOMLNode(value))
        for key in path.split(separator: ".").reversed() {
            node = TOMLNode(
                value: .table([.init(key: String(key), keyPosition: nil, node: node)]), position: nil)
        }
        var context = ReadContext()
        settings.read(node, path: "destination", context: &context)
        let problems = context.problems.filter { $0.code != .retired }
        #expect(problems.isEmpty, "\(path): \(problems)")
        return settings
    }

    @Test("connecting is bounded by request_timeout too, which may be the shorter one")
    func connectingIsBounded() throws {
        let settings = try destination("request_timeout", .string("3s"))
        #expect(settings.connectTimeout == .seconds(3))
        #expect(DestinationSettings().connectTimeout == .seconds(10))
    }

    @Test("each setting of a destination changes its fingerprint, or is declared irrelevant to answers")
    func everySettingCounts() throws {
        let clear: ([UInt8]) -> String = { String(decoding: $0, as: UTF8.self) }
        for setting in DestinationSettings().effective(in: .root) {
            let standard = try destination(setting.path)
            let value = try #require(
                DestinationTests.values[setting.path], "\(setting.path): add a value to this test")
            let changed = try destination(setting.path, value)
            #expect(changed != standard, "\(setting.path): the value is the default")
            let isSeen = changed.fingerprint(clear) != standard.fingerprint(clear)
            #expect(isSeen == setting.use.changesAnswers, "\(setting.path)")
            #expect(
                setting.use.changesAnswers != DestinationTests.neutral.contains(setting.path),
                "\(setting.path)")
        }
    }

    @Test("each setting with a secret, or with a secret's file, is in the list of secrets")
    func everySecretIsKnown() throws {
        var found = 0
        for setting in DestinationSettings().effective(in: .root) where setting.path != "headers" {
            let value = try #require(DestinationTests.values[setting.path])
            let changed = try destination(setting.path, value)
            let sources = changed.secrets.compactMap(\.source)
            let shown = changed.effective(in: .root).first { $0.path == setting.path }?.value
            let inline = shown?.secrets ?? []
            if value == .string("credential:a") {
                #expect(sources == [.credential("a")], "\(setting.path)")
            } else {
                #expect(
                    inline.allSatisfy { sources.contains(.inline($0)) },
                    "\(setting.path) is masked, and not in the list")
            }
            found += sources.isEmpty ? 0 : 1
        }
        #expect(found == 8)
    }

    @Test("a key or password among librdkafka's properties is refused, and shown masked")
    func kafkaSecrets() throws {
        let options = [
            JSONValue.Member("ssl.key.password", .string("one")), .init("sasl.password", .string("two")),
            .init("ssl.key.pem", .string("three")), .init("linger.ms", .string("50")),
        ]
        let settings = try destination("kafka.options", .object(options))
        let shown = settings.effective(in: .root).first { $0.path == "kafka.options" }?.value
        #expect(Set(shown?.secrets.map(\.revealed) ?? []) == ["one", "two", "three"])
        #expect(settings.kafka.options["ssl.key.password"] == "one")
    }

    @Test("a secret in the configuration affects the fingerprint by its hash only")
    func secretsCount() throws {
        func marks(_ text: String) throws -> [String] {
            try [
                destination("token", .string(text)), destination("password", .string(text)),
                destination("headers", .object([.init("X-Key", .string(text))])),
                destination("proxy", .string("http://user:\(text)@proxy:1")),
            ].map { settings in
                var handed: [UInt8] = []
                let mark = settings.fingerprint { bytes in
                    handed = bytes
                    return "\(bytes.reduce(UInt64(7)) { ($0 &* 31) ^ UInt64($1) })"
                }
                #expect(
                    String(decoding: handed, as: UTF8.self).split(separator: "\n").contains {
                        $0.hasSuffix("\(text)\"") || $0.contains(text)
                    })
                #expect(!mark.contains(text))
                return mark
            }
        }
        for (one, other) in zip(try marks("first-secret"), try marks("other-secret")) {
            #expect(one != other)
        }
    }

    @Test("a missing setting that a type requires is named")
    func missing() {
        var settings = DestinationSettings()
        #expect(settings.missing == ["url"])
        settings.http.format = .ga4(GA4Settings())
        #expect(settings.missing == ["ga4.measurement_id", "url"])
        settings.url = EndpointURL("https://example.com/x")
        var ga4 = GA4Settings()
        ga4.measurementID = "G-1"
        settings.http.format = .ga4(ga4)
        #expect(settings.missing == [])
        settings.reach = .init(.kafka)
        #expect(settings.missing == ["kafka.brokers", "kafka.topic"])
        settings.kafka.brokers = ["kafka-1:9093", "kafka-2:9093"]
        settings.kafka.topic = "events"
        #expect(settings.missing == [])
        #expect(settings.address?.host == "kafka-1" && settings.address?.port == 9093)
        settings.reach = .init(.nats)
        #expect(settings.missing == ["nats.subject"])
        settings.nats.subject = "events.web"
        #expect(settings.missing == [])
        settings.reach = .init(.s3)
        #expect(
            settings.missing == ["s3.bucket", "s3.region", "s3.access_key_id", "s3.secret_access_key"])
        settings.s3.bucket = "events"
        settings.s3.aws.region = "eu-central-1"
        settings.s3.aws.credentials = .instance
        #expect(settings.missing == [])
        settings.url = nil
        #expect(settings.address?.text == "https://s3.eu-central-1.amazonaws.com")
        settings.reach = .init(.file)
        #expect(settings.missing == ["path"])
        settings.reach = .stdout
        #expect(settings.missing == [])
    }
}

@Suite("What check knows about receivers")
struct FormatCheckTests {
    private func problems(_ lines: String) -> [Problem] {
        let text = "[[destination]]\nname = \"a\"\n\(lines)\n"
        do throws(ConfigurationError) {
            return try Settings.read([ConfigurationText(file: "t.toml", text: text)]).warnings
        } catch {
            return error.problems
        }
    }

    @Test("type and format count wherever they are written; a key of another type is a mistake")
    func decidingKeys() {
        #expect(
            problems("kafka = { brokers = [\"b:9093\"], topic = \"events\" }\ntype = \"kafka\"").isEmpty)
        #expect(
            problems("url = \"https://a\"\nloki.labels = { job = \"b\" }\nformat = \"loki\"").isEmpty)
        func mistakes(_ lines: String) -> [String] {
            problems("url = \"https://a\"\n\(lines)").map(\.message)
        }
        #expect(
            mistakes("kafka.topic = \"events\"") == ["destination.a.kafka.topic is for type kafka only"])
        #expect(
            mistakes("loki.labels = { job = \"b\" }")
                == ["destination.a.loki.labels is for format loki only"])
        #expect(mistakes("path = \"/a\"") == ["destination.a.path is for type file only"])
        // A default that is written out was meant for no other destination.
        #expect(mistakes("kafka.tls = true").isEmpty)
    }

    @Test(
        "a format that requires a token is refused without one",
        arguments: [
            ("splunk_hec", "", "headers = { Authorization = \"Splunk t\" }"),
            ("app_center", "", "headers = { App-Secret = \"t\" }"),
            ("ga4", "ga4.measurement_id = \"G-1\"", "token = \"t\""),
        ])
    func tokens(format: String, more: String, remedy: String) {
        let base = "url = \"https://a\"\nformat = \"\(format)\"\n\(more)\n"
        let found = problems(base).filter { $0.severity == .error }
        #expect(found.count == 1 && found.first?.message.contains("has no token") == true, "\(found)")
        #expect(problems(base + "token = \"file:/a\"").isEmpty)
        #expect(problems(base + remedy).isEmpty)
    }

    @Test("an address of Elasticsearch that does not end with /_bulk is a warning")
    func elasticsearchPath() {
        func found(_ url: String) -> [Problem] {
            problems("format = \"elasticsearch\"\nelasticsearch.index = \"events\"\nurl = \"\(url)\"")
        }
        #expect(found("https://a:9200/_bulk").isEmpty && found("https://a/x/_bulk?pipeline=b").isEmpty)
        for url in ["https://a:9200", "https://a:9200/", "https://a:9200/events", "https://a:9200/?x=/_bulk"]
        {
            #expect(found(url).map(\.severity) == [.warning], "\(url)")
            #expect(found(url).first?.message.contains("does not end with /_bulk") == true, "\(url)")
        }
    }

    @Test("an address of OTLP that does not end with /v1/logs is a warning")
    func otlpPath() {
        func found(_ url: String) -> [Problem] { problems("format = \"otlp\"\nurl = \"\(url)\"") }
        #expect(found("https://a:4318/v1/logs").isEmpty && found("https://a/x/v1/logs?tenant=b").isEmpty)
        for url in ["https://a:4318", "https://a:4318/", "https://a:4318/v1/traces"] {
            #expect(found(url).map(\.severity) == [.warning], "\(url)")
        }
    }

    @Test("an index name that Elasticsearch refuses is an error; Splunk's indexes have other rules")
    func indexNames() {
        func found(_ index: String, _ format: String = "elasticsearch") -> [Problem] {
            problems(
                "url = \"https://a/_bulk\"\ntoken = \"t\"\nformat = \"\(format)\"\n\(format).index = \"\(index)\""
            )
        }
        for bad in ["Events", "my events", "_a", "a*", "-x", ".", "a,b"] {
            #expect(found(bad).map(\.severity) == [.error], "\(bad)")
        }
        for good in ["events", "logs-shop-default", ".ds-a", "a.b_c-1"] {
            #expect(found(good).isEmpty, "\(good)")
        }
        #expect(found("Main", "splunk_hec").isEmpty)
    }
}

@Suite("Impossible requests")
struct RequestSettingsTests {
    @Test(
        "headers that could smuggle requests, and invalid keys, names and times, are refused",
        arguments: [
            ("headers = { \"Bad Name\" = \"a\" }", "header"),
            ("headers = { Idempotency-Key = \"a\" }", "header"),
            ("headers = { \"\" = \"a\" }", "header"),
            ("headers = { X-Bad = \"a\\r\\nAuthorization: b\" }", "control character"),
            ("batch_id_parameter = \"a&b=c\"", "query parameter"),
            ("request_timeout = \"0s\"", "request_timeout"),
            ("token_credential = \"../token\"", "credential"),
            ("token_credential = \"/etc/passwd\"", "credential"),
            ("token_credential = \".\"", "credential"), ("token_credential = \"\"", "credential"),
            ("tls.pinned_keys = [\"sha256//short\"]", "sha256//"),
            ("tls.pinned_keys = [\"/etc/passwd\"]", "sha256//"),
            ("tls.certificate = { key_file = \"/a\" }", "needs file and key_file together"),
            (
                "token = \"t\"\nheaders = {authorization = \"Basic x\"}",
                "has token and a header Authorization"
            ),
            ("type = \"nats\"\nnats.stream = \"a b\"", "stream"),
            ("type = \"nats\"\nnats.inbox_prefix = \"a.*\"", "words"),
        ])
    func refused(lines: String, words: String) {
        let text = "[[destination]]\nname = \"a\"\nurl = \"https://a\"\n\(lines)\n"
        let error = #expect(throws: ConfigurationError.self) {
            try Settings.read([ConfigurationText(file: "t.toml", text: text)])
        }
        #expect(
            error?.problems.contains { $0.message.contains(words) } == true,
            "\(error?.problems.map(\.message) ?? [])")
    }
}

@Suite("Settings that are allowed but probably a mistake")
struct UnlikelySettingsTests {
    @Test("a warning names the setting")
    func warnings() throws {
        func told(_ text: String) throws -> [String] {
            let loaded = try Settings.read([ConfigurationText(file: "t.toml", text: text)])
            return loaded.warnings.filter { $0.code != .retired }.map(\.message)
        }
        func main(_ lines: String = "", url: String = "https://a") -> String {
            "[[destination]]\nname = \"main\"\nurl = \"\(url)\"\n\(lines)\n"
        }
        let nobody =
            "destination.main.by_default is false everywhere: events of apps that name no destination are discarded"
        #expect(try told(main("by_default = false")) == [nobody])
        #expect(try told(main("by_default = false") + main().replacing("main", with: "other")) == [])
        #expect(
            try told(main("by_default = false") + "[[container]]\nid = \"GTM-1\"\ndefault_file = \"/a\"\n")
                == [])
        #expect(
            try told(main() + "[[priorities.rule]]\n") == [
                "priorities.rule.1 has neither app, name nor level: every event is critical"
            ])
        #expect(try told(main() + "[[priorities.rule]]\nlevel = \"error\"\n") == [])
        #expect(
            try told(main("token = \"bearer abc\"")) == [
                "destination.main.token begins with Bearer, which the agent adds itself"
            ])
        #expect(
            try told(main(url: "https://a/b#c")) == [
                "destination.main.url has a fragment (#…), which is never sent"
            ])
        #expect(
            try told(main("tls.ca_file = \"/a\"", url: "http://localhost/")) == [
                "destination.main.tls has no effect: the url is plain http"
            ])
    }
}

@Suite("What check knows about NATS")
struct NATSCheckTests {
    private func problems(_ lines: String) -> [String] {
        let text = "[[destination]]\nname = \"a\"\ntype = \"nats\"\n\(lines)\n"
        do throws(ConfigurationError) {
            return try Settings.read([ConfigurationText(file: "t.toml", text: text)]).warnings.map(\.message)
        } catch {
            return error.problems.map(\.message)
        }
    }

    @Test("plain text is allowed to this machine only, or by setting; TLS to any machine")
    func plainText() {
        func found(_ url: String, _ more: String = "", _ nats: String = "") -> [String] {
            problems("url = \"\(url)\"\n\(more)\n[destination.nats]\nsubject = \"a\"\n\(nats)")
        }
        #expect(found("nats://127.0.0.1:4222") == [] && found("tls://b:4222") == [])
        #expect(found("nats://b").first?.contains("plain text") == true)
        #expect(found("nats://b", "allow_plain_http = true") == [])
        #expect(found("nats://b", "", "tls_first = true") == [])
        #expect(found("tls://a", "", "servers = [\"nats://b\"]").first?.contains("plain text") == true)
        #expect(found("https://a").first?.contains("needs nats:// or tls://") == true)
    }

    @Test("one kind of credentials is allowed, and no settings of other types")
    func conflicts() {
        let base = "url = \"tls://a\"\n"
        func found(_ more: String, _ nats: String) -> [String] {
            problems("\(base)\(more)\n[destination.nats]\n\(nats)")
        }
        #expect(found("token = \"file:/a\"", "subject = \"a\"") == [])
        #expect(found("", "subject = \"a\"\nnkey = \"file:/a\"") == [])
        #expect(
            found("token = \"x\"", "subject = \"a\"\nnkey = \"file:/a\"").first?.contains("keep one") == true)
        #expect(
            found("", "subject = \"a\"\nnkey = \"file:/a\"\ncredentials = \"file:/b\"").first?.contains(
                "keep one")
                == true)
        #expect(
            found("format = \"loki\"", "subject = \"a\"").first?.contains("is for type http only") == true)
        #expect(
            found("compression = \"zstd\"", "subject = \"a\"\nmessage = \"event\"").first?.contains(
                "whole batches")
                == true)
        #expect(found("", "") == ["destination.a has no nats.subject"])
        for bad in ["a b", "a..b", "a.*", ">", ".a"] {
            #expect(found("", "subject = \"\(bad)\"").first?.contains("must be words") == true, "\(bad)")
        }
    }
}

@Suite("What check knows about Kafka")
struct KafkaCheckTests {
    private func problems(_ kafka: String, _ more: String = "", after: String = "") -> [String] {
        let text =
            "[[destination]]\nname = \"a\"\ntype = \"kafka\"\n\(more)\n[destination.kafka]\n\(kafka)\n\(after)\n"
        do throws(ConfigurationError) {
            return try Settings.read([ConfigurationText(file: "t.toml", text: text)]).warnings.map(\.message)
        } catch {
            return error.problems.map(\.message)
        }
    }

    @Test("without TLS brokers must be on this machine, unless it is allowed by setting")
    func plainText() {
        let topic = "topic = \"events\"\n"
        #expect(problems(topic + "brokers = [\"kafka:9093\"]") == [])
        #expect(problems(topic + "brokers = [\"127.0.0.1:9092\", \"[::1]:9092\"]\ntls = false") == [])
        let far = topic + "brokers = [\"localhost:1\", \"kafka:9092\"]\ntls = false"
        #expect(problems(far).first?.contains("kafka is another machine") == true)
        #expect(problems(far, "allow_plain_http = true") == [])
    }

    @Test("missing and impossible settings are reported")
    func conflicts() {
        let good = "topic = \"events\"\nbrokers = [\"kafka:9093\"]"
        #expect(
            problems(good, "user = \"me\"\npassword = \"file:/a\"\nheaders = { source = \"shop\" }") == [])
        #expect(problems("").contains("destination.a has no kafka.topic"))
        #expect(problems("").contains("destination.a has no kafka.brokers"))
        for (more, words) in [
            ("url = \"https://a\"", "url is not for type kafka"),
            ("token = \"t\"", "is for type http or nats only"),
            ("proxy = \"http://p:1\"", "is for type http or s3 or nats or syslog only"),
            ("format = \"loki\"", "is for type http only"), ("user = \"me\"", "no password"),
        ] { #expect(problems(good, more).first?.contains(words) == true, "\(problems(good, more))") }
        #expect(problems(good + "\nmechanism = \"PLAIN\"").first?.contains("no user") == true)
        let pin =
            "[destination.tls]\npinned_keys = [\"sha256//47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\"]"
        #expect(problems(good, after: pin).first?.contains("librdkafka has no equivalent") == true)
        #expect(
            problems(good, after: "[destination.tls]\nminimum_version = \"1.3\"").first?.contains(
                "has no equivalent")
                == true)
        for bad in ["a b", "a/b", "..", ""] {
            #expect(
                problems("brokers = [\"k\"]\ntopic = \"\(bad)\"").first?.contains("topic") == true, "\(bad)")
        }
        for bad in ["kafka://a", "a,b", "a:x", "u@b", "a:70000"] {
            #expect(
                problems("topic = \"t\"\nbrokers = [\"\(bad)\"]").first?.contains("must be a broker") == true)
        }
        #expect(
            problems(good + "\noptions = { \"Linger\" = \"5\" }").first?.contains("names are properties")
                == true)
    }
}

@Suite("Configurations in the documentation")
struct DocumentedDestinationTests {
    @Test("each destination in docs/destinations.md is accepted as printed")
    func destinations() throws {
        let root = String(
            #filePath.prefix(#filePath.count - "/Tests/ConfigurationTests/DestinationTests.swift".count))
        let text = try readFile("\(root)/docs/destinations.md")
        var found = 0
        for (number, piece) in text.split(separator: "```toml\n", omittingEmptySubsequences: false)
            .enumerated()
        where number > 0 {
            let block = String(
                piece.prefix(upTo: piece.firstRange(of: "\n```")?.lowerBound ?? piece.endIndex))
            do throws(ConfigurationError) {
                let loaded = try Settings.read([
                    ConfigurationText(file: "destinations.md", text: block + "\n")
                ])
                #expect(loaded.warnings.isEmpty, "\(loaded.warnings.map(\.text))")
                found += loaded.settings.destinations.count
            } catch {
                Issue.record("\(error.problems.map(\.text))\n\(block)")
            }
        }
        #expect(found >= 9)
    }
}
