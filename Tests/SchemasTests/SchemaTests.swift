import EventLoops
import Glibc
import Model
import TestKit
import Testing

@testable import Schemas

/// What a schema says of an event: nil where it allows the event.
private func problem(_ schema: String, _ event: String) throws -> String? {
    let schema = try EventSchema(name: "purchase", Array(schema.utf8))
    // Behind an event in a block stands the next one.
    let line = Array((event + "\n{}").utf8)
    return line.withUnsafeBufferPointer { bytes in
        let object = UnsafeBufferPointer(rebasing: bytes[..<event.utf8.count])
        return schema.failure(in: object)?.description
    }
}

private func refusal(_ schema: String) -> String? {
    do throws(SchemaError) {
        _ = try EventSchema(name: "purchase", Array(schema.utf8))
        return nil
    } catch {
        return error.message
    }
}

extension TemporaryDirectory {
    fileprivate func write(_ text: String, to name: String) throws {
        try WholeFile.replace("\(path)/\(name)", with: Array(text.utf8), mode: 0o644)
    }
}

@Suite("Schemas")
struct SchemaTests {
    static let purchase = ##"""
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "version": "3", "type": "object",
         "required": ["name", "properties"],
         "properties": {
           "name": {"const": "purchase"}, "timestamp": {"type": "string"},
           "properties": {
             "type": "object", "required": ["order", "total"], "additionalProperties": false,
             "properties": {
               "order": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]+$", "minLength": 4, "maxLength": 12},
               "total": {"type": "number", "minimum": 0, "exclusiveMaximum": 100000},
               "currency": {"enum": ["EUR", "USD"]},
               "items": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"$ref": "#/$defs/item"}},
               "note": {"type": ["string", "null"]}}}},
         "$defs": {"item": {"type": "object", "required": ["sku"],
                            "properties": {"sku": {"type": "string"}, "count": {"type": "integer", "minimum": 1}},
                            "additionalProperties": {"type": "boolean"}}}}
        """##

    private func ofProperties(_ properties: String) throws -> String? {
        try problem(SchemaTests.purchase, #"{"name": "purchase", "properties": {\#(properties)}}"#)
    }

    @Test("a valid event is allowed, whatever its spacing, escapes and order")
    func allowed() throws {
        for properties in [
            #""order":"AB-1","total":12.5"#, #" "total" : 0 , "order" : "AB-123" , "note" : null "#,
            #""order":"AB-1","total":99999.99,"currency":"EUR","items":[{"sku":"a","count":1.0},{"sku":"b","gift":true}]"#,
            #""\u006frder":"\u0041B-1","total":1e2,"note":"a \" b""#,
        ] { #expect(try ofProperties(properties) == nil, "\(properties)") }
    }

    @Test(
        "a violation is named with path, keyword and position",
        arguments: [
            (#""total":1"#, "/properties lacks the member order (required), at byte 36"),
            (#""order":7,"total":1"#, "/properties/order is a number, must be string (type), at byte 45"),
            (
                #""order":"ab-1","total":1"#,
                "/properties/order does not match the expression (pattern), at byte 45"
            ),
            (
                #""order":"AB-1234567890","total":1"#,
                "/properties/order is longer than 12 characters (maxLength), at byte 45"
            ),
            (#""order":"AB-1","total":-1"#, "/properties/total is below minimum 0, at byte 60"),
            (
                #""order":"AB-1","total":100000"#,
                "/properties/total is not below exclusiveMaximum 100000, at byte 60"
            ),
            (
                #""order":"AB-1","total":1,"currency":"GBP""#,
                "/properties/currency is not one of the values of enum, at byte 73"
            ),
            (
                #""order":"AB-1","total":1,"colour":"red""#,
                "/properties has a member that is not in the schema (additionalProperties), at byte 62"
            ),
            (
                #""order":"AB-1","total":1,"items":[]"#,
                "/properties/items has fewer than 1 items (minItems), at byte 70"
            ),
            (
                #""order":"AB-1","total":1,"items":[{"sku":"a"},{"sku":"b","count":0.5}]"#,
                "/properties/items/1/count is a number with a fraction, must be integer (type), at byte 102"
            ),
            (
                #""order":"AB-1","total":1,"items":[{"sku":"a","secret":"x"}]"#,
                "/properties/items/0/(additional) is a text, must be boolean (type), at byte 91"
            ),
            (
                #""order":"AB-1","total":1,"note":[1]"#,
                "/properties/note is a list, must be string or null (type), at byte 69"
            ),
        ])
    func refused(properties: String, reason: String) throws {
        #expect(try ofProperties(properties) == reason)
    }

    @Test("numbers compare exactly, beyond the precision of a double")
    func numbers() throws {
        let schema = #"{"properties":{"n":{"minimum":9007199254740993}}}"#
        #expect(try problem(schema, #"{"n":9007199254740993}"#) == nil)
        #expect(try problem(schema, #"{"n":9007199254740992}"#) != nil)
        let whole = #"{"properties":{"n":{"type":"integer"}}}"#
        for (number, isWhole) in [
            ("1", true), ("-0", true), ("1.0", true), ("1e3", true), ("1.5", false), ("1e400", false),
        ] {
            #expect((try problem(whole, #"{"n":\#(number)}"#) == nil) == isWhole, "\(number)")
        }
        #expect(try problem(#"{"properties":{"n":{"enum":[1]}}}"#, #"{"n":1.0}"#) == nil)
        let long = String(repeating: "9", count: 5000)
        #expect(try problem(#"{"properties":{"n":{"maximum":5}}}"#, #"{"n":\#(long)}"#) != nil)
    }

    @Test("lengths count characters, not bytes or escapes")
    func lengths() throws {
        let schema = #"{"properties":{"s":{"minLength":2,"maxLength":2}}}"#
        for (text, isAllowed) in [
            ("ab", true), ("a", false), ("abc", false), ("äö", true), ("💩💩", true), ("💩", false),
            (#"\u00e4b"#, true),
            (#"\ud83d\udca9"#, false),
        ] {
            #expect((try problem(schema, #"{"s":"\#(text)"}"#) == nil) == isAllowed, "\(text)")
        }
    }

    @Test("enum and const compare lists and objects by value, with members in any order")
    func nested() throws {
        let schema = #"{"properties":{"v":{"enum":[{"a":1,"b":[true,null]},false]}}}"#
        #expect(try problem(schema, #"{"v":{"b":[true,null],"a":1.0}}"#) == nil)
        #expect(try problem(schema, #"{"v":false}"#) == nil)
        #expect(try problem(schema, #"{"v":true}"#) != nil)
        #expect(try problem(schema, #"{"v":{"a":1,"b":[true]}}"#) != nil)
        #expect(try problem(schema, #"{"v":null}"#) != nil)
    }

    @Test("a reference may lead to itself one level deeper; the event's nesting bounds the work")
    func recursion() throws {
        let schema =
            ##"{"properties":{"next":{"$ref":"#"},"n":{"type":"integer"}},"additionalProperties":false}"##
        let deep = (0..<60).reduce(#"{"n":1}"#) { text, _ in #"{"next":\#(text)}"# }
        #expect(try problem(schema, deep) == nil)
        #expect(
            try problem(schema, deep.replacing("1", with: "1.5"))?.contains(
                "/next/next/n is a number with a fraction")
                == true)
    }

    @Test("a reference beside properties doubles the work at each level: an expensive event is refused")
    func doubledWork() throws {
        let schema = try EventSchema(
            name: "e",
            Array(
                """
                {"$ref": "#/$defs/a", "properties": {"x": {"$ref": "#"}},
                 "$defs": {"a": {"properties": {"x": {"$ref": "#"}}}}}
                """.utf8))
        let deep = String(repeating: "{\"x\":", count: 60) + "1" + String(repeating: "}", count: 60)
        let failure = Array(deep.utf8).withUnsafeBufferPointer { schema.failure(in: $0) }
        #expect(failure?.reason.contains("too many comparisons") == true, "\(String(describing: failure))")
        let shallow = Array("{\"x\":{\"x\":{\"x\":1}}}".utf8)
        #expect(shallow.withUnsafeBufferPointer { schema.failure(in: $0) } == nil)
    }

    @Test("names with slashes and tildes are written in paths as in JSON Pointer")
    func pointers() throws {
        let schema =
            ##"{"properties":{"a/b~c":{"$ref":"#/$defs/x~1y%25"}},"$defs":{"x/y%":{"type":"null"}}}"##
        #expect(
            try problem(schema, #"{"a/b~c":1}"#) == "/a~1b~0c is a number, must be null (type), at byte 10")
    }

    @Test(
        "a document that cannot be checked in full is refused, with the position and a remedy",
        arguments: [
            ("{", "not JSON at byte 1"), ("[]", "the schema: a schema is an object, true or false"),
            (#"{"type":"text"}"#, "/type: must be one of object, array"),
            (
                #"{"properties":{"a":{"oneOf":[]}}}"#,
                "/properties/a/oneOf: the keyword is not supported; supported are type"
            ),
            (#"{"pattern":"(?=a)"}"#, "/pattern: RE2 cannot use the expression"),
            (
                #"{"properties":{"a":{"$ref":"https://example.com/x"}}}"#,
                "/properties/a/$ref: must lead into the document"
            ),
            (##"{"$ref":"#/$defs/a"}"##, "/$ref: leads nowhere: #/$defs/a"),
            (##"{"$ref":"#anchor"}"##, "/$ref: must be a JSON Pointer"),
            (
                ##"{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}"##,
                "its $ref leads back to itself"
            ),
            (#"{"minLength":-1}"#, "/minLength: must be a whole number that is not negative"),
            (#"{"minimum":"1"}"#, "/minimum: must be a number"),
            (#"{"items":[{}]}"#, "/items: must be one schema"),
            (#"{"enum":[]}"#, "/enum: must be a list of 1 to 1024"),
            (#"{"required":"a"}"#, "/required: must be a list of at most 64 names"),
            (#"{"type":"object","type":"array"}"#, "/type: the keyword is there twice"),
            (#"{"exclusiveMinimum":true}"#, "/exclusiveMinimum: must be a number"),
        ])
    func broken(schema: String, message: String) {
        #expect(refusal(schema)?.contains(message) == true, "\(refusal(schema) ?? "accepted")")
    }

    @Test("a document is limited in schemas, patterns and required names")
    func bounds() {
        let many = (0..<5000).map { #""p\#($0)":{}"# }.joined(separator: ",")
        #expect(refusal(#"{"properties":{\#(many)}}"#)?.contains("more than 4096 schemas") == true)
        let patterns = (0..<65).map { #""p\#($0)":{"pattern":"a"}"# }.joined(separator: ",")
        #expect(refusal(#"{"properties":{\#(patterns)}}"#)?.contains("more than 64 patterns") == true)
        let names = (0..<65).map { #""p\#($0)""# }.joined(separator: ",")
        #expect(refusal(#"{"required":[\#(names)]}"#)?.contains("at most 64 names") == true)
    }

    @Test("a long chain of references, and two files for the same events, are refused")
    func chainsAndDoubles() throws {
        func chain(_ length: Int) -> String {
            let links = (0..<length).map { "\"d\($0)\":{\"$ref\":\"#/$defs/d\($0 + 1)\"}" }.joined(
                separator: ",")
            return "{\"$ref\":\"#/$defs/d0\",\"$defs\":{\(links),\"d\(length)\":{}}}"
        }
        #expect(refusal(chain(20)) == nil)
        #expect(refusal(chain(40))?.contains("through more than 32 others") == true)
        let directory = try TemporaryDirectory()
        try writeFile("\(directory.path)/a.json", "{}")
        #expect(try SchemaFiles.read(directory.path).schemas.count == 1)
        try writeFile("\(directory.path)/%61.json", "{}")
        #expect(throws: SchemaError.self) { _ = try SchemaFiles.read(directory.path) }
    }

    @Test("a directory gives schemas by name and app; an unusable file is named, and then no schema applies")
    func directory() throws {
        let directory = try TemporaryDirectory()
        try directory.write(#"{"version":2}"#, to: "purchase.json")
        try directory.write(#"{"version":"x"}"#, to: "a%2Fb.json")
        try directory.write("no schema", to: "README.md")
        mkdir("\(directory.path)/shop", 0o755)
        try directory.write(#"{"type":"object"}"#, to: "shop/purchase.json")
        let set = try SchemaFiles.read(directory.path)
        #expect(
            set.schemas.map { [$0.app ?? "", $0.name, $0.version] } == [
                ["", "a/b", "x"], ["", "purchase", "2"], ["shop", "purchase", ""],
            ])
        func found(_ name: String, _ app: String) -> Int? {
            Array(name.utf8).withUnsafeBufferPointer { set.table(of: app).index(of: $0) }
        }
        #expect(found("purchase", "shop") == 2 && found("purchase", "web") == 1 && found("a/b", "shop") == 0)
        #expect(found("purchas", "shop") == nil)
        try directory.write("{", to: "shop/broken.json")
        #expect(throws: SchemaError("\(directory.path)/shop/broken.json: not JSON at byte 1: expected a key"))
        {
            _ = try SchemaFiles.read(directory.path)
        }
        #expect(throws: SchemaError.self) { _ = try SchemaFiles.read("\(directory.path)/none") }
    }
}
