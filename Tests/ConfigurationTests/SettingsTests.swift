import Glibc
import Logs
import Model
import TestKit
import Testing

@testable import Configuration

@Suite("Settings")
struct SettingsTests {
    static func read(_ texts: String...) throws -> Settings {
        let texts = texts.enumerated().map { ConfigurationText(file: "\($0.offset).toml", text: $0.element) }
        return try Settings.read(texts).settings
    }

    @Test("every setting is optional: without a file the defaults hold")
    func defaultsHold() throws {
        let settings = try SettingsTests.read("")
        #expect(settings == Settings())
        #expect(settings.queue.maxSize == 268_435_456)
        #expect(settings.queue.maxAge == .seconds(25 * 86_400))
        #expect(settings.dispatch.interval == .every(.seconds(6)))
        #expect(settings.dispatch.criticalDelay == .seconds(3))
        #expect(settings.retry.intervals == [.seconds(10), .seconds(300), .seconds(1200)])
        #expect(settings.spool.maxEventSize == 1_000_000)
        #expect(settings.agent.logLevel == .warning)
        #expect(settings.origin(of: "queue.max_size") == .standard)
    }

    @Test(
        "ac02: the interval accepts every documented form",
        arguments: [
            ("\"off\"", DispatchInterval.off), ("0", .off), ("-1", .off), ("-10000", .off), ("-0.5", .off),
            ("\"0s\"", .off), ("\"-5s\"", .off), ("\"0\"", .off), ("\"1s\"", .every(.seconds(1))),
            ("\"6s\"", .every(.seconds(6))), ("\"86400s\"", .every(.seconds(86_400))),
            ("\"1d\"", .every(.seconds(86_400))),
            ("\"2m\"", .every(.seconds(120))),
        ])
    func ac02_intervalIsTotal(text: String, interval: DispatchInterval) throws {
        #expect(try SettingsTests.read("[dispatch]\ninterval = \(text)").dispatch.interval == interval)
    }

    @Test(
        "ac02: other values are mistakes, with a hint if a unit is missing",
        arguments: [
            "10", "10000", "0.5", "\"999ms\"", "\"86401s\"", "\"10\"", "\"soon\"", "true", "[]", "\"\"",
        ])
    func ac02_intervalIsRefused(text: String) {
        #expect(throws: ConfigurationError.self) { try SettingsTests.read("[dispatch]\ninterval = \(text)") }
    }

    @Test("ac02: the command line accepts the same intervals")
    func ac02_intervalOfTheCommandLine() throws {
        #expect(try DispatchInterval(text: "off") == .off)
        #expect(try DispatchInterval(text: "2m") == .every(.seconds(120)))
        #expect(try DispatchInterval(text: "-3") == .off)
        #expect(throws: Problem.self) { try DispatchInterval(text: "10000") }
        #expect(throws: Problem.self) { try DispatchInterval(text: "500ms") }
    }

    @Test(
        "both ends of a range are allowed, and nothing beyond",
        arguments: [
            ("queue", "max_size", "\"24KiB\"", true), ("queue", "max_size", "\"24575B\"", false),
            ("queue", "max_size", "\"100GB\"", true), ("queue", "max_age", "\"1m\"", true),
            ("queue", "max_age", "\"59s\"", false), ("queue", "max_age", "\"3650d\"", true),
            ("queue", "max_age", "\"3651d\"", false), ("dispatch", "batch_events", "1", true),
            ("dispatch", "batch_events", "100000", true), ("dispatch", "batch_events", "100001", false),
            ("dispatch", "parallel_batches", "64", true), ("dispatch", "parallel_batches", "65", false),
            ("retry", "jitter", "0", true), ("retry", "jitter", "1", true),
            ("retry", "jitter", "1.01", false),
            ("retry", "jitter", "-0.01", false), ("retry", "intervals", "[]", true),
            ("limits", "event_names", "0", true), ("limits", "event_names", "-1", false),
            ("limits", "name_length", "65536", true), ("limits", "name_length", "65537", false),
            ("spool", "max_unread", "0", true), ("spool", "max_unread", "\"1B\"", false),
            ("spool", "max_event_size", "\"64MiB\"", true), ("spool", "max_event_size", "\"65MiB\"", false),
            ("agent", "shutdown_drain_timeout", "\"0s\"", true),
            ("agent", "shutdown_drain_timeout", "\"61m\"", false),
        ])
    func rangesEnds(section: String, key: String, value: String, allowed: Bool) {
        let text = "[\(section)]\n\(key) = \(value)\n"
        if allowed {
            #expect(throws: Never.self) { try SettingsTests.read(text) }
        } else {
            #expect(throws: ConfigurationError.self) { try SettingsTests.read(text) }
        }
    }

