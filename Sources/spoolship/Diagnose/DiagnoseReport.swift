internal import Agent
internal import Configuration
internal import Control
internal import EventLoops
internal import Glibc
internal import Model

/// The facts for a bug report as one text in sections. A section that cannot be made says why, and the report
/// continues: it is needed most when something is broken. It has no contents of events and no secrets.
struct DiagnoseReport {
    /// How many of the newest log lines are included.
    private static let logLines = 300

    /// The command's options.
    private let invocation: Invocation
    /// The configuration; nil if it has mistakes.
    private let loaded: LoadedSettings?
    /// The mistakes of the configuration.
    private let mistakes: [Problem]

    /// Reads the configuration; mistakes become part of the report.
    init(_ invocation: Invocation) {
        self.invocation = invocation
        do throws(ConfigurationError) {
            loaded = try Settings.loadWithRules(path: invocation.configurationPath)
            mistakes = []
        } catch {
            loaded = nil
            mistakes = error.problems
        }
    }

    /// The report. Secrets are removed from the complete text at the end, so that no section can leak one by
    /// a way that was not thought of.
    var text: String {
        let sections = [
            ("program", program), ("system", system), ("configuration", configuration), ("check", check),
            ("status", status), ("log", log),
            ("files of the state directory", files(loaded?.settings.agent.stateDirectory, isHashed: false)),
            (
                "files of the spool",
                files(loaded?.settings.spool.directory, isHashed: invocation.has("hash-names"))
            ),
        ]
        let text = sections.map { "== \($0.0)\n\($0.1)\n" }.joined(separator: "\n")
        return DiagnoseReport.secrets(of: loaded?.settings).reduce(text) {
            $0.replacingAll($1, with: Secret.mask)
        }
    }

    /// The program's version and its libraries.
    private var program: String {
        let libraries = Build.libraries.map { "\($0.name) \($0.version)" }.joined(separator: ", ")
        return "spoolship \(Build.version), commit \(Build.commit), \(Build.toolchain)\n\(libraries)"
    }

    /// The distribution, kernel and architecture, the time, and the user who makes the report.
    private var system: String {
        var names = utsname()
        uname(&names)
        /// The text of a field of utsname, which ends with a zero.
        func text(_ field: UnsafeRawBufferPointer) -> String {
            String(decoding: field.prefix { $0 != 0 }, as: UTF8.self)
        }
        let kernel = withUnsafeBytes(of: &names.release) { text($0) }
        let machine = withUnsafeBytes(of: &names.machine) { text($0) }
        let release = (try? WholeFile.bytes(of: "/etc/os-release", atMost: 65_536)) ?? []
        let pretty = String(decoding: release, as: UTF8.self).split(separator: "\n").first {
            $0.hasPrefix("PRETTY_NAME=")
        }
        let user = FileAccess.own.user
        return """
            \(pretty.map { String($0.dropFirst(12)) } ?? "unknown system"), kernel \(kernel), \(machine)
            \(SystemTime().wallTime), run by \(user)
            """
    }

    /// The files and settings of the configuration, or where its mistakes are.
    private var configuration: String {
        guard let loaded else {
            // Without the text of the messages: it quotes values, and a value may be a secret.
            let places = mistakes.map { problem in
                let place = problem.position.map { "\($0.file):\($0.line):\($0.column): " } ?? ""
                return "\(place)\(problem.code.rawValue)"
            }
            return "cannot be used, `spoolship check` says why:\n" + places.joined(separator: "\n")
        }
        return
            "files: \(loaded.files.joined(separator: ", "))\n\n\(EffectiveConfiguration(loaded.settings).toml)"
    }

    /// What `check` finds.
    private var check: String {
        guard let loaded else { return "not done" }
        let problems = loaded.warnings + StartupCheck.problems(of: loaded, sandbox: invocation.unit)
        guard !problems.isEmpty else { return "good" }
        return problems.map { "\($0.severity.rawValue): \($0.message)" }.joined(separator: "\n")
    }

    /// The status of the running agent, as a screen and as JSON; without an agent the reason.
    private var status: String {
        let socket = invocation.value("socket") ?? loaded?.settings.control.socket ?? ControlSettings().socket
        let client = ControlClient(socket: socket)
        do throws(ControlError) {
            let status = try client.request("GET", "/v1/status", query: [("text", "screen")]).json()
            let rest = JSONValue.object((status.members ?? []).filter { $0.key != "text" })
            return DiagnoseReport.withoutAnswers("\(status["text"]?.string ?? "")\n\(rest.pretty)")
        } catch {
            return error.message
        }
    }

    /// A status without the answers of receivers, which can quote events.
    static func withoutAnswers(_ status: String) -> String {
        status.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            let start = line.indices.first {
                line[$0...].hasPrefix("it says: ") || line[$0...].hasPrefix("\"answer\": \"")
            }
            guard let start else { return String(line) }
            return "\(line[..<line[start...].prefix { $0 != ":" }.endIndex]): (not shown)"
        }.joined(separator: "\n")
    }

    /// The newest lines of the log: of the file `--log`, otherwise of the journal.
    private var log: String {
        if let file = invocation.value("log") {
            guard let bytes = try? WholeFile.bytes(of: file, atMost: 1 << 30) else {
                return "\(file) cannot be read"
            }
            let lines = bytes.split(separator: UInt8(ascii: "\n")).suffix(DiagnoseReport.logLines)
            return lines.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "\n")
        }
        return Journal.newest(DiagnoseReport.logLines, of: "spoolship.service")
    }

    /// The listing of a directory; "not known" without a configuration.
    private func files(_ root: String?, isHashed: Bool) -> String {
        root.map { FileListing(root: $0, isHashed: isHashed).text } ?? "not known"
    }

    /// All secrets of the configuration, in the order in which they are removed from the report: the longest
    /// first, because a secret can be part of another.
    private static func secrets(of settings: Settings?) -> [String] {
        // Secrets in the configuration are the values that it masks when printed. Secrets in files follow.
        var secrets = (settings?.effective ?? []).flatMap { $0.value?.secrets ?? [] }.map(\.revealed)
        for case .file(let path) in (settings?.destinations ?? []).flatMap(\.secrets).map(\.source) {
            let bytes = (try? WholeFile.bytes(of: path, atMost: 65_536)) ?? []
            secrets += String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
        }
        // A secret of a few bytes also occurs in other words, and removing it would make the report
        // unreadable.
        return Set(secrets.filter { $0.utf8.count >= 6 }).sorted { $0.utf8.count > $1.utf8.count }
    }
}
