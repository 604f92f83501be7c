/// The built-in formats: a row each. `docs/text-formats.md` is generated from the rows, and a test parses
/// each sample and compares the result with the row's JSON, so documentation and code cannot differ.
public enum FormatTable {
    /// A built-in format.
    public struct Row: Sendable {
        /// Name for `parse`.
        public let name: String
        /// The programs that write the format, for the documentation.
        public let origin: String
        /// Records as programs write them, and the JSON that each becomes. All addresses and names are of
        /// documentation ranges (RFC 5737, RFC 3849, RFC 2606).
        public let samples: [(text: String, json: String)]

        /// How records of the format are read.
        let reader: Reader
    }

    /// The two ways of reading a built-in format.
    enum Reader: Sendable {
        /// Text for `TemplateCompiler`, compiled when a format is made.
        case template(String)
        /// A reader in `Formats/`.
        case builtIn(BuiltInFormat)
    }

    /// All values of `parse` that are not templates, with `csv`, `tsv` and `json_in`, which have no row
    /// because they need `columns`.
    public static var names: [String] { rows.map(\.name) + ["csv", "tsv", "json_in"] }

    /// The row of a name, or nil. Linear: called once for each format that is compiled.
    static func row(named name: String) -> Row? { rows.first { $0.name == name } }

    /// The end of access logs. `common` has no referer and agent, and only nginx's packaged `main` has the
    /// third field: `?` marks a field after which the record may end.
    private static let accessEnd = #" "${referer}" "${agent:text?}" "${forwarded_for}""#

