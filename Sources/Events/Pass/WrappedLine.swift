internal import Model

/// A line as a container's runtime has wrapped it: the CRI log format of Kubernetes, or Docker's `json-file`
/// format.
struct WrappedLine {
    /// What the program wrote, without the line feed at its end.
    var text: [UInt8] = []
    /// `stdout` or `stderr`.
    var stream: [UInt8] = []
    /// RFC 3339 text of the time at which the runtime received the line.
    var time: [UInt8] = []
    /// Whether the program's line ends here. If not, the next line of the same stream continues it.
    var isLast = true
    /// The offset after the line.
    let next: Int

    /// Parses `2026-11-20T10:00:00.123456789Z stdout F text`, without its line feed; nil for anything else.
    /// `F` is a full line or the end of one, `P` a part.
    init?(cri line: UnsafeBufferPointer<UInt8>, next: Int) {
        let words = line.split(separator: UInt8(ascii: " "), maxSplits: 3, omittingEmptySubsequences: false)
        guard words.count == 4,
            words[1].elementsEqual("stdout".utf8) || words[1].elementsEqual("stderr".utf8),
            words[2].first == UInt8(ascii: "F") || words[2].first == UInt8(ascii: "P")
        else { return nil }
        time = Array(words[0])
        stream = Array(words[1])
        text = Array(words[3])
        isLast = words[2].first == UInt8(ascii: "F")
        self.next = next
    }

    /// Parses `{"log":"text\\n","stream":"stdout","time":"…"}`; nil if there is no string `log`. A text
    /// without a line feed at its end is a part of a line.
    init?(docker block: UnsafePointer<UInt8>, _ object: Range<Int>, next: Int) {
        var isFound = false
        var walk = RawWalk(block, from: object.lowerBound, to: object.upperBound)
        while let member = walk.next() {
            guard block[member.value.lowerBound] == .quote else { continue }
            let text = UnsafeBufferPointer(
                start: block + member.value.lowerBound + 1, count: member.value.count - 2)
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
        if isLast {
            text.removeLast()
        }
        self.next = next
    }

    /// The member `kubernetes` of records that says which pod a file belongs to. Empty unless the path is
    /// like the kubelet's: `/var/log/pods/NAMESPACE_POD_UID/CONTAINER/N.log`.
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
