import Foundation
import Testing

/// docs/analytics.md says where each call of three SDKs went: each row names something that exists, and a test.
@Suite("The page about the calls of three SDKs")
struct MappingPageTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().path

    private static func text(_ path: String) throws -> String {
        try String(contentsOfFile: "\(root)/\(path)", encoding: .utf8)
    }

    /// All Swift files of a directory, as one text.
    private static func sources(_ directory: String) throws -> String {
        let names = FileManager.default.enumerator(atPath: "\(root)/\(directory)")?.compactMap {
            $0 as? String
        }
        return try (names ?? []).filter { $0.hasSuffix(".swift") }.map { try text("\(directory)/\($0)") }
            .joined(separator: "\n")
    }

    /// The tests of the rows, by the first code in a row, or its first words: file under Tests, and function.
    private static let tests: [(row: String, file: String, function: String)] = [
        ("AppCenter.start(withAppSecret:services:)", "SpoolshipClientTests/ClientTests", "shared"),
        ("Analytics.trackEvent(name)", "SpoolshipClientTests/ClientTests", "eventsAreWritten"),
        ("[String: String]", "SpoolshipClientTests/ClientTests", "properties"),
        ("EventProperties", "SpoolshipClientTests/ClientTests", "properties"),
        ("Flags.normal", "SpoolshipClientTests/ClientTests", "eventsAreWritten"),
        ("Analytics.pause()", "SpoolshipClientTests/ClientTests", "ac16_pause"),
        ("Analytics.enabled", "SpoolshipClientTests/ClientTests", "ac17_switchPersists"),
        ("Analytics.transmissionInterval", "SpoolshipClientTests/ClientTests", "settingsBeforeStart"),
        ("Analytics.enableManualSessionTracker()", "SpoolshipClientTests/ClientTests", "settingsBeforeStart"),
        ("Analytics.startSession()", "SpoolshipClientTests/ClientTests", "ac21_sessions"),
        ("AppCenter.countryCode = \"IT\"", "SpoolshipClientTests/ClientTests", "ac23_countries"),
        ("AppCenter.userId", "SpoolshipClientTests/ClientTests", "propertiesOfVariables"),
        ("AppCenter.isNetworkRequestsAllowed", "EndToEndTests/ContainerTests", "firstStartOffline"),
        (
            "AppCenter.setMaxStorageSize(_:completionHandler:)", "QueueTests/QueueCapTests",
            "ac07_evictsInOrder"
        ),
        ("AppCenter.logLevel", "CommandTests/AgentCommandTests", "requests"),
        ("AppCenter.installId", "HostTests/HostTests", "ac22_device"),
        ("AppCenter.logUrl", "ConfigurationTests/SettingsTests", "everythingArrivesTyped"),
        ("crash reports", "EventsTests/PriorityTests", "ac26_crashAndMayBeCritical"),
        ("GAI.dispatchInterval = 120", "SpoolshipClientTests/ClientTests", "intervalAndBuffer"),
        ("dispatchInterval = -1", "SpoolshipClientTests/ClientTests", "ga02_manualDispatch"),
        ("GAI.dispatch()", "EndToEndTests/ClientTests", "dispatch"),
        ("GAI.dispatch(completionHandler:)", "SpoolshipClientTests/ClientTests", "ga05_dispatch"),
        (".noData", "SpoolshipClientTests/ClientTests", "ga05_reports"),
        ("while result == .good", "EndToEndTests/ClientTests", "dispatch"),
        ("hits are dispatched by 4 a.m.", "EndToEndTests/DeadlineTests", "ga08_lateEventsOfAnApp"),
        ("GAI.optOut", "SpoolshipClientTests/ClientTests", "ac17_disabled"),
        ("GAI.dryRun", "OutputsTests/FileOutputTests", "appends"),
        ("GAI.logger", "EndToEndTests/EventTests", "trackAndTap"),
        ("tracker.send(_:)", "EndToEndTests/ClientTests", "samples"),
        ("TAGContainerOpener.openContainer(withId:…)", "EndToEndTests/ClientTests", "container"),
        ("default container in the bundle", "ContainersTests/DefaultFileTests", "namings"),
        ("container.string(forKey:)", "EndToEndTests/ClientTests", "container"),
        ("container.isDefault", "EndToEndTests/ClientTests", "container"),
        ("container.refresh()", "EndToEndTests/ContainerTests", "clientRefreshes"),
        ("containerRefreshBegin", "EndToEndTests/ClientTests", "container"),
        ("dataLayer.push(_:)", "SpoolshipClientTests/ClientTests", "pushes"),
        ("dataLayer.get(_:)", "ContainersTests/DataLayerTests", "tm11_eventsArePushed"),
        ("registerFunctionCallMacroHandler(_:forMacro:)", "EndToEndTests/ClientTests", "functionCalls"),
        ("registerFunctionCallTagHandler(_:forTag:)", "EndToEndTests/ClientTests", "functionCalls"),
        ("function call macro", "ContainersTests/FunctionRunnerTests", "echo"),
        ("TAGManager.preview(with:)", "EndToEndTests/ContainerTests", "preview"),
        ("TAGManager.dispatchInterval", "SpoolshipClientTests/ClientTests", "intervalAndBuffer"),
        ("logger", "CommandTests/AgentCommandTests", "requests"),
        ("AnalyticsClient(settings)", "SpoolshipClientTests/ModulesTests", "exactness"),
        ("track", "SpoolshipClientTests/ModulesTests", "protocolIsKept"),
        ("push(_:)", "SpoolshipClientTests/ModulesTests", "protocolIsKept"),
        ("pause", "SpoolshipClientTests/ModulesTests", "switches"),
        ("isEnabled", "SpoolshipClientTests/ModulesTests", "switches"),
        ("setCountryCode", "SpoolshipClientTests/ModulesTests", "protocolIsKept"),
        ("enableManualSessionTracker", "SpoolshipClientTests/ModulesTests", "protocolIsKept"),
        ("dispatchAndWait", "SpoolshipClientTests/ModulesTests", "dispatch"),
        ("flush", "SpoolshipClientTests/ModulesTests", "exactness"),
        ("spoolState", "SpoolshipClientTests/ModulesTests", "switches"),
        ("ContainerValues", "SpoolshipClientTests/ModulesTests", "values"),
        ("AgentContainer(id:app:)", "EndToEndTests/ClientTests", "moduleFunctions"),
        ("registerFunctionCallMacroHandler", "EndToEndTests/ClientTests", "moduleFunctions"),
        ("registerFunctionCallTagHandler", "EndToEndTests/ClientTests", "moduleFunctions"),
        ("isListening", "EndToEndTests/ClientTests", "moduleFunctions"),
        ("unhandledCalls", "SpoolshipClientTests/FunctionCallTests", "reconnect"),
    ]

    /// The rows of the page's tables: their cells, without heads.
    private static func rows() throws -> [[String]] {
        var rows: [[String]] = []
        var isTable = false
        for line in try text("docs/analytics.md").split(separator: "\n", omittingEmptySubsequences: false) {
            guard line.hasPrefix("|") else {
                isTable = false
                continue
            }
            if line.hasPrefix("| ---") {
                isTable = true
            } else if isTable {
                rows.append(
                    line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) })
            }
        }
        return rows
    }

    /// The texts between backticks.
    private static func codes(_ cell: String) -> [String] {
        cell.split(separator: "`", omittingEmptySubsequences: false).enumerated().filter {
            $0.offset % 2 == 1
        }
        .map { String($0.element) }
    }

    /// What a row is called: its first code, if the cell begins with it or nothing else names it.
    private static func test(of cell: String) -> (row: String, file: String, function: String)? {
        let first = codes(cell).first ?? ""
        return tests.first { $0.row == first } ?? tests.first { cell.hasPrefix($0.row) }
    }

    @Test("each row has a test, which exists, and no test is for a row that is gone")
    func rowsHaveTests() throws {
        let rows = try Self.rows()
        #expect(rows.count > 45)
        var used: Set<String> = []
        for row in rows {
            guard let test = Self.test(of: row[0]) else {
                Issue.record("no test for the row \(row[0]): add it to MappingPageTests")
                continue
            }
            used.insert(test.row)
            let source = try Self.text("Tests/\(test.file).swift")
            #expect(
                source.contains("func \(test.function)("),
                "\(test.file) has no \(test.function)")
        }
        #expect(Set(Self.tests.map(\.row)).subtracting(used).isEmpty)
    }

    @Test("what a row names exists: in the Swift client, the commands, the settings, or the modules")
    func namesExist() throws {
        let client = try Self.sources("Sources/SpoolshipClient")
        let commands = try Self.sources("Sources/spoolship/Commands")
        let reference = try Self.text("docs/reference.md") + Self.text("docs/writing-events.md")
        let python = try Self.text("examples/python/spoolship.py")
        let node = try Self.text("examples/node/spoolship.mjs")
        // The rows of the table of the modules are the last ones.
        let ofModules = Self.tests.drop { $0.row != "AnalyticsClient(settings)" }.map(\.row)
        for row in try Self.rows() {
            let isModule = row.count == 3 && ofModules.contains(Self.codes(row[0]).first ?? "")
            for (place, cell) in row.prefix(isModule ? 3 : 2).enumerated() where place > 0 || isModule {
                for code in Self.codes(cell) {
                    let words = Self.words(code)
                    let where_ = isModule ? [client, python, node][place] : client + commands + reference
                    for word in words {
                        #expect(where_.contains(word), "\(word) of \(code) in the row \(row[0])")
                    }
                }
            }
        }
    }

    /// The names in a code that must exist somewhere: no values, no placeholders.
    private static func words(_ code: String) -> [String] {
        if code.hasPrefix("spoolship ") {
            return ["\"\(code.dropFirst("spoolship ".count).prefix { $0 != "," })"]
        }
        let letters = CharacterSet.letters.union(CharacterSet(charactersIn: "_"))
        return code.components(separatedBy: letters.inverted).filter {
            $0.count > 3 && !["NAME", "name", "await", "false", "true", "seconds", "with"].contains($0)
        }
    }
}
