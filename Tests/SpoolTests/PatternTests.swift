import EventLoops
import Glibc
import TestKit
import Testing

@testable import Spool

/// Patterns of files that are read in place, compared with what the C library and the shell make of them.
@Suite("Path patterns", .timeLimit(.minutes(5)))
struct PatternTests {
    /// A text of up to `most` characters of an alphabet.
    private func text(of alphabet: String, atMost most: Int, _ random: inout SplitMix64) -> String {
        let characters = Array(alphabet)
        return String(
            (0..<Int.random(in: 0...most, using: &random)).map { _ in
                characters[Int.random(in: characters.indices, using: &random)]
            })
    }

    @Test("names: a million pairs of pattern and name match as with fnmatch", arguments: [1, 2])
    func names(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var fitting = 0
        for _ in 0..<500_000 {
            let pattern = text(of: "aab.*?[]!^-c\\", atMost: 9, &random)
            let name = text(of: "aab.c-]!", atMost: 6, &random)
            // What a backslash at the end or at the end of a range means is not defined; `[.` begins a collating symbol, and no
            // part of a path is empty.
            guard !pattern.isEmpty, !name.isEmpty, !pattern.hasSuffix("\\"), !pattern.contains("-\\"),
                !pattern.contains("[.")
            else { continue }
            let fits = fnmatch(pattern, name, FNM_PERIOD) == 0
            fitting += fits ? 1 : 0
            #expect(NamePattern(pattern).fits(Array(name.utf8)) == fits, "\(pattern) \(name)")
        }
        #expect(fitting > 5000)
    }

    @Test("names: brackets with classes, non-ASCII characters, invalid UTF-8")
    func characters() {
        for (pattern, name, fits) in [
            ("app[[:digit:]].log", "app7.log", true), ("app[[:digit:]].log", "appx.log", false),
            ("[![:upper:]_]*", "_x", false), ("[![:upper:]_]*", "x", true), ("caf?", "café", true),
            ("caf[à-ü]", "café", true), ("caf??", "café", false), ("*é*", "un café noir", true),
        ] { #expect(NamePattern(pattern).fits(Array(name.utf8)) == fits, "\(pattern) \(name)") }
        let latin1 = Array("caf".utf8) + [0xE9]
        #expect(
            NamePattern("caf?").fits(latin1) && NamePattern("c*").fits(latin1)
                && NamePattern("caf[!a]").fits(latin1))
        #expect(!NamePattern("café").fits(latin1) && !NamePattern("caf??").fits(latin1))
        #expect(NamePattern("??").fits([0xC3, 0x28]) && NamePattern("?").fits([0xE2, 0x82, 0xAC]))
        #expect(NamePattern(NamePattern.quoted("a[1]*{x}?\\")).literal == Array("a[1]*{x}?\\".utf8))
    }

    @Test("names: overlap of two patterns is found exactly", arguments: [1, 2])
    func overlaps(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var (names, longest): ([[UInt8]], [[UInt8]]) = ([], [[]])
        for _ in 0..<4 {
            longest = longest.flatMap { name in Array("ab.".utf8).map { name + [$0] } }
            names += longest
        }
        for _ in 0..<4000 {
            let (one, two) = (
                NamePattern(text(of: "aab.*?[]!", atMost: 4, &random)),
                NamePattern(text(of: "aab.*?[]!", atMost: 4, &random))
            )
            if let both = names.first(where: { one.fits($0) && two.fits($0) }) {
                let name = String(decoding: both, as: UTF8.self)
                #expect(one.overlaps(two) && two.overlaps(one), "\(one.text) \(two.text): \(name)")
            }
        }
        for (one, two, overlaps) in [
            ("a[0-9]", "a[5-7]", true), ("a[0-4]", "a[5-7]", false), ("[!a]*", "a*", false),
            ("?", "??", false),
            ("x?z", "x*", true), ("*.log", "*.json", false), ("a*", "*", true), ("[a-c]*z", "[c-e]*y*", true),
        ] {
            let (one, two) = (NamePattern(one), NamePattern(two))
            #expect(one.overlaps(two) == overlaps && two.overlaps(one) == overlaps, "\(one.text) \(two.text)")
        }
    }

