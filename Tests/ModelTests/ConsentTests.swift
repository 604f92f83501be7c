import Model
import Testing

@Suite("Consent")
struct ConsentTests {
    private static func statement(_ line: String) -> ConsentStatement {
        Array(line.utf8).withUnsafeBytes { ConsentStatement(ofLine: $0) }
    }

    @Test(
        "an event's member consent is read in all of its forms",
        arguments: [
            (#"{"name":"a"}"#, nil, nil),
            (#"{"consent":{"analytics":true}}"#, true, nil),
            (#"{"consent":{"analytics":false,"ads":true}}"#, false, true),
            (#"{"consent":{"analytics":"granted","ads":"denied"}}"#, true, false),
            (#"{"consent":true}"#, true, true),
            (#"{"consent":false}"#, false, false),
            (#"{"consent":null}"#, nil, nil),
            (#"{"consent":{"analytics":null}}"#, nil, nil),
            (#"{"consent":["analytics"]}"#, true, false),
            (#"{"consent":[]}"#, false, false),
            (#"{"consent.analytics":false}"#, false, nil),
            (#"{"c\u006fnsent":{"analytics":false}}"#, false, nil),
            (#"{"consent":{"an\u0061lytics":false}}"#, false, nil),
            // What nobody can read refuses.
            (#"{"consent":"yes"}"#, false, false),
            (#"{"consent":{"analytics":1}}"#, false, nil),
            // Of two members the refusal counts, in whatever order.
            (#"{"consent":{"analytics":false},"consent":{"analytics":true}}"#, false, nil),
            (#"{"consent":{"analytics":true},"consent":{"analytics":false}}"#, false, nil),
            (#"{"consent":true,"consent":false}"#, false, false),
            // Also if they have different forms.
            (#"{"consent":false,"consent":{"analytics":true}}"#, false, false),
            (#"{"consent":[],"consent":{"analytics":true}}"#, false, false),
            (#"{"consent":false,"consent.analytics":true}"#, false, false),
            (#"{"consent":["ads"],"consent":["analytics"]}"#, false, false),
            // An event that the reader of statements cannot read refuses: the scanner of events accepts more.
            (#"{"consent":{"analytics":true},"n":1e400}"#, false, false),
            (
                "{\"consent\":[],\"a\":" + String(repeating: "[", count: 63) + "1"
                    + String(repeating: "]", count: 63) + "}", false, false
            ),
            // A member below another one is no statement, nor is a text.
            (#"{"properties":{"consent":false}}"#, nil, nil),
            (#"{"message":"\"consent\":false"}"#, nil, nil),
            (#"not JSON "consent":false"#, nil, nil),
        ] as [(String, Bool?, Bool?)])
    func statements(line: String, analytics: Bool?, ads: Bool?) {
        let statement = ConsentTests.statement(line)
        #expect(statement.answer(for: "analytics") == analytics, "\(line)")
        #expect(statement.answer(for: "ads") == ads, "\(line)")
    }

    @Test("the event's statement counts, then the app's setting")
    func order() {
        var rules = ConsentRules(purposes: ["stats": ["analytics"]], needs: ["shop": .all])
        let (yes, no) = (
            ConsentTests.statement(#"{"consent":true}"#), ConsentTests.statement(#"{"consent":false}"#)
        )
        let silent = ConsentStatement()
        func given(_ statement: ConsentStatement, _ app: String = "shop") -> Bool {
            rules.isGiven("analytics", by: statement, of: app)
        }
        #expect(!given(silent) && given(yes) && !given(no))
        // An app without the setting needs no consent, but its events may refuse.
        #expect(given(silent, "web") && given(yes, "web") && !given(no, "web"))
        rules.needs["shop"] = .purposes(["ads"])
        #expect(given(silent))
    }

    @Test("a destination with two purposes needs consent to both; one without a purpose gets everything")
    func destinations() {
        let rules = ConsentRules(
            purposes: ["stats": ["analytics"], "both": ["analytics", "ads"]], needs: ["shop": .all])
        let destinations: [DestinationName] = ["main", "stats", "both"]
        func withheld(_ line: String) -> [DestinationName] {
            rules.withheld(from: destinations, saying: ConsentTests.statement(line), of: "shop")
        }
        #expect(withheld("{}") == ["stats", "both"])
        #expect(withheld(#"{"consent":{"analytics":true}}"#) == ["both"])
        #expect(withheld(#"{"consent":{"ads":true}}"#) == ["stats", "both"])
        #expect(withheld(#"{"consent":true}"#).isEmpty)
        #expect(rules.concerns(["both"]) && !rules.concerns(["main"]))
    }
}
