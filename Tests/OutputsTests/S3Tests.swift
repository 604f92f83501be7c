import EventLoops
import Frames
import Logs
import Model
import Receiver
import TestKit
import Testing

@testable import Outputs

@Suite("Object stores")
struct S3Tests {
    private let installation = "6e0dfba6-e924-4eb2-84a6-50c613814f97"

    private func output(
        _ bench: Bench, _ server: S3Server, time: any TimeSource = ManualTime(),
        metadata: String? = nil, _ change: (inout DestinationSettings) -> Void = { _ in }
    ) throws -> S3Output {
        var options = options(server)
        change(&options.settings)
        return try S3Output(
            "archive", options, options.settings.s3, installID: installation, on: bench.loop,
            log: Log(bench.log),
            environment: { $0 == "AWS_EC2_METADATA_SERVICE_ENDPOINT" ? metadata : nil }, time: time)
    }

    private func options(_ server: S3Server) -> HTTPOptions {
        var options = HTTPOptions(url: server.url)
        options.settings.s3.bucket = "events"
        options.settings.s3.aws.region = "eu-central-1"
        options.settings.s3.aws.accessKeyID = "AKIDEXAMPLE"
        options.settings.s3.aws.secret.inline = Secret("secret/with+signs=")
        options.settings.s3.pathStyle = true
        return options
    }

    @Test(
        "a batch becomes one object under the templated key, compressed by its suffix",
        arguments: Compression.allCases)
    func object(compression: Compression) async throws {
        let bench = try Bench()
        let server = try await S3Server(bench)
        let output = try output(bench, server) { $0.compression = compression }
        let batch = try Sample.batch(2_000)
        #expect(await output.send(batch) == .acknowledged)
        let objects = try await server.objects()
        let ending: String =
            switch compression {
            case .none: ".jsonl"
            case .gzip: ".jsonl.gz"
            case .zstd: ".jsonl.zst"
            }
        let key = "spoolship/dt=2026-11-20/hour=10/\(installation)/\(batch.header.id)\(ending)"
        let object = try #require(objects[key], "\(objects.keys)")
        let lines =
            compression == .none
            ? object.bytes : try FrameDecompressor().decompress(object.bytes, compression, limit: 1 << 24)
        #expect(lines == Sample.lines(0..<2_000))
        #expect(object.headers["content-encoding"] == (compression == .none ? nil : compression.name))
        #expect(await output.takeSentBytes() == object.bytes.count)
    }

    /// Events of three apps, one after the other, and one without.
    private func mixed(_ count: Int) -> Batch {
        let lines = (0..<count).map { number in
            let app = number == 7 ? "" : #","app":"\#(["shop", "web", "../x"][number % 3])""#
            return #"{"n":\#(number),"timestamp":"2026-11-19T23:59:59Z"\#(app)}"# + "\n"
        }.joined()
        let part = Batch.Part(
            compression: .none, frame: Array(lines.utf8), bytes: lines.utf8.count, eventsInFrame: count,
            events: 0..<count)
        return Sample.batch([part])
    }

    /// The numbers of the events in each object.
    private func numbers(_ server: S3Server) async throws -> [String: [Int]] {
        try await server.objects().mapValues { object in
            try object.bytes.split(separator: 0x0A).map { line in
                try #require(JSONSlice(line)?["n"]?.integer.map { Int($0) })
            }
        }
    }

