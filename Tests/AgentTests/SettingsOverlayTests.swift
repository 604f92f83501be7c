import Control
import EventLoops
import Glibc
import Model
import TestKit
import Testing

@testable import Agent
@testable import Configuration

@Suite("Settings that containers set")
struct SettingsOverlayTests {
    private let base: Settings

    init() throws {
        let text = "[dispatch]\ninterval = \"6s\"\n"
        base = try Settings.read([ConfigurationText(file: "t.toml", text: text)]).settings
    }

    private func container(
        _ id: String, _ maySet: [String], _ values: [(String, JSONValue)], needEvent: [String] = []
    ) -> ContainerState {
        var settings = ContainerSettings()
        settings.id = id
        settings.maySet = maySet
        var state = ContainerState(settings)
        state.values = values.map { .init($0.0, $0.1) }
        state.needEvent = needEvent
        return state
    }

    @Test("tm10: a value sets its setting, with the container as its origin; the file's settings stay")
    func sets() {
        let overlay = SettingsOverlay(
            base, [container("A", ["dispatch.interval"], [("dispatch.interval", "10s")])])
        #expect(overlay.settings.dispatch.interval == .every(.seconds(10)))
        #expect(overlay.settings.origin(of: "dispatch.interval") == .container("A"))
        #expect(overlay.refused.isEmpty)
        #expect(overlay.settings.overrides.map(\.setting) == ["dispatch.interval"])
        #expect(base.overrides.isEmpty)
    }

    @Test("tm10: settings that may_set does not name are not set, whatever the key of the value")
    func onlyWhatIsNamed() {
        let values: [(String, JSONValue)] = [
            ("dispatch.interval", "10s"), ("agent.state_directory", "/tmp"), ("control.socket", "/tmp/s"),
        ]
        let overlay = SettingsOverlay(base, [container("A", ["queue.max_age"], values)])
        #expect(overlay.settings == base)
        #expect(overlay.refused.isEmpty)
    }

    @Test(
        "tm10: a value that a file could not set is refused with the reason, and the setting stays",
        arguments: ["3 weeks", 6, true, ["10s"], ["a": 1], .double(0.5), "90000s"] as [JSONValue])
    func badValues(_ value: JSONValue) {
        let overlay = SettingsOverlay(
            base,
            [
                container(
                    "A", ["dispatch.interval", "queue.max_age"],
                    [("dispatch.interval", value), ("queue.max_age", "20d")])
            ])
        #expect(overlay.settings.dispatch.interval == .every(.seconds(6)))
        #expect(overlay.refused["A"]?["dispatch.interval"]?.isEmpty == false)
        #expect(overlay.settings.queue.maxAge == .seconds(20 * 86_400))
    }

    @Test("tm10: may_set of a pair grants its first value; the second needs its own name, new or old")
    func secondValues() {
        let both: (String, JSONValue) = ("limits.name_length", ["max": 50, "beyond": "refuse"])
        func overlay(_ maySet: [String], _ values: (String, JSONValue)...) -> SettingsOverlay {
            SettingsOverlay(base, [container("A", maySet, values)])
        }
        let refused = overlay(["limits.name_length"], both)
        #expect(refused.settings == base)
        #expect(
            refused.refused["A"] == [
                "limits.name_length":
                    "limits.name_length sets limits.name_length.beyond, which may_set does not name"
            ])
        let first = overlay(["limits.name_length"], ("limits.name_length", ["max": 50]))
        #expect(first.settings.limits.nameLength == LimitSetting(value: 50) && first.refused.isEmpty)
        for second in ["limits.name_length.beyond", "limits.beyond_name_length"] {
            let granted = overlay(["limits.name_length", second], both)
            #expect(granted.settings.limits.nameLength == LimitSetting(value: 50, beyond: .refuse))
            let alone = overlay([second], (second, "refuse"))
            #expect(alone.settings.limits.nameLength == LimitSetting(beyond: .refuse), "\(second)")
            #expect(overlay([second], both).settings == base)
        }
    }

    @Test("tm10: a value that depends on an event is refused; null sets nothing")
    func withoutEvent() {
        let overlay = SettingsOverlay(
            base,
            [
                container("A", ["dispatch.interval"], [], needEvent: ["dispatch.interval"]),
                container("B", ["queue.max_age"], [("queue.max_age", .null)]),
            ])
        #expect(overlay.settings == base)
        #expect(overlay.refused["A"]?["dispatch.interval"]?.isEmpty == false)
        #expect(overlay.refused["B"] == nil)
    }

    @Test("tm17: if several containers set the same setting, the last one in the configuration wins")
    func order() {
        let overlay = SettingsOverlay(
            base,
            [
                container("A", ["dispatch.interval"], [("dispatch.interval", "10s")]),
                container("B", ["dispatch.interval"], [("dispatch.interval", "20s")]),
            ])
        #expect(overlay.settings.dispatch.interval == .every(.seconds(20)))
        #expect(overlay.settings.origin(of: "dispatch.interval") == .container("B"))
    }

    @Test("published values replace those of an earlier agent, but no file of another program")
    func valuesReplaceOnlyValues() throws {
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/values.json"
        var file = ValuesFile(in: directory.path)
        try file.write([container("A", [], [("n", 1)])])
        var later = ValuesFile(in: directory.path)
        try later.write([container("A", [], [("n", 2)])])
        try writeText("{\"colours\": [1, 2]}", to: path)
        var third = ValuesFile(in: directory.path)
        #expect(throws: SystemError.self) { try third.write([container("A", [], [("n", 3)])]) }
        #expect(try readText(path) == "{\"colours\": [1, 2]}")
        unlink(path)
        symlink("/etc/passwd", path)
        #expect(throws: SystemError.self) { try third.write([container("A", [], [("n", 3)])]) }
        unlink(path)
        #expect(throws: Never.self) { try third.write([container("A", [], [("n", 3)])]) }
    }

    private func writeText(_ text: String, to path: String) throws {
        let file = try #require(fopen(path, "w"))
        fputs(text, file)
        fclose(file)
    }

    private func readText(_ path: String) throws -> String {
        let file = try #require(fopen(path, "r"))
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 4096)
        return String(decoding: bytes[..<fread(&bytes, 1, bytes.count, file)], as: UTF8.self)
    }

    @Test(
        "tm19: values are published as a whole, readable for all; if keys are equal, the last container wins")
    func valuesFile() throws {
        let directory = try TemporaryDirectory()
        var file = ValuesFile(in: directory.path)
        umask(0o077)
        try file.write([
            container("A", [], [("greeting", "hello"), ("n", 1)]),
            container("B", [], [("n", 2), ("on", true)]),
        ])
        var status = stat()
        #expect(stat(file.path, &status) == 0 && status.st_mode & 0o777 == 0o644)
        let first = status.st_ino
        let json = try JSONValue(parsing: try text(of: file.path))
        #expect(json["values"] == ["greeting": "hello", "n": 2, "on": true])
        #expect(json["containers"]?.array?.count == 2)
        try file.write([container("A", [], [("n", 3)])])
        #expect(stat(file.path, &status) == 0 && status.st_ino != first)
        #expect(try JSONValue(parsing: try text(of: file.path))["values"] == ["n": 3])
    }
}

private func text(of path: String) throws -> String {
    let descriptor = open(path, O_RDONLY)
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 65_536)
    let count = read(descriptor, &bytes, bytes.count)
    return String(decoding: bytes[..<max(0, count)], as: UTF8.self)
}
