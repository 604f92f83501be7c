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

    @Test("a refusal by command counts most, then the event, then consent by command, then the setting")
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
        rules.states["shop", "analytics"] = true
        #expect(given(silent) && given(yes) && !given(no))
        rules.states["shop", "analytics"] = false
        #expect(!given(silent) && !given(yes) && !given(no))
        rules.states["shop", "analytics"] = nil
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

    @Test("the stored text says what was set, also of apps with spaces in their names")
    func storedText() {
        var states = ConsentStates()
        #expect(states.text == nil)
        states["shop", "analytics"] = false
        states["my shop", "ads"] = true
        #expect(states.text == "on ads my shop\noff analytics shop")
        #expect(ConsentStates(states.text ?? "") == states)
        #expect(ConsentStates("maybe analytics shop\non analytics\n\n").count == 0)
    }
}
