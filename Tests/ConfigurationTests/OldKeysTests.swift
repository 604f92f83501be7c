import Model
import Testing

@testable import Configuration

/// Keys of older configurations.
@Suite("Old keys")
struct OldKeysTests {
    /// What a text says, without the checks that need whole sections.
    private func read(_ text: String) -> (settings: [EffectiveSetting], problems: [Problem]) {
        var settings = Settings()
        var context = ReadContext()
        context.sources.add(text, file: "a.toml")
        let (root, mistakes) = TOMLText.read(text, file: "a.toml", sources: context.sources)
        settings.read(root, path: "", context: &context)
        return (settings.effective, mistakes + context.problems)
    }

    /// The new line that a note gives.
    private func newLine(_ note: Problem) throws -> String {
        let start = try #require(note.message.firstRange(of: " is now written: ")).upperBound
        let line = note.message[start...]
        return String(line.firstRange(of: "; it stands for").map { line[..<$0.lowerBound] } ?? line)
    }

    /// The type or format that has a key of `[[destination]]`; with another one the key is a mistake.
    private static let deciding: [String: String] = [
        "path": "type = \"file\"\n", "index": "format = \"elasticsearch\"\n",
        "ecs": "format = \"elasticsearch\"\n", "labels": "format = \"loki\"\n",
        "structured_metadata": "format = \"loki\"\n", "otlp_encoding": "format = \"otlp\"\n",
        "measurement_id": "format = \"ga4\"\n", "host": "format = \"splunk_hec\"\n",
        "source": "format = \"splunk_hec\"\n", "sourcetype": "format = \"splunk_hec\"\n",
        "indexer_acknowledgement": "format = \"splunk_hec\"\n",
    ]

    /// A heading of the sample with what makes the destination one that has the section: other destinations
    /// have no such keys.
    private static func whole(heading: Substring) -> String {
        guard heading.hasPrefix("[destination.") else { return String(heading) }
        let section = String(heading.dropFirst("[destination.".count).prefix { $0 != "]" })
        let deciding =
            if DestinationSettings.Kind(rawValue: section) != nil {
                "type = \"\(section)\"\n"
            } else if HTTPSettings.Format(rawValue: section) != nil {
                "format = \"\(section)\"\n"
            } else {
                section == "body" ? "format = \"template\"\n" : ""
            }
        return "[[destination]]\n\(deciding)\(heading)"
    }

    @Test(
        "every line of the sample configurations of older versions is read, and its new line says the same",
        arguments: ["2026-11-21", "2026-11-26"])
    func samplesAreRead(date: String) throws {
        let file = "\(ShippedFileTests.root)/Tests/ConfigurationTests/Fixtures/spoolship-\(date).toml"
        let lines = try ShippedFileTests.text(of: file).split(separator: "\n").map { line in
            line.hasPrefix("#") && !line.hasPrefix("# ") ? line.dropFirst() : line
        }
        var heading = ""
        var (settings, notes) = (0, 0)
        for line in lines where !line.hasPrefix("#") && !line.isEmpty {
            if line.hasPrefix("[") {
                heading = OldKeysTests.whole(heading: line)
                continue
            }
            // Destinations that were not built then, and a default that stands for nothing: never accepted.
            if ["topic = \"events\"", "subject = \"events.web\"", "code = \"\""].contains(String(line)) {
                continue
            }
            settings += 1
            // Alone, a setting of the journal has no effect.
            let first = line.hasPrefix("journal_") ? "journal = true\n" : ""
            let key = String(line.prefix { $0 != " " })
            let deciding = heading == "[[destination]]" ? OldKeysTests.deciding[key] ?? "" : ""
            let old = read("\(heading)\n\(first)\(deciding)\(line)\n")
            #expect(old.problems.allSatisfy { $0.severity == .note }, "\(heading) \(line): \(old.problems)")
            guard let note = old.problems.first, note.severity == .note, note.code != .retired else {
                continue
            }
            notes += 1
            #expect(note.code == .renamed && old.problems.count == 1)
            let new = try read("\(heading)\n\(deciding)\(newLine(note))\n")
            #expect(new.problems == [], "\(note.message)")
            #expect(new.settings == old.settings, "\(note.message)")
        }
        #expect(settings > 100 && notes > 10, "\(settings) settings, \(notes) notes")
    }

