internal import Configuration
internal import Control
internal import EventLoops
internal import Glibc
internal import Model

/// What a bug report needs, section by section. A section that cannot be made says why; none ends the report.
struct DiagnoseReport {
    private static let logLines = 300

    private let invocation: Invocation
    private let loaded: LoadedSettings?
    private let mistakes: [Problem]

    init(_ invocation: Invocation) {
        self.invocation = invocation
        do throws(ConfigurationError) {
            loaded = try Settings.load(path: invocation.configurationPath)
            mistakes = []
        } catch {
            loaded = nil
            mistakes = error.problems
        }
    }

    var text: String {
        let sections = [
            ("program", program), ("system", system), ("configuration", configuration), ("check", check),
            ("status", status), ("log", log),
            ("files of the state directory", files(loaded?.settings.agent.stateDirectory, isHashed: false)),
            ("files of the spool", files(loaded?.settings.spool.directory, isHashed: invocation.has("hash-names"))),
        ]
        let text = sections.map { "== \($0.0)\n\($0.1)\n" }.joined(separator: "\n")
        return DiagnoseReport.secrets(of: loaded?.settings).reduce(text) { $0.replacingAll($1, with: Secret.mask) }
    }

    private var program: String {
        let libraries = Build.libraries.map { "\($0.name) \($0.version)" }.joined(separator: ", ")
        return "spoolship \(Build.version), commit \(Build.commit), \(Build.toolchain)\n\(libraries)"
    }

    private var system: String {
        var names = utsname()
        uname(&names)
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

    private var configuration: String {
        guard let loaded else {
            // Without the lines themselves: one may hold a secret.
            let places = mistakes.map { problem in
                let place = problem.position.map { "\($0.file):\($0.line):\($0.column): " } ?? ""
                return "\(place)\(problem.code.rawValue)"
            }
            return "cannot be used, `spoolship check` says why:\n" + places.joined(separator: "\n")
        }
        return "files: \(loaded.files.joined(separator: ", "))\n\n\(EffectiveConfiguration(loaded.settings).toml)"
    }

    private var check: String {
        guard let loaded else { return "not done" }
        let problems = loaded.warnings + StartupCheck.problems(of: loaded, sandbox: invocation.unit)
        guard !problems.isEmpty else { return "good" }
        return problems.map { "\($0.severity.rawValue): \($0.message)" }.joined(separator: "\n")
    }

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

    /// A status without the words of receivers, which may quote events.
    static func withoutAnswers(_ status: String) -> String {
        status.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            let start = line.indices.first {
                line[$0...].hasPrefix("it says: ") || line[$0...].hasPrefix("\"answer\": \"")
            }
            guard let start else { return String(line) }
            return "\(line[..<line[start...].prefix { $0 != ":" }.endIndex]): (not shown)"
        }.joined(separator: "\n")
    }

    private var log: String {
        if let file = invocation.value("log") {
            guard let bytes = try? WholeFile.bytes(of: file, atMost: 1 << 30) else { return "\(file) cannot be read" }
            let lines = bytes.split(separator: UInt8(ascii: "\n")).suffix(DiagnoseReport.logLines)
            return lines.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "\n")
        }
        return Journal.newest(DiagnoseReport.logLines, of: "spoolship.service")
    }

    private func files(_ root: String?, isHashed: Bool) -> String {
        root.map { FileListing(root: $0, isHashed: isHashed).text } ?? "not known"
    }

    /// What the configuration calls a secret, the longest first: it is taken out wherever it stands.
    private static func secrets(of settings: Settings?) -> [String] {
        // Those of the configuration itself are whatever it shows masked.
        var secrets = (settings?.effective ?? []).flatMap { $0.value?.secrets ?? [] }.map(\.revealed)
        for case .file(let path) in (settings?.destinations ?? []).flatMap(\.secrets).map(\.source) {
            let bytes = (try? WholeFile.bytes(of: path, atMost: 65_536)) ?? []
            secrets += String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
        }
        // Short ones would take half the text with them.
        return Set(secrets.filter { $0.utf8.count >= 6 }).sorted { $0.utf8.count > $1.utf8.count }
    }
}
