import EventLoops
import Model

@testable import Events
import Model

/// A line of a real logger, as its documentation or the program itself writes it, and what is found in it.
struct LoggerLine: Sendable {
    /// As docs/existing-logs.md calls it.
    let logger: String
    let line: String
    /// The line's own time, as RFC 3339.
    let time: String?
    let level: SeverityLevel?
    /// What had to be set.
    var settings: @Sendable (inout AppOptions) -> Void = { _ in }

    static let zone = "Europe/Berlin"

    /// All of them were logged in the same second, some of them in the zone above.
    static let all: [LoggerLine] = [
        LoggerLine(
            logger: "pino",
            line:
                #"{"level":30,"time":1795168800123,"pid":41,"hostname":"w1","reqId":"req-1","#
                + #""msg":"request completed"}"#,
            time: "2026-11-20T10:00:00.123Z", level: .info),
        LoggerLine(
            logger: "bunyan",
            line:
                #"{"name":"shop","hostname":"w1","pid":41,"level":50,"msg":"no stock","#
                + #""time":"2026-11-20T10:00:00.123Z","v":0}"#,
            time: "2026-11-20T10:00:00.123Z", level: .error, settings: { $0.kind = .log }),
        LoggerLine(
            logger: "winston",
            line: #"{"level":"warn","message":"slow query","timestamp":"2026-11-20T10:00:00.123Z"}"#,
            time: "2026-11-20T10:00:00.123Z", level: .warn),
        LoggerLine(
            logger: "zap",
            line: #"{"level":"error","ts":1795168800.1234567,"caller":"a/b.go:7","msg":"failed to fetch"}"#,
            time: "2026-11-20T10:00:00.1234567Z", level: .error),
        LoggerLine(
            logger: "zerolog", line: #"{"level":"debug","time":1795168800,"message":"cache miss"}"#,
            time: "2026-11-20T10:00:00Z", level: .debug),
        LoggerLine(
            logger: "slog",
            line:
                #"{"time":"2026-11-20T11:00:00.123456789+01:00","level":"INFO","msg":"listening","port":8080}"#,
            time: "2026-11-20T10:00:00.123456789Z", level: .info),
        LoggerLine(
            logger: "logrus",
            line: #"{"level":"fatal","msg":"no config","time":"2026-11-20T11:00:00+01:00"}"#,
            time: "2026-11-20T10:00:00Z", level: .fatal),
        LoggerLine(
            logger: "structlog",
            line:
                #"{"event":"order paid","order":17,"level":"info","timestamp":"2026-11-20T10:00:00.123456Z"}"#,
            time: "2026-11-20T10:00:00.123456Z", level: .info),
        LoggerLine(
            logger: "python-json-logger",
            line:
                #"{"asctime":"2026-11-20 11:00:00,123","levelname":"WARNING","name":"shop.cart","message":"empty"}"#,
            time: "2026-11-20T10:00:00.123Z", level: .warn, settings: { $0.kind = .log }),
        LoggerLine(
            logger: "loguru",
            line:
                #"{"text":"paid\n","record":{"level":{"icon":"i","name":"SUCCESS","no":25},"message":"paid","#
                + #""time":{"repr":"2026-11-20 11:00:00.123456+01:00","timestamp":1795168800.123456}}}"#,
            time: "2026-11-20T10:00:00.123456Z", level: .info),
        LoggerLine(
            logger: "logback, logstash encoder",
            line:
                #"{"@timestamp":"2026-11-20T11:00:00.123+01:00","@version":"1","message":"started","#
                + #""logger_name":"a.B","#
                + #""thread_name":"main","level":"INFO","level_value":20000}"#,
            time: "2026-11-20T10:00:00.123Z", level: .info),
        LoggerLine(
            logger: "log4j2, JSON template",
            line:
                #"{"@timestamp":"2026-11-20T10:00:00.123Z","ecs.version":"1.2.0","log.level":"ERROR","#
                + #""message":"no route"}"#,
            time: "2026-11-20T10:00:00.123Z", level: .error),
        LoggerLine(
            logger: "Elastic Common Schema",
            line:
                #"{"@timestamp":"2026-11-20T10:00:00.123Z","log":{"level":"warn","logger":"x"},"message":"retry"}"#,
            time: "2026-11-20T10:00:00.123Z", level: .warn),
        LoggerLine(
            logger: "Serilog, compact",
            line: #"{"@t":"2026-11-20T10:00:00.1234567Z","@mt":"Paid {Order}","@l":"Warning","Order":17}"#,
            time: "2026-11-20T10:00:00.1234567Z", level: .warn),
        LoggerLine(
            logger: ".NET, JSON console",
            line:
                #"{"Timestamp":"2026-11-20T10:00:00.123Z","EventId":7,"LogLevel":"Critical","Category":"A","#
                + #""Message":"down"}"#,
            time: "2026-11-20T10:00:00.123Z", level: .error),
        LoggerLine(
            logger: "monolog",
            line: #"{"message":"paid","context":{},"level":400,"level_name":"ERROR","channel":"app","#
                + #""datetime":"2026-11-20T11:00:00.123456+01:00","extra":{}}"#,
            time: "2026-11-20T10:00:00.123456Z", level: .error),
        LoggerLine(
            logger: "semantic_logger",
            line:
                #"{"host":"w1","application":"Shop","timestamp":"2026-11-20T10:00:00.123456Z","level":"info","#
                + #""level_index":2}"#,
            time: "2026-11-20T10:00:00.123456Z", level: .info),
        LoggerLine(
            logger: "tracing-subscriber",
            line:
                #"{"timestamp":"2026-11-20T10:00:00.123456Z","level":"TRACE","fields":{"message":"poll"},"#
                + #""target":"app"}"#,
            time: "2026-11-20T10:00:00.123456Z", level: .trace),
        LoggerLine(
            logger: "swift-log, JSON handler",
            line: #"{"timestamp":"2026-11-20T10:00:00Z","level":"notice","message":"ready","label":"app"}"#,
            time: "2026-11-20T10:00:00Z", level: .info),
        LoggerLine(
            logger: "nginx",
            line:
                #"{"time":"2026-11-20T11:00:00+01:00","status":200,"request":"GET / HTTP/1.1","request_time":0.002}"#,
            time: "2026-11-20T10:00:00Z", level: nil),
        LoggerLine(
            logger: "Caddy",
            line:
                #"{"level":"info","ts":1795168800.1234567,"logger":"http.log.access","msg":"handled request","#
                + #""status":200}"#,
            time: "2026-11-20T10:00:00.1234567Z", level: .info),
        LoggerLine(
            logger: "HAProxy",
            line:
                #"{"date":"2026-11-20T10:00:00.123+00:00","client":"192.0.2.1","status":503,"backend":"web"}"#,
            time: "2026-11-20T10:00:00.123Z", level: nil),
        LoggerLine(
            logger: "Traefik",
            line:
                #"{"ClientHost":"192.0.2.1","DownstreamStatus":200,"level":"info","msg":"","#
                + #""time":"2026-11-20T10:00:00Z"}"#,
            time: "2026-11-20T10:00:00Z", level: .info),
        LoggerLine(
            logger: "PostgreSQL",
            line:
                #"{"timestamp":"2026-11-20 11:00:00.123 CET","pid":9,"error_severity":"ERROR","#
                + #""message":"no relation"}"#,
            time: nil, level: .error),
        LoggerLine(
            logger: "PostgreSQL, log_timezone = UTC",
            line:
                #"{"timestamp":"2026-11-20 10:00:00.123 UTC","pid":9,"error_severity":"LOG","message":"checkpoint"}"#,
            time: "2026-11-20T10:00:00.123Z", level: .info),
        LoggerLine(
            logger: "MongoDB",
            line:
                #"{"t":{"$date":"2026-11-20T11:00:00.123+01:00"},"s":"W","c":"NETWORK","id":51800,"ctx":"conn1","#
                + #""msg":"slow"}"#,
            time: "2026-11-20T10:00:00.123Z", level: .warn),
        LoggerLine(
            logger: "Elasticsearch",
            line:
                #"{"@timestamp":"2026-11-20T10:00:00.123Z","log.level":"INFO","message":"started","#
                + #""service.name":"ES_ECS"}"#,
            time: "2026-11-20T10:00:00.123Z", level: .info),
        LoggerLine(
            logger: "etcd",
            line: #"{"level":"warn","ts":"2026-11-20T10:00:00.123456Z","caller":"a.go:1","msg":"slow disk"}"#,
            time: "2026-11-20T10:00:00.123456Z", level: .warn),
        LoggerLine(
            logger: "Kubernetes components",
            line: #"{"ts":1795168800123.456,"caller":"a.go:1","msg":"synced","v":0}"#,
            time: "2026-11-20T10:00:00.123456Z", level: nil),
        LoggerLine(
            logger: "Suricata",
            line:
                #"{"timestamp":"2026-11-20T11:00:00.123456+0100","flow_id":1,"event_type":"dns","src_ip":"192.0.2.1"}"#,
            time: "2026-11-20T10:00:00.123456Z", level: nil),
        LoggerLine(
            logger: "HashiCorp Vault, audit",
            line:
                #"{"time":"2026-11-20T10:00:00.123456789Z","type":"request","request":{"id":"a","operation":"read"}}"#,
            time: "2026-11-20T10:00:00.123456789Z", level: nil),
        LoggerLine(
            logger: "hclog",
            line: ##"{"@level":"error","@message":"down","@timestamp":"2026-11-20T10:00:00.123456Z"}"##,
            time: "2026-11-20T10:00:00.123456Z", level: .error),
        LoggerLine(
            logger: "GELF",
            line:
                #"{"version":"1.1","host":"w1","short_message":"no route","timestamp":1795168800.123,"level":3}"#,
            time: "2026-11-20T10:00:00.123Z", level: .error),
        LoggerLine(
            logger: "journalctl -o json",
            line:
                #"{"__REALTIME_TIMESTAMP":"1795168800123456","PRIORITY":"4","_SYSTEMD_UNIT":"a.service","#
                + #""MESSAGE":"slow"}"#,
            time: "2026-11-20T10:00:00.123456Z", level: .warn),
        LoggerLine(
            logger: "Docker, json-file",
            line: #"{"log":"listening\n","stream":"stdout","time":"2026-11-20T10:00:00.123456789Z"}"#,
            time: "2026-11-20T10:00:00.123456789Z", level: nil),
        LoggerLine(
            logger: "AWS Lambda",
            line: #"{"timestamp":"2026-11-20T10:00:00Z","level":"INFO","message":"x","requestId":"a"}"#,
            time: "2026-11-20T10:00:00Z", level: .info),
        LoggerLine(
            logger: "Google Cloud logging agents",
            line: #"{"severity":"ERROR","message":"x","time":"2026-11-20T10:00:00.123456789Z"}"#,
            time: "2026-11-20T10:00:00.123456789Z", level: .error),
        LoggerLine(
            logger: "Envoy",
            line: #"{"start_time":"2026-11-20T10:00:00.123Z","method":"GET","response_code":200}"#,
            time: "2026-11-20T10:00:00.123Z", level: nil),
        LoggerLine(
            logger: "slog, levels between",
            line: #"{"time":"2026-11-20T10:00:00.123456789Z","level":"DEBUG-4","msg":"step"}"#,
            time: "2026-11-20T10:00:00.123456789Z", level: .trace),
        LoggerLine(
            logger: "Falco",
            line:
                #"{"output":"a shell","priority":"Critical","rule":"shell","time":"2026-11-20T10:00:00.123456789Z"}"#,
            time: "2026-11-20T10:00:00.123456789Z", level: .error),
        LoggerLine(
            logger: "log4j2, JSON layout",
            line:
                #"{"timeMillis":1795168800123,"thread":"main","level":"WARN","loggerName":"a","message":"slow"}"#,
            time: "2026-11-20T10:00:00.123Z", level: .warn),
        LoggerLine(
            logger: "Serilog, JSON",
            line:
                #"{"Timestamp":"2026-11-20T10:00:00.1234567Z","Level":"Information","MessageTemplate":"Paid"}"#,
            time: "2026-11-20T10:00:00.1234567Z", level: .info),
        LoggerLine(
            logger: "Python, LogRecord",
            line: #"{"created":1795168800.123,"levelno":40,"name":"shop","msg":"down"}"#,
            time: "2026-11-20T10:00:00.123Z", level: .error, settings: { $0.kind = .log }),
        LoggerLine(
            logger: "Kubernetes, audit",
            line:
                #"{"kind":"Event","stage":"ResponseComplete","stageTimestamp":"2026-11-20T10:00:00.123456Z"}"#,
            time: "2026-11-20T10:00:00.123456Z", level: nil),
        LoggerLine(
            logger: "AWS CloudTrail",
            line: #"{"eventVersion":"1.08","eventTime":"2026-11-20T10:00:00Z","eventName":"GetObject"}"#,
            time: "2026-11-20T10:00:00Z", level: nil),
        LoggerLine(
            logger: "osquery",
            line: #"{"name":"pack","hostIdentifier":"w1","unixTime":1795168800,"action":"added"}"#,
            time: "2026-11-20T10:00:00Z", level: nil, settings: { $0.kind = .log }),
        LoggerLine(
            logger: "nginx, $msec",
            line: #"{"msec":"1795168800.123","status":"200","request":"GET / HTTP/1.1"}"#,
            time: "2026-11-20T10:00:00.123Z", level: nil),
        LoggerLine(
            logger: "nginx, $time_iso8601",
            line: #"{"time_iso8601":"2026-11-20T11:00:00+01:00","status":"200","request":"GET / HTTP/1.1"}"#,
            time: "2026-11-20T10:00:00Z", level: nil),
        LoggerLine(
            logger: "a job, started_at",
            line: #"{"started_at":"2026-11-20T10:00:00Z","sev":"warning","job":"mail"}"#,
            time: "2026-11-20T10:00:00Z", level: .warn),
        LoggerLine(
            logger: "a job, date_time",
            line: #"{"date_time":"2026-11-20T10:00:00Z","label":"error","job":"mail"}"#,
            time: "2026-11-20T10:00:00Z", level: .error),
        LoggerLine(
            logger: "a feed, published",
            line: #"{"published":"2026-11-20T10:00:00Z","actor":"ann","verb":"post"}"#,
            time: "2026-11-20T10:00:00Z", level: nil),
        LoggerLine(
            logger: "Quarkus, Keycloak",
            line:
                #"{"timestamp":"2026-11-20T11:00:00.123+01:00","sequence":1,"loggerName":"a.B","level":"INFO"}"#,
            time: "2026-11-20T10:00:00.123Z", level: .info),
        LoggerLine(
            logger: "Rails, lograge",
            line:
                #"{"method":"GET","path":"/","status":200,"duration":12.3,"time":"2026-11-20T10:00:00.123Z"}"#,
            time: "2026-11-20T10:00:00.123Z", level: nil),
        LoggerLine(
            logger: "Grafana",
            line: #"{"logger":"http","t":"2026-11-20T10:00:00.123456789Z","level":"warn","msg":"slow"}"#,
            time: "2026-11-20T10:00:00.123456789Z", level: .warn),
        LoggerLine(
            logger: "Prometheus",
            line: #"{"time":"2026-11-20T10:00:00.123Z","level":"WARN","source":"main.go:1","msg":"slow"}"#,
            time: "2026-11-20T10:00:00.123Z", level: .warn),
        LoggerLine(
            logger: "Kong, file-log",
            line: #"{"started_at":1795168800123,"response":{"status":200},"latencies":{"request":3}}"#,
            time: "2026-11-20T10:00:00.123Z", level: nil),
        LoggerLine(
            logger: "Zeek",
            line: #"{"ts":1795168800.123456,"uid":"C1","id.orig_h":"192.0.2.1","proto":"tcp"}"#,
            time: "2026-11-20T10:00:00.123456Z", level: nil),
        LoggerLine(
            logger: "Fluent Bit",
            line: #"{"date":1795168800.123456,"log":"ready"}"#,
            time: "2026-11-20T10:00:00.123456Z", level: nil),
        LoggerLine(
            logger: "Vector",
            line: #"{"host":"w1","message":"ready","timestamp":"2026-11-20T10:00:00.123456789Z"}"#,
            time: "2026-11-20T10:00:00.123456789Z", level: nil),
        LoggerLine(
            logger: "AWS WAF",
            line: #"{"timestamp":1795168800123,"formatVersion":1,"action":"BLOCK"}"#,
            time: "2026-11-20T10:00:00.123Z", level: nil),
        LoggerLine(
            logger: "Google Cloud, LogEntry",
            line: #"{"textPayload":"slow","severity":"WARNING","timestamp":"2026-11-20T10:00:00.123456Z"}"#,
            time: "2026-11-20T10:00:00.123456Z", level: .warn),
        LoggerLine(
            logger: "Azure, activity log",
            line: #"{"time":"2026-11-20T10:00:00.1234567Z","operationName":"write","level":"Warning"}"#,
            time: "2026-11-20T10:00:00.1234567Z", level: .warn),
        LoggerLine(
            logger: "Auth0",
            line: #"{"date":"2026-11-20T10:00:00.123Z","type":"s","client_id":"a","ip":"192.0.2.1"}"#,
            time: "2026-11-20T10:00:00.123Z", level: nil),
        LoggerLine(
            logger: "Okta, system log",
            line:
                #"{"published":"2026-11-20T10:00:00.123Z","eventType":"user.session.start","severity":"WARN"}"#,
            time: "2026-11-20T10:00:00.123Z", level: .warn),
        LoggerLine(
            logger: "GitHub, audit log",
            line: #"{"@timestamp":1795168800123,"action":"repo.create","actor":"ann"}"#,
            time: "2026-11-20T10:00:00.123Z", level: nil),
        LoggerLine(
            logger: "GitLab",
            line: #"{"method":"GET","status":200,"severity":"INFO","time":"2026-11-20T10:00:00.123Z"}"#,
            time: "2026-11-20T10:00:00.123Z", level: .info),
        LoggerLine(
            logger: "Sidekiq",
            line: #"{"ts":"2026-11-20T10:00:00.123Z","pid":9,"tid":"a","lvl":"WARN","msg":"retry"}"#,
            time: "2026-11-20T10:00:00.123Z", level: .warn),
        LoggerLine(
            logger: "Elixir, logger_json",
            line: #"{"message":"down","time":"2026-11-20T10:00:00.123Z","severity":"error","metadata":{}}"#,
            time: "2026-11-20T10:00:00.123Z", level: .error),
        LoggerLine(
            logger: "Rust, slog-json",
            line: #"{"msg":"slow","level":"WARN","ts":"2026-11-20T11:00:00.123456789+01:00"}"#,
            time: "2026-11-20T10:00:00.123456789Z", level: .warn),
        LoggerLine(
            logger: "NLog",
            line: #"{"time":"2026-11-20 11:00:00.1234","level":"ERROR","logger":"A","message":"down"}"#,
            time: "2026-11-20T10:00:00.1234Z", level: .error),
        LoggerLine(
            logger: "RabbitMQ",
            line:
                #"{"time":"2026-11-20 11:00:00.123456+01:00","level":"warning","msg":"alarm","pid":"<0.1.0>"}"#,
            time: "2026-11-20T10:00:00.123456Z", level: .warn),
        LoggerLine(
            logger: "ClickHouse",
            line: #"{"date_time":"1795168800.123456","thread_id":"9","level":"Warning","message":"slow"}"#,
            time: "2026-11-20T10:00:00.123456Z", level: .warn),
        LoggerLine(
            logger: "MinIO",
            line:
                #"{"level":"ERROR","time":"2026-11-20T10:00:00.123456789Z","errKind":"ALL","message":"down"}"#,
            time: "2026-11-20T10:00:00.123456789Z", level: .error),
        LoggerLine(
            logger: "CockroachDB",
            line: #"{"channel":"DEV","timestamp":"1795168800.123456789","severity":"INFO","message":"up"}"#,
            time: "2026-11-20T10:00:00.123456789Z", level: .info),
        LoggerLine(
            logger: "Wazuh",
            line: #"{"timestamp":"2026-11-20T10:00:00.123+0000","rule":{"level":3},"agent":{"id":"001"}}"#,
            time: "2026-11-20T10:00:00.123Z", level: nil),
    ]
}