    @Test(
        "keys from events make an object for each value, found by a repeat; no app reaches another's prefix"
    )
    func byEvent() async throws {
        let bench = try Bench()
        let server = try await S3Server(bench)
        let key = try Template("{app}/dt={event_date}/{date}-{batch_id}", for: .key)
        let output = try output(bench, server) {
            $0.compression = .none
            $0.s3.key = key
        }
        let batch = mixed(30)
        try await server.fault(#"[null, "lose-answer"]"#)
        #expect(retried(await output.send(batch))?.kind == .connection)
        #expect(await output.send(batch) == .acknowledged)
        let end = "/dt=2026-11-19/2026-11-20-\(batch.header.id).jsonl"
        let found = try await numbers(server)
        #expect(Set(found.keys) == Set(["shop", "web", "_._x", "none"].map { $0 + end }), "\(found.keys)")
        #expect(found["shop" + end] == (0..<30).filter { $0 % 3 == 0 })
        #expect(found["none" + end] == [7])
        // Two objects were there, of a batch of which nobody said that it was sent before.
        #expect(await output.measures.repeats[batch.header.id]?.isEmpty == false)
        // What was written by the first attempt was found, not written again.
        #expect(
            try await server.log().filter { $0.method == "PUT" }.map(\.status) == [
                200, 0, 412, 412, 200, 200,
            ])
        #expect(output.templates?.takeCounts() == EventTemplates.Counts(missing: 2, beyond: 0))
    }

