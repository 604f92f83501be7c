import Configuration
import Containers
import EventLoops
import Glibc
import Receiver
import Spool
import TestKit
import Testing

@testable import spoolship

@Suite("check, on files and machine")
struct StartupCheckTests {
    let directory: TemporaryDirectory
    var root: String { directory.path }
    let own = FileAccess.own

    init() throws {
        directory = try TemporaryDirectory()
        chmod(directory.path, 0o755)
        mkdir("\(directory.path)/state", 0o750)
        mkdir("\(directory.path)/spool", 0o755)
    }

    func write(_ name: String, _ text: String, mode: mode_t = 0o600) throws -> String {
        let path = "\(root)/\(name)"
        let file = try #require(fopen(path, "w"))
        fputs(text, file)
        fclose(file)
        chmod(path, mode)
        return path
    }

    /// A configuration that this machine can start with, and what a test adds.
    func problems(_ text: String, sandbox: UnitSandbox? = nil, clock: String? = nil) throws -> [Problem] {
        let base = """
            agent.state_directory = "\(root)/state"
            spool.directory = "\(root)/spool"
            control.socket = { path = "\(root)/control.sock", group = "root" }
            stats.listen = "off"

            """
        let loaded = try Settings.read([ConfigurationText(file: "t.toml", text: base + text)])
        return StartupCheck.problems(of: loaded, sandbox: sandbox, clock: clock)
    }

    func expect(_ text: String, sandbox: UnitSandbox? = nil, says message: String, warning: Bool = false)
        throws
    {
        let found = try problems(text, sandbox: sandbox)
        let fitting = found.first { $0.message.contains(message) }
        #expect(fitting != nil, "\(found.map(\.text))")
        #expect(fitting?.severity == (warning ? .warning : .error))
    }

    @Test("a machine that is ready has no problems")
    func fault22_readyMachine() throws {
        #expect(try problems("").map(\.text) == [])
    }