    @Test("a critical delay may be zero, with and without the switch of older configurations")
    func zeroDelay() throws {
        for more in ["", "\nallow_zero_delay = true"] {
            let settings = try SettingsTests.read("[dispatch]\ncritical_delay = 0\(more)")
            #expect(settings.dispatch.criticalDelay == .zero)
        }
    }

    @Test("a complete configuration with all kinds of sections is read with its types")
    func everythingArrivesTyped() throws {
        let settings = try SettingsTests.read(
            """
            [agent]
            log_level = "debug"
            [[destination]]
            name = "main"
            url = "https://events.example.com/in"
            compression = "zstd"
            token_credential = "main-token"
            headers = { X-Scope = "shop" }
            outcomes = { 404 = "retry", 5xx = "hold" }
            tls.ca_file = "/etc/ca.pem"
            tls.minimum_version = "1.3"
            [[destination]]
            name = "reports"
            type = "file"
            path = "/tmp/reports"
            by_default = false
            [[deadline]]
            name = "views"
            time_zone = "Europe/Rome"
            destinations = ["reports"]
            [[container]]
            id = "GTM-1234"
            default_file = "/etc/spoolship/GTM-1234"
            public_key = ["MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqo=", "BCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqo="]
            [apps.shop]
            default_event_name = "log"
            priority = "critical"
            country = "it"
            limits.properties = 0
            [functions.lookup]
            command = ["/bin/lookup", "-j"]
            [priorities]
            default = "normal"
            [[priorities.rule]]
            event = "Pay*"
            [[priorities.rule]]
            app = "shop"
            event = "Seen"
            priority = "normal"
            force = true
            """)
        #expect(settings.agent.logLevel == .debug)
        #expect(settings.destinations.map(\.name) == ["main", "reports"])
        #expect(settings.destinations[0].compression == .zstd)
        #expect(settings.destinations[0].token.source == .credential("main-token"))
        #expect(settings.destinations[0].headers["X-Scope"]?.revealed == "shop")
        #expect(settings.destinations[0].http.outcomes == ["404": .retry, "5xx": .hold])
        #expect(settings.destinations[0].tls.minimumVersion == .tls13)
        #expect(settings.destinations[1].byDefault == false)
        #expect(settings.deadlines[0].time == .seconds(4 * 3600))
        #expect(settings.deadlines[0].margin == .seconds(1800))
        #expect(settings.containers[0].publicKeys.count == 2)
        #expect(settings.apps["shop"]?.country == "IT")
        #expect(settings.apps["shop"]?.priority == .critical)
        #expect(
            settings.limits.overridden(by: settings.apps["shop"]?.limits ?? .init()).properties.value == 0)
        #expect(
            settings.limits.overridden(by: settings.apps["shop"]?.limits ?? .init()).nameLength.value == nil)
        #expect(settings.functions["lookup"]?.command == ["/bin/lookup", "-j"])
        #expect(
            settings.priorities.rules == [
                PriorityRule(event: "Pay*", priority: .critical),
                PriorityRule(app: "shop", event: "Seen", priority: .normal, force: true),
            ])
    }

    @Test("later files override single settings and add sections, and each value knows its line")
    func laterFilesOverride() throws {
        let settings = try SettingsTests.read(
            "[queue]\nmax_size = \"20MiB\"\nmax_age = \"2d\"\n[[destination]]\nname = \"a\"\ntype = \"stdout\"\n",
            "\n[queue]\nmax_size = \"30MiB\"\n[[destination]]\nname = \"b\"\ntype = \"stdout\"\n[apps.shop]\ncountry=\"IT\"",
            "[apps.shop]\ndefault_event_name = \"x\"")
        #expect(settings.queue.maxSize == 30 << 20)
        #expect(settings.origin(of: "queue.max_size") == .file(Position(file: "1.toml", line: 3, column: 12)))
        #expect(settings.origin(of: "queue.max_age").description == "0.toml:3")
        #expect(settings.origin(of: "queue.durability").description == "default")
        #expect(settings.origin(of: "destination.b.type").description == "1.toml:6")
        #expect(settings.destinations.map(\.name) == ["a", "b"])
        #expect(settings.apps["shop"]?.country == "IT")
        #expect(settings.apps["shop"]?.defaultEventName == "x")
    }

    @Test("conf.d/*.toml are read in order of their names, and all mistakes of all files are reported")
    func partsAreReadInOrder() throws {
        let directory = try TemporaryDirectory()
        func write(_ name: String, _ text: String) throws {
            let file = try #require(fopen("\(directory.path)/\(name)", "w"))
            fputs(text, file)
            fclose(file)
        }
        mkdir("\(directory.path)/conf.d", 0o755)
        try write("spoolship.toml", "[queue]\nmax_size = \"20MiB\"\n")
        try write("conf.d/20-b.toml", "[queue]\nmax_size = \"40MiB\"\n")
        try write("conf.d/10-a.toml", "[queue]\nmax_size = \"30MiB\"\nmax_age = \"1d\"\n")
        try write("conf.d/.hidden.toml", "nonsense")
        try write("conf.d/readme.txt", "nonsense")
        try write("conf.d/30-c.conf", "nonsense")
        let loaded = try Settings.load(path: "\(directory.path)/spoolship.toml")
        #expect(loaded.settings.queue.maxSize == 40 << 20)
        #expect(loaded.settings.queue.maxAge == .seconds(86_400))
        #expect(
            loaded.files.map { $0.split(separator: "/").last } == [
                "spoolship.toml", "10-a.toml", "20-b.toml",
            ])
        #expect(
            loaded.warnings.map(\.message) == [
                "\(directory.path)/conf.d/30-c.conf is not read: only *.toml is"
            ])
        unlink("\(directory.path)/conf.d/30-c.conf")

        try write("conf.d/10-a.toml", "[queue]\nmax_aeg = \"1d\"\n")
        try write("conf.d/20-b.toml", "[queue]\nmax_size = 1\n")
        mkfifo("\(directory.path)/conf.d/30-c.toml", 0o600)
        let error = #expect(throws: ConfigurationError.self) {
            try Settings.load(path: "\(directory.path)/spoolship.toml")
        }
        #expect(error?.problems.map(\.code) == [.unknownKey, .wrongType, .unreadable])
        let missing = #expect(throws: ConfigurationError.self) {
            try Settings.load(path: "\(directory.path)/none.toml")
        }
        #expect(
            missing?.problems.contains {
                $0.message.hasSuffix("No such file or directory; give another with --config FILE")
            } == true)
    }

    @Test("a file that is too large is refused without being read to its end")
    func hugeFileIsRefused() throws {
        let directory = try TemporaryDirectory()
        let file = try #require(fopen("\(directory.path)/spoolship.toml", "w"))
        ftruncate(fileno(file), 1 << 40)
        fclose(file)
        let error = #expect(throws: ConfigurationError.self) {
            try Settings.load(path: "\(directory.path)/spoolship.toml")
        }
        #expect(error?.problems.first?.message.contains("larger than 1MiB") == true)
    }

    @Test("ac24: no secret is shown: not in TOML, JSON, changes, descriptions, dumps or messages")
    func ac24_secretsAreMasked() throws {
        let secret = "correct-horse-battery-staple-0123456789"
        let text = """
            [[destination]]
            name = "main"
            url = "https://example.com/in?api_key=\(secret)"
            token = "\(secret)"
            proxy = "http://user:\(secret)@proxy:1"
            headers = { X-Key = "\(secret)" }
            """
        let settings = try SettingsTests.read(text)
        #expect(settings.destinations[0].url?.text.hasSuffix(secret) == true)
        var shown = settings.effective.compactMap { $0.value.map { $0.toml + $0.json.description } }.joined()
        let changes = SettingsChange.all(from: Settings(), to: settings).map(\.description).joined()
        #expect(changes.contains("destination.main.token (a secret)") && !changes.contains(secret.suffix(3)))
        shown += changes
        shown += "\(settings.destinations[0].token.source as Any) \(settings.destinations[0].headers)"
        dump(settings.destinations[0].token.inline, to: &shown)
        #expect(shown.contains("api_key=****") && shown.contains(#"X-Key = "****""#))
        #expect(!shown.contains(secret.suffix(3)), "\(shown)")
    }

    @Test("the comparison at a reload lists changed, new and removed settings, and those that need a restart")
    func comparisonAtReload() throws {
        let before = try SettingsTests.read(
            "[queue]\nmax_size = \"20MiB\"\n[[destination]]\nname = \"a\"\ntype = \"stdout\"\n")
        let after = try SettingsTests.read(
            "[queue]\nmax_size = \"21MiB\"\ndurability = \"crash\"\n[[destination]]\nname = \"b\"\ntype = \"stdout\"\n"
        )
        let changes = SettingsChange.all(from: before, to: after)
        #expect(SettingsChange.all(from: before, to: before) == [])
        #expect(changes.contains { $0.description == "queue.max_size \"20MiB\" -> \"21MiB\"" })
        #expect(
            changes.contains {
                $0.description == "queue.durability \"power_loss\" -> \"crash\" (needs a restart)"
            })
        #expect(changes.contains { $0.path == "destination.b.name" && $0.before == nil })
        #expect(changes.contains { $0.path == "destination.a.name" && $0.after == nil })
        #expect(changes.filter(\.needsRestart).map(\.path) == ["queue.durability"])
        // Where a value stands is no change.
        let moved = try SettingsTests.read(
            "\n\n[queue]\nmax_size = \"20480KiB\"\n[[destination]]\nname = \"a\"\ntype = \"stdout\"\n")
        #expect(SettingsChange.all(from: before, to: moved) == [])
    }

    @Test("settings that need a restart keep their value until then, in every section; others change at once")
    func untilARestart() throws {
        let destination = "[[destination]]\nname = \"a\"\ntype = \"stdout\"\n"
        let started = try SettingsTests.read(
            destination + """
                [queue]
                durability = "crash"
                max_size = "20MiB"
                [spool]
                max_event_size = "64KiB"
                [apps.web]
                read = ["/var/log/web/*.log"]
                since = "now"
                [apps.gone]
                read = ["/var/log/gone/*.log"]

                """)
        let new = try SettingsTests.read(
            destination + """
                [queue]
                max_size = "21MiB"
                [spool]
                max_event_size = "65KiB"
                [apps.web]
                read = ["/var/log/other/*.log"]
                exclude = ["old*"]
                text = "quarantine"
                [apps.new]
                read = ["/var/log/new/*.log"]
                text = "lines"

                """)
        let kept = new.untilRestart(since: started)
        #expect(SettingsChange.all(from: started, to: new).filter(\.needsRestart).count > 4)
        let ofApps = { (change: SettingsChange) in change.path.hasPrefix("apps.gone") }
        #expect(SettingsChange.all(from: started, to: kept).filter { $0.needsRestart && !ofApps($0) } == [])
        #expect(SettingsChange.all(from: kept, to: new).filter { !$0.needsRestart } == [])
        #expect(kept.apps["web"]?.since == .now && kept.apps["web"]?.exclude == nil)
        #expect(kept.apps["new"]?.read == nil && kept.apps["new"]?.text == .lines)
    }

    @Test("tm10: a container sets a setting only to values that a file could, and is shown as the origin")
    func tm10_settingAtRunTime() throws {
        let settings = try SettingsTests.read("[queue]\nmax_size = \"20MiB\"\n")
        let changed = try settings.setting(
            "dispatch.interval", to: .string("2m"), origin: .container("GTM-1"))
        #expect(changed.dispatch.interval == .every(.seconds(120)))
        #expect(changed.origin(of: "dispatch.interval").description == "container GTM-1")
        #expect(changed.origin(of: "queue.max_size").description == "0.toml:2")
        #expect(throws: ConfigurationError.self) {
            try settings.setting("dispatch.interval", to: .integer(10), origin: .container("GTM-1"))
        }
        #expect(throws: ConfigurationError.self) {
            try settings.setting("dispatch.critical_delay", to: .integer(-1), origin: .container("GTM-1"))
        }
        #expect(throws: ConfigurationError.self) {
            try settings.setting("dispatch.nothing", to: .integer(0), origin: .container("GTM-1"))
        }
    }

    @Test("the output of `check --print` reads back as the same settings")
    func printedSettingsReadBack() throws {
        let settings = try SettingsTests.read(
            "[queue]\nmax_size = \"20MiB\"\n[retry]\nintervals = []\njitter = 0.25\n[stats]\nlisten = \"off\"\n[limits]\nevent_names = 0"
        )
        var text = ""
        for setting in settings.effective where !setting.section.path.contains(".") {
            guard let value = setting.value else { continue }
            text += "\(setting.path) = \(value.toml)\n"
        }
        #expect(SettingsChange.all(from: try SettingsTests.read(text), to: settings) == [])
    }
}
