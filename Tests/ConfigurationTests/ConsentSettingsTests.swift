import Model
import Testing

@testable import Configuration

@Suite("Settings of consent")
struct ConsentSettingsTests {
    private static func settings(_ purpose: String, _ consent: String) throws -> Settings {
        let text = """
            [[destination]]
            name = "main"
            type = "stdout"
            [[destination]]
            name = "stats"
            type = "stdout"
            \(purpose)
            [apps.shop]
            \(consent)
            """
        return try Settings.read([ConfigurationText(file: "t.toml", text: text)]).settings
    }

    private static func problems(_ purpose: String, _ consent: String) -> [String] {
        MistakesTests.problems(
            """
            [[destination]]
            name = "main"
            type = "stdout"
            [[destination]]
            name = "stats"
            type = "stdout"
            \(purpose)
            [apps.shop]
            \(consent)
            """
        ).map(\.message)
    }

    @Test("a purpose is a word or a list, and so is what needs consent")
    func rules() throws {
        let one = try ConsentSettingsTests.settings("purpose = \"analytics\"", "consent = \"all\"")
        #expect(
            ConsentRules(one)
                == ConsentRules(purposes: ["stats": ["analytics"]], needs: ["shop": .all]))
        let two = try ConsentSettingsTests.settings(
            "purpose = [\"analytics\", \"ads\"]", "consent = [\"ads\"]")
        #expect(
            ConsentRules(two)
                == ConsentRules(
                    purposes: ["stats": ["analytics", "ads"]], needs: ["shop": .purposes(["ads"])]))
        // Without purposes nothing is asked of any event.
        let none = try ConsentSettingsTests.settings("", "consent = \"all\"")
        #expect(ConsentRules(none) == nil)
    }

    @Test(
        "check names an app's age that decides nothing",
        arguments: [
            ("max_age = \"7d\"", []),
            ("max_age = \"25d\"", ["apps.shop.max_age decides nothing: all events expire after 25d"]),
        ] as [(String, [String])])
    func ages(age: String, expected: [String]) {
        #expect(ConsentSettingsTests.problems("", age) == expected)
    }

    @Test(
        "check names a purpose that nobody has, and one that decides nothing",
        arguments: [
            ("purpose = \"analytics\"", "consent = \"all\"", []),
            (
                "purpose = \"analytics\"", "consent = \"analytcs\"",
                [
                    "destination.stats.purpose is needed by no app ([apps.NAME] consent): events go here unless"
                        + " somebody refused",
                    "apps.shop.consent has \"analytcs\", but no destination has this purpose;"
                        + " did you mean \"analytics\"?",
                    "apps.shop.consent decides nothing: none of the app's destinations has such a purpose",
                ]
            ),
            (
                "", "consent = \"all\"",
                ["apps.shop.consent decides nothing: no destination has a purpose; its events go to all"]
            ),
            (
                "purpose = \"analytics\"", "consent = \"all\"\ndestinations = [\"main\"]",
                ["apps.shop.consent decides nothing: none of the app's destinations has such a purpose"]
            ),
            (
                "purpose = \"analytics\"", "",
                [
                    "destination.stats.purpose is needed by no app ([apps.NAME] consent): events go here unless"
                        + " somebody refused"
                ]
            ),
            (
                "purpose = \"all\"", "",
                [
                    "destination.stats.purpose is \"all\"; must be 1 to 40 of a-z, 0-9, _ and -, and not all"
                ]
            ),
        ] as [(String, String, [String])])
    func check(purpose: String, consent: String, expected: [String]) {
        #expect(ConsentSettingsTests.problems(purpose, consent) == expected)
    }
}
