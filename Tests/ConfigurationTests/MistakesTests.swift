import Configuration
import Model
import Testing

@Suite("Mistakes")
struct MistakesTests {
    /// The problems of a text, without notes about old keys.
    static func problems(_ text: String, file: String = "spoolship.toml") -> [Problem] {
        do {
            return try Settings.read([ConfigurationText(file: file, text: text)]).warnings.filter {
                $0.severity != .note
            }
        } catch {
            return error.problems.filter { $0.severity != .note }
        }
    }

    @Test("five mistakes in one file are five errors, each with its place, line and remedy")
    func fault22_fiveMistakesFiveErrors() {
        let text = """
            [queue]
            max_sise = "20MiB"
            max_age = 30

            [dispatch]
            interval = "100ms"
            batch_events =

            [[destination]]
            name = "main"
            url = "ftp://example.com"
            """
        #expect(
            MistakesTests.problems(text).map(\.text).joined(separator: "\n") == """
                spoolship.toml:2:1: no setting max_sise in [queue]; did you mean max_size?
                    max_sise = "20MiB"
                    ^
                spoolship.toml:3:11: queue.max_age needs a unit; write "30s" for seconds or "30ms" for milliseconds
                    max_age = 30
                              ^
                spoolship.toml:6:12: dispatch.interval is 100ms; must be 1s to 1d, or "off"
                    interval = "100ms"
                               ^
                spoolship.toml:7:15: not TOML (key-value pair): expected value, saw '\\n'
                    batch_events =
                                  ^
                spoolship.toml:11:7: destination.main.url begins with ftp://; must begin with https://, http://, nats://, tls://, tcp://
                    url = "ftp://example.com"
                          ^
                """)
    }

    @Test("several lines that are not TOML are all reported, and a broken heading blames no line after it")
    func mistakesOfFormAreAllFound() {
        let problems = MistakesTests.problems(
            "[queue\nmax_sise = 1\n[retry]\njitter = = 1\nintervals = [\"1s\"]\n")
        #expect(problems.map(\.code) == [.syntax, .syntax])
        #expect(problems.map { $0.position?.line } == [1, 4])
    }

    @Test(
        "texts that trip the parser's assertions are ordinary mistakes",
        arguments: [
            "[a.\n]", "[[a. ]]", "a = { = 1 }", "a.\n", "[\"a\".", "a = [ . ]", "a = { b. = 1 }", "[.a]",
            "a.=1", "= 1",
        ])
    func assertionsAreMistakes(text: String) {
        let problems = MistakesTests.problems("\n" + text + "\n[queue]\n")
        #expect(problems.first?.code == .syntax)
        #expect(problems.first?.position?.line ?? 0 >= 2, "\(problems)")
    }

    @Test("an unterminated text is one mistake")
    func unterminatedText() {
        #expect(MistakesTests.problems("[agent]\nlog_level = \"\"\"info\n\n\n").map(\.code) == [.syntax])
        #expect(MistakesTests.problems("[spool]\ndirectory = \"a\0b\"\n").map(\.code).contains(.syntax))
    }

    @Test(
        "an unknown key is an error with the nearest known one",
        arguments: [
            ("[queu]", "no setting queu; did you mean queue?"),
            ("[queue]\nmaxsize = 1", "did you mean max_size?"),
            ("[[destinations]]\nname = \"a\"", "did you mean destination?"),
            ("[dispatch]\nmax_size = \"1GB\"", "it belongs in [queue]"),
            (
                "[[destination]]\nname=\"a\"\ntype=\"stdout\"\n[destination.tls]\nca = \"/a\"",
                "[destination.a.tls]"
            ),
            ("[retry]\nwhen_exausted = \"probe\"", "did you mean when_exhausted?"),
            ("[xyzzy]", "sections are agent, spool, destination"),
        ])
    func unknownKeysAreErrors(text: String, message: String) {
        let problems = MistakesTests.problems(text)
        #expect(problems.first?.code == .unknownKey)
        #expect(problems.first?.message.contains(message) == true, "\(problems)")
    }

    @Test(
        "the message about a value in a wrong form says what to write",
        arguments: [
            (
                "[queue]\nmax_size = 10",
                "needs a unit; write \"10B\", \"10MB\" (10^6 bytes) or \"10MiB\" (2^20)"
            ),
            ("[queue]\nmax_size = \"10mb\"", "write \"10MB\""),
            ("[queue]\nmax_size = \"10M\"", "write \"10MB\""),
            ("[queue]\nmax_size = \"x\"", "write a number and a unit"),
            ("[queue]\nmax_size = -1", "negative"),
            ("[queue]\nmax_age = 1.5", "needs a unit"), ("[queue]\nmax_age = \"90\"", "write \"90s\""),
            ("[queue]\nmax_age = true", "not true or false"),
            ("[queue]\nmax_age = 2026-11-20", "not a date or time"),
            ("[queue]\nmax_age = \"5 minutes\"", "not a duration"),
            ("[queue]\ndurability = \"powerloss\"", "\"power_loss\"?"),
            ("[agent]\nlog = \"Info\"", "did you mean \"info\"?"),
            ("[agent]\nstate_directory = \"state\"", "absolute"),
            ("queue = 3", "must be a section"), ("[destination]", "must be written [[destination]]"),
            ("[dispatch]\nbatch_on_size = \"yes\"", "true or false"),
            ("[dispatch]\nbatch_events = -1", "1 to 100000 or 0"),
            ("[retry]\nintervals = [\"1s\", 5]", "has a value that needs a unit"),
            ("[retry]\njitter = nan", "0 to 1"),
            ("[country]\ncode = \"XX\"", "ISO 3166-1"), ("[stats]\nlisten = \"localhost\"", "127.0.0.1:9464"),
            ("[device]\nproperties.overrides = { modle = \"a\" }", "names are sdk_name"),
            ("[[deadline]]\nname = \"a\"\ntime_zone = \"../../etc\"", "tz database"),
            ("[[deadline]]\nname = \"a\"\ntime_zone = \"UTC\"\ntime = \"24:00\"", "as \"04:00\""),
        ])
    func wrongValuesSayWhatToWrite(text: String, message: String) {
        let problems = MistakesTests.problems(text)
        #expect(problems.first?.message.contains(message) == true, "\(problems.map(\.text))")
        #expect(problems.first?.position?.line == text.split(separator: "\n").count)
    }

    @Test(
        "contradictory and missing settings are reported",
        arguments: [
            ("[[destination]]\nname = \"a\"", "has no url"),
            ("[[destination]]\nurl = \"https://a\"", "has no name"),
            ("[[destination]]\nname = \"A b\"\nurl = \"https://a\"", "a-z, 0-9"),
            (
                "[[destination]]\nname = \"a\"\ntype = \"stdout\"\n[[destination]]\nname = \"a\"\ntype = \"stdout\"",
                "exists already (spoolship.toml:1)"
            ), ("[[destination]]\nname = \"a\"\nurl = \"http://example.com\"", "allow_plain_http"),
            (
                "[[destination]]\nname = \"a\"\nurl = \"https://u:p@example.com\"",
                "settings user and password"
            ),
            (
                "[[destination]]\nname = \"a\"\nurl = \"https://a\"\nindex = \"i\"",
                "for format elasticsearch only"
            ),
            (
                "[[destination]]\nname = \"a\"\nurl = \"https://a\"\ntoken = \"t\"\ntoken_file = \"/t\"",
                "remove token_file"
            ),
            ("[[destination]]\nname = \"a\"\nurl = \"https://a\"\nuser = \"u\"", "no password"),
            (
                "[[destination]]\nname = \"a\"\nurl = \"https://a\"\noauth2.client_id = \"a\"",
                "has no oauth2.token_url and no oauth2.client_secret"
            ),
            (
                "[[destination]]\nname = \"a\"\nurl = \"https://a\"\noauth2.grant = \"jwt_bearer\"\n"
                    + "oauth2.token_url = \"https://b\"", "has no oauth2.private_key"
            ),
            (
                "[[destination]]\nname = \"a\"\nurl = \"https://a\"\noauth2.grant = \"jwt_bearer\"\n"
                    + "oauth2.token_url = \"https://b\"\noauth2.private_key = \"file:/k\"\noauth2.client_secret = \"a\"",
                "is not for grant jwt_bearer"
            ),
            (
                "[[destination]]\nname = \"a\"\nurl = \"https://a\"\nheaders = { A = \"{batch_id}\" }",
                "has {batch_id}, which is not a placeholder"
            ),
            (
                "[[destination]]\nname = \"a\"\nurl = \"https://a\"\naws.region = \"r\"\n"
                    + "aws.credentials = \"instance\"\naws.external_id = \"x\"",
                "has aws.assume_role with an external_id but no role"
            ),
            (
                "[[destination]]\nname = \"a\"\nurl = \"https://a\"\naws.credentials = \"instance\"",
                "has no aws.region"
            ),
            (
                "[[destination]]\nname = \"a\"\nurl = \"https://a\"\ntoken = \"t\"\naws.region = \"r\"\n"
                    + "aws.credentials = \"instance\"", "token and aws; keep one"
            ),
            (
                "[[destination]]\nname = \"a\"\ntype = \"kafka\"\nkafka.brokers = [\"a\"]",
                "has no kafka.topic"
            ),
            (
                "[[destination]]\nname = \"a\"\nurl = \"https://a\"\nformat = \"splunk_hec\"\ntoken = \"t\"\nindex = \"a-{ap}\"",
                "has {ap}, which is not a placeholder; known are {app}, {level}, {name}, {priority}, {date}, {hour}, {file}, {member:PATH}"
            ),
            (
                "[[destination]]\nname = \"a\"\nurl = \"https://a/_bulk\"\nformat = \"elasticsearch\"\nindex = \"A-{app}\"",
                "has capital letters, which Elasticsearch refuses"
            ),
            (
                "[[destination]]\nname = \"a\"\nurl = \"https://a/{team}\"",
                "has {team}, which is not a placeholder"
            ),
            (
                "[[destination]]\nname = \"a\"\nurl = \"https://a/{team}\"",
                "for a brace itself write {{ or }}"
            ),
            (
                "[[destination]]\nname = \"a\"\nurl = \"https://{app}.a/x\"",
                "only path and query may have one"
            ),
            ("[[destination]]\nname = \"a\"\ntype = \"syslog\"", "has no url"),
            (
                "[[destination]]\nname = \"a\"\ntype = \"syslog\"\nurl = \"https://a\"",
                "begins with https://; type syslog needs tls:// or tcp://"
            ),
            (
                "[[destination]]\nname = \"a\"\ntype = \"syslog\"\nurl = \"tcp://a\"",
                "which is plain text; use tls://"
            ),
            (
                "[[destination]]\nname = \"a\"\ntype = \"syslog\"\nurl = \"tls://a\"\ncompression = \"zstd\"",
                "is for type http or s3 or nats or kafka only"
            ),
            (
                "[[destination]]\nname = \"a\"\ntype = \"syslog\"\nurl = \"tls://a\"\nsyslog.structured_data_id = \"shop\"",
                "must be NAME@NUMBER"
            ),
            (
                "[[destination]]\nname = \"a\"\nurl = \"https://a\"\nsyslog.facility = \"local0\"",
                "is for type syslog only"
            ),
            (
                "[[destination]]\nname = \"a\"\nurl = \"https://a\"\nheaders = { X-Scope-OrgID = \"{ap}\" }",
                "has {ap}, which is not a placeholder"
            ),
            (
                "[[destination]]\nname = \"a\"\ntype = \"kafka\"\nkafka.brokers = [\"a:1\"]\nkafka.topic = \"t\"\n"
                    + "headers = { team = \"{ap}\" }", "has {ap}, which is not a placeholder"
            ),
            (
                "[[destination]]\nname = \"a\"\ntype = \"nats\"\nnats.subject = \"s\"\nurl = \"nats://localhost/{app}\"",
                "only type http fills it in"
            ),
            (
                "[[destination]]\nname = \"a\"\nurl = \"https://a/loki/api/v1/push\"\nformat = \"loki\"\nstructured_metadata = 5",
                "must be true, false or a list of members"
            ),
            (
                "[[destination]]\nname = \"a\"\ntype = \"nats\"\nurl = \"tls://a\"\nnats.subject = \"a.{app\"",
                "has an unmatched brace"
            ),
            (
                "[[destination]]\nname = \"a\"\ntype = \"kafka\"\nkafka.brokers = [\"a:1\"]\nkafka.topic = \"{app}{name}{member:a}{member:b}\"",
                "at most 249 with the longest values"
            ),
            (
                "[[destination]]\nname = \"a\"\ntype = \"s3\"\ns3.bucket = \"abc\"\ns3.region = \"r\"\n"
                    + "s3.credentials = \"instance\"\ns3.key = \"{app}/{date}\"", "lacks {batch_id}"
            ),
            (
                "[[destination]]\nname = \"a\"\ntype = \"stdout\"\ntemplate_values = 5",
                "is not for type stdout"
            ),
            (
                "[[destination]]\nname = \"a\"\nurl = \"https://a\"\ntls.certificate.key_file = \"/k\"",
                "together"
            ),
            ("[apps.shop]\ndestinations = [\"main\"]", "no such destination"),
            ("[[destination]]\nname = \"a\"\ntype = \"stdout\"\ninterval = \"10ms\"", "must be 1s to 1d"),
            ("[[destination]]\nname = \"a\"\ntype = \"stdout\"\ninterval = 10", "needs a unit"),
            ("[[destination]]\nname = \"a\"\ntype = \"stdout\"\nbatch_events = 0", "must be 1 to 100000"),
            (
                "[[destination]]\nname = \"a\"\ntype = \"stdout\"\nbatch_size = \"100B\"",
                "must be 1KiB to 64MiB"
            ),
            ("[[destination]]\nname = \"a\"\ntype = \"stdout\"\nparallel_batches = 65", "must be 1 to 64"),
            ("[[destination]]\nname = \"a\"\ntype = \"stdout\"\nmax_age = \"59s\"", "must be 1m to"),
            ("[[container]]\nid = \"GTM-1\"", "neither default_file nor url"),
            ("[[container]]\nid = \"GTM-1\"\nurl = \"https://a\"", "has no public_key"),
            (
                "[[container]]\nid = \"GTM-1\"\ndefault_file = \"/a\"\nmay_set = [\"queue.durability\"]",
                "needs a restart"
            ),
            ("[[container]]\nid = \"GTM-1\"\ndefault_file = \"/a\"\nmay_call = [\"f\"]", "no such function"),
            ("[functions.f]\ncommand = [\"lookup\"]", "absolute path"),
            ("[functions.f]\nparallel = 2", "has no command"),
        ])
    func contradictionsAreErrors(text: String, message: String) {
        let problems = MistakesTests.problems(text)
        #expect(problems.count == 1, "\(problems.map(\.text))")
        #expect(problems.first?.severity == .error)
        #expect(problems.first?.message.contains(message) == true, "\(problems.map(\.text))")
    }

    @Test(
        "plain http is allowed to this machine, and elsewhere by setting",
        arguments: ["localhost", "127.0.0.1:80", "127.9.9.9", "[::1]:1"])
    func plainHTTPToLoopback(host: String) {
        #expect(MistakesTests.problems("[[destination]]\nname = \"a\"\nurl = \"http://\(host)/x\"").isEmpty)
        let allowed = "[[destination]]\nname = \"a\"\nurl = \"http://example.com\"\nallow_plain_http = true"
        #expect(MistakesTests.problems(allowed).isEmpty)
    }

    @Test(
        "hosts with names similar to this machine's are other hosts",
        arguments: ["127.0.0.1.example.com", "127.1.example", "localhost.evil"])
    func notLoopback(host: String) {
        #expect(EndpointURL("http://\(host)/")?.isLoopback == false)
    }
}

@Suite("Addresses to listen on")
struct ListenAddressTests {
    @Test("an address is an IP address with a port")
    func texts() {
        for text in ["127.0.0.1:9464", "[::1]:9464", "0.0.0.0:0"] {
            #expect(ListenAddress(text)?.description == text)
        }
        for text in [
            "", "9464", "localhost", "127.0.0.1:", "127.0.0.1:99999", "example.com:80", "::1:80", ":80",
        ] {
            #expect(ListenAddress(text) == nil, "\(text)")
        }
    }
}
