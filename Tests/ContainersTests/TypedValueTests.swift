import Containers
import Model
import Testing

@Suite("Typed values")
struct TypedValueTests {
    @Test("tm09: a value is converted if that is exact; otherwise it counts as missing")
    func conversions() {
        let cases: [(JSONValue, TypedValue, JSONValue?)] = [
            ("text", .string, "text"), (12, .string, "12"), (.double(0.5), .string, "0.5"),
            (true, .string, "true"),
            (12, .integer, 12), (.double(3), .integer, 3), (.double(3.5), .integer, nil),
            (.double(1e300), .integer, nil),
            ("42", .integer, 42), ("042", .integer, nil), (" 42", .integer, nil), ("text", .integer, nil),
            (true, .integer, nil), (12, .double, .double(12)), (.integer((1 << 53) + 1), .double, nil),
            ("0.5", .double, .double(0.5)), ("nan", .double, nil), ("inf", .double, nil),
            (true, .boolean, true),
            ("false", .boolean, false), ("yes", .boolean, nil), (1, .boolean, nil), (.null, .string, nil),
            ([1], .string, nil), (["a": 1], .string, nil),
        ]
        for (value, type, wanted) in cases { #expect(type.convert(value) == wanted, "\(value) as \(type)") }
    }

    @Test("tm09: a missing value gives the standard value of its type")
    func standards() {
        #expect(TypedValue.allCases.map(\.standard) == ["", 0, .double(0), false])
    }
}