    @Test("braces expand as in bash")
    func braces() throws {
        let texts = [
            "/a/{b,c}.log", "/{a,b}/{c,d}", "/a/{b,c{d,e}f}", "/a/{b}", "/a/{b,c", "/a/{{b,c}", "/a/{b,c}}",
            "/{x{a,b}}",
            "/a/{,b}c", "/a/\\{b,c\\}", "/a/{b\\,c,d}", "/a,b", "/a/{b,{c,d},e}", "/{a,{b,{c,d}}}{e,f}",
        ]
        for text in texts {
            #expect(try PatternText.expanded(text).map { unquoted($0) } == shell(text), "\(text)")
        }
        #expect(throws: PatternText.Mistake.self) { try PatternText.expanded("/a/{1..9}.log") }
        let many = String(repeating: "{a,b}", count: 8)
        #expect(try PatternText.expanded("/" + many).count == 256)
        #expect(throws: PatternText.Mistake.self) { try PatternText.expanded("/" + many + "{a,b}") }
    }

    /// A text without the backslashes, which the shell removes when it has expanded braces.
    private func unquoted(_ text: String) -> String {
        var (result, isQuoted) = ("", false)
        for character in text {
            if character == "\\", !isQuoted {
                isQuoted = true
                continue
            }
            result.append(character)
            isQuoted = false
        }
        return result
    }

