import EventLoops
import Model
import TestKit
import Testing

@testable import TextFormats
@testable import TimeZones

@Suite("Text formats")
struct FormatTests {
    /// The files of the corpus, each with its format.
    static let files: [(file: String, format: String)] = [
        ("nginx-combined", "nginx"), ("nginx-error", "nginx_error"), ("apache-combined", "apache"),
        ("apache-vhost-combined", "apache_vhost"), ("apache-error", "apache_error"), ("auth", "syslog"),
        ("kern", "syslog"), ("syslog-rfc3164", "syslog"), ("syslog-rfc5424", "syslog"),
        ("syslog-debian12-iso", "syslog"), ("klog", "klog"), ("logfmt", "logfmt"), ("csv", "csv"),
        ("postgresql-stderr", "postgresql"), ("mysql-slow", "mysql_slow"), ("redis", "redis"),
        ("java-log4j-stack", "java"), ("python-traceback", "python"), ("go-panic", "go"),
    ]

    @Test("each record of the corpus becomes the JSON beside it", arguments: files)
    func corpus(file: String, name: String) throws {
        let format = try format(name, columns: name == "csv" ? ["time", "id", "note", "code"] : [])
        let found = records(try Fixture.bytes("\(file).log"), format)
        let wanted = try Fixture.bytes("\(file).jsonl").split(separator: 0x0A).map {
            members(try JSONValue(parsing: Array($0)))
        }
        try #require(found.count == wanted.count)
        for (record, wanted) in zip(found, wanted) {
            #expect(
                wanted["lines"] == [.integer(record.lines.lowerBound), .integer(record.lines.upperBound)],
                "\(file)")
            var members = members(try parsed(format, record.bytes).get())
            var expected = TextFormatsTests.members(wanted["record"])
            // The pass over the object finds time and severity in members; here they are only where the format says them.
            for name in ["timestamp", "severity"] where members[name] == nil { expected[name] = nil }
            members["lines"] = nil
            #expect(members == expected, "\(file) \(record.lines)")
        }
    }

    @Test(
        "each sample of the table becomes the JSON beside it, and begins a record",
        arguments: FormatTable.rows.indices)
    func samples(row: Int) throws {
        let row = FormatTable.rows[row]
        let format = try format(row.name)
        #expect(!row.samples.isEmpty)
        for sample in row.samples {
            let object = try parsed(format, Array(sample.text.utf8)).get()
            #expect(object == (try JSONValue(parsing: sample.json)), "\(row.name): \(sample.text)")
            #expect(records(Array("\(sample.text)\n\(sample.text)\n".utf8), format).count == 2)
        }
    }

    @Test("docs/text-formats.md is generated from the table")
    func documentation() throws {
        let difference = try GoldenFile("docs/text-formats.md").difference(from: FormatTable.documentation)
        #expect(difference == nil, "run scripts/generate")
    }

    @Test("the format of each corpus file is guessed", arguments: files.filter { $0.format != "csv" })
    func guesses(file: String, name: String) throws {
        let guess = try Fixture.bytes("\(file).log").withUnsafeBytes { FormatGuess.of($0) }
        // What nginx and Apache write is the same where the latter knows no ident.
        #expect(guess?.name == (name == "apache" ? "nginx" : name))
        #expect(guess?.matched == guess?.records)
    }

    @Test(
        "a format that finds the time is guessed before logfmt, which finds pairs in nearly every line",
        arguments: [
            ("auditd", #"type=CWD msg=audit(1795946400.243:7): cwd="/home" a=1 b=2 c=3"#),
            ("syslog", "Nov 29 10:00:00 imap-login: Info: Login: user=<bob>, method=PLAIN, rip=192.0.2.7"),
            ("mysql_error", "2026-11-29T10:00:00Z UTC - mysqld got signal 11 ;\nMost likely, it is a bug."),
        ])
    func guessByTime(name: String, lines: String) {
        let guess = Array("\(lines)\n\(lines)\n".utf8).withUnsafeBytes { FormatGuess.of($0) }
        #expect(guess?.name == name)
    }

    @Test(
        "lines that begin no record of a format are not guessed to be of it",
        arguments: [
            "2026-11-29 10:00:00 status installed libc6:amd64 2.36\n2026-11-29 10:00:01 configure bash\n",
            "2026-11-29T10:00:00Z\t1\tpaid\n2026-11-29T10:00:01Z\t2\tpaid\n",
        ])
    func noGuess(text: String) {
        #expect(Array(text.utf8).withUnsafeBytes { FormatGuess.of($0) } == nil)
    }

    @Test("a line that does not match a format is refused with the position")
    func failures() throws {
        let nginx = try format("nginx")
        #expect(try failure(nginx, "hello") == TextFailure(column: 1, expected: " - "))
        let cut = try failure(nginx, #"192.0.2.7 - - [29/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1 200 5"#)
        #expect(cut == TextFailure(column: 65, expected: "\""))
        let time = try failure(nginx, #"192.0.2.7 - - [yesterday] "GET / HTTP/1.1" 200 5 "-" "-""#)
        #expect(time == TextFailure(column: 16, expected: "a time"))
        #expect(
            try failure(try format("logfmt"), "plain words") == TextFailure(column: 12, expected: "key=value")
        )
        #expect(try failure(try format("klog"), "nothing")?.column == 1)
    }

    @Test("truncated and altered samples make a format fail with a failure, never a crash")
    func hostile() throws {
        var random = RepeatableRandom(seed: 54)
        for row in FormatTable.rows {
            let format = try format(row.name)
            for sample in row.samples {
                let bytes = Array(sample.text.utf8)
                for length in 0...bytes.count { _ = try parsed(format, bytes[..<length]) }
                for _ in 0..<200 {
                    var changed = bytes
                    changed[Int.random(in: 0..<changed.count, using: &random)] = UInt8.random(
                        in: 0...255, using: &random)
                    _ = try parsed(format, changed)
                    _ = records(changed + [0x0A], format)
                }
            }
        }
    }

    @Test("the fast way and the general one read plain text alike, whatever else is in a line or behind it")
    func plainText() throws {
        var random = SplitMix64(seed: 54)
        let rows: [(TextFormat, [String])] = try FormatTable.rows.filter { $0.name != "csv" }.map { row in
            (try format(row.name), row.samples.map(\.text))
        }
        let own = try format(
            "a$one-$two:$three \"$four\" ${five:number};; $six\"$seven", numbers: ["three", "six"])
        let bytes = Array(" \"\\=-]:;07.eG[\n\r\t\u{1}é".utf8) + [0x80, 0xFF]
        for (format, samples) in rows + [(own, ["a1-2:3 \"4\" 5;; 6\"7", "a-b-:-1.5 \"-\" 07;; -\""])] {
            for sample in samples {
                for _ in 0..<200 {
                    var line = Array(sample.utf8)
                    for _ in 0..<Int.random(in: 1...3, using: &random) {
                        let index = Int.random(in: 0..<line.count, using: &random)
                        let count = Int.random(in: 0...min(2, line.count - index - 1), using: &random)
                        line.replaceSubrange(
                            index..<index + count, with: bytes.shuffled(using: &random).prefix(2 - count))
                    }
                    let tail = (0..<Int.random(in: 16...20, using: &random)).map { _ in
                        bytes.randomElement(using: &random) ?? 0
                    }
                    let general = written(format, line, tail: [])
                    let fast = written(format, line, tail: tail)
                    #expect(fast == general, "\(String(decoding: line, as: UTF8.self))")
                }
            }
        }
    }

    @Test("a usual request, field and pair are read in the fast way")
    func isPlain() throws {
        let text = Array("GET /cart?page=9 HTTP/1.1\" 200 - a=b c=\"d e\"                ".utf8)
        text.withUnsafeBytes { raw in
            let bytes = Bytes(raw)
            var writer = RecordWriter()
            writer.begin(readableTo: bytes.end)
            let end = bytes.end - 16
            #expect(writer.json.loads(upTo: end) && !writer.json.loads(upTo: end + 1))
            let quote = RequestLine.writePlain(
                from: bytes.start, to: UInt8(ascii: "\""), before: end, into: &writer)
            #expect(quote == bytes.start + 25)
            let name = Array("\"s\":".utf8) + [UInt8](repeating: 0, count: 32)
            name.withUnsafeBytes { name in
                let field = writer.json.plainField(
                    Bytes(UnsafeRawBufferPointer(rebasing: name[..<4])), isNumber: true,
                    from: bytes.start + 27, to: UInt8(ascii: " "), before: end)
                #expect(field == bytes.start + 30)
            }
            let pair = writer.plainPair(from: bytes.start + 33, before: end)
            #expect(pair == bytes.start + 36)
            #expect(writer.plainPair(from: bytes.start + 37, before: end) == end)
            writer.end()
            #expect(
                String(decoding: writer.bytes, as: UTF8.self)
                    == #"{"method":"GET","path":"/cart?page=9","protocol":"HTTP/1.1","s":200,"a":"b","c":"d e"}"#
                    + "\n")
        }
    }

    @Test("bytes that are not UTF-8 become U+FFFD, and control characters escapes")
    func bytes() throws {
        let go = try format("go")
        let line =
            Array("2026/11/29 10:00:00 a".utf8) + [0xFF, 0xC3, 0x28, 0x01, 0x09, 0xE2, 0x82] + Array("é".utf8)
        let object = members(try parsed(go, line).get())
        #expect(object["message"] == "a\u{FFFD}\u{FFFD}(\u{1}\t\u{FFFD}é")
    }

    @Test("a record of 1 MB is read in linear time")
    func long() throws {
        let text = String(repeating: "\"\\", count: 500_000)
        #expect(try object(try format("go"), "2026/11/29 10:00:00 \(text)")["message"] == .string(text))
        #expect(try failure(try format("logfmt"), "a=\"\(String(repeating: "\\\"", count: 500_000))") != nil)
        #expect(try failure(try format("nginx"), "1 - - [\(String(repeating: " [", count: 500_000))") != nil)
    }
}