    /// All rows, in the order of the documentation. Among equally good guesses the first row wins, so the
    /// order also decides between nginx and Apache, whose lines look alike.
    public static let rows: [Row] = [
        Row(
            name: "nginx", origin: "nginx, access log: `combined`, and `main` of its own packages",
            samples: [
                (
                    #"192.0.2.7 - alice [29/Nov/2026:10:00:00 +0100] "GET /cart HTTP/1.1" 200 1537 "-" "curl/8.5.0""#,
                    #"{"client":"192.0.2.7","user":"alice","timestamp":"2026-11-29T09:00:00.000Z","method":"GET","path":"/cart","protocol":"HTTP/1.1","status":200,"size":1537,"agent":"curl/8.5.0"}"#
                ),
                (
                    #"2001:db8::7 - - [29/Nov/2026:10:00:01 +0000] "\x16\x03\x01" 400 150 "-" "-""#,
                    #"{"client":"2001:db8::7","timestamp":"2026-11-29T10:00:01.000Z","request":"\\x16\\x03\\x01","status":400,"size":150}"#
                ),
                (
                    #"192.0.2.7 - - [29/Nov/2026:10:00:02 +0000] "-" 408 0 "-" "say \"hi\"" "203.0.113.9""#,
                    #"{"client":"192.0.2.7","timestamp":"2026-11-29T10:00:02.000Z","status":408,"size":0,"agent":"say \"hi\"","forwarded_for":"203.0.113.9"}"#
                ),
            ],
            reader: .template(
                #"${client} - ${user} [${timestamp:time}] "${request:request}" ${status:number} ${size:number?}"#
                    + accessEnd)),
        Row(
            name: "apache", origin: "Apache httpd, access log: `combined` and `common`",
            samples: [
                (
                    #"192.0.2.8 - bob [29/Nov/2026:10:00:00 -0500] "GET /a b HTTP/1.0" 301 - "https://shop.example/" "curl/8.5.0""#,
                    #"{"client":"192.0.2.8","user":"bob","timestamp":"2026-11-29T15:00:00.000Z","method":"GET","path":"/a b","protocol":"HTTP/1.0","status":301,"referer":"https://shop.example/","agent":"curl/8.5.0"}"#
                ),
                (
                    #"192.0.2.8 - - [29/Nov/2026:10:00:01 +0000] "POST /pay HTTP/1.1" 204 0"#,
                    #"{"client":"192.0.2.8","timestamp":"2026-11-29T10:00:01.000Z","method":"POST","path":"/pay","protocol":"HTTP/1.1","status":204,"size":0}"#
                ),
                (
                    #"192.0.2.8 - - [29/Nov/2026:10:00:02 +0000] "GET / HTTP/1.1" 200 5 "-" "a \"b\" c""#,
                    #"{"client":"192.0.2.8","timestamp":"2026-11-29T10:00:02.000Z","method":"GET","path":"/","protocol":"HTTP/1.1","status":200,"size":5,"agent":"a \"b\" c"}"#
                ),
            ],
            reader: .template(
                #"${client} ${ident} ${user} [${timestamp:time}] "${request:request}" ${status:number} ${size:number?}"#
                    + accessEnd)),
        Row(
            name: "apache_vhost", origin: "Apache httpd, access log: Debian's `vhost_combined`",
            samples: [
                (
                    #"shop.example:443 192.0.2.9 - - [29/Nov/2026:10:00:00 +0000] "GET / HTTP/2.0" 200 19 "-" "-""#,
                    #"{"vhost":"shop.example","port":443,"client":"192.0.2.9","timestamp":"2026-11-29T10:00:00.000Z","method":"GET","path":"/","protocol":"HTTP/2.0","status":200,"size":19}"#
                )
            ],
            reader: .template(
                #"${vhost:host_port} ${client} ${ident} ${user} [${timestamp:time}] "${request:request}" ${status:number} "#
                    + "${size:number?}" + accessEnd)),
        Row(
            name: "nginx_error", origin: "nginx, error log",
            samples: [
                (
                    #"2026/11/29 10:00:00 [error] 71#72: *5 open() "/srv/x" failed (2: No such file), client: 192.0.2.7, server: shop.example, request: "GET /x HTTP/1.1", host: "shop.example""#,
                    #"{"timestamp":"2026-11-29T10:00:00.000Z","level":"error","pid":71,"tid":72,"cid":5,"message":"open() \"/srv/x\" failed (2: No such file)","client":"192.0.2.7","server":"shop.example","request":"GET /x HTTP/1.1","host":"shop.example"}"#
                ),
                (
                    #"2026/11/29 10:00:01 [notice] 71#71: signal process started"#,
                    #"{"timestamp":"2026-11-29T10:00:01.000Z","level":"notice","pid":71,"tid":71,"message":"signal process started"}"#
                ),
                (
                    "2026/11/29 10:00:02 [error] 71#71: *6 FastCGI sent in stderr: \"PHP message: PHP Fatal error:  no\nStack trace:\n#0 {main}\" while reading response header from upstream, client: 192.0.2.7, server: _",
                    #"{"timestamp":"2026-11-29T10:00:02.000Z","level":"error","pid":71,"tid":71,"cid":6,"message":"FastCGI sent in stderr: \"PHP message: PHP Fatal error:  no\nStack trace:\n#0 {main}\" while reading response header from upstream","client":"192.0.2.7","server":"_"}"#
                ),
            ], reader: .builtIn(.nginxError)),
        Row(
            name: "apache_error", origin: "Apache httpd, error log",
            samples: [
                (
                    "[Sun Nov 29 10:00:00.123456 2026] [core:error] [pid 71:tid 140] [client 192.0.2.8:4849] AH00128: File does not exist",
                    #"{"timestamp":"2026-11-29T10:00:00.123456Z","module":"core","level":"error","pid":71,"tid":140,"client":"192.0.2.8","port":4849,"message":"AH00128: File does not exist"}"#
                )
            ], reader: .builtIn(.apacheError)),
        Row(
            name: "syslog",
            origin:
                "rsyslog, syslog-ng and journalctl: RFC 3164, RFC 5424, and RFC 3339 times as in Debian 12",
            samples: [
                (
                    "2026-11-29T11:00:00.5+01:00 web-1 sshd[573]: Failed password",
                    #"{"timestamp":"2026-11-29T10:00:00.500Z","host":"web-1","program":"sshd","pid":573,"message":"Failed password"}"#
                ),
                (
                    "Nov 29 10:00:00 web-1 kernel: [    1.5] eth0: up",
                    #"{"timestamp":"2026-11-29T10:00:00.000Z","host":"web-1","program":"kernel","message":"[    1.5] eth0: up"}"#
                ),
                (
                    #"<165>1 2026-11-29T10:00:00Z web-1 shop 77 ID47 [ex@32473 iut="3"] paid"#,
                    #"{"facility":20,"PRIORITY":5,"timestamp":"2026-11-29T10:00:00.000Z","host":"web-1","program":"shop","pid":77,"msgid":"ID47","structured_data":{"ex@32473":{"iut":"3"}},"message":"paid"}"#
                ),
                (
                    "Sun 2026-11-29 10:00:00 UTC web-1 sshd[573]: Failed password",
                    #"{"timestamp":"2026-11-29T10:00:00.000Z","host":"web-1","program":"sshd","pid":573,"message":"Failed password"}"#
                ),
            ], reader: .builtIn(.syslog)),
        Row(
            name: "klog", origin: "Kubernetes components and other users of klog or glog",
            samples: [
                (
                    "W1129 10:00:00.600000    9079 controller.go:77] Unable to sync pod",
                    #"{"severity":"warn","timestamp":"2026-11-29T10:00:00.600Z","thread":9079,"file":"controller.go","line":77,"message":"Unable to sync pod"}"#
                )
            ], reader: .builtIn(.klog)),
        Row(
            name: "postgresql", origin: "PostgreSQL with Debian's prefix `%m [%p] %q%u@%d `",
            samples: [
                (
                    "2026-11-29 10:00:00.144 UTC [31806] alice@shop STATEMENT:  INSERT INTO t\n\t  VALUES (7)",
                    #"{"timestamp":"2026-11-29T10:00:00.144Z","pid":31806,"user":"alice","database":"shop","level":"STATEMENT","message":"INSERT INTO t\n\t  VALUES (7)"}"#
                ),
                (
                    "2026-11-29 10:00:01.002 UTC [77] LOG:  checkpoint starting: time",
                    #"{"timestamp":"2026-11-29T10:00:01.002Z","pid":77,"level":"LOG","message":"checkpoint starting: time"}"#
                ),
            ], reader: .template("%m [%p] %q%u@%d ")),
        Row(
            name: "mysql_slow", origin: "MySQL, MariaDB and Percona Server, slow query log",
            samples: [
                (
                    "# Time: 2026-11-29T10:00:00.562000Z\n# User@Host: shop[shop] @ web-1 [10.0.0.9]  Id:   510\n# Query_time: 13.694022  Lock_time: 0.019665 Rows_sent: 1  Rows_examined: 4711\nuse shop;\nSET timestamp=1795946400;\nUPDATE t\nSET a = 1;",
                    #"{"timestamp":"2026-11-29T10:00:00.562Z","user":"shop","host":"web-1","client":"10.0.0.9","thread":510,"query_time":13.694022,"lock_time":0.019665,"rows_sent":1,"rows_examined":4711,"database":"shop","message":"UPDATE t\nSET a = 1;"}"#
                )
            ], reader: .builtIn(.mysqlSlow)),
        Row(
            name: "mysql_error", origin: "MySQL and MariaDB, error log",
            samples: [
                (
                    "2026-11-29T10:00:00.123456Z 0 [Warning] [MY-010068] [Server] CA certificate is self signed.",
                    #"{"timestamp":"2026-11-29T10:00:00.123456Z","thread":0,"level":"Warning","code":"MY-010068","subsystem":"Server","message":"CA certificate is self signed."}"#
                ),
                (
                    "2026-11-29 10:00:01 0 [Note] InnoDB: Using liburing",
                    #"{"timestamp":"2026-11-29T10:00:01.000Z","thread":0,"level":"Note","message":"InnoDB: Using liburing"}"#
                ),
            ], reader: .builtIn(.mysqlError)),
        Row(
            name: "redis", origin: "Redis and Valkey",
            samples: [
                (
                    "4531:M 29 Nov 2026 10:00:00.495 # Server initialized",
                    #"{"pid":4531,"role":"master","timestamp":"2026-11-29T10:00:00.495Z","severity":"warn","message":"Server initialized"}"#
                )
            ], reader: .builtIn(.redis)),
        Row(
            name: "haproxy", origin: "HAProxy, HTTP and TCP logs, behind a syslog header or without one",
            samples: [
                (
                    #"10.0.1.2:33317 [29/Nov/2026:10:00:00.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 "GET / HTTP/1.1""#,
                    #"{"client":"10.0.1.2","port":33317,"timestamp":"2026-11-29T10:00:00.655Z","frontend":"http-in","backend":"static","server":"srv1","time_request":10,"time_queue":0,"time_connect":30,"time_response":69,"time_total":109,"status":200,"size":2750,"termination_state":"----","connections_process":1,"connections_frontend":1,"connections_backend":1,"connections_server":1,"retries":0,"queue_server":0,"queue_backend":0,"method":"GET","path":"/","protocol":"HTTP/1.1"}"#
                ),
                (
                    #"10.0.1.2:33318 [29/Nov/2026:10:00:01.655] https-in static/srv1 10/0/30/69/109 200 2750 SID=a81f SID=c27e ---- 1/1/1/1/0 0/0 "GET /login HTTP/2.0" 0/0000000000000000/0/0/0 shop.example/TLSv1.3/TLS_AES_256_GCM_SHA384"#,
                    #"{"client":"10.0.1.2","port":33318,"timestamp":"2026-11-29T10:00:01.655Z","frontend":"https-in","backend":"static","server":"srv1","time_request":10,"time_queue":0,"time_connect":30,"time_response":69,"time_total":109,"status":200,"size":2750,"request_cookie":"SID=a81f","response_cookie":"SID=c27e","termination_state":"----","connections_process":1,"connections_frontend":1,"connections_backend":1,"connections_server":1,"retries":0,"queue_server":0,"queue_backend":0,"method":"GET","path":"/login","protocol":"HTTP/2.0","tls_errors":"0/0000000000000000/0/0/0","sni":"shop.example","tls_version":"TLSv1.3","tls_cipher":"TLS_AES_256_GCM_SHA384"}"#
                ),
            ], reader: .builtIn(.haproxy)),
        Row(
            name: "python",
            origin: "Python's logging in its usual layouts, gunicorn, uvicorn, celery, Flask and Airflow",
            samples: [
                (
                    "2026-11-29 10:00:00,444 CRITICAL shop.cart: order 1\nTraceback (most recent call last):\nKeyError: 7",
                    #"{"timestamp":"2026-11-29T10:00:00.444Z","level":"CRITICAL","logger":"shop.cart","message":"order 1\nTraceback (most recent call last):\nKeyError: 7"}"#
                ),
                (
                    "2026-11-29 10:00:00,444 - shop.cart - INFO - order 2",
                    #"{"timestamp":"2026-11-29T10:00:00.444Z","logger":"shop.cart","level":"INFO","message":"order 2"}"#
                ),
                ("WARNING:root:low", #"{"level":"WARNING","logger":"root","message":"low"}"#),
            ], reader: .builtIn(.python)),
        Row(
            name: "java",
            origin:
                "Java with logback, log4j2, java.util.logging, Spring Boot, Quarkus, WildFly, Tomcat, "
                + "Kafka or Elasticsearch: default layouts",
            samples: [
                (
                    "2026-11-29 10:00:00,413 ERROR [main] shop.Cart - no stock\njava.io.IOException: closed\n\tat shop.Db.read(Db.java:9)",
                    #"{"timestamp":"2026-11-29T10:00:00.413Z","level":"ERROR","thread":"main","logger":"shop.Cart","message":"no stock\njava.io.IOException: closed\n\tat shop.Db.read(Db.java:9)"}"#
                ),
                (
                    "2026-11-29T10:00:01.005Z  INFO 4711 --- [           main] o.s.boot.App   : Started",
                    #"{"timestamp":"2026-11-29T10:00:01.005Z","level":"INFO","pid":4711,"thread":"main","logger":"o.s.boot.App","message":"Started"}"#
                ),
                (
                    "Nov 29, 2026 1:00:00 PM com.example.shop.Cart pay\nSEVERE: no stock",
                    #"{"timestamp":"2026-11-29T13:00:00.000Z","level":"SEVERE","logger":"com.example.shop.Cart","method":"pay","message":"no stock"}"#
                ),
            ], reader: .builtIn(.java)),
        Row(
            name: "go", origin: "Go's packages log and log/slog, and panics",
            samples: [
                (
                    "2026/11/29 10:00:00 listening",
                    #"{"timestamp":"2026-11-29T10:00:00.000Z","message":"listening"}"#
                ),
                (
                    "panic: index out of range\n\ngoroutine 1 [running]:",
                    #"{"severity":"fatal","message":"panic: index out of range\n\ngoroutine 1 [running]:"}"#
                ),
            ], reader: .builtIn(.go)),
        Row(
            name: "auditd", origin: "Linux's audit daemon",
            samples: [
                (
                    #"type=SYSCALL msg=audit(1795946400.243:24287): arch=c000003e success=no exit=-13 comm="cat""#,
                    #"{"type":"SYSCALL","timestamp":"2026-11-29T10:00:00.243Z","serial":24287,"arch":"c000003e","success":"no","exit":"-13","comm":"cat"}"#
                )
            ], reader: .builtIn(.auditd)),
        Row(
            name: "logfmt", origin: "Programs that write `key=value`",
            samples: [
                (
                    #"ts=2026-11-29T10:00:00Z level=warn msg="said \"hi\"" dur=12 empty= flag"#,
                    #"{"ts":"2026-11-29T10:00:00Z","level":"warn","msg":"said \"hi\"","dur":"12","empty":"","flag":true}"#
                )
            ], reader: .builtIn(.logfmt)),
    ]
}
