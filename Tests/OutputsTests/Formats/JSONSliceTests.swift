import TestKit
import Testing

@testable import Outputs

func slice(_ text: String) -> JSONSlice? { JSONSlice(Array(text.utf8)[...]) }

@Suite("JSON slices")
struct JSONSliceTests {
    @Test("members, elements and scalars are found, and nested values skipped")
    func values() throws {
        let value = try #require(
            slice(#" {"a" : [1, {"b":"]}"}, "x\"y"], "n":null,"t":true,"d":-1.5e3,"i":42,"o":{}} "#))
        #expect(value.members?.map(\.key) == ["a", "n", "t", "d", "i", "o"])
        let elements = try #require(value["a"]?.elements)
        #expect(elements.count == 3 && elements[0].integer == 1 && elements[1]["b"]?.string == "]}")
        #expect(elements[2].string == "x\"y" && value["n"]?.kind == .null && value["t"]?.boolean == true)
        #expect(
            value["d"]?.double == -1500 && value["i"]?.integer == 42 && value["o"]?.members?.isEmpty == true)
        #expect(value["missing"] == nil && slice("[]")?.elements?.isEmpty == true)
    }

    @Test(
        "strings are unescaped",
        arguments: [
            (#""a\n\t\r\b\f\/\\\"b""#, "a\n\t\r\u{8}\u{C}/\\\"b"), (#""\u00e9\ud83d\ude00""#, "é😀"),
            (#""\ud83d""#, "\u{FFFD}"), (#""\ud83dx""#, "\u{FFFD}x"), (#""\ude00""#, "\u{FFFD}"),
            (#""""#, ""),
        ])
    func strings(json: String, text: String) {
        #expect(slice(json)?.string == text)
    }

    @Test(
        "truncated or invalid JSON gives nil, never a trap",
        arguments: [
            "", " ", "{", "{\"a\"", "{\"a\":", "{\"a\":1", "[1,", "[\"a", "{a:1}", "[}", "{]", "\"", "[\"\\",
        ])
    func broken(json: String) {
        #expect(slice(json)?.members == nil && slice(json)?.elements == nil)
        _ = slice(json)?.string
    }

    @Test("mutated bytes never trap")
    func mutations() {
        let seed: UInt64 = 4711
        var random = SplitMix64(seed: seed)
        let start = Array(
            #"{"errors":true,"items":[{"create":{"status":400,"error":{"type":"a\u00e9","reason":"b\"c"}}}]}"#
                .utf8)
        for _ in 0..<5000 {
            var bytes = start
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                let place = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: bytes[place] = UInt8.random(in: 0...255, using: &random)
                case 1: bytes.remove(at: place)
                default: bytes.removeLast(Int.random(in: 0..<bytes.count, using: &random))
                }
                if bytes.isEmpty { break }
            }
            let value = JSONSlice(bytes[...])
            for item in value?["items"]?.elements ?? [] { _ = item["create"]?["error"]?["reason"]?.string }
            _ = value?.string
        }
    }

    @Test("deep nesting uses no stack")
    func depth() {
        let deep = String(repeating: "[", count: 1_000_000) + String(repeating: "]", count: 1_000_000)
        #expect(slice(deep)?.elements?.count == 1)
    }
}