    @Test("the paths in the documentation's example are partitions by the event's own day and hour")
    func partitions() async throws {
        let bench = try Bench()
        let server = try await S3Server(bench)
        let template = "events/app={app}/dt={event_date}/hour={event_hour}/{batch_id}"
        let page =
            String(#filePath.dropLast("Tests/OutputsTests/S3Tests.swift".count)) + "docs/destinations.md"
        #expect(text(of: page).contains("key = \"\(template)\""))
        let key = try Template(template, for: .key)
        let output = try output(bench, server) {
            $0.compression = .none
            $0.s3.key = key
        }
        let batch = mixed(6)
        #expect(await output.send(batch) == .acknowledged)
        let found = try await numbers(server)
        let partition = "events/app=shop/dt=2026-11-19/hour="
        let end = "23/\(batch.header.id).jsonl"
        #expect(found.keys.contains(partition + end), "\(found)")
        #expect(found.values.joined().sorted() == Array(0..<6))
    }

    @Test("only an oversized object is split; any other failure repeats the batch as it is")
    func partly() async throws {
        let bench = try Bench()
        let server = try await S3Server(bench)
        let key = try Template("{app}/{batch_id}", for: .key)
        let output = try output(bench, server) {
            $0.s3.key = key
        }
        let batch = mixed(6)
        try await server.fault(#"[null, {"status": 413}]"#)
        #expect(await output.send(batch) == .partial(rejected: [], retry: [1, 4]))
        try await server.fault(#"[{"status": 413}, {"status": 503, "code": "SlowDown"}]"#)
        #expect(retried(await output.send(batch))?.status == 503)
        try await server.fault(#"[{"status": 413}, {"status": 413}, {"status": 413}]"#)
        guard case .tooLarge = await output.send(batch) else {
            Issue.record("a batch all of whose objects are too large is split")
            return
        }
        #expect(await output.send(batch) == .acknowledged)
    }

    @Test("a probe distinguishes right and wrong buckets and keys, and writes nothing")
    func probe() async throws {
        let bench = try Bench()
        let server = try await S3Server(bench)
        func probe(_ bucket: String = "events", secret: String = "secret/with+signs=") async throws
            -> Failure?
        {
            var options = options(server)
            options.settings.s3.bucket = bucket
            options.settings.s3.aws.secret.inline = Secret(secret)
            let output = try S3Output(
                "check", options, options.settings.s3, installID: "check", on: bench.loop,
                log: Log(bench.log))
            return await output.probe()
        }
        #expect(try await probe() == nil)
        #expect(try await probe("nowhere")?.message.contains("there is no such bucket") == true)
        #expect(try await probe(secret: "wrong")?.message.contains("the secret key is wrong") == true)
        #expect(try await server.objects().isEmpty)
    }

    @Test("signatures are valid for keys with signs, blanks and non-ASCII letters, and for all headers sent")
    func signatures() async throws {
        let bench = try Bench()
        let server = try await S3Server(bench)
        let key = try Template("ä b/+=&?#%'()*!~$,;:@/{destination}/{priority}/{batch_id}", for: .key)
        let output = try output(bench, server) {
            $0.s3.key = key
            $0.s3.storageClass = "STANDARD_IA"
            $0.s3.serverSideEncryption = .keyManagement
        }
        let batch = try Sample.batch(3)
        #expect(await output.send(batch) == .acknowledged)
        // By the request: moto itself reads some of these signs otherwise.
        let path = try await server.log().last?.path
        let escaped =
            "%C3%A4%20b/%2B%3D%26%3F%23%25%27%28%29%2A%21~%24%2C%3B%3A%40/main/normal/\(batch.header.id).jsonl.gz"
        #expect(path == "/events/" + escaped)
        let object = try #require(try await server.objects().values.first)
        #expect(object.storage_class == "STANDARD_IA")
        #expect(object.encryption == "aws:kms")
    }

    @Test("a body of several megabytes is sent after 100 Continue")
    func large() async throws {
        let bench = try Bench()
        let server = try await S3Server(bench)
        let output = try output(bench, server) { $0.compression = .none }
        #expect(await output.send(try Sample.batch(120_000)) == .acknowledged)
        #expect(try await server.objects().values.first?.bytes == Sample.lines(0..<120_000))
    }

    @Test("exactly once: after a lost answer the existing object is found and left as it is")
    func lostAnswer() async throws {
        let bench = try Bench()
        let server = try await S3Server(bench)
        try await server.fault(#"["lose-answer", "cut"]"#)
        let output = try output(bench, server)
        let batch = try Sample.batch(10)
        #expect(retried(await output.send(batch))?.kind == .connection)
        #expect(retried(await output.send(batch))?.kind == .connection)
        #expect(await output.send(batch) == .acknowledged)
        #expect(try await server.objects().count == 1)
        #expect(try await server.log().map(\.status) == [0, 0, 412, 206])
    }

    @Test(
        "exactly once: a batch with a lost answer keeps its object and suffix after compression was changed",
        arguments: Compression.allCases, Compression.allCases)
    func otherCompression(before: Compression, after: Compression) async throws {
        guard before != after else { return }
        let endings: [Compression: String] = [.none: ".jsonl", .gzip: ".jsonl.gz", .zstd: ".jsonl.zst"]
        let bench = try Bench()
        let server = try await S3Server(bench)
        let time = ManualTime(wall: Sample.accepted + .seconds(3600))
        func stored() async throws -> [Substring] {
            try await server.objects().keys.map {
                $0[($0.lastIndex(of: "/") ?? $0.startIndex)...].dropFirst()
            }.sorted()
        }
        let first = try output(bench, server, time: time) { $0.compression = before }
        try await server.fault(#"["lose-answer"]"#)
        var batch = try Sample.batch(10)
        #expect(retried(await first.send(batch))?.kind == .connection)
        batch.mayHaveBeenSent = true
        // It was accepted, and sent, while the clock was ahead.
        time.step(to: Sample.accepted - .seconds(3600))
        let second = try output(bench, server, time: time) { $0.compression = after }
        // While nobody can tell whether there is one, nothing is written.
        try await server.readFault(#"[{"status": 503, "code": "SlowDown"}]"#)
        #expect(retried(await second.send(batch))?.status == 503)
        #expect(await second.send(batch) == .acknowledged)
        let old = "\(batch.header.id)\(endings[before] ?? "")"
        #expect(try await stored() == [old[...]])
        // Of another one only a part was kept.
        var whole = try Sample.batch(10, number: 2)
        let part = try Sample.batch(9, number: 2)
        whole.mayHaveBeenSent = true
        #expect(await first.send(part) == .acknowledged)
        #expect(await second.send(whole) == .acknowledged)
        #expect(try await stored().count == 2)
        #expect(bench.log.messages.count { $0.text.contains("of another size") } == 1)
        // What nobody has sent has the new ending, and what nobody can have sent asks for nothing.
        var third = try Sample.batch(10, number: 3)
        third.mayHaveBeenSent = true
        #expect(await second.send(third) == .acknowledged)
        #expect(try await stored().contains("\(third.header.id)\(endings[after] ?? "")"))
        let asked = try await server.log().count
        let late = try output(bench, server) { $0.compression = after }
        #expect(await late.send(try Sample.batch(10, number: 4)) == .acknowledged)
        #expect(try await server.log().count == asked + 1)
    }

    @Test(
        "an object of another size under the batch's key is replaced, and logged; an inaccessible one counts"
    )
    func otherSize() async throws {
        let bench = try Bench()
        let server = try await S3Server(bench)
        let (batch, other) = (try Sample.batch(10), try Sample.batch(9))
        let output = try output(bench, server)
        // The same header, as if half of it had been written.
        #expect(await output.send(Batch(header: batch.header, parts: other.parts)) == .acknowledged)
        #expect(await output.send(batch) == .acknowledged)
        #expect(try await server.log().map(\.status) == [200, 412, 206, 200])
        #expect(try await server.objects().count == 1)
        #expect(bench.log.messages.count { $0.text.contains("of another size") } == 1)
        #expect(await output.send(batch) == .acknowledged)
        #expect(bench.log.messages.count { $0.text.contains("of another size") } == 1)
    }

    @Test("while the size is unknown the batch is retried; it is also found in a store without ranges")
    func sizeNotKnown() async throws {
        let bench = try Bench()
        let server = try await S3Server(bench)
        let (batch, other) = (try Sample.batch(10), try Sample.batch(9))
        let output = try output(bench, server)
        #expect(await output.send(Batch(header: batch.header, parts: other.parts)) == .acknowledged)
        try await server.readFault(#"[{"status": 503, "code": "SlowDown"}, "cut", "ignore-range"]"#)
        #expect(retried(await output.send(batch))?.status == 503)
        #expect(retried(await output.send(batch))?.kind == .connection)
        #expect(await output.send(batch) == .acknowledged)
        #expect(try await server.log().map(\.status) == [200, 412, 503, 412, 0, 412, 200, 200])
        #expect(bench.log.messages.count { $0.text.contains("of another size") } == 1)
    }

    @Test("without the condition a repeat writes the object again")
    func overwriting() async throws {
        let bench = try Bench()
        let server = try await S3Server(bench)
        let output = try output(bench, server) { $0.s3.ifNoneMatch = false }
        let batch = try Sample.batch(10)
        #expect(await output.send(batch) == .acknowledged)
        #expect(await output.send(batch) == .acknowledged)
        #expect(try await server.objects().count == 1)
        #expect(try await server.log().allSatisfy { $0.headers["if-none-match"] == nil && $0.status == 200 })
    }

    @Test("a wrong secret, an unknown key and a missing bucket hold the destination, with advice")
    func wrongSettings() async throws {
        let bench = try Bench()
        let server = try await S3Server(bench)
        func hint(_ change: (inout DestinationSettings) -> Void) async throws -> String {
            guard
                case .held(let failure) = await (try output(bench, server, change)).send(try Sample.batch(1))
            else {
                return ""
            }
            return failure.message
        }
        #expect(
            try await hint { $0.s3.aws.secret.inline = Secret("wrong") }.contains("secret key"))
        #expect(try await hint { $0.s3.aws.accessKeyID = "AKIDOTHER" }.contains("access_key_id"))
        #expect(try await hint { $0.s3.bucket = "elsewhere" }.contains("no such bucket"))
        #expect(try await hint { $0.s3.aws.region = "us-east-1" }.contains("region"))
    }

    @Test(
        "every relevant error has a row, and none makes a dead letter",
        arguments: [
            (503, "SlowDown", "retry"), (500, "InternalError", "retry"), (400, "RequestTimeout", "retry"),
            (409, "OperationAborted", "retry"),
            (409, "ConditionalRequestConflict", "retry"), (307, "TemporaryRedirect", "retry"),
            (403, "RequestTimeTooSkewed", "hold"),
            (400, "ExpiredToken", "hold"), (404, "NoSuchBucket", "hold"), (403, "AccessDenied", "hold"),
            (301, "PermanentRedirect", "hold"),
            (400, "AuthorizationHeaderMalformed", "hold"), (400, "EntityTooLarge", "split"),
            (501, "NotImplemented", "hold"),
            (400, "InvalidArgument", "hold"), (403, "SignatureDoesNotMatch", "hold"),
            (418, "Unheard", "hold"),
            (412, "PreconditionFailed", "good"),
        ])
    func table(status: Int, code: String, meaning: String) async throws {
        let body = Array(
            "<?xml version=\"1.0\"?><Error><Code>\(code)</Code><Message>m</Message></Error>".utf8)
        let outcome = S3Answer.outcome(
            of: HTTPAnswer(status: status, body: body), wireBytes: 7, now: Timestamp(milliseconds: 0))
        let found: String =
            switch outcome {
            case .acknowledged: "good"
            case .retry: "retry"
            case .held: "hold"
            case .tooLarge: "split"
            default: "\(outcome)"
            }
        #expect(found == meaning)
        if case .held(let failure) = outcome { #expect(!failure.message.contains("Unheard")) }
    }

    @Test("an exhausted quota, as Ceph reports it, is not taken for a missing permission")
    func quota() {
        let body = Array("<Error><Code>QuotaExceeded</Code></Error>".utf8)
        guard
            case .held(let failure) = S3Answer.outcome(
                of: HTTPAnswer(status: 403, body: body), wireBytes: 1, now: Sample.accepted)
        else {
            Issue.record("not held")
            return
        }
        #expect(
            failure.message.contains("QuotaExceeded: the quota") && !failure.message.contains("PutObject"))
    }

    @Test("SlowDown with Retry-After holds the whole destination for that time")
    func slowDown() async throws {
        let bench = try Bench()
        let server = try await S3Server(bench)
        try await server.fault(#"[{"status": 503, "code": "SlowDown", "headers": {"Retry-After": "7"}}]"#)
        let output = try output(bench, server)
        guard case .retryAfter(.seconds(7), let failure) = await output.send(try Sample.batch(1)) else {
            Issue.record("no wait")
            return
        }
        #expect(failure.message == "answered 503 SlowDown")
    }

    @Test("a secret in a file is read again when it changes")
    func secretFile() async throws {
        let bench = try Bench()
        let server = try await S3Server(bench)
        let file = "\(bench.directory.path)/secret"
        try PrivateFile.replace(file, with: "old\n")
        let time = ManualTime()
        let output = try output(bench, server, time: time) {
            $0.s3.aws.secret.file = file
        }
        guard case .held = await output.send(try Sample.batch(1)) else {
            Issue.record("the old secret did not hold")
            return
        }
        try PrivateFile.replace(file, with: "secret/with+signs=\n")
        time.advance(by: .seconds(2))
        #expect(await output.send(try Sample.batch(1)) == .acknowledged)
    }

    @Test("a machine's credentials are fetched, renewed before they expire, and replaced if called expired")
    func instanceMetadata() async throws {
        let bench = try Bench()
        let server = try await S3Server(bench)
        let time = ManualTime()
        func document(_ number: Int, ends: Duration) -> String {
            """
            {"role": "agents\\n", "document": {"Code": "Success", "AccessKeyId": "ASIAROLE\(number)", \
            "SecretAccessKey": "role-secret-\(number)", "Token": "token-\(number)", "Expiration": "\(time.wallTime + ends)"}}
            """
        }
        let output = try output(bench, server, time: time, metadata: server.url) {
            $0.s3.aws.credentials = .instance
        }
        func asked() async throws -> Int { try await server.log().count { $0.path.hasSuffix("/agents") } }
        func uploads() async throws -> [S3Server.Request] {
            try await server.log().filter { $0.path.hasPrefix("/events") }
        }

        try await server.metadata(document(1, ends: .seconds(3600)))
        #expect(await output.send(try Sample.batch(1, number: 1)) == .acknowledged)
        #expect(await output.send(try Sample.batch(1, number: 2)) == .acknowledged)
        #expect(try await asked() == 1)
        #expect(try await uploads().last?.headers["x-amz-security-token"] == "token-1")

        try await server.metadata(document(2, ends: .seconds(7200)))
        time.advance(by: .seconds(3400))
        #expect(await output.send(try Sample.batch(1, number: 3)) == .acknowledged)
        #expect(try await asked() == 2)
        #expect(try await uploads().last?.headers["x-amz-security-token"] == "token-2")

        try await server.fault(#"[{"status": 400, "code": "ExpiredToken"}]"#)
        #expect(
            retried(await output.send(try Sample.batch(1, number: 4)))?.message.contains("ExpiredToken")
                == true)
        #expect(await output.send(try Sample.batch(1, number: 4)) == .acknowledged)
        #expect(try await asked() == 3)
    }

    @Test("a missing or confused metadata service, or one without a role, is retried with the reason")
    func noMetadata() async throws {
        let bench = try Bench()
        let server = try await S3Server(bench)
        for (answers, said) in [
            (#"{"role": "", "document": {}}"#, "role"), (#"{"role": "../../x", "document": {}}"#, "no role"),
            (#"{"role": "r", "document": {"Code": "Failed"}}"#, "no credentials"),
            (#"{"status": 404}"#, "404"),
        ] {
            try await server.metadata(answers)
            let output = try output(bench, server, metadata: server.url) { $0.s3.aws.credentials = .instance }
            #expect(
                retried(await output.send(try Sample.batch(1)))?.message.contains(said) == true, "\(answers)")
        }
        let output = try output(bench, server, metadata: "http://127.0.0.1:1") {
            $0.s3.aws.credentials = .instance
        }
        #expect(retried(await output.send(try Sample.batch(1)))?.message.contains("metadata service") == true)
    }

    @Test("templates without the batch's id, with unknown fields or open braces are refused")
    func templates() throws {
        for bad in [
            "", "x", "{date}", "{batch}", "{batch_id", "batch_id}", "{}", "/{batch_id}", "a//{batch_id}",
            "../{batch_id}", "a/./{batch_id}",
            "{batch_id}\n", String(repeating: "x", count: 900) + "{batch_id}",
        ] {
            #expect(throws: Template.Mistake.self, "\(bad)") { try Template(bad, for: .key) }
        }
        let usual = S3Settings().key
        #expect(try Template(usual.text, for: .key) == usual)
        #expect(usual.text == "spoolship/dt={date}/hour={hour}/{install_id}/{batch_id}")
    }

    @Test("addresses: Amazon's by region, path style and host style")
    func addresses() throws {
        func url(_ options: HTTPOptions) throws -> String { try options.ofBucket(options.settings.s3).url }
        var options = HTTPOptions(url: "")
        options.settings.s3.bucket = "my-events"
        options.settings.s3.aws.region = "eu-west-1"
        #expect(
            try url(options) == "https://my-events.s3.eu-west-1.amazonaws.com/")
        options.settings.s3.pathStyle = true
        #expect(
            try url(options) == "https://s3.eu-west-1.amazonaws.com/my-events/")
        options.settings.url = EndpointURL("https://minio.example:9000/")
        #expect(try url(options) == "https://minio.example:9000/my-events/")
        options.settings.s3.pathStyle = false
        #expect(try url(options) == "https://my-events.minio.example:9000/")
        options.settings.url = EndpointURL("ftp://x")
        #expect(throws: OutputError.self) { try url(options) }
    }
}
