/// Something that is wrong with a document, or weak, though it can be read.
public struct DocumentFinding: Sendable, Equatable, CustomStringConvertible {
    /// Whether the document does not do what it says; otherwise it is advice.
    public let isMistake: Bool
    /// Where: `tags[2].salt`.
    public let path: String
    /// What is wrong and what to do.
    public let message: String

    /// Where and what, in one line.
    public var description: String { "\(path): \(message)" }
}

extension CompiledContainer {
    /// What is wrong with the document on this machine, in the document's order.
    public var findings: [DocumentFinding] {
        var found: [DocumentFinding] = []
        func add(_ place: Int, at member: String = "", isMistake: Bool = true, _ message: String) {
            found.append(DocumentFinding(isMistake: isMistake, path: "tags[\(place)]\(member)", message: message))
        }
        for (place, tag) in tags.enumerated() {
            let name = quoted(tag.name)
            if blindTags.contains(tag.name) {
                add(
                    place, at: ".rules",
                    "rules of \(name) read from the data layer what tags hide, which is never there: use event_property; until then "
                        + "the tag acts whatever these rules say")
            }
            guard case .hash(_, let hashing) = tag.action else { continue }
            switch hashing {
            case .keyed: break
            case .salted:
                add(
                    place, at: ".salt", isMistake: false,
                    "\(name) hashes with a salt, and who has the document can find values by trying: leave salt out, and name a "
                        + "hash_key_file in [[container]]")
            case .withoutKey:
                add(
                    place,
                    "\(name) hashes, and there is no key: name a hash_key_file in [[container]]; until then (no hash key) takes the "
                        + "place of the values")
            }
        }
        return found
    }

    /// What is wrong, in one line; nil when nothing is.
    public var mistake: String? {
        let mistakes = findings.filter(\.isMistake)
        return mistakes.isEmpty ? nil : mistakes.map(\.description).joined(separator: "; ")
    }
}