    @Test("what is seldom needed works as before, with a note, and no reference lists it")
    func retiredKeys() {
        let found = read(
            """
            [spool]
            poll_interval = "1s"
            [[destination]]
            name = "main"
            type = "stdout"
            connect_timeout = "3s"
            [[priorities.rule]]
            app = "shop"
            priority = "critical"
            [[country.rule]]
            app = "shop"
            code = "IT"
            """)
        let values = [
            "spool.poll_interval": "1s", "destination.main.connect_timeout": "3s",
            "priorities.rule.1.priority": "critical", "country.rule.1.code": "IT",
        ]
        for (path, value) in values {
            #expect(found.settings.first { $0.path == path }?.value == .string(value), "\(path)")
        }
        let notes = found.problems.filter { $0.severity == .note }
        #expect(notes.count == 4 && notes.allSatisfy { $0.code == .retired })
        #expect(!Settings.listed.contains { $0.name == "priorities" })
        func count(_ section: SectionDescription) -> Int {
            section.listed.reduce(0) {
                switch $1 {
                case .setting: $0 + 1
                case .section(let inner): $0 + count(inner)
                }
            }
        }
        // A new key has to be worth another one.
        #expect(Settings.listed.map(count).reduce(0, +) <= 180)
    }

    @Test("an old configuration starts with the same settings as its new form, and each old key has a note")
    func wholeConfiguration() throws {
        let old = """
            [dispatch]
            batch_events = 100
            batch_most_events = 900
            batch_on_size = false
            [limits]
            name_length = 64
            beyond_name_length = "refuse"
            [apps.shop.limits]
            beyond_properties = "quarantine"
            [apps.system]
            journal = true
            journal_units = ["nginx.service"]
            [[destination]]
            name = "search"
            index = "events-{app}"
            ecs = true
            format = "elasticsearch"
            url = "https://a/_bulk"
            token_file = "/a"
            [[destination]]
            name = "hec"
            structured_metadata = false
            index = "main"
            source = "shop"
            format = "splunk_hec"
            url = "https://a/services/collector/event"
            token_credential = "hec"
            [[destination]]
            name = "archive"
            type = "s3"
            [destination.s3]
            bucket = "events"
            region = "eu-central-1"
            access_key_id = "a"
            secret_access_key_file = "/b"
            [[container]]
            id = "A"
            default_file = "/A"
            hash_key_file = "/c"
            timeout = "5s"
            [spool]
            archive_max_age = "9d"
            archive_max_size = "2GiB"
            [country]
            address_member = "ip"
            remove_address = true
            [apps.table]
            read = ["/a/*.csv"]
            parse = "csv"
            columns = ["time", "id"]
            default_event_name = "row"
            level = ["sev"]
            level_scale = "otel"
            [apps.lines]
            read = ["/a/*.log"]
            pattern = '^(?P<message>.*)'
            time_zone = "Europe/Berlin"
            [retry]
            jitter = 0.25
            probe_interval = "1m"
            [[deadline]]
            name = "reports"
            time = "05:00"
            time_zone = "Europe/Rome"
            [[destination]]
            name = "rows"
            url = "https://a/rows"
            format = "template"
            token = "b"
            token_scheme = "ApiKey"
            [destination.body]
            event = "{{event}}"
            begin = "["
            end = "]"
            [destination.accept]
            status = [202]
            body = "taken"
            [[destination]]
            name = "own"
            url = "https://a/own"
            [destination.oauth2]
            token_url = "https://a/token"
            client_id = "spoolship"
            subject = "agent"
            private_key = "file:/d"
            """
        let new = """
            [dispatch]
            batch_events = { full = 0, max = 900 }
            [limits]
            name_length = { max = 64, beyond = "refuse" }
            [apps.shop.limits]
            properties.beyond = "quarantine"
            [apps.system.journal]
            units = ["nginx.service"]
            [[destination]]
            name = "search"
            format = "elasticsearch"
            url = "https://a/_bulk"
            token = "file:/a"
            [destination.elasticsearch]
            index = "events-{app}"
            ecs = true
            [[destination]]
            name = "hec"
            format = "splunk_hec"
            url = "https://a/services/collector/event"
            token = "credential:hec"
            splunk_hec = { fields = false, index = "main", source = "shop" }
            [[destination]]
            name = "archive"
            type = "s3"
            [destination.s3]
            bucket = "events"
            region = "eu-central-1"
            access_key_id = "a"
            secret_access_key = "file:/b"
            [[container]]
            id = "A"
            default_file = "/A"
            hash_key = "file:/c"
            open.timeout = "5s"
            [spool]
            archive = { max_age = "9d", max_size = "2GiB" }
            [country]
            address = { member = "ip", remove = true }
            [apps.table]
            read = ["/a/*.csv"]
            parse = "csv"
            columns = ["time", "id"]
            name.default = "row"
            level = { members = ["sev"], scale = "otel" }
            [apps.lines]
            read = ["/a/*.log"]
            pattern = '^(?P<message>.*)'
            time.zone = "Europe/Berlin"
            [retry]
            intervals.jitter = 0.25
            when_exhausted.interval = "1m"
            [[deadline]]
            name = "reports"
            time = { of_day = "05:00", zone = "Europe/Rome" }
            [[destination]]
            name = "rows"
            url = "https://a/rows"
            format = "template"
            token = "b"
            token_in.scheme = "ApiKey"
            accept = { status = [202], body = "taken" }
            [destination.body]
            event = "{{event}}"
            request = "[{{events}}]"
            [[destination]]
            name = "own"
            url = "https://a/own"
            [destination.oauth2]
            token_url = "https://a/token"
            client_id = { id = "spoolship", subject = "agent" }
            private_key = "file:/d"
            """
        let before = try Settings.read([ConfigurationText(file: "old.toml", text: old)])
        let after = try Settings.read([ConfigurationText(file: "new.toml", text: new)])
        #expect(SettingsChange.all(from: before.settings, to: after.settings) == [])
        #expect(after.warnings == [])
        #expect(before.warnings.allSatisfy { $0.severity == .note && $0.position != nil })
        #expect(
            before.warnings.map(\.message) == [
                "dispatch.batch_most_events is now written: batch_events = { full = 0, max = 900 }",
                "dispatch.batch_on_size is now written: batch_events = { full = 0, max = 900 }",
                "limits.beyond_name_length is now written: name_length = { max = 64, beyond = \"refuse\" }",
                "apps.shop.limits.beyond_properties is now written: properties = { beyond = \"quarantine\" }",
                "apps.system.journal_units is now written: journal.units = [\"nginx.service\"]; it stands for"
                    + " journal = true, too",
                "destination.search.index is now written: elasticsearch.index = \"events-{app}\"",
                "destination.search.ecs is now written: elasticsearch.ecs = true",
                "destination.search.token_file is now written: token = \"file:/a\"",
                "destination.hec.structured_metadata is now written: splunk_hec.fields = false",
                "destination.hec.index is now written: splunk_hec.index = \"main\"",
                "destination.hec.source is now written: splunk_hec.source = \"shop\"",
                "destination.hec.token_credential is now written: token = \"credential:hec\"",
                "destination.archive.s3.secret_access_key_file is now written: secret_access_key = \"file:/b\"",
                "container.A.hash_key_file is now written: hash_key = \"file:/c\"",
                "container.A.timeout is now written: open = { timeout = \"5s\" }",
                "spool.archive_max_age is now written: archive = { max_age = \"9d\", max_size = \"2GiB\" }",
                "spool.archive_max_size is now written: archive = { max_age = \"9d\", max_size = \"2GiB\" }",
                "country.address_member is now written: address = { member = \"ip\", remove = true }",
                "country.remove_address is now written: address = { member = \"ip\", remove = true }",
                "apps.table.default_event_name is now written: name = { default = \"row\" }",
                "apps.table.level_scale is now written: level = { members = [\"sev\"], scale = \"otel\" }",
                "apps.lines.time_zone is now written: time = { zone = \"Europe/Berlin\" }",
                "retry.jitter is now written: intervals = { jitter = 0.25 }",
                "retry.probe_interval is now written: when_exhausted = { interval = \"1m\" }",
                "deadline.reports.time_zone is now written: time = { of_day = \"05:00\", zone = \"Europe/Rome\" }",
                "destination.rows.token_scheme is now written: token_in = { scheme = \"ApiKey\" }",
                "destination.rows.body.begin is now written: request = \"[{{events}}]\"",
                "destination.rows.body.end is now written: request = \"[{{events}}]\"",
                "destination.own.oauth2.subject is now written:"
                    + " client_id = { id = \"spoolship\", subject = \"agent\" }",
            ])
        for destination in ["search", "hec"] {
            let path = "destination.\(destination)"
            let dispatch = try #require(before.settings.destinations.first { $0.name == destination })
            #expect(before.settings.dispatch(for: dispatch).batchOnSize == false, "\(path)")
            #expect(after.settings.dispatch(for: dispatch).batchOnSize == false, "\(path)")
        }
    }

    @Test(
        "an old key beside its new one is a mistake",
        arguments: [
            ("agent", "log.level = \"info\"", "log_level = \"debug\"", "log.level"),
            ("agent", "log = { level = \"info\" }", "log_level = \"info\"", "log.level"),
            (
                "limits", "name_length = { max = 64, beyond = \"cut\" }", "beyond_name_length = \"refuse\"",
                "name_length.beyond"
            ),
            ("dispatch", "batch_events = { full = 1, max = 9 }", "batch_most_events = 5", "batch_events.max"),
            (
                "dispatch", "batch_events = { full = 1, max = 9 }", "batch_on_size = false",
                "batch_events.full"
            ),
            ("apps.shop", "journal.units = [\"a\"]", "journal_units = [\"b\"]", "journal.units"),
            ("apps.shop", "time = { zone = \"UTC\" }", "time_zone = \"Europe/Rome\"", "time.zone"),
            ("country", "address.member = \"a\"", "address_member = \"b\"", "address.member"),
            ("[destination]", "token = \"file:/a\"", "token_file = \"/b\"", "token"),
            ("[destination]", "certificate = \"/a\"", "certificate_file = \"/b\"", "certificate"),
            ("[destination]", "elasticsearch.index = \"a\"", "index = \"b\"", "elasticsearch.index"),
        ])
    func besideItsNewKey(section: String, new: String, old: String, key: String) {
        var heading = "[\(section)]"
        if section == "[destination]" {
            let inner = old.hasPrefix("certificate") ? "[destination.tls]" : ""
            heading = "[[destination]]\nname = \"a\"\nformat = \"elasticsearch\"\n\(inner)"
        }
        for lines in ["\(new)\n\(old)", "\(old)\n\(new)"] {
            let mistakes = read("\(heading)\n\(lines)\n").problems.filter { $0.severity == .error }
            #expect(mistakes.map(\.code) == [.conflict], "\(lines): \(mistakes)")
            let name = old.prefix { $0 != " " }
            let said = "\(name) is the old key of \(key), which is set, too; remove \(name)"
            #expect(mistakes.first?.message.hasSuffix(said) == true, "\(mistakes)")
            #expect(mistakes.first?.position != nil)
        }
    }

    @Test(
        "an old key is no mistake beside the other half of its new one",
        arguments: [
            ("agent", "log = { format = \"json\" }\nlog_level = \"debug\""),
            ("limits", "name_length = 64\nbeyond_name_length = \"refuse\""),
            ("dispatch", "batch_events = 10\nbatch_most_events = 50\nbatch_on_size = false"),
            ("dispatch", "batch_events = { max = 100 }\nbatch_on_size = false"),
            ("apps.shop", "journal = true\njournal_units = [\"b\"]"),
            ("apps.shop", "time = [\"a\"]\ntime_zone = \"Europe/Rome\""),
        ])
    func besideTheOtherHalf(section: String, lines: String) {
        let found = read("[\(section)]\n\(lines)\n").problems
        #expect(!found.isEmpty && found.allSatisfy { $0.severity == .note }, "\(found)")
    }

    @Test("a later file with a new key overrides an old key, and the other way round")
    func overTwoFiles() throws {
        for (first, second) in [
            ("log_level = \"debug\"", "log = { level = \"error\" }"),
            ("log.level = \"debug\"", "log_level = \"error\""),
        ] {
            let files = [("a.toml", first), ("b.toml", second)]
            let read = try Settings.read(files.map { ConfigurationText(file: $0, text: "[agent]\n\($1)\n") })
            #expect("\(read.settings.agent.logLevel)" == "error", "\(first) \(second)")
        }
    }

    @Test(
        "keys that became parts of another one are read, and their new lines say the same",
        arguments: [
            ("agent", "log_level = \"info\"", "log = { level = \"info\" }"),
            ("agent", "log_format = \"json\"", "log = { format = \"json\" }"),
            ("spool", "max_unread = \"1GiB\"", "when_full = { max_unread = \"1GiB\" }"),
            ("dedup", "max_ids = 5000", "window = { max_ids = 5000 }"),
            ("session", "timeout = \"1m\"", "mode = { timeout = \"1m\" }"),
            ("device", "overrides = { model = \"a\" }", "properties = { overrides = { model = \"a\" } }"),
            ("stats", "hosts = [\"a.example\"]", "listen = { hosts = [\"a.example\"] }"),
            ("control", "group = \"adm\"", "socket = { group = \"adm\" }"),
            ("apps.shop", "may_be_critical = true", "priority = { may_be_critical = true }"),
            ("[deadline]", "apps = [\"shop\"]", "for = { apps = [\"shop\"] }"),
            ("[deadline]", "destinations = [\"a\"]", "for = { destinations = [\"a\"] }"),
            ("[container]", "ca_file = \"/a\"", "url = { ca_file = \"/a\" }"),
            ("[destination]", "tls.certificate_file = \"/a\"", "certificate = \"/a\""),
            ("[destination]", "tls.key_file = \"/a\"", "certificate = { key_file = \"/a\" }"),
            ("[destination]", "oauth2.ca_file = \"/a\"", "token_url = { ca_file = \"/a\" }"),
            ("[destination]", "oauth2.subject = \"a\"", "client_id = { subject = \"a\" }"),
            (
                "[destination]", "format = \"template\"\nbody.separator = \",\"",
                "request = { separator = \",\" }"
            ),
            (
                "[destination]", "type = \"syslog\"\nsyslog.max_message = \"4KiB\"",
                "message = { max_size = \"4KiB\" }"
            ),
            (
                "[destination]", "type = \"s3\"\ns3.path_style = true", "bucket = { path_style = true }"
            ),
            (
                "[destination]", "type = \"s3\"\ns3.if_none_match = false",
                "key = { if_none_match = false }"
            ),
            (
                "[destination]", "type = \"s3\"\ns3.storage_class = \"STANDARD_IA\"",
                "storage = \"STANDARD_IA\""
            ),
            (
                "[destination]", "type = \"s3\"\ns3.server_side_encryption = \"AES256\"",
                "storage = { encryption = \"AES256\" }"
            ),
        ])
    func partsOfOneKey(section: String, line: String, now: String) throws {
        let old = read("[\(section)]\n\(line)\n")
        #expect(old.problems.map(\.code) == [.renamed], "\(old.problems.map(\.text))")
        let note = try #require(old.problems.first)
        #expect(try newLine(note) == now)
        // Beside the lines that decide the type, and in the section that the key is in.
        let lines = line.split(separator: "\n")
        let key = try #require(lines.last)
        let inner = section == "[destination]" ? key.prefix { $0 != "." } + "." : ""
        let text = (lines.dropLast().map(String.init) + ["\(inner)\(now)"]).joined(separator: "\n")
        let new = read("[\(section)]\n\(text)\n")
        #expect(new.problems == [])
        #expect(new.settings == old.settings)
    }

    @Test("a bucket of which only the style is said has no name")
    func bucketWithoutName() {
        let text =
            "[[destination]]\nname = \"a\"\ntype = \"s3\"\ns3.region = \"r\"\ns3.credentials = \"instance\"\n"
            + "s3.bucket.path_style = true"
        let error = #expect(throws: ConfigurationError.self) {
            try Settings.read([ConfigurationText(file: "a.toml", text: text)])
        }
        #expect(error?.problems.contains { $0.message.hasSuffix("has no s3.bucket") } == true)
    }

    @Test("a note has only what was set, so that its line means no more than the old one")
    func noteSaysNoMore() throws {
        func notes(_ text: String) throws -> [String] {
            try Settings.read([ConfigurationText(file: "a.toml", text: text)]).warnings
                .filter { $0.severity == .note }.map(\.message)
        }
        let archive =
            "[[destination]]\nname = \"a\"\ntype = \"s3\"\ns3.bucket = \"events\"\ns3.region = \"eu-central-1\"\n"
            + "s3.credentials = \"instance\"\n[dispatch]\n"
        for (old, new) in [
            ("batch_most_events = 900", "batch_events = { max = 900 }"),
            ("batch_on_size = false", "batch_events = { full = 0 }"),
        ] {
            #expect(try notes(archive + old).contains { $0.hasSuffix("is now written: \(new)") }, "\(old)")
            let before = try Settings.read([ConfigurationText(file: "a.toml", text: archive + old)]).settings
            let after = try Settings.read([ConfigurationText(file: "a.toml", text: archive + new)]).settings
            let was = before.dispatch(for: before.destinations[0])
            let now = after.dispatch(for: after.destinations[0])
            #expect(was.batchMostEvents == now.batchMostEvents && was.batchOnSize == now.batchOnSize)
            #expect(was.batchEvents == now.batchEvents || !now.batchOnSize)
        }
    }

    @Test("a critical delay of zero is read, and check says what it does")
    func zeroDelay() throws {
        let text =
            "[dispatch]\ncritical_delay = \"0s\"\n[[destination]]\nname = \"a\"\ntype = \"stdout\"\n"
            + "critical_delay = \"0s\""
        let notes = try Settings.read([ConfigurationText(file: "a.toml", text: text)]).warnings
        let message = "is 0s: critical events are sent at once, and each may be a request of its own"
        #expect(
            notes.map(\.message) == [
                "dispatch.critical_delay \(message)", "destination.a.critical_delay \(message)",
            ])
        #expect(notes.allSatisfy { $0.severity == .note && $0.position != nil })
    }

    @Test("a value that is refused has no new line")
    func refusedHasNoNote() {
        let text = "[dispatch]\nbatch_most_events = \"x\""
        do {
            _ = try Settings.read([ConfigurationText(file: "a.toml", text: text)])
            Issue.record("it was accepted")
        } catch {
            #expect(error.problems.map(\.severity) == [.error], "\(error)")
        }
    }

    @Test("an old key beside a new one that was refused is no conflict, and has no new line yet")
    func besideARefusedOne() {
        for lines in ["client_id = \"\"\nsubject = \"you\"", "subject = \"you\"\nclient_id = { id = \"\" }"] {
            let problems = read("[[destination]]\nname = \"a\"\n[destination.oauth2]\n\(lines)\n").problems
            #expect(problems.count == 1, "\(problems.map(\.text))")
            #expect(problems.first?.message.contains("is empty") == true, "\(problems.map(\.text))")
        }
    }

    @Test("old keys of both values of a pair have the same new line, in either order")
    func bothHalves() throws {
        for lines in ["issuer = \"me\"\nsubject = \"you\"", "subject = \"you\"\nissuer = \"me\""] {
            let problems = read("[[destination]]\nname = \"a\"\n[destination.oauth2]\n\(lines)\n").problems
            #expect(problems.map(\.code) == [.renamed, .renamed], "\(problems.map(\.text))")
            for note in problems {
                #expect(try newLine(note) == "client_id = { id = \"me\", subject = \"you\" }")
            }
        }
    }

    @Test("values of later files override those of earlier ones, in old and in new form")
    func filesOverride() throws {
        let texts = [
            "[limits]\nname_length = 64\nbeyond_name_length = \"refuse\"\n[dispatch]\nbatch_on_size = false",
            "[limits]\nname_length = { max = 32 }\n[dispatch]\nbatch_events = 7",
        ].enumerated().map { ConfigurationText(file: "\($0).toml", text: $1) }
        let settings = try Settings.read(texts).settings
        #expect(settings.limits.nameLength == LimitSetting(value: 32, beyond: .refuse))
        #expect(settings.dispatch.batchEvents == 7 && !settings.dispatch.batchOnSize)
    }

    @Test("a secret is itself, a file or a credential; behind text: it is itself, however it begins")
    func secrets() throws {
        func token(_ value: String) throws -> SecretSource? {
            let text = "[[destination]]\nname = \"a\"\nurl = \"https://a\"\ntoken = \"\(value)\""
            return try Settings.read([ConfigurationText(file: "a.toml", text: text)]).settings.destinations[0]
                .token.source
        }
        #expect(try token("abc") == .inline(Secret("abc")))
        #expect(try token("file:/a/b") == .file("/a/b"))
        #expect(try token("credential:main-token") == .credential("main-token"))
        #expect(try token("text:file:/a") == .inline(Secret("file:/a")))
        #expect(try token("text:text:") == .inline(Secret("text:")))
        for wrong in ["file:a", "file:", "credential:", "credential:../a", "text:", ""] {
            do {
                _ = try token(wrong)
                Issue.record("\(wrong) was accepted")
            } catch let error as ConfigurationError {
                let problem = try #require(error.problems.first)
                #expect(error.problems.count == 1 && problem.code == .outOfRange, "\(error)")
                #expect(!error.description.contains("../a"), "\(error)")
            }
        }
    }

    @Test("a secret that is given in two ways is a mistake")
    func twoWays() throws {
        for lines in [
            "token = \"a\"\ntoken_file = \"/b\"", "token_file = \"/b\"\ntoken_credential = \"c\"",
            "token = \"credential:c\"\ntoken_file = \"/b\"",
        ] {
            let text = "[[destination]]\nname = \"a\"\nurl = \"https://a\"\n\(lines)"
            #expect(throws: ConfigurationError.self, "\(lines)") {
                try Settings.read([ConfigurationText(file: "a.toml", text: text)])
            }
        }
    }

    @Test("a container may set what an older configuration allows it by an old key")
    func containersSet() throws {
        let text = """
            [[container]]
            id = "A"
            default_file = "/A"
            may_set = ["limits.beyond_name_length", "dispatch.batch_most_events"]
            """
        let settings = try Settings.read([ConfigurationText(file: "a.toml", text: text)]).settings
        let changed = try settings.setting(
            "limits.beyond_name_length", to: .string("refuse"), origin: .container("A"))
        #expect(changed.limits.nameLength.beyond == .refuse)
        #expect(changed.origin(of: "limits.name_length") == .container("A"))
        let both = try changed.setting(
            "dispatch.batch_events", to: .object([.init("max", .integer(9))]), origin: .container("A"))
        #expect(both.dispatch.batchMostEvents == 9 && both.dispatch.batchEvents == 50)
    }

    @Test("the values of a pair are set together, or one at a time, also by the path of one")
    func containersSetPairs() throws {
        let text = """
            [limits]
            name_length = { max = 100, beyond = "refuse" }
            [[container]]
            id = "A"
            default_file = "/A"
            may_set = ["limits.name_length"]
            """
        let settings = try Settings.read([ConfigurationText(file: "a.toml", text: text)]).settings
        func limit(_ value: JSONValue) throws -> [String] {
            let length = try settings.setting("limits.name_length", to: value, origin: .container("A")).limits
                .nameLength
            return [length.value.map { "\($0)" } ?? "-", length.beyond?.rawValue ?? "-"]
        }
        #expect(try limit(.integer(50)) == ["50", "refuse"])
        #expect(try limit(.object([.init("max", .integer(50))])) == ["50", "refuse"])
        #expect(try limit(.object([.init("beyond", .string("cut"))])) == ["100", "cut"])
        #expect(throws: ConfigurationError.self) { try limit(.object([.init("beyond", .string("drop"))])) }
        #expect(throws: ConfigurationError.self) { try limit(.object([.init("most", .integer(1))])) }
        let changed = try settings.setting("limits.name_length.beyond", to: "cut", origin: .container("A"))
        #expect(changed.limits.nameLength == LimitSetting(value: 100, beyond: .cut))
        #expect(throws: ConfigurationError.self) {
            try settings.setting("limits.name_length.most", to: 1, origin: .container("A"))
        }
    }

    @Test("may_set names pairs and their second values; another third name is a mistake")
    func namesOfPairs() {
        let text = """
            [[container]]
            id = "A"
            default_file = "/A"
            may_set = ["limits.name_length", "limits.name_length.beyond", "limits.name_length.most", \
            "dispatch.interval.max"]
            """
        let error = #expect(throws: ConfigurationError.self) {
            try Settings.read([ConfigurationText(file: "a.toml", text: text)])
        }
        let messages = error?.problems.map(\.message) ?? []
        let unknown = messages.filter { $0.contains("there is no such setting") }
        #expect(unknown.count == 2, "\(String(describing: error))")
        #expect(unknown.contains { $0.contains("limits.name_length.most") })
        #expect(unknown.contains { $0.contains("dispatch.interval.max") })
    }

    @Test("a setting of a pair that does not exist, or that is wrong, is named")
    func pairs() {
        let problems = read("[limits]\nname_length = { most = 5, max = -1, beyond = \"drop\" }").problems
        #expect(
            problems.map(\.message) == [
                "limits.name_length has no most; it has max and beyond",
                "limits.name_length.max is -1; must be 1 to 65536 or 0",
                "limits.name_length.beyond is \"drop\"; must be one of cut, refuse, quarantine, allow",
            ])
    }

    @Test("journal = true reads all of the journal, a section what it says, false nothing")
    func journal() {
        func journal(_ text: String) -> JournalSettings? {
            var settings = Settings()
            var context = ReadContext()
            let (root, _) = TOMLText.read(text, file: "a.toml", sources: context.sources)
            settings.read(root, path: "", context: &context)
            return context.problems.isEmpty ? settings.apps["a"]?.journal : nil
        }
        #expect(journal("[apps.a]\njournal = true")?.read == true)
        #expect(journal("[apps.a.journal]\npriority = \"err\"")?.read == true)
        #expect(journal("[apps.a.journal]\nread = false\npriority = \"err\"")?.uselessSetting == "priority")
        #expect(journal("[apps.a]\njournal = false")?.read == false)
        #expect(journal("[apps.a]\njournal = 1") == nil)
    }

    @Test("a later file's section leaves a journal off that an earlier file has turned off")
    func journalOfSeveralFiles() throws {
        func journal(_ texts: String...) throws -> JournalSettings? {
            let files = texts.enumerated().map {
                ConfigurationText(file: "\($0.offset).toml", text: $0.element)
            }
            return try Settings.read(files).settings.apps["a"]?.journal
        }
        let (off, section) = ("[apps.a]\njournal = false", "[apps.a.journal]\npriority = \"err\"")
        #expect(try journal(off, section)?.read == false)
        #expect(try journal(off, section)?.priority == .err)
        #expect(try journal(section, off)?.read == false)
        #expect(try journal(off, section, "[apps.a]\njournal = true")?.read == true)
        #expect(try journal(off, "[apps.a.journal]\nread = true")?.read == true)
        #expect(try journal("[apps.a]\njournal = true", section)?.read == true)
    }
}
