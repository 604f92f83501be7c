public import EventLoops
internal import Events
internal import Model

/// All mistakes of a document at once, with their lines, for `container test` and editors.
public struct DocumentReview: Sendable {
    /// The findings, each with its line and column, from 1.
    public let findings: [(line: Int, column: Int, finding: DocumentFinding)]

    /// Whether agents would refuse the document, or it does not do what it says.
    public var hasMistakes: Bool { findings.contains(where: \.finding.isMistake) }

    /// Most mistakes that are searched for in a document that cannot be read.
    private static let most = 20

    /// Reads a document, and continues after each mistake as if its part were empty.
    ///
    /// - Parameters:
    ///   - destinations: the agent's destinations; nil if they are not known.
    ///   - mayCall: functions that the document may call; nil if they are not known.
    ///   - now: with it, a document that has expired is a mistake.
    public init(
        _ bytes: [UInt8], facts: AgentFacts = AgentFacts(), destinations: [String]? = nil,
        mayCall: [String]? = nil,
        now: Timestamp? = nil
    ) {
        var found: [DocumentFinding] = []
        func add(_ message: String, at path: String) {
            found.append(DocumentFinding(isMistake: true, path: path, message: message))
        }
        var rest = bytes
        while found.count < DocumentReview.most {
            do throws(ContainerError) {
                let document = try ContainerDocument(reading: rest)
                var facts = facts
                facts.hashKey = facts.hashKey ?? .trial
                let compiled = try CompiledContainer(
                    document, mayCall: Set(mayCall ?? Array(document.functions)), facts: facts)
                if found.isEmpty {
                    found = compiled.findings
                }
                if let now, let expires = document.expires, expires <= now {
                    add("has passed; agents would refuse the document", at: "expires")
                }
                for (index, tag) in document.tags.enumerated() {
                    guard case .ship(let names) = tag.action, let destinations else { continue }
                    for name in names where !destinations.contains(name) {
                        add("there is no destination \(quoted(name))", at: "tags[\(index)].destinations")
                    }
                }
                for name in compiled.deniedFunctions {
                    add("\(quoted(name)) is not in may_call: it gives null or its default", at: "")
                }
                break
            } catch {
                add(error.message, at: error.path)
                guard let next = DocumentReview.emptied(rest, at: error.path), next != rest else { break }
                rest = next
            }
        }
        findings = found.map { finding in
            let before = bytes[..<DocumentReview.offset(of: finding.path, in: bytes)]
            let line = before.count { $0 == 0x0A } + 1
            let start = before.lastIndex(of: 0x0A).map { $0 + 1 } ?? 0
            return (line, before.count - start + 1, finding)
        }
    }

    /// The document with an empty part in place of the one that a path leads into: an empty rule, a macro
    /// that gives null.
    private static func emptied(_ bytes: [UInt8], at path: String) -> [UInt8]? {
        let way = way(to: path, in: bytes)
        guard let section = way.first?.name, let range = way.dropFirst().first?.range else { return nil }
        let part: String
        switch section {
        case "rules": part = #"{"conditions":[]}"#
        case "macros": part = #"{"type":"constant","value":null}"#
        case "values": part = "null"
        case "schemas": part = "true"
        case "tests": part = "{\"name\":\"\(range.lowerBound)\",\"expect\":{\"values\":{}}}"
        case "tags":
            part =
                "{\"name\":\"\(range.lowerBound)\",\"type\":\"prioritise\",\"priority\":\"normal\",\"when\":\"app == ''\"}"
        default: return nil
        }
        return Array(bytes[..<range.lowerBound]) + Array(part.utf8) + Array(bytes[range.upperBound...])
    }

    /// Offset of the part at a path; in a text that is not JSON, of the byte where it stops being JSON; in
    /// a text with a number that would change, of that number.
    private static func offset(of path: String, in bytes: [UInt8]) -> Int {
        do throws(JSONError) { _ = try JSONValue(parsing: bytes) } catch {
            return min(error.offset, bytes.count)
        }
        // A number that would change by being read is a mistake of the whole text.
        if path.isEmpty, let lost = try? KeptNumbers.read(bytes).lost { return lost.offset }
        return way(to: path, in: bytes).last?.range.lowerBound ?? 0
    }

    /// The values on the way to a path, outermost first, as far as the path leads.
    private static func way(to path: String, in bytes: [UInt8]) -> [(name: String, range: Range<Int>)] {
        guard (try? JSONValue(parsing: bytes)) != nil else { return [] }
        return bytes.withUnsafeBufferPointer { text in
            guard let base = text.baseAddress, let start = text.firstIndex(of: UInt8(ascii: "{")) else {
                return []
            }
            var way: [(name: String, range: Range<Int>)] = []
            var value = start..<RawWalk.valueEnd(base, start, text.count)
            var rest = path[...]
            while !rest.isEmpty {
                if rest.first == "." {
                    rest = rest.dropFirst()
                }
                var next: (range: Range<Int>, name: String, rest: Substring)?
                if base[value.lowerBound] == UInt8(ascii: "[") {
                    let number = rest.dropFirst().prefix { $0 != "]" }
                    let elements = RawWalk.elements(base, value)
                    if let index = Int(number), elements.indices.contains(index) {
                        next = (elements[index], String(number), rest.dropFirst(number.count + 2))
                    }
                } else if base[value.lowerBound] == UInt8(ascii: "{") {
                    var walk = RawWalk(base, from: value.lowerBound, to: value.upperBound)
                    while let member = walk.next() {
                        let name = String(decoding: RawJSON.decoded(base, member.name), as: UTF8.self)
                        // The longest of the names that begin alike.
                        for form in [name, "[\(quoted(name))]"]
                        where rest.hasPrefix(form) && name.count >= next?.name.count ?? 0 {
                            let left = rest.dropFirst(form.count)
                            if left.isEmpty || left.first == "." || left.first == "[" {
                                next = (member.value, name, left)
                            }
                        }
                    }
                }
                guard let found = next else { break }
                way.append((found.name, found.range))
                value = found.range
                rest = found.rest
            }
            return way
        }
    }
}
