import EventLoops
import Glibc
import Model
import TestKit
import Testing

@testable import Containers

@Suite("Default files")
struct DefaultFileTests {
    private let directory: TemporaryDirectory
    private let complete = #"{"id": "GTM-1234", "version": 3, "values": {"from": "complete"}}"#

    init() throws { directory = try TemporaryDirectory() }

    private func place(_ name: String, _ text: String, mode: mode_t = 0o644) throws {
        let path = "\(directory.path)/\(name)"
        let file = try Descriptor(checking: open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600), "open")
        let bytes = Array(text.utf8)
        #expect(write(file.raw, bytes, bytes.count) == bytes.count)
        #expect(fchmod(file.raw, mode) == 0)
    }

    private func read(_ name: String) throws -> DefaultFile {
        try DefaultFile(path: "\(directory.path)/\(name)", id: "GTM-1234")
    }

    private func value(_ file: DefaultFile, _ key: String) -> JSONValue? {
        guard case .constant(let value) = file.document.values.first(where: { $0.key == key })?.operand else {
            return nil
        }
        return value
    }

    @Test("tm02: GTM-1234 is a complete document; GTM-1234.json and GTM-1234.plist have values only")
    func namings() throws {
        try place("GTM-1234", complete)
        #expect(value(try read("GTM-1234"), "from") == "complete")
        unlink("\(directory.path)/GTM-1234")
        try place("GTM-1234.json", #"{"from": "json", "count": 3, "share": 0.5, "on": true}"#)
        let json = try read("GTM-1234.json")
        #expect(json.document.version == 0)
        #expect(value(json, "from") == "json" && value(json, "count") == 3)
        try place(
            "GTM-1234.plist",
            """
            <?xml version="1.0" encoding="UTF-8"?>
            <plist version="1.0"><dict><key>from</key><string>pl&amp;ist "x"</string><key>count</key><integer>-3</integer>
            <key>share</key><real>0.5</real><key>whole</key><real>2</real><key>on</key><true/>
            <key>list</key><array><integer>1</integer><string>zwei</string></array></dict></plist>
            """)
        let list = try read("GTM-1234.plist")
        #expect(value(list, "from") == #"pl&ist "x""# && value(list, "count") == -3)
        #expect(
            value(list, "share") == .double(0.5) && value(list, "whole") == .double(2)
                && value(list, "on") == true)
        #expect(value(list, "list") == [1, "zwei"])
    }

    @Test("a published file that was changed after signing is reported as changed")
    func changedAfterSigning() throws {
        let (key, other) = (try SigningKey.generate(), try SigningKey.generate())
        let signed = String(
            decoding: try SignedDocument(signing: Array(complete.utf8), with: [key]).bytes, as: UTF8.self)
        let changed = String(signed.dropLast(2)) + " }}"
        for (text, keys, isGood) in [
            (signed, [key.publicKey], true), (signed, [other.publicKey], false),
            (changed, [key.publicKey], false),
            (changed, [], true), (complete, [key.publicKey], true),
        ] {
            try place("GTM-1234", text)
            let problem = try read("GTM-1234").signatureProblem(keys)
            #expect((problem == nil) == isGood, "\(text) \(problem ?? "")")
        }
    }

    @Test("a binary property list with a zero byte in a text is refused, and does not end the program")
    func zeroInText() throws {
        // {"ab": text}: the key, the text, the dictionary; offsets of one byte each.
        func list(_ text: [UInt8]) -> [UInt8] {
            let objects: [[UInt8]] = [[0xD1, 1, 2], [0x52, 0x61, 0x62], text]
            var bytes = Array("bplist00".utf8)
            var offsets: [UInt8] = []
            for object in objects {
                offsets.append(UInt8(bytes.count))
                bytes += object
            }
            let table = UInt64(bytes.count)
            bytes += offsets
            bytes += [0, 0, 0, 0, 0, 0, 1, 1]
            for number in [3, 0, table] as [UInt64] {
                bytes += withUnsafeBytes(of: number.bigEndian) { Array($0) }
            }
            return bytes
        }
        func write(_ bytes: [UInt8]) throws {
            let path = "\(directory.path)/GTM-1234.plist"
            let file = try Descriptor(checking: open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600), "open")
            #expect(Glibc.write(file.raw, bytes, bytes.count) == bytes.count)
            #expect(fchmod(file.raw, 0o644) == 0)
        }
        try write(list([0x62, 0x00, 0x41, 0x00, 0xE9]))
        #expect(value(try read("GTM-1234.plist"), "ab") == "A\u{E9}")
        for text: [UInt8] in [
            [0x62, 0x00, 0x41, 0x00, 0x00], [0x61, 0x00, 0x00], [0x53, 0x41, 0x00, 0x42],
        ] {
            try write(list(text))
            #expect(throws: (any Error).self) { try read("GTM-1234.plist") }
        }
    }

    @Test("tm02: links are followed neither to a default file nor to a directory above it")
    func links() throws {
        try place("GTM-1234", complete)
        let other = try TemporaryDirectory()
        #expect(symlink("\(directory.path)/GTM-1234", "\(other.path)/GTM-1234") == 0)
        #expect(throws: ContainerError.self) {
            try DefaultFile(path: "\(other.path)/GTM-1234", id: "GTM-1234")
        }
        #expect(symlink(directory.path, "\(other.path)/inner") == 0)
        #expect(throws: ContainerError.self) {
            try DefaultFile(path: "\(other.path)/inner/GTM-1234", id: "GTM-1234")
        }
        #expect(throws: Never.self) { try read("GTM-1234") }
    }

    @Test("tm02: a default file is trusted only if no other user can replace it or a directory above it")
    func directories() throws {
        let inner = "\(directory.path)/inner"
        #expect(mkdir(inner, 0o755) == 0)
        try place("inner/GTM-1234", complete)
        func isTrusted() -> Bool { (try? DefaultFile(path: "\(inner)/GTM-1234", id: "GTM-1234")) != nil }
        #expect(isTrusted())
        for (path, mode, wanted) in [
            (inner, mode_t(0o775), false), (inner, 0o757, false), (inner, 0o1777, false),
            (inner, 0o755, true),
            (directory.path, 0o777, false), (directory.path, 0o1777, true), (directory.path, 0o755, true),
        ] {
            #expect(chmod(path, mode) == 0)
            #expect(isTrusted() == wanted, "\(path) \(String(mode, radix: 8))")
        }
    }

    @Test("tm02: the complete document wins, then plist, then json; the ignored ones are listed")
    func order() throws {
        try place("GTM-1234.json", #"{"from": "json"}"#)
        #expect(try read("GTM-1234.json").overshadowed.isEmpty)
        try place("GTM-1234.plist", "<plist><dict><key>from</key><string>plist</string></dict></plist>")
        let second = try read("GTM-1234.json")
        #expect(value(second, "from") == "plist" && second.overshadowed == ["GTM-1234.json"])
        try place("GTM-1234", complete)
        let third = try read("GTM-1234.plist")
        #expect(
            value(third, "from") == "complete" && third.overshadowed == ["GTM-1234.plist", "GTM-1234.json"])
    }

    @Test(
        "tm02: another name is refused; for a name with a version the message has the right name",
        arguments: [
            ("GTM-1234_v3", "call it GTM-1234"), ("GTM-1234_v12.json", "call it GTM-1234.json"),
            ("gtm-1234", "call it GTM-1234"), ("GTM-9999", "call it GTM-1234 (complete)"),
        ])
    func names(_ name: String, _ hint: String) throws {
        try place(name, complete)
        #expect {
            try read(name)
        } throws: { error in
            guard let error = error as? ContainerError else { return false }
            return error.code == .file && "\(error)".hasSuffix(hint)
                || "\(error)".split(separator: hint).count > 1
        }
    }

    @Test(
        "tm02: a file of values with rules or tags is refused with the reason",
        arguments: ["rules", "tags", "macros"])
    func valuesOnly(_ word: String) throws {
        try place("GTM-1234.json", #"{"id": "GTM-1234", "\#(word)": [{"a": 1}]}"#)
        #expect { try read("GTM-1234.json") } throws: { "\($0)".split(separator: word).count > 1 }
    }

    @Test("tm02: a default file is checked for owner and mode: no other user may be able to change it")
    func trust() throws {
        for mode: mode_t in [0o664, 0o646, 0o666] {
            try place("GTM-1234", complete, mode: mode)
            #expect { try read("GTM-1234") } throws: { ($0 as? ContainerError)?.code == .file }
        }
        try place("GTM-1234", complete, mode: 0o600)
        #expect(try read("GTM-1234").document.version == 3)
        if geteuid() == 0 {
            #expect(chown("\(directory.path)/GTM-1234", 65_534, 65_534) == 0)
            #expect { try read("GTM-1234") } throws: { ($0 as? ContainerError)?.code == .file }
            let own = try DefaultFile(path: "\(directory.path)/GTM-1234", id: "GTM-1234", user: 65_534)
            #expect(own.document.id == "GTM-1234")
        }
    }

    @Test("tm02: directories, documents of other containers and garbage are refused")
    func refusals() throws {
        #expect { try read("GTM-1234") } throws: { ($0 as? ContainerError)?.code == .file }
        #expect(mkfifo("\(directory.path)/GTM-1234", 0o600) == 0)
        #expect { try read("GTM-1234") } throws: { ($0 as? ContainerError)?.code == .file }
        unlink("\(directory.path)/GTM-1234")
        try place("GTM-1234", #"{"id": "GTM-9", "version": 1}"#)
        #expect { try read("GTM-1234") } throws: { ($0 as? ContainerError)?.code == .id }
        try place("GTM-1234", "{")
        #expect { try read("GTM-1234") } throws: { ($0 as? ContainerError)?.code == .notJSON }
        unlink("\(directory.path)/GTM-1234")
        try place(
            "GTM-1234.plist", "<plist><dict><key>when</key><date>2026-01-01T00:00:00Z</date></dict></plist>")
        #expect { try read("GTM-1234.plist") } throws: { ($0 as? ContainerError)?.code == .form }
        try place("GTM-1234.plist", "no list")
        #expect { try read("GTM-1234.plist") } throws: { ($0 as? ContainerError)?.code == .form }
    }

    @Test("tm08: a published file can be used as a default file, with its signature")
    func signed() throws {
        let file = try SignedDocument(signing: Array(complete.utf8), with: [try SigningKey.generate()])
        try place("GTM-1234", String(decoding: file.bytes, as: UTF8.self))
        #expect(try read("GTM-1234").document.version == 3)
    }
}