    /// What bash makes of the braces of a text.
    private func shell(_ text: String) throws -> [String] {
        let stream = try #require(
            popen("bash -c \"printf '%s\\\\n' \(text.replacing("\\", with: "\\\\"))\"", "r"))
        defer { pclose(stream) }
        var (lines, buffer) = ([String](), [CChar](repeating: 0, count: 4096))
        while fgets(&buffer, 4096, stream) != nil {
            let line = buffer.prefix { $0 != 0 && $0 != CChar(bitPattern: 0x0A) }
            lines.append(String(decoding: line.map { UInt8(bitPattern: $0) }, as: UTF8.self))
        }
        return lines
    }

    @Test("paths: ** is any number of directories that are not hidden, and at the end all files below")
    func paths() {
        for (pattern, path, fits) in [
            ("/a/**/*.log", "/a/x.log", true), ("/a/**/*.log", "/a/b/c/x.log", true),
            ("/a/**/*.log", "/a/.b/x.log", false), ("/a/**/*.log", "/a/b/.x.log", false),
            ("/a/**/.b/*", "/a/c/.b/x", true), ("/a/**", "/a/b/x", true), ("/a/**", "/a/x", true),
            ("/a/**", "/a", false), ("/a/**/b/**/c", "/a/b/b/x/c", true), ("/a/**/b/**/c", "/a/x/c", false),
            ("/a/**/**/c", "/a/c", true), ("/**/c", "/c", true), ("/a/*/c", "/a/b/b/c", false),
        ] {
            let compiled = PathPattern(path: pattern)
            let names = path.utf8.split(separator: UInt8(ascii: "/")).map { Array($0) }
            #expect(compiled.advanced(compiled.start, over: names).isWhole == fits, "\(pattern) \(path)")
        }
        for (one, two, meets) in [
            ("/a/**/*.log", "/a/b/c/x.log", true), ("/a/**/*.log", "/a/b/*.json", false),
            ("/a/**", "/b/**", false),
            ("/**/x", "/a/**/x.1", true), ("/a/**/b/*", "/a/*/c/x", false), ("/a/**/b/*", "/a/*/b/x", true),
            ("/**/a/**", "/**/b/**", true), ("/a/*", "/a/*/*", false),
        ] {
            let (one, two) = (PathPattern(path: one), PathPattern(path: two))
            #expect(one.meets(two) == meets && two.meets(one) == meets, "\(one.text) \(two.text)")
        }
        for (one, two, covers) in [
            ("/a/**", "/a/b/*.log", true), ("/a/**", "/a/**/x", true), ("/a/*/x", "/a/**/x", false),
            ("/a/*", "/a/b", true), ("/a/[b-d]", "/a/c", true), ("/a/[b-d]", "/a/e", false),
            ("/**/x", "/a/x", true),
        ] {
            #expect(
                PathPattern(path: one, isForHidden: true).covers(PathPattern(path: two)) == covers,
                "\(one) \(two)")
        }
    }

    @Test("hostile patterns take no time: stars, braces and ** by the dozen")
    func hostile() throws {
        let clock = ContinuousClock()
        let taken = clock.measure {
            let stars = NamePattern(String(repeating: "*a", count: 120) + "b")
            #expect(!stars.fits(Array(repeating: UInt8(ascii: "a"), count: 255)))
            #expect(stars.overlaps(NamePattern(String(repeating: "a*", count: 120) + "c")) == false)
            let deep = PathPattern(path: String(repeating: "/**/a", count: 200) + "/b")
            #expect(
                !deep.advanced(deep.start, over: Array(repeating: [UInt8(ascii: "a")], count: 500)).isWhole)
            #expect(!deep.meets(PathPattern(path: String(repeating: "/**/a", count: 200) + "/c")))
            #expect(throws: PatternText.Mistake.self) {
                try PatternText.expanded(
                    String(repeating: "{a,", count: 600) + String(repeating: "}", count: 600))
            }
            #expect(throws: PatternText.Mistake.self) {
                try PatternText.expanded(String(repeating: "{a,b}", count: 800))
            }
            #expect(NamePattern(String(repeating: "[", count: 4000)).literal?.count == 4000)
        }
        #expect(taken < .seconds(10))
    }

    @Test(
        "files can be excluded by path, by name and with their rotations; excluded directories are not entered"
    )
    func excluded() throws {
        let place = try #require(
            ReadPlace.of(
                app: "a", ["/l/**/*.log"], excluding: ["debug*.log", "/l/old/**", "/l/web/{a,b}.log"])?.first)
        for (directory, name, fits) in [
            ("", "app.log", true), ("x/y", "app.log.1", true), ("", "debug.log", false),
            ("x", "debug-1.log.2", false),
            ("old", "app.log", false), ("old/x", "app.log", false), ("web", "a.log", false),
            ("web", "b.log.1", false),
            ("web", "c.log", true), ("web/x", "a.log", true),
        ] { #expect(place.fits(FileName(directory), FileName(name)) == fits, "\(directory)/\(name)") }
        #expect(place.mayHold(below: FileName("web")) && place.mayHold(below: FileName("x/y")))
        #expect(!place.mayHold(below: FileName("old")) && !place.mayHold(below: FileName("old/x")))
        // What one app leaves out another may read, and what is left out is not reached.
        let others = ["/l/old/*.log", "/l/web/a.log", "/l/x/debug1.log"].map {
            ReadPlace.of(app: "b", [$0])?.first
        }
        for other in others { #expect(try !place.meets(#require(other)) && !#require(other).meets(place)) }
        #expect(try place.meets(#require(ReadPlace.of(app: "b", ["/l/web/*.log"])?.first)))
        #expect(!place.reaches(into: "/l/old") && place.reaches(into: "/l/new"))
        // Also if a link leads there.
        let moved = place.moved(to: "/disk/logs")
        #expect(
            !moved.fits(FileName("old"), FileName("x.log")) && moved.fits(FileName("new"), FileName("x.log")))
        #expect(ReadPlace.mistake("x/*.log", isExclusion: true) != nil && ReadPlace.mistake("*.log") != nil)
    }
}
