public import EventLoops
internal import Glibc

/// A file that a test's result is held to.
///
/// With `SPOOLSHIP_UPDATE_GOLDEN=1` in the environment the file is written instead; its diff is then reviewed like code.
public struct GoldenFile {
    /// Where it lies.
    public let path: String

    /// A file by its path from the package's root.
    public init(_ path: String) { self.path = "\(GoldenFile.root)/\(path)" }

    /// The package's root directory.
    public static let root: String = {
        // Tests/TestKit/GoldenFile.swift
        "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
    }()

    /// Where the text first differs from the file, for a person; nil when it does not.
    public func difference(from text: String) throws -> String? {
        if getenv("SPOOLSHIP_UPDATE_GOLDEN") != nil {
            try writeFile(path, text)
            return nil
        }
        let expected = try readFile(path)
        guard expected != text else { return nil }
        let old = expected.split(separator: "\n", omittingEmptySubsequences: false)
        let new = text.split(separator: "\n", omittingEmptySubsequences: false)
        let line =
            zip(old, new).enumerated().first { $0.element.0 != $0.element.1 }?.offset
            ?? min(old.count, new.count)
        func at(_ lines: [Substring]) -> Substring { line < lines.count ? lines[line] : "(nothing)" }
        return """
            \(path):\(line + 1) says
              \(at(old))
            and the program
              \(at(new))
            If that is meant: SPOOLSHIP_UPDATE_GOLDEN=1 swift test, and review the diff.
            """
    }
}

/// The whole text of a file.
public func readFile(_ path: String) throws -> String {
    let descriptor = try Descriptor(checking: open(path, O_RDONLY | O_CLOEXEC), "open")
    var bytes: [UInt8] = []
    var block = [UInt8](repeating: 0, count: 65_536)
    while true {
        let count = read(descriptor.raw, &block, block.count)
        guard count > 0 else { break }
        bytes.append(contentsOf: block[..<count])
    }
    return String(decoding: bytes, as: UTF8.self)
}

/// Makes or replaces a file.
public func writeFile(_ path: String, _ text: String) throws {
    let descriptor = try Descriptor(
        checking: open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644), "open")
    var bytes = Array(text.utf8)[...]
    while !bytes.isEmpty {
        let count = bytes.withUnsafeBytes { write(descriptor.raw, $0.baseAddress, $0.count) }
        guard count > 0 else { throw SystemError("write") }
        bytes = bytes.dropFirst(count)
    }
}

/// Runs a shell command and waits for it: what it printed on both outputs, and its exit code.
public func runShell(_ command: String) throws -> (code: Int32, output: String) {
    guard let pipe = popen("{ \(command)\n} 2>&1", "r") else { throw SystemError("popen") }
    var bytes: [UInt8] = []
    var block = [UInt8](repeating: 0, count: 65_536)
    while true {
        let count = fread(&block, 1, block.count, pipe)
        guard count > 0 else { break }
        bytes.append(contentsOf: block[..<count])
    }
    let status = pclose(pipe)
    return (status & 0x7F == 0 ? status >> 8 : 128 + (status & 0x7F), String(decoding: bytes, as: UTF8.self))
}

/// Files that tests replace as a person does whose secrets they hold: whole, and for their owner alone.
public enum PrivateFile {
    /// Writes a text under a new name and renames it over the old one.
    public static func replace(_ path: String, with text: String) throws(SystemError) {
        try WholeFile.replace(path, with: Array(text.utf8), mode: 0o600, isDurable: false)
    }
}
