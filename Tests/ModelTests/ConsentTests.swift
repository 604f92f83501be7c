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
            (#"{"c\u006Fn\u0073ent":{"analytics":false}}"#, false, nil),
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
            // But not if nothing in it can be a letter of the member's name.
            (#"{"name":"caf\u00e9","n":1e400}"#, nil, nil),
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
        // The layer decides where the event says nothing, before a command that allows.
        func given(_ statement: ConsentStatement, layer: ConsentStatement) -> Bool {
            rules.isGiven("analytics", by: statement, layer: layer, of: "shop")
        }
        #expect(given(silent, layer: yes) && !given(no, layer: yes) && given(yes, layer: no))
        rules.states["shop", "analytics"] = true
        #expect(given(silent) && !given(silent, layer: no))
        rules.states["shop", "analytics"] = false
        #expect(!given(yes, layer: yes))
        rules.states["shop", "analytics"] = nil
        rules.needs["shop"] = .purposes(["ads"])
        #expect(given(silent) && !given(silent, layer: no))
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
        #expect(rules.concerns(["both"], of: "shop") && !rules.concerns(["main"], of: "shop"))
    }

    @Test("off by command refuses whatever an event says; on counts if the event is silent")
    func commands() {
        var rules = ConsentRules(purposes: ["stats": ["analytics"]], needs: ["shop": .all])
        let (yes, no) = (
            ConsentTests.statement(#"{"consent":true}"#), ConsentTests.statement(#"{"consent":false}"#)
        )
        func given(_ statement: ConsentStatement) -> Bool {
            rules.isGiven("analytics", by: statement, of: "shop")
        }
        rules.states["shop", "analytics"] = true
        #expect(given(ConsentStatement()) && given(yes) && !given(no))
        rules.states["shop", "analytics"] = false
        #expect(!given(ConsentStatement()) && !given(yes) && !given(no))
        rules.states["shop", "analytics"] = nil
        #expect(!given(ConsentStatement()) && given(yes))
    }

    @Test("nothing of an app goes anywhere while its collection is off, whatever its events say")
    func disabled() {
        var rules = ConsentRules(purposes: [:])
        #expect(rules.isIdle)
        rules.states.setDisabled(true, "shop")
        #expect(!rules.isIdle)
        #expect(rules.concerns(["main"], of: "shop") && !rules.concerns(["main"], of: "web"))
        let yes = ConsentTests.statement(#"{"consent":true}"#)
        #expect(rules.withheld(from: ["main"], saying: yes, of: "shop") == ["main"])
        #expect(rules.withheld(from: ["main"], saying: yes, of: "web").isEmpty)
        #expect(rules.reason(of: "shop") == "disabled" && rules.reason(of: "web") == "withheld")
    }

    @Test("the stored text says what was set, also of apps with spaces in their names")
    func states() {
        var states = ConsentStates()
        #expect(states.text == nil && states.isEmpty)
        states["my  shop ", "ads"] = false
        states["web", "analytics"] = true
        states.setDisabled(true, " a b")
        #expect(states.text == "off ads my  shop \non analytics web\ndisabled  a b")
        #expect(ConsentStates(states.text ?? "") == states && states.count == 3)
        #expect(states.withdrawn(from: ["ads", "analytics"]) == ["my  shop "])
        // The blank and the mark are one character, and two words all the same.
        var marked = ConsentStates()
        marked["\u{301}shop", "ads"] = false
        marked.setDisabled(true, "\u{301}web")
        #expect(ConsentStates(marked.text ?? "") == marked && marked.count == 2)
        // Lines of a newer version are ignored.
        #expect(ConsentStates("perhaps ads web\noff ads web")["web", "ads"] == false)
        states["my  shop ", "ads"] = nil
        states["web", "analytics"] = nil
        states.setDisabled(false, " a b")
        #expect(states.text == nil)
    }
}
