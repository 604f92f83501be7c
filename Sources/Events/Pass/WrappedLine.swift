internal import Model

/// A line as a container's runtime has wrapped it.
struct WrappedLine {
    /// What the program wrote, without the line feed at its end.
    var text: [UInt8] = []
    var stream: [UInt8] = []
    /// When the runtime got it, as it says.
    var time: [UInt8] = []
    /// Whether what the program wrote as one line ends here.
    var isLast = true
    let next: Int

    /// `2026-11-20T10:00:00.123456789Z stdout F text`; nil if it is something else. Without its line feed.
    init?(cri line: UnsafeBufferPointer<UInt8>, next: Int) {
        let words = line.split(separator: UInt8(ascii: " "), maxSplits: 3, omittingEmptySubsequences: false)
        guard words.count == 4, words[1].elementsEqual("stdout".utf8) || words[1].elementsEqual("stderr".utf8),
            words[2].first == UInt8(ascii: "F") || words[2].first == UInt8(ascii: "P")
        else { return nil }
        (time, stream, text) = (Array(words[0]), Array(words[1]), Array(words[3]))
        isLast = words[2].first == UInt8(ascii: "F")
        self.next = next
    }

    /// `{"log":"text\\n","stream":"stdout","time":"…"}`; nil if there is no such member.
    init?(docker block: UnsafePointer<UInt8>, _ object: Range<Int>, next: Int) {
        var isFound = false
        var walk = RawWalk(block, from: object.lowerBound, to: object.upperBound)
        while let member = walk.next() {
            guard block[member.value.lowerBound] == .quote else { continue }
            let text = UnsafeBufferPointer(start: block + member.value.lowerBound + 1, count: member.value.count - 2)
            let name = UnsafeBufferPointer(start: block + member.name.lowerBound, count: member.name.count)
            switch String(decoding: name, as: UTF8.self) {
            case "log":
                self.text = JSONString.decoded(text)
                isFound = true
            case "stream": stream = Array(text)
            case "time": time = Array(text)
            default: break
            }
        }
        guard isFound else { return nil }
        isLast = text.last == .lineFeed
        if isLast { text.removeLast() }
        self.next = next
    }

    /// The member of records that says which pod a file below `/var/log/pods` belongs to; empty for another file.
    static func pod(ofFile path: String) -> [UInt8] {
        let parts = path.split(separator: "/")
        // …/NAMESPACE_POD_UID/CONTAINER/N.log
        guard parts.count >= 3 else { return [] }
        let names = parts[parts.count - 3].split(separator: "_")
        guard names.count == 3 else { return [] }
        let members = zip(["namespace", "pod", "container"], [names[0], names[1], parts[parts.count - 2]])
            .map { "\"\($0)\":" + String(decoding: JSONText.quoted(String($1)), as: UTF8.self) }
        return Array("\"kubernetes\":{\(members.joined(separator: ","))}".utf8)
    }
}
