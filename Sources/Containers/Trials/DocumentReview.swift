internal import Events
internal import Model

/// All mistakes of a document at once, with their lines.
public struct DocumentReview: Sendable {
    /// What was found, each with its line and column, from 1.
    public let findings: [(line: Int, column: Int, finding: DocumentFinding)]

    /// Whether agents would refuse the document, or it does not do what it says.
    public var hasMistakes: Bool { findings.contains(where: \.finding.isMistake) }

    /// How many mistakes are looked for that keep a document from being read.
    private static let most = 20

    /// Reads a document, and goes on behind each mistake as if its part were an empty one.
    /// `destinations` are the agent's, `mayCall` the functions that it may call; nil where they are not known.
    public init(
        _ bytes: [UInt8], facts: AgentFacts = AgentFacts(), destinations: [String]? = nil, mayCall: [String]? = nil
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
                if found.isEmpty { found = compiled.findings }
                for (place, tag) in document.tags.enumerated() {
                    guard case .ship(let names) = tag.action, let destinations else { continue }
                    for name in names where !destinations.contains(name) {
                        add("there is no destination \(quoted(name))", at: "tags[\(place)].destinations")
                    }
                }
                for name in compiled.deniedFunctions {
                    add("\(quoted(name)) is not in may_call: it gives null", at: "")
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

    /// The document with an empty part in the place of the one that a path leads into: an empty rule, a macro that gives null.
    private static func emptied(_ bytes: [UInt8], at path: String) -> [UInt8]? {
        let way = way(to: path, in: bytes)
        guard let section = way.first?.name, let range = way.dropFirst().first?.range else { return nil }
        let part: String
        switch section {
        case "rules": part = #"{"conditions":[]}"#
        case "macros": part = #"{"type":"constant","value":null}"#
        case "values": part = "null"
        case "tests": part = "{\"name\":\"\(range.lowerBound)\",\"expect\":{\"values\":{}}}"
        case "tags":
            part =
                "{\"name\":\"\(range.lowerBound)\",\"type\":\"prioritise\",\"priority\":\"normal\",\"when\":\"app == ''\"}"
        default: return nil
        }
        return Array(bytes[..<range.lowerBound]) + Array(part.utf8) + Array(bytes[range.upperBound...])
    }

    private static func offset(of path: String, in bytes: [UInt8]) -> Int {
        way(to: path, in: bytes).last?.range.lowerBound ?? 0
    }

    /// The values on the way to a path, with their names, outermost first, as far as it leads.
    private static func way(to path: String, in bytes: [UInt8]) -> [(name: String, range: Range<Int>)] {
        guard (try? JSONValue(parsing: bytes)) != nil else { return [] }
        return bytes.withUnsafeBufferPointer { text in
            guard let base = text.baseAddress, let start = text.firstIndex(of: UInt8(ascii: "{")) else { return [] }
            var way: [(name: String, range: Range<Int>)] = []
            var value = start..<RawWalk.valueEnd(base, start, text.count)
            var rest = path[...]
            while !rest.isEmpty {
                if rest.first == "." { rest = rest.dropFirst() }
                var next: (range: Range<Int>, name: String, rest: Substring)?
                if base[value.lowerBound] == UInt8(ascii: "[") {
                    let number = rest.dropFirst().prefix { $0 != "]" }
                    let elements = RawWalk.elements(base, value)
                    if let place = Int(number), elements.indices.contains(place) {
                        next = (elements[place], String(number), rest.dropFirst(number.count + 2))
                    }
                } else if base[value.lowerBound] == UInt8(ascii: "{") {
                    var walk = RawWalk(base, from: value.lowerBound, to: value.upperBound)
                    while let member = walk.next() {
                        let name = String(decoding: RawJSON.decoded(base, member.name), as: UTF8.self)
                        // Of names that begin alike the longest.
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
                (value, rest) = (found.range, found.rest)
            }
            return way
        }
    }
}