@Suite("Templates")
struct TemplateTests {
    @Test("nginx's log_format works as pasted, with its own names")
    func nginx() throws {
        let format = try format(#"$remote_addr [$time_local] "$request" $status $request_time"#)
        let object = try object(format, #"1.2.3.4 [29/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 0.123"#)
        #expect(
            object == [
                "remote_addr": "1.2.3.4", "timestamp": "2026-11-29T10:00:00.000Z",
                "time_local": "29/Nov/2026:10:00:00 +0000", "request": "GET / HTTP/1.1", "status": 200,
                "request_time": .double(0.123),
            ])
    }

    @Test(
        "Apache's LogFormat works as pasted, with or without the configuration's backslashes",
        arguments: [#"%h %l %u %t \"%r\" %>s %b"#, #"%h %l %u %t "%r" %>s %b"#])
    func apache(template: String) throws {
        let object = try object(
            try format(template), #"1.2.3.4 - - [29/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 12"#)
        #expect(
            object == [
                "client": "1.2.3.4", "timestamp": "2026-11-29T10:00:00.000Z", "method": "GET", "path": "/",
                "protocol": "HTTP/1.1", "status": 200, "size": 12,
            ])
    }

    @Test("PostgreSQL's log_line_prefix works as pasted, also with a colon after the time")
    func postgreSQL() throws {
        let object = try object(
            try format("%t:%r:%u@%d:[%p]:"),
            "2026-11-29 10:00:00 UTC:10.0.0.1(5433):alice@shop:[123]:LOG:  hi")
        #expect(
            object == [
                "timestamp": "2026-11-29T10:00:00.000Z", "client": "10.0.0.1(5433)", "user": "alice",
                "database": "shop", "pid": 123, "level": "LOG", "message": "hi",
            ])
    }

    @Test("a PostgreSQL user may hold @, as those of Kerberos and LDAP do")
    func users() throws {
        let format = try format("postgresql")
        for (text, user, database) in [
            ("alice@CORP.EXAMPLE@shop", "alice@CORP.EXAMPLE", "shop"), ("alice@shop", "alice", "shop"),
            ("a b@c@shop", "a b@c", "shop"), ("[unknown]@[unknown]", "[unknown]", "[unknown]"),
        ] {
            let object = try object(format, "2026-11-29 10:00:00.123 UTC [7] \(text) LOG:  mail to x@y")
            #expect(object["user"] == .string(user) && object["database"] == .string(database), "\(object)")
            #expect(object["message"] == "mail to x@y")
        }
        let object = try object(format, "2026-11-29 10:00:00.123 UTC [7] LOG:  mail to x@y z")
        #expect(object["message"] == "mail to x@y z" && object["user"] == nil)
    }

    @Test("JSON numbers are numbers, a dash is no member, and the line is kept if requested")
    func fields() throws {
        let format = try format("$a,${n:number},$b", numbers: ["b"], keepLine: "raw")
        #expect(try object(format, "x,007,1") == ["a": "x", "n": "007", "b": 1, "raw": "x,007,1"])
        #expect(try object(format, "-,-12.5e3,-") == ["n": .double(-12500), "raw": "-,-12.5e3,-"])
    }

    @Test("a PostgreSQL record begins with its time in any zone, also on a machine in UTC")
    func zoneLetters() throws {
        let format = try format("postgresql")
        let lines = ["CET", "CEST", "EST", "ABC", "UTC"].map {
            "2026-11-29 10:00:00.123 \($0) [7] a@b LOG:  \($0)"
        }
        #expect(records(Array(lines.map { $0 + "\n" }.joined().utf8), format).count == lines.count)
        #expect(try object(format, lines[0])["timestamp"] == "2026-11-29T09:00:00.123Z")
        #expect(try object(format, lines[2])["timestamp"] == "2026-11-29T15:00:00.123Z")
        #expect(try failure(format, lines[3]) == TextFailure(column: 1, expected: "a time"))
        var writer = RecordWriter()
        writer.zone = try #require(TimeZoneRules(rule: "ABC-3"))
        let line = Array(lines[3].utf8)
        let found = line.withUnsafeBytes { format.parse($0, readable: $0.count, into: &writer) }
        #expect(found == nil)
        #expect(String(decoding: writer.bytes, as: UTF8.self).contains("2026-11-29T07:00:00.123Z"))
        // Most machines in UTC say so by the file of another name.
        writer.zone = try TimeZoneLoader().load("Etc/UTC")
        let central = Array(lines[0].utf8)
        #expect(central.withUnsafeBytes { format.parse($0, readable: $0.count, into: &writer) } == nil)
        #expect(String(decoding: writer.bytes, as: UTF8.self).contains("2026-11-29T09:00:00.123Z"))
    }

    @Test(
        "layouts of well-known programs are read",
        arguments: [
            (
                "java", "[2026-11-29 10:00:00,123] INFO [Consumer a=b] Resetting (o.a.Fetcher)",
                #"{"level":"INFO","logger":"o.a.Fetcher","message":"[Consumer a=b] Resetting"}"#
            ),
            (
                "java", "[2026-11-29 10:00:00,123] WARN x (y z)\n\tat a (b)",
                #"{"level":"WARN","message":"x (y z)\n\tat a (b)"}"#
            ),
            (
                "java", "[2026-11-29T10:00:00,123][INFO ][o.e.n.Node     ] [node-1] started",
                #"{"level":"INFO","logger":"o.e.n.Node","node":"node-1","message":"started"}"#
            ),
            (
                "python", "[2026-11-29 10:00:00 +0000] [12] [INFO] Starting gunicorn",
                #"{"pid":12,"level":"INFO","message":"Starting gunicorn"}"#
            ),
            (
                "python", "[2026-11-29 10:00:00,123: WARNING/MainProcess] ready: a",
                #"{"level":"WARNING","process":"MainProcess","message":"ready: a"}"#
            ),
            (
                "python", #"INFO:     127.0.0.1:5000 - "GET / HTTP/1.1" 200"#,
                #"{"level":"INFO","message":"127.0.0.1:5000 - \"GET / HTTP/1.1\" 200"}"#
            ),
            (
                "python", "2026-11-29 10:00:00.123 | INFO     | shop.cart:pay:12 - a | b",
                #"{"level":"INFO","logger":"shop.cart:pay:12","message":"a | b"}"#
            ),
            (
                "python", "2026-11-29 10:00:00,123 shop.cart WARNING no: stock",
                #"{"logger":"shop.cart","level":"WARNING","message":"no: stock"}"#
            ),
            (
                "haproxy", "Nov 29 10:00:00 lb haproxy[7]: Server static/srv1 is DOWN",
                #"{"host":"lb","program":"haproxy","pid":7,"message":"Server static/srv1 is DOWN"}"#
            ),
            (
                "nginx_error",
                #"2026/11/29 10:00:00 [error] 71#72: *5 open() "/a, client: 1, b" failed (2: No such file), client: 192.0.2.8, server: x, request: "GET /a HTTP/1.1", referrer: "http://x/, client: 2""#,
                #"{"level":"error","pid":71,"tid":72,"cid":5,"message":"open() \"/a, client: 1, b\" failed (2: No such file)","client":"192.0.2.8","server":"x","request":"GET /a HTTP/1.1","referrer":"http://x/, client: 2"}"#
            ),
            (
                "nginx_error",
                "2026/11/29 10:00:00 [info] 71#72: *5 no, client: at all here, client: unix:, server: x",
                #"{"level":"info","pid":71,"tid":72,"cid":5,"message":"no, client: at all here","client":"unix:","server":"x"}"#
            ),
            (
                "mysql_error", "261129 10:00:00 mysqld_safe Starting mariadbd daemon",
                #"{"message":"mysqld_safe Starting mariadbd daemon"}"#
            ),
            (
                "java",
                "2026-11-29 10:00:00,123 INFO  [io.quarkus] (main) Installed features: [cdi]",
                #"{"level":"INFO","logger":"io.quarkus","thread":"main","message":"Installed features: [cdi]"}"#
            ),
            (
                "java",
                "2026-11-29 10:00:00,123 INFO  [main] a.b.C: (x) y",
                #"{"level":"INFO","thread":"main","logger":"a.b.C","message":"(x) y"}"#
            ),
            (
                "java",
                "2026-11-29T10:00:00.123Z  INFO 4711 --- [shop] [nio-8080-exec-1] [0123456789abcdef0123456789abcdef-0123456789abcdef] o.s.b.App  : paid",
                #"{"level":"INFO","pid":4711,"application":"shop","thread":"nio-8080-exec-1","trace_id":"0123456789abcdef0123456789abcdef","span_id":"0123456789abcdef","logger":"o.s.b.App","message":"paid"}"#
            ),
            (
                "java",
                "2026-11-29T10:00:00.123Z  INFO 4711 --- [shop] [           main] o.s.b.App  : paid",
                #"{"level":"INFO","pid":4711,"application":"shop","thread":"main","logger":"o.s.b.App","message":"paid"}"#
            ),
            (
                "java",
                "2026-11-29T10:00:00.123Z  INFO 4711 --- [           main] [                                                 ] o.s.b.App  : paid",
                #"{"level":"INFO","pid":4711,"thread":"main","logger":"o.s.b.App","message":"paid"}"#
            ),
            (
                "java",
                "2026-11-29 10:00:00.123  INFO [shop,0123,0456] 4711 --- [main] o.s.b.App  : paid",
                #"{"level":"INFO","context":"shop,0123,0456","pid":4711,"thread":"main","logger":"o.s.b.App","message":"paid"}"#
            ),
            (
                "java",
                "2026-11-29 10:00:00.123 [http-nio-1] [user=5] WARN  a.b - slow",
                #"{"thread":"http-nio-1","context":"user=5","level":"WARN","logger":"a.b","message":"slow"}"#
            ),
            (
                "python",
                "[2026-11-29 10:00:00,123] ERROR in app: Exception on / [GET]\nTraceback (most recent call last):",
                #"{"level":"ERROR","logger":"app","message":"Exception on / [GET]\nTraceback (most recent call last):"}"#
            ),
            (
                "python",
                "[2026-11-29T10:00:00.123+0000] {taskinstance.py:1332} INFO - queued",
                #"{"logger":"taskinstance.py:1332","level":"INFO","message":"queued"}"#
            ),
            (
                "python",
                "2026-11-29 10:00:00 [scrapy.core.engine] INFO: Spider opened",
                #"{"logger":"scrapy.core.engine","level":"INFO","message":"Spider opened"}"#
            ),
            (
                "python",
                "2026-11-29 10:00:00 [scrapy.core.scraper] ERROR: Spider: failed",
                #"{"logger":"scrapy.core.scraper","level":"ERROR","message":"Spider: failed"}"#
            ),
            (
                "python",
                "2026-11-29 10:00:00 [shop.cart] [INFO] pay: done",
                #"{"logger":"shop.cart","level":"INFO","message":"pay: done"}"#
            ),
            (
                "python",
                "2026-11-29 10:00:00,001 [MainThread  ] [INFO ]  ready",
                #"{"thread":"MainThread","level":"INFO","message":"ready"}"#
            ),
            (
                "python",
                "2026-11-29 10:00:00,001 [MainThread] INFO shop.cart: ready",
                #"{"thread":"MainThread","level":"INFO","logger":"shop.cart","message":"ready"}"#
            ),
            (
                "python",
                "INFO 2026-11-29 10:00:00,123 views 7 140 paid",
                #"{"level":"INFO","message":"views 7 140 paid"}"#
            ),
            (
                "python",
                "INFO  [alembic.runtime.migration] Context impl",
                #"{"level":"INFO","logger":"alembic.runtime.migration","message":"Context impl"}"#
            ),
            (
                "go",
                "2026/11/29 10:00:00 WARN+1 slow port=80",
                #"{"level":"WARN+1","message":"slow port=80"}"#
            ),
            (
                "go",
                "2026/11/29 10:00:00 INFORM the others",
                #"{"message":"INFORM the others"}"#
            ),
            (
                "klog",
                "I20261129 10:00:00.123456  7 x.cc:12] started",
                #"{"severity":"info","thread":7,"file":"x.cc","line":12,"message":"started"}"#
            ),
            (
                "auditd",
                "type=AVC msg=audit(1795946400.243:6): avc:  denied  { read write } for  pid=1 comm=\"x y\"",
                #"{"type":"AVC","serial":6,"message":"avc:  denied  { read write } for","pid":"1","comm":"x y"}"#
            ),
            (
                "auditd",
                "type=EOE msg=audit(1795946400.243:7): ",
                #"{"type":"EOE","serial":7}"#
            ),
            (
                "auditd",
                "type=SOCKADDR msg=audit(1795946400.243:7): saddr=02\u{1D}SADDR={ saddr_fam=inet lport=53 }",
                #"{"type":"SOCKADDR","serial":7,"saddr":"02","saddr_fam":"inet","lport":"53"}"#
            ),
            (
                "syslog", "Nov 29 10:00:00 user=bob action=drop",
                #"{"message":"user=bob action=drop"}"#
            ),
            (
                "mysql_error", "2026-11-29T10:00:00Z UTC - mysqld got signal 11 ;\nThis could be a bug.",
                #"{"message":"UTC - mysqld got signal 11 ;\nThis could be a bug."}"#
            ),
            (
                "mysql_slow",
                "# Time: 2026-11-29T10:00:00Z\n# User@Host: a[a] @ h []  Id:     8\n# Query_time: 0.5 Thread_id: 8 Errno: 0\nselect 1;",
                #"{"user":"a","host":"h","thread":8,"query_time":0.5,"errno":0,"message":"select 1;"}"#
            ),
            (
                "mysql_slow",
                "# Time: 261129 10:00:00\n# User@Host: a[a] @ h []\n# Thread_id: 31  Schema: s  QC_hit: No\n#\n# explain: id\ttype\n# explain: 1\tx: y\n#\nselect 1;",
                ##"{"user":"a","host":"h","thread":31,"qc_hit":"No","explain":"# explain: id\ttype\n# explain: 1\tx: y","database":"s","message":"select 1;"}"##
            ),
            (
                "nginx_error",
                #"2026/11/29 10:00:00 [error] 7#7: *5 no live upstreams, udp client: 192.0.2.8, server: 0.0.0.0:53, upstream: "192.0.2.9:53", bytes from/to client:40/0, bytes from/to upstream:0/40"#,
                #"{"level":"error","pid":7,"tid":7,"cid":5,"message":"no live upstreams","client":"192.0.2.8","server":"0.0.0.0:53","upstream":"192.0.2.9:53","bytes_client":"40/0","bytes_upstream":"0/40"}"#
            ),
            (
                "nginx_error",
                "2026/11/29 10:00:00 [error] 7#7: *5 upstream, client: 192.0.2.8, host: \"shop.example\"\nPHP Warning:  no",
                #"{"level":"error","pid":7,"tid":7,"cid":5,"message":"upstream\nPHP Warning:  no","client":"192.0.2.8","host":"shop.example"}"#
            ),
        ])
    func layouts(name: String, line: String, json: String) throws {
        let format = try format(name)
        var found = try object(format, line)
        let time = found.removeValue(forKey: "timestamp")
        #expect(time != nil || line.hasPrefix("INFO:") || line.hasPrefix("INFO  ["))
        #expect(found == members(try JSONValue(parsing: json)), "\(line)")
        #expect(records(Array("\(line)\n\(line)\n".utf8), format).count == 2)
    }

    @Test(
        "HAProxy's captured cookies, and what httpslog adds about TLS, are members; a quote alone adds nothing",
        arguments: [
            (
                #"SID=abc NEW=d --NI 1/1/1/1/0 0/0 "GET /login HTTP/2.0""#,
                #"{"request_cookie":"SID=abc","response_cookie":"NEW=d","path":"/login","protocol":"HTTP/2.0"}"#
            ),
            (
                #"- - ---- 1/1/1/1/0 0/0 "GET /a"b HTTP/1.1" 0/0000000000000000/0/0/0 shop.example/TLSv1.3/TLS_AES_256_GCM_SHA384"#,
                #"{"path":"/a\"b","protocol":"HTTP/1.1","tls_errors":"0/0000000000000000/0/0/0","sni":"shop.example","tls_version":"TLSv1.3","tls_cipher":"TLS_AES_256_GCM_SHA384"}"#
            ),
            (
                #"- - ---- 1/1/1/1/0 0/0 "<BADREQ>" 30/000000000A000086/0/0/0 -/-/-"#,
                #"{"request":"<BADREQ>","tls_errors":"30/000000000A000086/0/0/0"}"#
            ),
            (
                #"- - ---- 1/1/1/1/0 0/0 "GET / HTTP/1.1" 0/0000000000000000/0/0/0 a/b" 0/0/0/0/0 c/d/TLSv1.3/TLS_X"#,
                ##"{"path":"/","protocol":"HTTP/1.1","tls_errors":"0/0000000000000000/0/0/0","sni":"a/b\" 0/0/0/0/0 c/d","tls_version":"TLSv1.3","tls_cipher":"TLS_X"}"##
            ),
            (
                #"- - ---- 1/1/1/1/0 0/0 "GET / HTTP/1.1" 0/0000000000000000/0/0/0 a/b/c""#,
                ##"{"path":"/","protocol":"HTTP/1.1","tls_errors":"0/0000000000000000/0/0/0","sni":"a","tls_version":"b","tls_cipher":"c\""}"##
            ),
            (
                #"- - ---- 1/1/1/1/0 0/0 "GET /a" 0/0000000000000000/0/0/0 shop.exam"#,
                ##"{"request":"GET /a\" 0/0000000000000000/0/0/0 shop.exam"}"##
            ),
            (
                #"- - ---- 1/1/1/1/0 0/0 "GET /a" cut by the longest line"#,
                #"{"request":"GET /a\" cut by the longest line"}"#
            ),
        ])
    func haproxyEnd(end: String, json: String) throws {
        let line =
            "192.0.2.8:33317 [06/Feb/2026:12:14:14.655] http-in static/srv1 10/0/30/69/109 200 2750 \(end)"
        let found = try object(try format("haproxy"), line)
        let wanted = members(try JSONValue(parsing: json))
        for name in ["request_cookie", "response_cookie", "path", "protocol", "request", "tls_errors", "sni"]
            + ["tls_version", "tls_cipher"]
        {
            #expect(found[name] == wanted[name], "\(name)")
        }
    }

    @Test(
        "a line of HAProxy has one time, its own, whatever the header is",
        arguments: [
            "Nov 29 10:00:00 lb haproxy[7]: ", "Nov 29 2026 10:00:00 lb haproxy[7]: ",
            "<142>1 2026-11-29T10:00:00Z lb haproxy 7 - - ",
        ])
    func haproxyTime(header: String) throws {
        let line =
            header
            + #"10.0.1.2:33317 [06/Feb/2026:12:14:14.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 "GET / HTTP/1.1""#
        let format = try format("haproxy")
        var writer = RecordWriter()
        let bytes = Array(line.utf8)
        let failure = bytes.withUnsafeBytes { format.parse($0, readable: $0.count, into: &writer) }
        #expect(failure == nil)
        let text = String(decoding: writer.bytes, as: UTF8.self)
        #expect(text.split(separator: #""timestamp":"#).count == 2, "\(text)")
        #expect(try object(format, line)["timestamp"] == "2026-02-06T12:14:14.655Z")
    }

    @Test("a time may have the text in it that ends it")
    func times() throws {
        let format = try format("${when:time} ${level} ${message:rest}")
        #expect(format.joinsLines)
        #expect(
            try object(format, "2026-11-29 10:00:00.123 INFO hello world") == [
                "timestamp": "2026-11-29T10:00:00.123Z", "when": "2026-11-29 10:00:00.123", "level": "INFO",
                "message": "hello world",
            ])
        #expect(
            records(
                Array("2026-11-29 10:00:00.123 INFO a\n  at b\n2026-11-29 10:00:01.000 INFO c\n".utf8), format
            )
            .count == 2)
    }

