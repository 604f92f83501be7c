import Glibc
import Testing

@testable import Configuration

@Suite("The shipped file")
struct ShippedFileTests {
    /// The repository, found from this source file.
    static let root = #filePath.split(separator: "/").dropLast(3).reduce("") { $0 + "/" + $1 }

    static func text(of path: String) throws -> String {
        let file = try #require(fopen(path, "r"), "\(path) is missing")
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = fread(&block, 1, block.count, file)
            if count == 0 { return String(decoding: bytes, as: UTF8.self) }
            bytes += block[..<count]
        }
    }

    @Test("etc/spoolship.toml agrees with the table of settings (`scripts/generate` writes it)")
    func shippedFileIsCurrent() throws {
        #expect(
            try ShippedFileTests.text(of: ShippedFileTests.root + "/etc/spoolship.toml")
                == ShippedFile.text)
    }

    @Test("as shipped it changes nothing, and reports that a destination is missing")
    func shippedFileIsValid() throws {
        let loaded = try Settings.read([ConfigurationText(file: "spoolship.toml", text: ShippedFile.text)]
        )
        #expect(SettingsChange.all(from: loaded.settings, to: Settings()).isEmpty)
        #expect(loaded.warnings.map(\.code) == [.missing])
    }

    @Test("it is short, and valid without warnings if every line is uncommented")
    func shippedFileIsShort() throws {
        let lines = ShippedFile.text.split(separator: "\n")
        #expect(lines.count <= 25)
        let settings = lines.map {
            $0.hasPrefix("# ") || $0 == "#" ? "" : $0.hasPrefix("#") ? $0.dropFirst() : $0
        }
        let text = settings.joined(separator: "\n")
        let loaded = try Settings.read([ConfigurationText(file: "spoolship.toml", text: text)])
        #expect(
            loaded.warnings == [] && loaded.settings.rules.count == 1
                && loaded.settings.destinations.count == 1)
        #expect(loaded.settings.queue == Settings().queue && loaded.settings.stats == Settings().stats)
    }

    @Test("its commented defaults are the program's: uncommented, the general sections change nothing")
    func shippedDefaultsAreTheProgramsDefaults() throws {
        var text = ""
        var settings = 0
        for section in Settings.description where section.kind == .once {
            text += "[\(section.name)]\n"
            for case .setting(let setting) in section.listed {
                settings += 1
                let line = "\(setting.name) = "
                let start = try #require(ShippedFile.reference.range(of: "\n[\(section.name)]\n"))
                let rest = ShippedFile.reference[start.upperBound...]
                let shown = try #require(rest.split(separator: "\n").first { $0.hasPrefix("#" + line) })
                if setting.defaultValue != nil { text += shown.dropFirst() + "\n" }
            }
        }
        let loaded = try Settings.read([ConfigurationText(file: "spoolship.toml", text: text)])
        #expect(SettingsChange.all(from: Settings(), to: loaded.settings) == [])
        #expect(settings > 40)
    }

    @Test("every example of a setting without a default is accepted")
    func examplesAreAccepted() throws {
        func check(_ section: SectionDescription, heading: String, prefix: String) throws {
            for entry in section.entries {
                switch entry {
                case .setting(let setting):
                    guard setting.defaultValue == nil, !setting.isListedElsewhere else { continue }
                    let example = try #require(setting.example, "\(heading) \(setting.name) shows no example")
                    let text = "\(prefix)\(heading)\n\(setting.name) = \(example)\n"
                    do {
                        _ = try Settings.read([ConfigurationText(file: "t", text: text)])
                    } catch {
                        // Alone, the section may lack something; the value itself must be right.
                        let expected: Set<Problem.Code> = [.missing, .conflict, .retired]
                        #expect(error.problems.allSatisfy { expected.contains($0.code) }, "\(error)")
                    }
                case .section(let inner):
                    switch section.kind {
                    case .once: try check(inner, heading: "[[\(section.name).\(inner.name)]]", prefix: "")
                    case .list:
                        try check(inner, heading: "[\(section.name).\(inner.name)]", prefix: heading + "\n")
                    case .named: try check(inner, heading: "[\(section.name).NAME.\(inner.name)]", prefix: "")
                    }
                }
            }
        }
        for section in Settings.description { try check(section, heading: section.heading(), prefix: "") }
    }

    @Test("every setting says in one line why one would change it")
    func everySettingIsExplained() {
        func check(_ section: SectionDescription) {
            #expect(!section.why.isEmpty)
            for entry in section.entries {
                switch entry {
                case .setting(let setting):
                    #expect(
                        setting.why.count > 8 && setting.why.hasSuffix("."), "\(section.name).\(setting.name)"
                    )
                case .section(let inner): check(inner)
                }
            }
        }
        Settings.description.forEach(check)
    }

    @Test(
        "all sections and settings of the product are in the table",
        arguments: [
            "agent": "state_directory log shutdown_drain_timeout",
            "spool":
                "directory when_full after_read archive archive_directory max_event_size max_open_files poll_interval"
                + " quarantine_max_size",
            "dead_letters": "max_size",
            "limits": "event_names name_length properties property_key_length property_value_length",
            "dispatch":
                "interval batch_events batch_size parallel_batches critical_delay",
            "queue": "max_size max_age compression durability",
            "retry": "intervals when_exhausted",
            "priorities": "default rule", "country": "code rule database address", "session": "mode",
            "device": "properties",
            "apps": "name level parse pattern columns priority country limits destinations",
            "destination":
                "name type url format compression headers token tls proxy connect_timeout request_timeout"
                + " rate_limit",
            "deadline": "name time margin for",
            "functions": "command timeout parallel cache",
            "container":
                "id default_file url public_key open fresh_for refresh_interval may_set may_call",
            "stats": "listen status_page", "control": "socket",
        ])
    func tableIsComplete(section: String, settings: String) throws {
        let described = try #require(Settings.description.first { $0.name == section })
        for name in settings.split(separator: " ") {
            #expect(described.entries.contains { $0.name == name }, "\(section).\(name)")
        }
    }
}

extension String {
    func range(of text: String) -> Range<String.Index>? {
        var start = startIndex
        while start < endIndex {
            if self[start...].hasPrefix(text) { return start..<index(start, offsetBy: text.count) }
            start = index(after: start)
        }
        return nil
    }
}