    @Test("beside an older version's queue check lists the settings that keep the old defaults, if unset")
    func oldWays() throws {
        let fixtures = "\(GoldenFile.root)/Tests/QueueTests/Fixtures/queue-schema-"
        for (schema, text, settings) in [
            (5, "", ["limits.like", "queue.max_size"]), (6, "", []),
            (1, "queue.max_size = \"10MiB\"\n", ["limits.like"]),
            (
                5, "dispatch.batch_events = 20\nlimits.name_length = 0\n",
                ["queue.max_size", "dispatch.batch_events"]
            ),
        ] {
            unlink("\(root)/state/queue.sqlite")
            if schema < 6 {
                let old = try #require(
                    try WholeFile.bytes(of: fixtures + "\(schema).sqlite", atMost: 1 << 24))
                try WholeFile.replace("\(root)/state/queue.sqlite", with: old, mode: 0o600)
            }
            let told = try problems(text).filter { $0.message.contains("(upgrade)") }
            #expect(
                told.count == settings.count && told.allSatisfy { $0.severity == .warning },
                "\(told.map(\.text))")
            for setting in settings {
                #expect(told.contains { $0.text.contains(setting) }, "\(setting): \(told.map(\.text))")
            }
        }
    }

    @Test("a damaged queue is reported, and that a start saves what is readable")
    func unreadableQueue() throws {
        try WholeFile.replace(
            "\(root)/state/queue.sqlite", with: Array(repeating: 0xA5, count: 9_000), mode: 0o600)
        let told = try problems("").filter { $0.message.contains("has a queue that cannot be read") }
        #expect(told.count == 1 && told.allSatisfy { $0.severity == .warning }, "\(told.map(\.text))")
        #expect(
            told.allSatisfy { $0.message.contains("a start saves what can be read") }, "\(told.map(\.text))")
    }

    @Test(
        "check reports directories that are missing, are not directories, or may not be entered, with a remedy"
    )
    func fault22_directories() throws {
        let missing = try Settings.read([
            ConfigurationText(
                file: "t.toml",
                text:
                    "[agent]\nstate_directory = \"\(root)/none\"\n[spool]\ndirectory = \"\(root)/t.toml\"\n[stats]\nlisten = \"off\""
            )
        ])
        _ = try write("t.toml", "")
        let found = StartupCheck.problems(of: missing)
        #expect(
            found.first?.text == """
                t.toml:2:19: agent.state_directory \(root)/none does not exist; create it: install -d -o \(own.user) -m 0750 \(root)/none
                    state_directory = "\(root)/none"
                                      ^
                """)
        #expect(found.contains { $0.message == "spool.directory \(root)/t.toml is not a directory" })
        #expect(access("\(root)/none", F_OK) != 0, "check must not make directories")
    }

    @Test("check reports a state directory that others may write to")
    func fault22_permissions() throws {
        chmod("\(root)/state", 0o777)
        try expect("", says: "can be written by others (mode 0777); run chmod go-w")
        chmod("\(root)/state", 0o750)
    }

    @Test(
        "check reports a queue that belongs to root after a restore",
        .enabled(if: geteuid() == 0, "NOT TESTED: needs root"))
    func fault22_restoredByRoot() async throws {
        chmod(root, 0o755)
        chmod("\(root)/state", 0o750)
        #expect(chown("\(root)/state", 65_534, 65_534) == 0)
        let queue = try write("state/queue.sqlite", "")
        chmod(queue, 0o600)
        // As nobody, whose the directory is.
        let thread = try EventLoop(name: "nobody")
        try thread.start()
        defer { thread.stop() }
        let found = try await Task(executorPreference: thread) {
            try #require(ThreadRights.giveUp())
            return try problems("").map(\.text)
        }.value
        let says = "agent.state_directory \(queue) cannot be read and written by user"
        #expect(found.contains { $0.contains(says) && $0.contains("run chown -h --reference") }, "\(found)")
        unlink(queue)
    }

    /// A destination that writes to a file.
    private func file(_ path: String, name: String = "out") -> String {
        "[[destination]]\nname = \"\(name)\"\ntype = \"file\"\npath = \"\(path)\"\n"
    }

    @Test("a destination's file is refused if the agent reads it or uses it itself, also through links")
    func fault22_ownFiles() throws {
        mkdir("\(root)/logs", 0o755)
        mkdir("\(root)/out", 0o755)
        let read = "[apps.web]\nread = [\"\(root)/logs/*.log\"]\n"
        symlink("\(root)/state", "\(root)/door")
        symlink("\(root)/spool/new.jsonl", "\(root)/out/link")
        try expect(
            file("\(root)/state/queue.sqlite"),
            says: "out.path \(root)/state/queue.sqlite is in \(root)/state")
        try expect(file("\(root)/door/other"), says: "is in \(root)/state, which is the agent's own")
        try expect(
            file("\(root)/spool/shop/out.jsonl"), says: "is in \(root)/spool, which is the agent's own")
        try expect(file("\(root)/out/../spool/x"), says: "is in \(root)/spool, which is the agent's own")
        try expect(file("\(root)/out/link"), says: "is in \(root)/spool, which is the agent's own")
        for name in ["out.log", "out.log.1"] {
            try expect(file("\(root)/logs/\(name)") + read, says: "is read for web (apps.web.read)")
        }
        _ = try write("logs/app.log", "")
        #expect(try problems(file("\(root)/logs/out.json") + read).map(\.text) == [])
        let own = "\(root)/conf.toml"
        let text =
            "spool.directory = \"\(root)/spool\"\nagent.state_directory = \"\(root)/state\"\n" + file(own)
        let found = StartupCheck.problems(of: try Settings.read([ConfigurationText(file: own, text: text)]))
        #expect(found.contains { $0.message == "destination.out.path \(own) is a file of the configuration" })
    }

    @Test("a pattern of `read` without a file is a warning; an invalid pattern is refused")
    func fault22_patterns() throws {
        mkdir("\(root)/logs", 0o755)
        mkdir("\(root)/logs/old", 0o755)
        _ = try write("logs/app1.log", "")
        _ = try write("logs/old/app0.log", "")
        func told(_ pattern: String, _ more: String = "") throws -> [String] {
            try problems("[apps.web]\nread = ['\(root)/\(pattern)']\n" + more).map {
                "\($0.severity): \($0.message)"
            }
        }
        for pattern in [
            "logs/*.log", "logs/app1.log", "logs/app?.log", "logs/app[0-9].log", "logs/{app1,app2}.log",
            "logs/**/app0.log",
            "logs/**", "{logs,other}/app1.log", "logs/[!b]*/app0.log",
        ] { #expect(try told(pattern) == [], "\(pattern)") }
        for pattern in ["logs/*.txt", "lgos/*.log", "logs/app[a-z].log", "logs/{a,b}.log", "logs/app??.log"] {
            #expect(try told(pattern) == ["warning: apps.web.read \(root)/\(pattern) fits no file now"])
        }
        #expect(
            try told("logs/*.log", "exclude = ['app*.log']\n").first?.contains("fits no file now") == true)
        // A name with such characters is written with a backslash, or with brackets.
        _ = try write("logs/app[1].log", "")
        for pattern in ["logs/app\\[1].log", "logs/app[[]1].log"] { #expect(try told(pattern) == []) }
        for (pattern, says) in [
            ("logs/**.log", "must have ** only as a whole part of a path, not in **.log: write **/*.log"),
            ("logs/{1..3}.log", "must not have a sequence such as {1..3}: write its members, {a,b,c}"),
        ] { #expect(try told(pattern).contains("error: apps.web.read \(says)"), "\(pattern)") }
        #expect(
            try told("logs/*.log", "exclude = ['x/*.log']\n").contains(
                "error: apps.web.exclude must be absolute paths of files, with *, ?, [a-z], {a,b} or **"))
        #expect(
            try problems("[apps.web]\nexclude = ['x']\n").map(\.message) == [
                "apps.web.exclude has no effect without read"
            ])
    }

    @Test("an encoding that is unknown, of no file in place, or of a container's runtime is refused")
    func encodings() throws {
        mkdir("\(root)/logs", 0o755)
        _ = try write("logs/app.log", "")
        let read = "[apps.web]\nread = ['\(root)/logs/*.log']\n"
        for encoding in ["utf-16le", "utf-16be", "latin1"] {
            #expect(try problems(read + "encoding = '\(encoding)'\n").map(\.text) == [])
        }
        #expect(throws: (any Error).self) { try problems(read + "encoding = 'utf-16'\n") }
        #expect(
            try problems("[apps.web]\nencoding = 'latin1'\n").map(\.message) == [
                "apps.web.encoding is for files that are read in place: set read"
            ])
        #expect(
            try problems(read + "encoding = 'latin1'\nformat = 'cri'\n").map(\.message) == [
                "apps.web.encoding latin1 does not go with format = \"cri\", which is UTF-8"
            ])
    }

    @Test("two destinations with one file are refused")
    func fault22_sharedFile() throws {
        symlink("\(root)/one", "\(root)/alias")
        try expect(
            file("\(root)/one") + file("\(root)/alias", name: "again"),
            says: "destination.again.path \(root)/alias is the file of out: each destination needs its own")
        #expect(try problems(file("\(root)/one") + file("\(root)/two", name: "again")).map(\.text) == [])
    }

    @Test(
        "a destination's file must be regular or creatable; a link to a file that can be created is allowed"
    )
    func fault22_unwritableFiles() throws {
        mkdir("\(root)/directory", 0o755)
        mkfifo("\(root)/fifo", 0o600)
        for path in ["\(root)/directory", "\(root)/fifo", "/dev/full", "/dev/null"] {
            try expect(file(path), says: "out.path \(path) cannot be written: it is not a regular file")
        }
        symlink("/nonexistent/x", "\(root)/dangling")
        try expect(file("\(root)/dangling"), says: "cannot be written: no such file or directory")
        symlink("directory/new", "\(root)/good")
        #expect(try problems(file("\(root)/good")).map(\.text) == [])
    }

    @Test("check reports each setting that a start refuses, with its place")
    func fault22_refusedProperty() throws {
        try expect(
            "[[destination]]\nname = \"main\"\ntype = \"kafka\"\n[destination.kafka]\nbrokers = [\"h:9093\"]\n"
                + "topic = \"a\"\noptions = { \"linger.ms\" = \"x\" }",
            says: "librdkafka refuses linger.ms: Invalid value")
    }

    @Test("invalid nkeys and credentials are refused as at a start, and are not shown")
    func fault22_natsIdentity() throws {
        func check(_ setting: String, _ content: String, says: String) throws {
            let file = try write("identity", content)
            chmod(file, 0o600)
            let text =
                "[[destination]]\nname = \"main\"\ntype = \"nats\"\nurl = \"tls://h\"\n[destination.nats]\n"
            try expect(text + "subject = \"a\"\n\(setting) = \"file:\(file)\"", says: says)
        }
        let seed = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY"
        try check("nkey", String(seed.dropLast()) + "A", says: "the nkey's checksum is wrong")
        try check("nkey", "hello", says: "the nkey is not a seed")
        try check("credentials", seed, says: "the credentials file must hold")
    }

    @Test("check reports a state directory that another agent uses and that does not answer")
    func fault22_otherAgent() throws {
        let descriptor = try Descriptor(
            checking: open("\(root)/state", O_RDONLY | O_DIRECTORY | O_CLOEXEC), "open")
        #expect(flock(descriptor.raw, LOCK_EX | LOCK_NB) == 0)
        try expect("", says: "is in use by process \(getpid()), which does not answer at", warning: true)
        // Looking has not taken the lock away, nor another.
        #expect(flock(descriptor.raw, LOCK_UN) == 0)
        #expect(try problems("").map(\.text) == [])
        let lock = try #require(try SpoolLock.take("\(root)/spool"))
        try expect("", says: "/spool is in use by process \(getpid())", warning: true)
        withExtendedLifetime(lock) {}
    }

    @Test("check reports a queue limit that the disk cannot hold")
    func fault22_space() throws {
        try expect("queue.max_size = \"100TiB\"", says: "make room or lower it", warning: true)
    }

    @Test("check reports a port that another program has, and an address of another machine")
    func fault22_ports() throws {
        let raw = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        let listener = Descriptor(raw)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                #expect(bind(listener.raw, $0, length) == 0)
                #expect(listen(listener.raw, 1) == 0)
                #expect(getsockname(listener.raw, $0, &length) == 0)
            }
        }
        let port = UInt16(bigEndian: address.sin_port)
        func problem(_ address: String) throws -> String? {
            let loaded = try Settings.read([
                ConfigurationText(file: "t", text: "stats.listen = \"\(address)\"")
            ])
            return StartupCheck.problems(of: loaded).map(\.message).first { $0.contains("cannot listen") }
        }
        #expect(
            try problem("127.0.0.1:\(port)")?.hasSuffix("another program has it: `ss -ltnp` says which")
                == true)
        #expect(try problem("192.0.2.1:9464")?.contains("this machine has no such address") == true)
        #expect(try problem("127.0.0.1:0") == nil)
    }

    @Test("check reports certificates and keys that are missing, expired, about to expire, or not a pair")
    func fault22_certificates() throws {
        let now = SystemTime().wallTime
        let authority = try CertificateAuthority(now: now)
        func identity(days: Int) throws -> CertificateAuthority.Identity {
            try authority.issue(
                .init(
                    commonName: "client", names: ["DNS:localhost"], notBefore: now - .seconds(100 * 86_400),
                    notAfter: now + .seconds(days * 86_400 + 600)))
        }
        let good = try identity(days: 300)
        let other = try identity(days: 300)
        let certificate = try write("good.pem", good.certificate)
        let key = try write("good.key", good.key)
        func destination(_ lines: String) -> String {
            "[[destination]]\nname = \"main\"\nurl = \"https://example.com\"\n[destination.tls]\n\(lines)"
        }
        func pair(_ certificate: String, _ key: String) -> String {
            destination("certificate = { file = \"\(certificate)\", key_file = \"\(key)\" }")
        }
        #expect(try problems(pair(certificate, key)).map(\.text) == [])
        try expect(
            pair(certificate, try write("other.key", other.key)), says: "does not belong to the certificate")
        try expect(pair(certificate, certificate), says: "contains no private key")
        try expect(pair(key, key), says: "contains no certificate")
        try expect(pair("\(root)/none", key), says: "\(root)/none: no such file or directory")
        try expect(
            pair(certificate, try write("open.key", good.key, mode: 0o644)), says: "run chmod o-r",
            warning: true)
        try expect(
            pair(try write("ended.pem", try identity(days: -3).certificate), key),
            says: "expired 2d23h ago; renew it",
            warning: true)
        try expect(
            pair(try write("soon.pem", try identity(days: 5).certificate), key),
            says: "expires in 5 days; renew it",
            warning: true)
        #expect(
            try problems(destination("ca_file = \"\(try write("ca.pem", authority.certificate))\"")).isEmpty)
        try expect(
            destination("ca_file = \"\(try write("empty.pem", ""))\""), says: "contains no certificate in PEM"
        )
    }

    @Test("check reports files of secrets that are missing, empty, or readable by everybody")
    func fault22_secrets() throws {
        func destination(_ file: String) -> String {
            "[[destination]]\nname = \"main\"\nurl = \"https://example.com\"\ntoken_file = \"\(file)\""
        }
        #expect(try problems(destination(try write("token", "abc\n"))).isEmpty)
        try expect(destination("\(root)/none"), says: "no such file or directory")
        try expect(destination(try write("blank", "\n")), says: "is empty")
        try expect(
            destination(try write("open", "abc\n", mode: 0o644)), says: "can be read by everyone",
            warning: true)
        try expect(destination("\(root)/spool"), says: "is not a regular file")
        // As the start would, in its words.
        try expect(destination(try write("two", "abc\nabc\n")), says: "contains more than one line of text")
        try expect(
            destination(try write("long", String(repeating: "a", count: 70_000))),
            says: "is it the right file?")
        try expect(destination(try write("spaces", "  \n")), says: "is empty")
        let service = try write("service.pem", "no certificate")
        try expect(
            "[[destination]]\nname = \"main\"\nurl = \"https://example.com\"\n[destination.oauth2]\n"
                + "token_url = { address = \"https://example.com/token\", ca_file = \"\(service)\" }\n"
                + "client_id = \"a\"\nclient_secret = \"b\"",
            says: "contains no certificate in PEM")
    }

    @Test(
        "tm02: a container's default file is named after its id; for a file with a version the right name is shown",
        arguments: [
            ("GTM-1234", nil), ("GTM-1234.json", nil), ("GTM-1234.plist", nil),
            ("GTM-1234_v5", "has a version; call it GTM-1234"),
            ("GTM-1234-12.json", "has a version; call it GTM-1234.json"),
            ("GTM-1234.v3.plist", "has a version; call it GTM-1234.plist"),
            ("gtm-1234.json", "is spelled differently; call it GTM-1234.json"),
            ("GTM-12345", "is not the container's; call it GTM-1234 (complete)"),
            ("default.json", "is not the container's"),
        ] as [(String, String?)])
    func tm02_containerFileNames(name: String, mistake: String?) {
        let found = DefaultFile.mistake(name, id: "GTM-1234")
        if let mistake {
            #expect(found?.hasPrefix(mistake) == true, "\(found ?? "nil")")
        } else {
            #expect(found == nil)
        }
    }

    @Test("tm02: default files are checked for owner and mode; the complete document wins")
    func tm02_containerFilesAreTrusted() throws {
        func container(_ file: String) -> String {
            "[[container]]\nid = \"GTM-1\"\ndefault_file = \"\(file)\""
        }
        let file = try write("GTM-1.json", "{}", mode: 0o644)
        let found = try problems(container(file)).filter { !$0.message.contains("not in this version") }
        #expect(found.isEmpty)
        chmod(file, 0o664)
        try expect(container(file), says: "run chown root \(file) && chmod go-w \(file)")
        chmod(file, 0o644)
        _ = try write("GTM-1", #"{"id": "GTM-1", "version": 1}"#, mode: 0o644)
        try expect(
            container(file), says: "GTM-1.json is ignored, because GTM-1 beside it wins", warning: true)
    }

    @Test("a default file without the required redaction, or with a rule on what it hides, is a mistake")
    func redactingDefaults() throws {
        func container(_ file: String) -> String {
            "[[container]]\nid = \"GTM-1\"\nrequired = [\"redaction\"]\ndefault_file = \"\(file)\""
        }
        let file = try write("GTM-1", #"{"id": "GTM-1", "version": 1, "values": {"a": 1}}"#, mode: 0o644)
        try expect(
            container(file),
            says: "redacts nothing, which required demands: no event is read while it is in force")
        let blind =
            #"{"id":"GTM-1","version":1,"macros":{"m":{"type":"data_layer","path":"email"}},"rules":{"r":{"conditions":[{"macro":"m","equals":"x"}]}},"tags":[{"name":"t","type":"redact","rules":["r"],"paths":["properties.email"]}]}"#
        _ = try write("GTM-1", blind, mode: 0o644)
        try expect(container(file), says: "rules of \"t\" read from the data layer what tags hide")
    }

    @Test(
        "text of an app whose container hides by paths is a warning: lines that look like JSON are withheld"
    )
    func textBesideRedaction() throws {
        func hides(_ text: String, _ tag: String, ending end: String = "") throws -> [String] {
            let file = try write(
                "GTM-1",
                #"{"id":"GTM-1","version":1,"rules":{"r":{"conditions":[]}},"tags":[{"name":"t","type":"redact","rules":["r"],\#(tag)}]}"#,
                mode: 0o644)
            let container = "[[container]]\nid = \"GTM-1\"\ndefault_file = \"\(file)\"\napps = [\"shop\"]\n"
            return try problems(container + "[apps.shop]\n\(text)\n[apps.other]\ntext = \"lines\"").filter {
                $0.message.contains("sends text: lines that look like parts of JSON are quarantined instead")
                    && $0.message.hasSuffix(end)
            }.map { String($0.message.prefix { $0 != " " }) }
        }
        let path = #""paths":["**.email"]"#
        #expect(try hides("text = \"lines\"", path) == ["apps.shop.text"])
        #expect(try hides("read = [\"\(root)/*.log\"]", path) == ["apps.shop.read"])
        let parsed = "read = [\"\(root)/*.log\"]\nparse = \"java\""
        let inTexts = "; JSON inside a text of a parsed line is searched by patterns only"
        #expect(try hides(parsed, path, ending: inTexts) == ["apps.shop.read"])
        #expect(try hides("text = \"lines\"", path, ending: inTexts) == [])
        #expect(try hides("read = [\"\(root)/*.log\"]\ntext = \"quarantine\"", path) == [])
        #expect(try hides("text = \"lines\"", #""pattern":"email""#) == [])
    }

    @Test("parsed lines are warned of also where other text is quarantined, beside a container and a rule")
    func parsedTextBesideRedaction() throws {
        func warned(_ app: String, _ hiding: String) throws -> [String] {
            let shop = "[apps.shop]\nread = [\"\(root)/*.log\"]\ntext = \"quarantine\"\n"
            let end = "members by path, and JSON inside a text of a parsed line is searched by patterns only"
            return try problems("\(hiding)\n\(shop)\(app)").filter { $0.message.hasSuffix(end) }
                .map { String($0.message.prefix { $0 != " " }) }
        }
        let rule = "[[rule]]\nredact = { paths = [\"**.email\"] }"
        #expect(try warned("parse = \"java\"", rule) == ["apps.shop.parse"])
        #expect(try warned("pattern = \"^(?P<message>.*)\"", rule) == ["apps.shop.pattern"])
        #expect(try warned("", rule) == [])
        #expect(try warned("parse = \"java\"", "[[rule]]\nredact = { patterns = [\"email\"] }") == [])
        let file = try write(
            "GTM-1",
            #"{"id":"GTM-1","version":1,"rules":{"r":{"conditions":[]}},"tags":[{"name":"t","type":"redact","rules":["r"],"paths":["**.email"]}]}"#,
            mode: 0o644)
        let container = "[[container]]\nid = \"GTM-1\"\ndefault_file = \"\(file)\"\napps = "
        #expect(try warned("parse = \"java\"", container + "[\"shop\"]") == ["apps.shop.parse"])
        #expect(try warned("parse = \"java\"", container + "[\"other\"]") == [])
    }

    @Test("an unusable hash key is a mistake, and so is a missing one that a default file needs")
    func hashKeys() throws {
        func hashing(_ more: String) -> String {
            #"{"id":"GTM-1","version":1,"rules":{"r":{"conditions":[]}},"tags":[{"name":"t","type":"hash","rules":["r"],"paths":["a"]\#(more)}]}"#
        }
        let file = try write("GTM-1", hashing(""), mode: 0o644)
        let container = "[[container]]\nid = \"GTM-1\"\ndefault_file = \"\(file)\"\n"
        try expect(container, says: "\"t\" hashes without a key: name a hash_key")
        let key = try write("key", String(repeating: "k", count: 31))
        let keyed = container + "hash_key = \"file:\(key)\""
        try expect(keyed, says: "holds 31 bytes; a key has 32 to 4096")
        _ = try write("key", String(repeating: "k", count: 32), mode: 0o644)
        try expect(keyed, says: "can be read or changed by others (mode 0644); run chmod 0640")
        chmod(key, 0o640)
        #expect(try problems(keyed).isEmpty)
        _ = try write("GTM-1", hashing(#","salt":"s""#), mode: 0o644)
        try expect(keyed, says: "tags[0].salt: \"t\" hashes with a salt", warning: true)
    }

    @Test("digests without a key of the settings are warned of: of members, and of ids that patterns search")
    func missingHashKeys() throws {
        let redaction = "[[rule]]\nredact = { patterns = [\"email\"] }\n"
        try expect(
            redaction, says: "makes digests of ids with a key that is drawn at each start", warning: true)
        let key = try write("key", String(repeating: "k", count: 32), mode: 0o640)
        #expect(try problems("agent.hash_key = \"file:\(key)\"\n" + redaction).isEmpty)
        #expect(
            try problems("[[rule]]\nredact = { paths = [\"properties.a\"], patterns = [\"email\"] }").isEmpty)
        let file = try write(
            "GTM-1",
            #"{"id":"GTM-1","version":1,"rules":{"r":{"conditions":[]}},"tags":[{"name":"t","type":"redact","rules":["r"],"pattern":"email"}]}"#,
            mode: 0o644)
        try expect(
            "[[container]]\nid = \"GTM-1\"\ndefault_file = \"\(file)\"",
            says: "\"t\" makes digests of ids with a key that is drawn at each start: name a hash_key",
            warning: true)
    }

    @Test("tm02, tm14: a default file that has expired, or calls a forbidden function, is a warning")
    func tm02_warnings() throws {
        func container(_ file: String) -> String {
            "[[container]]\nid = \"GTM-1\"\ndefault_file = \"\(file)\""
        }
        let file = try write(
            "GTM-1", #"{"id": "GTM-1", "version": 1, "expires": "2021-01-01T00:00:00Z"}"#, mode: 0o644)
        try expect(container(file), says: "the document has expired, and stays in force", warning: true)
        let calls =
            #"{"id": "GTM-1", "version": 1, "macros": {"m": {"type": "function_call", "function": "lookup", "parameters": {}}}}"#
        _ = try write("GTM-1", calls, mode: 0o644)
        try expect(
            container(file), says: "calls lookup, which give null: name them in may_call", warning: true)
        let allowed =
            container(file) + "\nmay_call = [\"lookup\"]\n[functions.lookup]\ncommand = [\"/bin/true\"]"
        #expect(try problems(allowed).isEmpty)
    }

    @Test("tm14: a function's program that other users can change or replace is a mistake")
    func tm14_programTrust() throws {
        let program = try write("program", "#!/bin/sh\n", mode: 0o755)
        let function = "[functions.f]\ncommand = [\"\(program)\"]"
        #expect(try problems(function).isEmpty)
        chmod(program, 0o777)
        try expect(function, says: "can be written by others (mode 0777)")
        chmod(program, 0o755)
        chmod(root, 0o777)
        try expect(function, says: "can be replaced by others")
        chmod(root, 0o755)
        #expect(try problems(function).isEmpty)
    }

    @Test("check reports programs, databases and time zones that are missing")
    func fault22_namedFiles() throws {
        try expect("[functions.f]\ncommand = [\"\(root)/none\"]", says: "no such file")
        try expect("[functions.f]\ncommand = [\"\(root)/spool\"]", says: "is not a program")
        let program = try write("program", "#!/bin/sh\n", mode: 0o644)
        try expect(
            "[functions.f]\ncommand = [\"\(program)\"]", says: "cannot be run by user \(own.user)")
        try expect("[country]\ndatabase = \"\(root)/none\"", says: "no such file")
        try expect(
            "[[deadline]]\nname = \"a\"\ntime_zone = \"Europe/Atlantis\"", says: "not known to this system")
        let deadline = "[[deadline]]\nname = \"a\"\ntime_zone = \"Europe/Atlantis\""
        #expect(try problems(deadline).count == 1)
        #expect(try problems("[[deadline]]\nname = \"a\"\ntime_zone = \"Europe/Rome\"").isEmpty)
    }

    @Test("check reports a socket path that is taken, and a group that is missing")
    func fault22_controlSocket() throws {
        _ = try write("control.sock", "")
        try expect("", says: "is not a socket; remove it")
        let loaded = try Settings.read([
            ConfigurationText(file: "t", text: "control.socket.group = \"no-such-group\"")
        ])
        let found = StartupCheck.problems(of: loaded)
        #expect(
            found.contains {
                $0.message.contains("there is no such group; create it") && $0.severity == .error
            })
    }

    @Test("paths that the unit's sandbox forbids are reported with a drop-in to write, until it is written")
    func fault22_sandbox() throws {
        let units = "\(root)/units"
        mkdir(units, 0o755)
        mkdir("\(units)/spoolship.service.d", 0o755)
        _ = try write(
            "units/spoolship.service",
            "[Service]\nStateDirectory=spoolship\nReadWritePaths=/var/spool/spoolship\nProtectSystem=strict\nProtectHome=yes\n"
        )
        let strict = try #require(UnitSandbox(places: ["\(root)/none", units]))
        try expect(
            "", sandbox: strict,
            says: "add ReadWritePaths=\(root)/state in a drop-in (systemctl edit spoolship)")
        #expect(strict.refusal("/var/lib/spoolship", writes: true) == nil)
        #expect(strict.refusal("/var/spool/spoolship/archive", writes: true) == nil)
        #expect(strict.refusal("/var/spool/spoolship2", writes: true) != nil)
        #expect(strict.refusal("/srv/ca.pem", writes: false) == nil)
        #expect(strict.refusal("/home/web/ca.pem", writes: false)?.contains("ProtectHome=read-only") == true)
        _ = try write(
            "units/spoolship.service.d/50.conf",
            "[Service]\nReadWritePaths=-\(root)/\nProtectHome=read-only\n")
        let open = try #require(UnitSandbox(places: ["\(root)/none", units]))
        #expect(try problems("", sandbox: open).map(\.text) == [])
        // Without a synchronised clock nothing expires.
        #expect(try problems("", sandbox: open, clock: "the clock").map(\.text) == ["warning: the clock"])
        #expect(open.refusal("/home/web/ca.pem", writes: false) == nil)
        // What the service adds: groups, and variables that the configuration may name.
        _ = try write("variables", "# none\nTOKEN=\"a b\"\nURL=https://x/\n")
        _ = try write(
            "units/spoolship.service.d/60.conf",
            "[Service]\nSupplementaryGroups=adm ssl-cert\nSupplementaryGroups=systemd-journal\n"
                + "Environment=\"A=1 2\" 'B=3' URL=old\nEnvironmentFile=-\(root)/variables\nEnvironmentFile=-/none\n"
        )
        let unit = try #require(UnitSandbox(places: [units]))
        #expect(unit.groups == ["adm", "ssl-cert", "systemd-journal"])
        #expect(unit.environment == ["A": "1 2", "B": "3", "URL": "https://x/", "TOKEN": "a b"])
        // A user who does not exist: the service manager cannot start the agent.
        _ = try write("units/spoolship.service.d/70.conf", "[Service]\nUser=nobody-here\n")
        let unknown = try #require(UnitSandbox(places: [units]))
        try expect(
            "", sandbox: unknown,
            says:
                "spoolship.service runs the agent as user nobody-here, who does not exist (systemctl status: 217/USER)"
        )
        #expect(unknown.userMistake { $0 == "nobody-here" } == nil)
        _ = try write("units/spoolship.service.d/80.conf", "[Service]\nDynamicUser=yes\n")
        #expect(try #require(UnitSandbox(places: [units])).userMistake { _ in false } == nil)
        // An empty value takes back what its own directive gave, and nothing else.
        _ = try write("units/spoolship.service.d/90.conf", "[Service]\nReadWritePaths=\n")
        let emptied = try #require(UnitSandbox(places: [units]))
        #expect(emptied.refusal("/var/spool/spoolship", writes: true) != nil)
        #expect(emptied.refusal("/var/lib/spoolship", writes: true) == nil)
        // The spool, files that are written, and what is read where it lies.
        try expect("", sandbox: strict, says: "add ReadWritePaths=\(root)/spool in a drop-in")
        #expect(UnitSandbox(places: ["\(root)/none"]) == nil)
        // The shipped unit is one that it understands.
        let shipped = try #require(UnitSandbox(places: ["\(GoldenFile.root)/packaging/systemd"]))
        #expect(shipped.isStrict && shipped.writable.contains("/var/lib/spoolship"))
        #expect(shipped.refusal("/srv/queue", writes: true) != nil)
    }
}