    @Test("a line of JSON is a record alone, unless first_line says otherwise; json_in has no first_line")
    func linesOfJSON() throws {
        let text = "2026-11-29 10:00:00,123 INFO [main] a - b\n"
        let objects = "{\"a\":1}\r\nc\n{a=1}\n{main}\n{ \"b\": {} } \n{\"c\":2}\n"
        let lines = Array("\(text)\(objects)\(text)\tat d\n".utf8)
        let java = try format("java")
        #expect(records(lines, java).map(\.lines) == [1...1, 2...2, 3...5, 6...6, 7...7, 8...9])
        let own = try format("java", firstLine: "^2026")
        #expect(records(lines, own).map(\.lines) == [1...7, 8...9])
        // Empty lines behind it do not make what follows them a part of it.
        let apart = Array("{\"a\":1}\n\n\n\tat d\n\(text)\n\tat d\n".utf8)
        #expect(records(apart, java).map(\.lines) == [1...1, 2...4, 5...7])
        #expect(try !format("json_in:log").joinsLines)
        #expect {
            try format("json_in:log", firstLine: "^x")
        } throws: {
            ($0 as? TextFormatError)?.key == "first_line"
        }
    }

    @Test(
        "a template that cannot be read back is refused",
        arguments: ["$a$b", "$", "${a", "${a:colour} x", "%h %Y", "ngnix", "${a:rest} $b"])
    func refused(template: String) {
        #expect(throws: TextFormatError.self) { try format(template) }
    }

    @Test("a record that a template has written is read back")
    func property() throws {
        var random = RepeatableRandom(seed: 5)
        let letters = Array("abc\u{e9}\t=[]{}:,".unicodeScalars)
        let format = try format(#"$one | "$two" <${three:number}> $four"#)
        for _ in 0..<2000 {
            func word() -> String {
                String(
                    String.UnicodeScalarView(
                        (0..<Int.random(in: 1...40, using: &random)).map { _ in
                            letters.randomElement(using: &random) ?? "a"
                        }))
            }
            let (one, two, four) = (word(), word(), word())
            let three = Int.random(in: -1000...1000, using: &random)
            let object = try object(format, "\(one) | \"\(two)\" <\(three)> \(four)")
            #expect(
                object == [
                    "one": .string(one), "two": .string(two), "three": .integer(three), "four": .string(four),
                ])
        }
    }
}

