import Configuration
import Glibc
import TestKit
import Testing

@testable import spoolship

@Suite("check")
struct CheckCommandTests {
    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    func write(_ text: String) throws -> String {
        let path = "\(directory.path)/spoolship.toml"
        let file = try #require(fopen(path, "w"))
        fputs(text, file)
        fclose(file)
        return path
    }

    @Test("every mistake is printed with place, line and caret on standard error, and the exit code is 78")
    func fault22_mistakesAreShown() throws {
        let path = try write("[queue]\nmax_sise = \"1MiB\"\n[retry]\njitter = 2\n")
        let (code, kept) = KeptConsole.run("check", "--config", path)
        #expect(code == .configuration)
        #expect(kept.output.isEmpty)
        #expect(
            kept.errorOutput == """
                \(path):2:1: no setting max_sise in [queue]; did you mean max_size?
                    max_sise = "1MiB"
                    ^
                \(path):4:10: retry.jitter is 2; must be 0 to 1
                    jitter = 2
                             ^
                spoolship: 2 mistakes

                """)
        let json = KeptConsole.run("check", "--json", "--config", path).1.output
        #expect(
            json.hasPrefix("{\"good\":false,\"problems\":[{\"severity\":\"error\",\"code\":\"unknown_key\""))
    }

    @Test("the message about a missing file says how to name another one")
    func missingFile() {
        let (code, kept) = KeptConsole.run("check", "--config", "\(directory.path)/none.toml")
        #expect(code == .configuration)
        #expect(kept.errorOutput.contains("No such file or directory; give another with --config FILE"))
    }

    @Test("--print shows every setting with its origin, masks secrets, and can be read as a configuration")
    func effectiveConfiguration() throws {
        let path = try write(
            """
            [queue]
            max_size = "20MiB"
            [[destination]]
            name = "main"
            url = "https://example.com/"
            token = "0123456789abcdefghijklmnopqrstuvwxyz"
            tls.ca_file = "/etc/ca.pem"
            batch_size = "2MiB"
            interval = "1m"
            [apps."my shop"]
            country = "IT"
            [[priorities.rule]]
            event = "Pay*"
            """)
        let (code, kept) = KeptConsole.run("check", "--print", "--text-only", "--config", path)
        #expect(code == .success)
        func origin(of line: String) -> Substring? {
            kept.output.split(separator: "\n").first { $0.hasPrefix(line + " ") }?.split(separator: " ").last
        }
        #expect(origin(of: "max_size = \"20MiB\"") == "\(path):2")
        #expect(origin(of: "max_age = \"25d\"") == "default")
        #expect(
            kept.output.contains("# default; 640KiB is in force, a thirty-second of queue.max_size\n"),
            "\(kept.output)"
        )
        #expect(kept.output.contains("# \(path):8; 640KiB is in force, a thirty-second of queue.max_size\n"))
        #expect(origin(of: "interval = \"1m\"") == "\(path):9")
        #expect(kept.output.contains("[[destination]]\nname = \"main\""))
        #expect(kept.output.contains("[destination.tls]\nca_file"))
        #expect(kept.output.contains("[apps.\"my shop\"]\n"))
        #expect(!kept.output.contains("rstuvwxyz"))
        let again = try Settings.read([ConfigurationText(file: "printed", text: kept.output)])
        let changes = SettingsChange.all(from: try Settings.load(path: path).settings, to: again.settings)
        #expect(changes.map(\.path) == ["destination.main.token"])
    }

    @Test(
        "--sample needs no configuration: it guesses the format of a file",
        .enabled(if: access(Invocation.defaultConfiguration, F_OK) != 0))
    func sampleWithoutConfiguration() throws {
        let path = "\(directory.path)/access.log"
        let line = #"192.0.2.7 - - [20/Nov/2026:09:59:00 +0000] "GET / HTTP/1.1" 200 5 "-" "curl""#
        try writeFile(path, "\(line)\n\(line)\n")
        let (code, kept) = KeptConsole.run("check", "--sample", path)
        #expect(code == .success, "\(kept.errorOutput)")
        #expect(kept.errorOutput.contains("\(Invocation.defaultConfiguration) does not exist"))
        #expect(
            kept.output.contains(
                "100 % of the first 2 records are of the format nginx: add parse = \"nginx\" to [apps.sample]"
            ),
            "\(kept.output)")
        // A file that was named must be there.
        #expect(KeptConsole.run("check", "--sample", path, "--config", "\(path).no").0 == .configuration)
    }

    @Test("--sample says that its digests are not the agent's, if it shows any")
    func sampleOfDigests() throws {
        let path = "\(directory.path)/app.log"
        try writeFile(path, #"{"user":"ann"}"# + "\n")
        func sample(_ action: String) throws -> String {
            let configuration = try write(
                """
                [agent]
                hash_key = "file:\(directory.path)/hash.key"
                [[rule]]
                \(action)
                [[destination]]
                name = "main"
                type = "stdout"
                """)
            let (code, kept) = KeptConsole.run("check", "--sample", path, "--config", configuration)
            #expect(code == .success, "\(kept.errorOutput)")
            return kept.output
        }
        let warning = "digests are made with a key of zeros here: those that the agent sends differ"
        #expect(try sample(#"hash = ["user"]"#).contains(warning))
        #expect(try !sample(#"remove = ["user"]"#).contains(warning))
    }

    @Test(
        "--sample names the runtime that has wrapped the lines, and says if no format fits; not if one is set",
        arguments: [
            (#"2026-11-29T10:00:00.1Z stdout F just text"#, "", "lines: add format = \"cri\" to [apps.pods]"),
            (
                #"{"log":"a\n","stream":"stdout","time":"2026-11-29T10:00:00.1Z"}"#, "",
                "lines: add format = \"docker\" to [apps.pods]"
            ),
            (
                #"2026-11-29T10:00:00.1Z stdout F {"a":1}"#, "",
                "lines: add format = \"cri\" to [apps.pods]"
            ),
            (
                #"{"log":"a=\"1\"\n","stream":"stdout","time":"2026-11-29T10:00:00.1Z"}"#, "",
                "of the format logfmt: add format = \"docker\" and parse = \"logfmt\" to [apps.pods]"
            ),
            (
                "2026-11-29T10:00:00.1Z stdout P 192.0.2.7 - - [20/Nov/2026:09:59:00 +0000] \"GET\n"
                    + "2026-11-29T10:00:00.1Z stderr F other\n"
                    + #"2026-11-29T10:00:00.1Z stdout F  / HTTP/1.1" 200 5 "-" "curl""# + "\n"
                    + "2026-11-29T10:00:00.1Z stdout F "
                    + String(
                        repeating:
                            #"192.0.2.7 - - [20/Nov/2026:09:59:00 +0000] "GET / HTTP/1.1" 200 5 "-" "c""#
                            + "\n2026-11-29T10:00:00.1Z stdout F ", count: 8)
                    + #"192.0.2.7 - - [20/Nov/2026:09:59:00 +0000] "GET / HTTP/1.1" 200 5 "-" "c""#, "",
                "of the format nginx: add format = \"cri\" and parse = \"nginx\" to [apps.pods]"
            ),
            (
                #"2026-11-29T10:00:00.1Z stdout F a=1"#, "format = \"cri\"",
                "of the format logfmt: add parse = \"logfmt\" to [apps.pods]"
            ),
            (#"2026-11-29T10:00:00.1Z stdout F just text"#, "format = \"cri\"", nil),
            ("just text", "", "no built-in format fits"),
        ])
    func sampleGuess(line: String, setting: String, hint: String?) throws {
        let log = "\(directory.path)/pods.log"
        try writeFile(log, "\(line)\n\(line)\n")
        let path = try write(
            "[[destination]]\nname = \"a\"\ntype = \"stdout\"\n[apps.pods]\n"
                + "read = [\"\(log)\"]\n\(setting)\n")
        let (code, kept) = KeptConsole.run("check", "--sample", log, "--config", path)
        #expect(code == .success, "\(kept.errorOutput)")
        if let hint {
            #expect(kept.output.contains(hint), "\(kept.output)")
        } else {
            #expect(!kept.output.contains("add "), "\(kept.output)")
            #expect(!kept.output.contains("no built-in format fits"), "\(kept.output)")
        }
    }

    @Test(
        "--sample says of objects behind a banner, a blank line or a blank what is sent of them",
        arguments: [
            ("My service 1.4 begins\n", true), ("\n", true), ("  ", true), ("{\n", true),
            ("\u{FEFF}", true),
            ("one\ntwo\nthree\nfour\nfive\n", false),
        ])
    func sampleOfObjects(before: String, areObjects: Bool) throws {
        let log = "\(directory.path)/banner.log"
        let line = #"{"time":"2026-11-29T10:00:00Z","level":"info","message":"a=1 b=2"}"# + "\n"
        try writeFile(log, before + line + line + line + line)
        let path = try write(
            "[[destination]]\nname = \"a\"\ntype = \"stdout\"\n[apps.pods]\nread = [\"\(log)\"]\n")
        let (code, kept) = KeptConsole.run("check", "--sample", log, "--config", path)
        #expect(code == .success, "\(kept.errorOutput)")
        #expect(kept.output.contains("no built-in format fits") == !areObjects, "\(kept.output)")
        #expect(!kept.output.contains("add parse"), "\(kept.output)")
    }

    @Test("--sample does not say of quarantined text that it is sent, neither in words nor as JSON")
    func sampleOfQuarantinedText() throws {
        let log = "\(directory.path)/text.log"
        try writeFile(log, "just text\nmore text\n")
        for (text, isSent) in [("quarantine", false), ("lines", true)] {
            let path = try write(
                "[[destination]]\nname = \"a\"\ntype = \"stdout\"\n[apps.pods]\nread = [\"\(log)\"]\n"
                    + "text = \"\(text)\"\n")
            let (_, kept) = KeptConsole.run("check", "--sample", log, "--config", path)
            #expect(kept.output.contains("no built-in format fits") == isSent, "\(kept.output)")
            #expect(kept.output.contains("2 quarantined") == !isSent, "\(kept.output)")
            let (_, json) = KeptConsole.run("check", "--sample", log, "--config", path, "--json")
            #expect(json.output.contains("\"unknown_format\":\(isSent)"), "\(json.output)")
        }
    }

    @Test("--sample says that schemas of events do not judge records, if there are any but that of log")
    func sampleBesideSchemas() throws {
        let log = "\(directory.path)/records.log"
        try writeFile(log, "{\"message\":\"a\"}\n")
        let schemas = "\(directory.path)/schemas"
        try #require(mkdir(schemas, 0o755) == 0)
        let path = try write(
            "[[destination]]\nname = \"a\"\ntype = \"stdout\"\n[apps.pods]\nread = [\"\(log)\"]\n"
                + "[schemas]\ndirectory = \"\(schemas)\"\n")
        for (name, isSaid) in [("log", false), ("purchase", true)] {
            try writeFile("\(schemas)/\(name).json", "{\"type\":\"object\"}")
            let (code, kept) = KeptConsole.run("check", "--sample", log, "--config", path)
            #expect(code == .success, "\(kept.errorOutput)")
            #expect(kept.output.contains("with the schema of log only") == isSaid, "\(kept.output)")
        }
    }

    @Test(
        "what text alone shows of a format, a pattern or a path is a mistake with --text-only, too",
        arguments: [
            #"parse = "ngnix""#, #"parse = "%{COMBINEDAPACHELOG}""#, #"pattern = "(unclosed""#,
            #"first_line = "(unclosed""#, #"read = ["var/log/x.log"]"#, #"exclude = ["logs/debug.log"]"#,
        ])
    func textOnlyOfPlaces(line: String) throws {
        let read = line.hasPrefix("read") ? "" : "read = [\"/var/log/x/*.log\"]\n"
        let path = try write(
            "[[destination]]\nname = \"a\"\ntype = \"stdout\"\n[apps.x]\n\(read)\(line)\n")
        let (code, kept) = KeptConsole.run("check", "--text-only", "--config", path)
        #expect(code == .configuration, "\(kept.output)")
        #expect(kept.errorOutput.hasPrefix("\(path):\(read.isEmpty ? 5 : 6):"), "\(kept.errorOutput)")
        let whole = KeptConsole.run("check", "--config", path).1.errorOutput
        let mistake = kept.errorOutput.split(separator: "\n")[0]
        #expect(whole.contains(mistake), "\(whole)")
    }

    @Test("a rule whose only action is refused is reported for that, and not for having no action")
    func refusedAction() throws {
        let path = try write(
            "[[destination]]\nname = \"a\"\ntype = \"stdout\"\n[[rule]]\nname = \"x\"\nsample = 2\n"
                + "[[rule]]\nname = \"y\"\n")
        let (code, kept) = KeptConsole.run("check", "--text-only", "--config", path)
        #expect(code == .configuration)
        #expect(kept.errorOutput.contains("rule.x.sample is 2; must be 0 to 1"))
        #expect(!kept.errorOutput.contains("rule.x: does nothing"))
        #expect(kept.errorOutput.contains("rule.y: does nothing"))
        #expect(kept.errorOutput.hasSuffix("2 mistakes\n"))
    }

    /// The blocks of TOML on the page of recipes, and configurations with old keys and all kinds of values.
    private static let samples: [String] = {
        let main = "\n[[destination]]\nname = \"main\"\ntype = \"stdout\"\n"
        let recipes = RecipeTests.recipes.flatMap(\.blocks).map { block in
            block.contains("[[destination]]") ? block : block + main
        }
        return recipes + [
            "",
            """
            [agent]
            log_level = "info"
            [spool]
            max_unread = "1GiB"
            [limits]
            name_length = { max = 64, beyond = "refuse" }
            [apps.shop]
            journal = true
            may_be_critical = true
            time = { members = ["a", "b.c"], zone = "Europe/Rome" }
            [apps.web]
            read = ["/var/log/web/*.log"]
            pattern = '^(?P<message>.*)$'
            since = "24h"
            [[destination]]
            name = "archive"
            type = "s3"
            [destination.s3]
            bucket = { name = "events", path_style = true }
            region = "eu-central-1"
            credentials = "instance"
            storage_class = "STANDARD_IA"
            [[destination]]
            name = "rows"
            url = "https://a.example/rows"
            format = "template"
            [destination.body]
            event = "{{event}}"
            begin = "["
            end = "]"
            separator = ","
            [[destination]]
            name = "bus"
            type = "kafka"
            kafka.brokers = ["kafka.example.com:9093"]
            kafka.topic = "events-{app}"
            [[destination]]
            name = "stream"
            type = "nats"
            url = "tls://nats.example.com"
            nats.subject = "events"
            nats.message = "event"
            [[deadline]]
            name = "reports"
            time_zone = "Europe/Rome"
            apps = ["shop"]
            [stats]
            hosts = ["a.example"]
            """,
        ]
    }()

    @Test("what --print shows is in today's words: read back, it gives the same settings and no note")
    func printedIsCurrent() throws {
        #expect(CheckCommandTests.samples.count > 15)
        for sample in CheckCommandTests.samples {
            let settings = try Settings.read([ConfigurationText(file: "a.toml", text: sample)]).settings
            let printed = EffectiveConfiguration(settings).toml
            let again = try Settings.read([ConfigurationText(file: "b.toml", text: printed)])
            #expect(again.warnings.filter { $0.severity == .note } == [], "\(sample)")
            // Secrets are masked.
            let changes = SettingsChange.all(from: settings, to: again.settings).filter {
                !$0.description.contains("(a secret)")
            }
            #expect(changes == [], "\(printed)")
        }
        let plain = try Settings.read([
            ConfigurationText(
                file: "a.toml", text: "[[destination]]\nname = \"a\"\nurl = \"https://a.example\"")
        ])
        let shown = EffectiveConfiguration(plain.settings).toml
        #expect(!shown.contains("poll_interval") && !shown.contains("[destination.s3]"), "\(shown)")
    }

    @Test("a key that nobody has to set is printed if it is set: it is in force")
    func retiredIsPrintedIfSet() throws {
        let text = "[spool]\npoll_interval = \"1s\"\n[[destination]]\nname = \"a\"\ntype = \"stdout\""
        let settings = try Settings.read([ConfigurationText(file: "a.toml", text: text)]).settings
        #expect(EffectiveConfiguration(settings).toml.contains("poll_interval = \"1s\""))
    }
}
