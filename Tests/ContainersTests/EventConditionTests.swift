import Model
import Testing

@testable import Containers

@Suite("Conditions of commands on stored events")
struct EventConditionTests {
    private func holds(_ condition: String, _ line: String, app: String = "shop") throws -> Bool {
        let judge = try EventCondition(condition).makeJudge()
        return Array(line.utf8).withUnsafeBytes { judge($0, app) }
    }

    @Test(
        "an event matches however its members are spelled",
        arguments: [
            #"{"name":"a","properties":{"user":"4711"}}"#, #"{"name":"a","properties":{"user":4711}}"#,
            #"{"name":"a","properties":{"user":"\u0034711"}}"#,
            #"{"name":"a","properties":{"\u0075ser":"4711"}}"#,
            #"{"name":"a","properties":{"x":1,"user" : "4711"}, "y":2}"#,
            #"{"name":"a","id":"1","properties":{"user":4711.0}}"#,
        ])
    func spellings(line: String) throws {
        #expect(try holds("properties.user == '4711' || properties.user == 4711", line))
    }

    @Test(
        "another value, another member or a part of the value does not match",
        arguments: [
            #"{"name":"a","properties":{"user":"47110"}}"#, #"{"name":"a","properties":{"id":"4711"}}"#,
            #"{"name":"a","user":"4711"}"#, #"{"name":"4711"}"#,
            #"{"name":"a","properties":{"user":["4711"]}}"#,
        ])
    func others(line: String) throws { #expect(try !holds("properties.user == '4711'", line)) }

    @Test(
        "of a member that occurs more than once each value counts",
        arguments: [
            #"{"properties":{"user":"4711","user":"bob"}}"#, #"{"properties":{"user":"bob","user":"4711"}}"#,
            #"{"properties":{"user":"a","user":"4711","u\u0073er":"b"}}"#,
            #"{"properties":{"user":"4711"},"properties":{"user":"bob"}}"#,
            #"{"properties":{"user":"4711","user":"a"},"properties":{"user":"b","user":"c"}}"#,
            #"{"properties":{"user":"a","user":"b"},"x":1,"x":2,"properties":{"user":"4711","user":"c"}}"#,
        ])
    func doubled(line: String) throws {
        #expect(try holds("properties.user == '4711'", line))
        #expect(try holds("properties.user starts_with '47'", line))
        #expect(try !holds("properties.user == '4712'", line))
        #expect(try !holds("properties.user == 'd' || name == '4711'", line))
    }

    @Test("a doubled member elsewhere does not make another person's event match")
    func doubledElsewhere() throws {
        let line = #"{"x":1,"x":2,"note":"4711","properties":{"user":"bob"}}"#
        #expect(try !holds("properties.user == '4711'", line))
        // A line that is made to cost much counts as found rather than being looked at for ever.
        let many = (0..<200).map { _ in #""user":"4712""# }.joined(separator: ",")
        #expect(
            try holds(
                "properties.user contains '471' && properties.user == '471'", "{\"properties\":{\(many)}}"))
    }

    @Test("conditions are joined as in rules, and may name the app")
    func joined() throws {
        let line = #"{"name":"Order paid","properties":{"user":"4711","amount":12}}"#
        #expect(try holds("app == 'shop' && name == 'Order paid' && properties.amount > 10", line))
        #expect(try !holds("app == 'shop' && properties.amount > 12", line))
        #expect(try !holds("app == 'shop'", line, app: "web"))
    }

    @Test("one judge can be used for many events")
    func manyEvents() throws {
        let judge = try EventCondition("properties.user == '4711'").makeJudge()
        for round in 0..<100 {
            let line = Array(#"{"name":"a","properties":{"user":"\#(4700 + round % 20)"}}"#.utf8)
            #expect(line.withUnsafeBytes { judge($0, "shop") } == (round % 20 == 11))
        }
    }

    @Test(
        "a text matches if it mentions the value, with any common escaping",
        arguments: [
            "{cut \"user\":\"ann@example.com\"", #"{cut "user":"ann\u0040example.com""#,
            #"user=ann\x40example.com"#,
            "user=ann%40example.com", "user=ann%2540example.com", "user=ann&#64;example.com",
            "user=ann&#x40;example.com", #"{cut "user":"ann\u0040example\u002ecom""#,
            #"{\"user\":\"ann@example.com\"}"#, #"user=ann\u{40}example.com"#, #"user=ann\100example.com"#,
            "user=ann&commat;example.com", "user=ann&amp;#64;example&period;com",
        ])
    func mentions(text: String) throws {
        #expect(try EventCondition("properties.user == 'ann@example.com'").isMentioned(in: Array(text.utf8)))
        #expect(try !EventCondition("properties.user == 'bob@example.com'").isMentioned(in: Array(text.utf8)))
    }

    @Test("a mention needs all values of an alternative; names, comparisons and negations are no mentions")
    func mentionedValues() throws {
        let both = try EventCondition(
            "name == 'paid' && properties.user == '4711' && properties.shop == 'berlin'")
        #expect(both.isMentioned(in: Array("4711 in berlin".utf8)))
        #expect(!both.isMentioned(in: Array("4711 in paris".utf8)))
        let either = try EventCondition("properties.user in ['4711', 'ANN'] ignore_case")
        #expect(either.isMentioned(in: Array("of ann".utf8)) && either.isMentioned(in: Array("4711".utf8)))
        for text in ["name == 'paid'", "app == 'shop'", "properties.n > 3", "properties.user != '4711'"] {
            let condition = try EventCondition(text)
            #expect(
                !condition.namesValues && !condition.isMentioned(in: Array("paid shop 3 4711".utf8)),
                "\(text)")
        }
    }

    @Test("a mistake is reported with its position")
    func mistakes() {
        #expect(throws: WrittenRule.Mistake.self) { try EventCondition("") }
        do {
            _ = try EventCondition("properties.user = 4711")
            Issue.record("a single = was accepted")
        } catch {
            #expect(error.column == 17, "\(error)")
        }
    }
}