@Suite("Patterns and columns")
struct PatternTests {
    @Test("named groups are members, unmatched groups are not, and a dot matches line feeds")
    func groups() throws {
        let format = try format(
            pattern: #"^(?P<level>\w+) (?:\[(?P<thread>\d+)\] )?(?P<message>.*)"#, numbers: ["thread"])
        #expect(try object(format, "INFO [7] a\nb") == ["level": "INFO", "thread": 7, "message": "a\nb"])
        #expect(try object(format, "INFO a") == ["level": "INFO", "message": "a"])
        #expect(try failure(format, "") == TextFailure(column: 1, expected: "the pattern"))
    }

    @Test("an invalid expression, or one without named groups, is refused", arguments: ["(", "(a)", "a"])
    func refused(pattern: String) {
        #expect(throws: TextFormatError.self) { try format(pattern: pattern) }
    }

    @Test("csv has quotes, doubled inside; another number of fields is no match")
    func csv() throws {
        let csv = try format("csv", columns: ["a", "b", "c"], numbers: ["c"])
        #expect(try object(csv, #"x,"y ""z"", w",1.5"#) == ["a": "x", "b": #"y "z", w"#, "c": .double(1.5)])
        #expect(try object(csv, ",,") == ["a": "", "b": ""])
        #expect(try failure(csv, "x,y") == TextFailure(column: 4, expected: ","))
        #expect(try failure(csv, "x,y,z,w") != nil)
        let tsv = try format("tsv", columns: ["a", "b"])
        #expect(try object(tsv, "x\t\"y") == ["a": "x", "b": "\"y"])
        #expect(throws: TextFormatError.self) { try format("csv") }
    }

    @Test("a line with the names of the columns is a header, in quotes or not")
    func header() throws {
        func isHeader(_ format: TextFormat, _ line: String) -> Bool {
            Array(line.utf8).withUnsafeBytes { format.isHeader($0) }
        }
        let csv = try format("csv", columns: ["time", "level", "message"])
        for line in ["time,level,message", #""time","level","message""#, "time,level,message\r"] {
            #expect(isHeader(csv, line), "\(line)")
        }
        for line in [
            "", "time", "time,level", "time,level,", "time,level,message,", "time,level,text",
            "\"time,level,message",
            "Time,Level,Message", "time\tlevel\tmessage",
        ] {
            #expect(!isHeader(csv, line), "\(line)")
        }
        #expect(isHeader(try format("tsv", columns: ["a", "b"]), "a\tb"))
        // One word says nothing: it may be a value.
        #expect(!isHeader(try format("csv", columns: ["a"]), "a"))
        #expect(!isHeader(try format("logfmt", columns: ["a", "b"]), "a,b"))
    }

    /// Texts with what the corpus lacks: loggers and headers that are recognised by the end of a line.
    static let lineEnds: [(format: String, text: String)] = [
        (
            "java",
            "[2026-11-29 10:00:00,413] INFO started (kafka.server.KafkaServer)\n"
                + "[2026-11-29 10:00:01,413] ERROR failed (kafka.server.KafkaServer)\n"
                + "java.io.IOException: closed\n\tat shop.Db.read(Db.java:9)\n\n"
        ),
        (
            "mysql_slow",
            "/usr/sbin/mariadbd, Version: 10.11.14-MariaDB (Debian 12). started with:\n"
                + "Tcp port: 0  Unix socket: /run/mysqld/mysqld.sock\nTime\t\t    Id Command\tArgument\n"
                + "# Time: 261129 10:00:00\n# User@Host: shop[shop] @ localhost []\n# Query_time: 1.0\n"
                + "use shop;\nSET timestamp=1795946400;\nSELECT 1;\n"
        ),
        ("python", "2026-11-29 10:00:00,444 INFO a: b\n{\"a\": 1}\n\n2026-11-29 10:00:00,444 INFO a: b\n"),
    ]

    @Test("a log whose lines end with CR and LF has the records of one with LF")
    func carriageReturns() throws {
        var logs: [(name: String, format: TextFormat, bytes: [UInt8])] = []
        for (file, name) in FormatTests.files {
            let columns = name == "csv" ? ["time", "id", "note", "code"] : []
            logs.append((file, try format(name, columns: columns), try Fixture.bytes("\(file).log")))
        }
        for (file, name, _, _) in PackageLogTests.files {
            logs.append((file, try format(name), try Fixture.bytes("packages/\(file)")))
        }
        for row in FormatTable.rows {
            let text = row.samples.map { $0.text + "\n" }.joined()
            logs.append(("samples of \(row.name)", try format(row.name), Array(text.utf8)))
        }
        for (name, text) in Self.lineEnds {
            logs.append((text, try format(name), Array(text.utf8)))
        }
        logs.append(
            (
                "template", try format("${time:time} $message", keepLine: "line"),
                Array("2026-11-29T10:00:00Z a\n\tb\n2026-11-29T10:00:01Z c\n".utf8)
            ))
        logs.append(
            (
                "pattern", try format(pattern: #"^(?P<a>\w+)(?:\s(?P<b>.*))?$"#, firstLine: #"^\w+$"#),
                Array("one\n two\nthree\n".utf8)
            ))
        for (name, format, bytes) in logs {
            let windows = bytes.flatMap { $0 == 0x0A ? [0x0D, 0x0A] : [$0] }
            let expected = records(bytes, format)
            let found = records(windows, format)
            #expect(found.map(\.lines) == expected.map(\.lines), "\(name)")
            for (one, other) in zip(found, expected) {
                let record = try? parsed(format, one.bytes).get()
                #expect(record == (try? parsed(format, other.bytes).get()), "\(name) \(other.lines)")
            }
            let guess = windows.withUnsafeBytes { FormatGuess.of($0) }
            #expect(guess == bytes.withUnsafeBytes { FormatGuess.of($0) }, "\(name)")
        }
    }

    @Test("a text of several lines has line feeds between them in its message, whatever the file has")
    func wrappedReturns() throws {
        var writer = RecordWriter()
        Array("a\r\nb\rc\r\n\r\nd".utf8).withUnsafeBytes {
            TextFormat.wrap($0, readable: $0.count, into: &writer)
        }
        let object = try JSONValue(parsing: Array(writer.bytes.dropLast()))
        #expect(object["message"] == "a\nb\rc\n\nd")
    }

    @Test("a record begins as first_line says")
    func firstLine() throws {
        let format = try format(firstLine: #"^\d{4}-"#)
        #expect(records(Array("2026-11 a\n b\n{\n2026-12 c\n".utf8), format).map(\.lines) == [1...3, 4...4])
    }

    @Test(
        "json_in takes the name of a member, in one of three forms",
        arguments: ["json_in:log", "json_in(log)", "json_in"])
    func jsonIn(parse: String) throws {
        #expect(try format(parse, columns: parse == "json_in" ? ["log"] : []).jsonMember == Array("log".utf8))
        #expect(throws: TextFormatError.self) { try format("json_in") }
    }
}
