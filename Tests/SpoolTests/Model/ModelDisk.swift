import EventLoops
@testable import Spool

/// A file without a disk. Those who have it open go on with it when it has lost its name.
final class ModelFile {
    let number: UInt64
    var bytes: [UInt8] = []
    /// Changes with each change.
    var version: Int64 = 0
    var writers = 0
    var path: String?
    /// What is allowed if it does not become what it was before it was cut.
    var cut: Int?

    init(_ number: UInt64) { self.number = number }

    var id: FileID { FileID(bytes: [9] + (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }) }
    var isPacked: Bool { path?.hasSuffix(".gz") ?? false }

    /// The numbers of the whole lines from an offset on.
    func lines(from start: Int = 0, to end: Int? = nil) -> [Int] {
        ModelFile.lines(of: bytes[start..<(end ?? bytes.count)])
    }

    static func lines(of bytes: some Collection<UInt8>) -> [Int] {
        ArraySlice(bytes).split(separator: 0x0A).compactMap(number)
    }

    private static func number(_ line: ArraySlice<UInt8>) -> Int? {
        // A header, the same in all files, has none; nor has the first part of a line whose end is elsewhere.
        let line = line.drop { $0 == UInt8(ascii: "=") }
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")), line.last == UInt8(ascii: ".") else {
            return nil
        }
        var number = 0
        for byte in line[..<colon] {
            guard (0x30...0x39).contains(byte) else { return nil }
            number = number * 10 + Int(byte & 0xF)
        }
        return number
    }
}

/// What happened to names, as the kernel tells it.
enum ModelChange {
    case created(String)
    case modified(String)
    case moved(String, to: String)
    case deleted(String)
}

/// Directories of files, and which lines are where: a line that is in no file any more need not arrive.
final class ModelDisk {
    private(set) var names: [String: ModelFile] = [:]
    private(set) var changes: [ModelChange] = []
    private var nextNumber: UInt64 = 1
    /// In how many files with a name a line is.
    private var carriers: [Int: Int] = [:]
    /// Lines that were in the queue when the last file went that had them.
    var isDurable: (Int) -> Bool = { _ in false }
    /// Lines of copies that are just being made, and cannot be known.
    var isUnknowable: (Int) -> Bool = { _ in false }
    /// Lines that may be missing at the end, with their lengths.
    private(set) var destroyed: Set<Int> = []
    /// Lines that may come twice, and from when on: of copies that cannot be known, of files that were cut.
    private var allowed: [Int: (lines: Set<Int>, from: BootInstant)] = [:]
    /// How many bytes without a line feed were destroyed.
    private(set) var tornBytes: Int64 = 0

    func allow(_ lines: [Int], from due: BootInstant) -> Int {
        allowed[allowed.count + 1] = (Set(lines), due)
        return allowed.count
    }

    func forbid(_ number: Int) { allowed[number]?.lines = [] }

    func mayRepeat(_ line: Int, at now: BootInstant) -> Bool {
        allowed.values.contains { $0.from <= now && $0.lines.contains(line) } || isUnknowable(line)
    }

    func takeChanges(_ count: Int) -> [ModelChange] {
        let taken = Array(changes.prefix(count))
        changes.removeFirst(taken.count)
        return taken
    }

    func forgetChanges() { changes = [] }

    private func add(_ lines: [Int]) {
        for line in lines {
            carriers[line, default: 0] += 1
            destroyed.remove(line)
        }
    }

    private func destroy(_ file: ModelFile, from start: Int = 0) {
        for line in file.lines(from: start) {
            carriers[line, default: 1] -= 1
            if carriers[line] == 0, !isDurable(line) { destroyed.insert(line) }
        }
        tornBytes += Int64(file.bytes.reversed().prefix { $0 != 0x0A }.count)
    }

    func create(_ path: String) -> ModelFile {
        if let old = names[path] { return old }
        let file = ModelFile(nextNumber)
        nextNumber += 1
        file.path = path
        names[path] = file
        changes.append(.created(path))
        return file
    }

    func append(_ bytes: [UInt8], to file: ModelFile) {
        let start = file.bytes.lastIndex(of: 0x0A).map { $0 + 1 } ?? 0
        file.bytes += bytes
        file.version += 1
        if let cut = file.cut { allowed[cut]?.from = BootInstant(nanoseconds: 0) }
        file.cut = nil
        // Lines of a file without a name are nobody's loss: nobody can find them after a stop.
        guard let path = file.path else {
            return destroyed.formUnion(file.lines(from: start))
        }
        let end = file.bytes.lastIndex(of: 0x0A).map { $0 + 1 } ?? 0
        if end > start { add(file.lines(from: start, to: end)) }
        changes.append(.modified(path))
    }

    /// Cuts a file to a length where a line ends, or to nothing.
    func truncate(_ file: ModelFile, to length: Int = 0) {
        guard length < file.bytes.count else { return }
        if file.path != nil { destroy(file, from: length) }
        file.bytes.removeLast(file.bytes.count - length)
        file.version += 1
        if let path = file.path { changes.append(.modified(path)) }
    }

    func rename(_ old: String, to new: String) {
        guard let file = names[old], old != new else { return }
        if let target = names[new] { forget(target) }
        names[old] = nil
        names[new] = file
        file.path = new
        changes.append(.moved(old, to: new))
    }

    /// - Parameter isAgents: whether it had a name of the agent's by then, of which nothing is told.
    func delete(_ path: String, isAgents: Bool = false) {
        guard let file = names[path] else { return }
        forget(file)
        if !isAgents { changes.append(.deleted(path)) }
    }

    private func forget(_ file: ModelFile) {
        guard let path = file.path else { return }
        destroy(file)
        names[path] = nil
        file.path = nil
    }
}
